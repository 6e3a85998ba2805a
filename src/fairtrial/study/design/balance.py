"""The balance of a design: how often levels occur, and which factors are associated."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.association import CONFOUNDED, DesignColumn, associate, read_columns
from fairtrial.study.design.constraints import constraint_message
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import ConstraintSeverity
from fairtrial.study.model.study import Study

MAX_PAIRS = 300
"""The most pairs of factors that are measured: all pairs of 25 factors."""
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class FactorBalance:
    """How often the levels of one factor occur.

    name: the factor
    n_levels: the number of different values
    counts: the number of rows of each level; empty for a scale (numbers that hardly repeat)
    max_to_min_ratio: the count of the most frequent value, divided by that of the least frequent
    unused: declared levels that don't occur
    """

    name: str
    n_levels: int
    counts: Mapping[str, int]
    max_to_min_ratio: float
    unused: tuple[str, ...] = ()

    @property
    def is_even(self) -> bool:
        """Whether all levels occur equally often; False for a scale."""
        return bool(self.counts) and self.max_to_min_ratio == 1 and not self.unused


@dataclass(frozen=True, slots=True)
class PairBalance:
    """The association of two factors.

    first, second: the factors
    association: from 0 (independent) to 1 (one factor determines the other)
    measure: `correlation` (its absolute value) for numbers, `cramers_v` for levels that are no
        numbers and if one factor determines the other, `correlation_ratio` for a scale and levels
    equal: whether all pairs of levels occur equally often; None if one factor is a scale
    """

    first: str
    second: str
    association: float
    measure: str
    equal: bool | None

    @property
    def is_confounded(self) -> bool:
        """Whether the effects of the two factors can't be separated."""
        return self.association >= CONFOUNDED


@dataclass(frozen=True, slots=True)
class DesignBalance:
    """The balance of a table of rows.

    rows: the number of rows
    factors: the balance of each factor
    pairs: the association of each pair of factors
    pairs_left_out: the number of pairs that were not measured
    """

    rows: int
    factors: tuple[FactorBalance, ...]
    pairs: tuple[PairBalance, ...]
    pairs_left_out: int = 0

    @property
    def is_even(self) -> bool:
        """Whether every level, and every pair of levels, occurs equally often."""
        has_even_levels = all(factor.is_even for factor in self.factors)
        has_even_pairs = all(pair.equal for pair in self.pairs)
        return has_even_levels and has_even_pairs and not self.pairs_left_out

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


@dataclass(frozen=True, slots=True)
class ExcludedLevels:
    """A level, or a pair of levels, of which constraints exclude conditions.

    levels: the level of each factor
    planned: the number of conditions with these levels
    kept: how many of them may run
    constraints: the ids of the constraints that exclude the others
    """

    levels: Mapping[str, str]
    planned: int
    kept: int
    constraints: tuple[str, ...]

    def __str__(self) -> str:
        levels = " with ".join(f"{name}={level}" for name, level in self.levels.items())
        kept = f"keeps {self.kept} of {self.planned} conditions" if self.kept else "never runs"
        return f"{levels} {kept} ({', '.join(self.constraints)})"


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """The balance of a study's conditions, before and after constraints.

    before: the balance of all conditions
    after: the balance of the conditions that may run
    excluded: the number of conditions that constraints exclude
    lost_levels: levels with excluded conditions, of factors that are uneven because of that
    lost_cells: pairs of levels that never run together, although each of the two runs
    lost_cells_left_out: the number of such pairs that are not listed
    """

    before: DesignBalance
    after: DesignBalance
    excluded: int
    lost_levels: tuple[ExcludedLevels, ...]
    lost_cells: tuple[ExcludedLevels, ...]
    lost_cells_left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def design_balance(
    rows: Sequence[Mapping[str, Any]],
    levels: Mapping[str, Sequence[Any]] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> DesignBalance:
    """Return the counts of each factor's levels, and the association of each pair of factors.

    levels: the declared levels of each factor
    names: the names of these levels, if they are not called by their values
    """
    return _measure_balance(read_columns(rows, levels, names), len(rows))


def _measure_balance(columns: Sequence[DesignColumn], rows: int) -> DesignBalance:
    pairs = list(itertools.islice(itertools.combinations(columns, 2), MAX_PAIRS))
    return DesignBalance(
        rows=rows,
        factors=tuple(_measure_factor(column) for column in columns),
        pairs=tuple(
            PairBalance(first.name, second.name, *associate(first, second))
            for first, second in pairs
        ),
        pairs_left_out=math.comb(len(columns), 2) - len(pairs),
    )


def _measure_factor(column: DesignColumn) -> FactorBalance:
    counts = {} if column.is_scale else column.counts
    return FactorBalance(
        name=column.name,
        n_levels=len(column.counts),
        counts={column.labels[code]: count for code, count in counts.items()},
        max_to_min_ratio=column.ratio,
        unused=tuple(column.unused),
    )


def design_balance_report(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return each factor's number of levels, and the ratio of its largest to its smallest count."""
    return {
        column.name: {"n_levels": float(len(column.counts)), "max_to_min_ratio": column.ratio}
        for column in read_columns(rows)
    }


def balance_report(study: Study, conditions: Sequence[Condition]) -> BalanceReport:
    """Return the balance of a study's conditions, and the levels that constraints exclude.

    Blocks are included, as columns named `block_<name>`.
    """
    rows = [
        {
            **condition.factor_assignments,
            **{f"block_{name}": value for name, value in condition.block_assignments.items()},
        }
        if condition.block_assignments
        else condition.factor_assignments
        for condition in conditions
    ]
    kept = [row for row, c in zip(rows, conditions, strict=True) if c.admissible]
    levels: dict[str, Sequence[Any]] = {f.name: f.iter_values() for f in study.factors if f.levels}
    levels |= {f"block_{block.name}": block.levels for block in study.blocks}
    names = {factor.name: [level.name for level in factor.levels] for factor in study.factors}
    columns = read_columns(rows, levels, names)
    exclusions = _Exclusions(study, conditions)
    cells = list(_find_lost_cells(columns, exclusions))
    before = _measure_balance(columns, len(rows))
    excluded = len(rows) - len(kept)
    return BalanceReport(
        before=before,
        after=design_balance(kept, levels, names) if excluded else before,
        excluded=excluded,
        lost_levels=tuple(_find_lost_levels(columns, exclusions)),
        lost_cells=tuple(cells[:MAX_LISTED]),
        lost_cells_left_out=max(0, len(cells) - MAX_LISTED),
    )


class _Exclusions:
    """The conditions that constraints exclude, by index, with the ids of these constraints."""

    def __init__(self, study: Study, conditions: Sequence[Condition]) -> None:
        errors = {
            constraint_message(constraint): constraint.constraint_id
            for constraint in study.constraints
            if constraint.severity is ConstraintSeverity.ERROR
        }
        self.constraints = {
            index: [errors[text] for text in condition.constraint_messages if text in errors]
            for index, condition in enumerate(conditions)
            if not condition.admissible
        }

    def count(self, columns: Sequence[DesignColumn]) -> Iterator[ExcludedLevels]:
        """Yield the planned and kept conditions of each level, or of each pair for two columns."""
        codes = list(zip(*(column.codes for column in columns), strict=True))
        planned = Counter(codes)
        excluded = Counter(codes[index] for index in self.constraints)
        constraints: dict[tuple[int, ...], dict[str, None]] = {}
        for index, names in self.constraints.items():
            constraints.setdefault(codes[index], {}).update(dict.fromkeys(names))
        for cell, count in planned.items():
            yield ExcludedLevels(
                levels={
                    column.name: column.labels[code]
                    for column, code in zip(columns, cell, strict=True)
                },
                planned=count,
                kept=count - excluded[cell],
                constraints=tuple(constraints.get(cell, ())),
            )


def _find_lost_levels(
    columns: Sequence[DesignColumn], exclusions: _Exclusions
) -> Iterator[ExcludedLevels]:
    """Yield levels with excluded conditions, of factors whose levels keep different shares."""
    if not exclusions.constraints:
        return
    for column in columns:
        if column.is_scale:
            continue
        levels = list(exclusions.count([column]))
        if len({level.kept / level.planned for level in levels}) > 1:
            yield from (level for level in levels if level.kept < level.planned)


def _find_lost_cells(
    columns: Sequence[DesignColumn], exclusions: _Exclusions
) -> Iterator[ExcludedLevels]:
    """Yield the pairs of levels that never run together, although each of the two runs."""
    if not exclusions.constraints:
        return
    level_columns = [column for column in columns if not column.is_scale]
    never_run = {
        (column.name, label)
        for column in level_columns
        for level in exclusions.count([column])
        for label in level.levels.values()
        if not level.kept
    }
    for pair in itertools.islice(itertools.combinations(level_columns, 2), MAX_PAIRS):
        for cell in exclusions.count(pair):
            if not cell.kept and not never_run & set(cell.levels.items()):
                yield cell
