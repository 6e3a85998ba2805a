"""Rows of a design, and the conditions that they become.

These are plain frozen dataclasses without the checks of `Record`: there can be very many of them,
and only designs create them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import notebook_html

MOST = notebook_html.MOST_ROWS


@dataclass(frozen=True, slots=True)
class DesignRow:
    """One row of a design, before constraints are checked and ids assigned.

    factors: the value of each factor
    blocks: the level of each block
    id_metadata: metadata that is part of the condition's id, such as the row number in a design
        where two equal rows are two conditions
    metadata: metadata that is not part of the id
    raw_cells: the cells as the file has them, for designs whose ids are hashes of the text
        rather than of the values
    """

    factors: Mapping[str, Any]
    blocks: Mapping[str, Any] = field(default_factory=dict)
    id_metadata: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    raw_cells: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DesignTable:
    """The output of a design: its rows, their number, and properties of the design.

    size: the number of rows, known before the first row is generated
    rows: the rows; may be lazy, and is iterated once
    facts: properties of the design for its users: resolution, aliases, efficiency, ...
    settled: whether the rows are in their final order, so that `randomize` and `counterbalance`
        are not applied to them
    """

    size: int
    rows: Iterable[DesignRow]
    facts: Mapping[str, Any] = field(default_factory=dict)
    settled: bool = False

    def _repr_html_(self) -> str:
        """Return the design for a notebook; rows that are generated on demand stay unread."""
        rows = self.rows if isinstance(self.rows, Sequence) else ()
        names = list(dict.fromkeys(name for row in rows for name in (*row.factors, *row.blocks)))
        cells = [[{**row.factors, **row.blocks}.get(name) for name in names] for row in rows[:MOST]]
        return notebook_html.compose(
            f"{self.size:,} rows",
            notebook_html.facts((str(name), value) for name, value in self.facts.items()),
            notebook_html.table(names, cells, total=self.size) if cells else "",
            kind="design",
        )


@dataclass(frozen=True, slots=True)
class Condition:
    """One combination of factor and block levels under which runs are made.

    A condition that breaks a constraint of severity `error` stays in the plan, marked as not
    admissible, and is never run.

    condition_id: a hash of what the condition assigns
    factor_assignments: the value of each factor
    block_assignments: the level of each block
    metadata: further properties, such as the row number in the design
    admissible: whether the condition may run
    constraint_messages: a message for each constraint that it breaks
    """

    condition_id: str
    factor_assignments: Mapping[str, Any]
    block_assignments: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    admissible: bool = True
    constraint_messages: tuple[str, ...] = ()


class ConditionList(list[Condition]):
    """The conditions of a study in plan order; a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        """Return the conditions for a notebook."""
        assigned = [{**one.block_assignments, **one.factor_assignments} for one in self]
        names = list(dict.fromkeys(name for row in assigned for name in row))
        rows = [
            [
                one.condition_id,
                *(row.get(name) for name in names),
                "; ".join(one.constraint_messages),
            ]
            for one, row in zip(self[:MOST], assigned, strict=False)
        ]
        excluded = sum(not one.admissible for one in self)
        return notebook_html.compose(
            f"{len(self):,} conditions",
            notebook_html.facts([("excluded by constraints", excluded or None)]),
            notebook_html.table(["id", *names, "breaks"], rows, total=len(self)),
            kind="design",
        )
