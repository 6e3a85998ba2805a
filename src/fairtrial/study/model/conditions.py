"""Rows of a design and the conditions that they become.

Plain frozen dataclasses, without the checks of `Record`: there are many of them, and only
fairtrial makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DesignRow:
    """One row of a design, before constraints are judged and ids given.

    factors: the factors' values
    blocks: the blocks' values
    keyed: facts that are part of the id, for designs that come as rows (two equal rows are two
        conditions there)
    metadata: facts that are not
    written: the cells as the file spells them, where ids are of the text rather than the value
    """

    factors: Mapping[str, Any]
    blocks: Mapping[str, Any] = field(default_factory=dict)
    keyed: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DesignTable:
    """What a design gives: how many rows there will be, the rows, and what to know about them.

    size: the number of rows, known before the first of them is made
    rows: the rows; may be lazy, and is iterated once
    facts: what a person should know of the design: resolution, aliases, efficiency, ...
    settled: whether the rows stand in their final order already, so that `randomize` and
        `counterbalance` have nothing left to do
    """

    size: int
    rows: Iterable[DesignRow]
    facts: Mapping[str, Any] = field(default_factory=dict)
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """One combination of levels that runs happen under.

    An inadmissible condition is kept, with the messages of the constraints it breaks, and never
    run.
    """

    condition_id: str
    factor_assignments: Mapping[str, Any]
    block_assignments: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    admissible: bool = True
    constraint_messages: tuple[str, ...] = ()
