"""How even a design is: how often each level occurs, and which factors move together."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump
from fairtrial.study.design.association import CONFOUNDED, Column, associate, read_columns
from fairtrial.study.design.constraints import message_of
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import ConstraintSeverity
from fairtrial.study.model.study import Study

MAX_PAIRS = 300
"""All pairs of 25 factors; of more factors only the first pairs are looked at."""
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class FactorBalance:
    """How often the levels of one factor occur.

    name: the factor
    n_levels: how many different values it takes
    counts: the rows of each level; empty for a scale (numbers that hardly repeat)
    max_to_min_ratio: how much more often the commonest value occurs than the rarest
    unused: levels of the study that don't occur
    """

    name: str
    n_levels: int
    counts: Mapping[str, int]
    max_to_min_ratio: float
    unused: tuple[str, ...] = ()

    @property
    def is_even(self) -> bool:
        """Whether it has levels, and all of them occur equally often."""
        return bool(self.counts) and self.max_to_min_ratio == 1 and not self.unused


@dataclass(frozen=True, slots=True)
class PairBalance:
    """How two factors go together.

    first, second: the factors
    association: from 0 (one says nothing about the other) to 1 (one decides the other)
    measure: `correlation` (its size) for numbers, `cramers_v` for levels that are no numbers and
        where one factor decides the other, `correlation_ratio` for a scale and levels
    equal: whether every two levels meet equally often; None where a scale is involved
    """

    first: str
    second: str
    association: float
    measure: str
    equal: bool | None

    @property
    def is_confounded(self) -> bool:
        """Whether the two factors' effects can't be told apart."""
        return self.association >= CONFOUNDED


@dataclass(frozen=True, slots=True)
class DesignBalance:
    """The balance of a table of rows; `pairs_left_out` counts those too many to look at."""

    rows: int
    factors: tuple[FactorBalance, ...]
    pairs: tuple[PairBalance, ...]
    pairs_left_out: int = 0

    @property
    def is_even(self) -> bool:
        """Whether every level, and every pair of levels, occurs equally often."""
        levels_are = all(factor.is_even for factor in self.factors)
        return levels_are and all(pair.equal for pair in self.pairs) and not self.pairs_left_out

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        data: dict[str, Any] = dump(self)
        return data


@dataclass(frozen=True, slots=True)
class Loss:
    """A level, or a meeting of two levels, that lost conditions to constraints.

    levels: the level of each factor it is about
    planned: the conditions that have it
    kept: those of them that may run
    constraints: the ids of the constraints that ruled the others out
    """

    levels: Mapping[str, str]
    planned: int
    kept: int
    constraints: tuple[str, ...]

    def __str__(self) -> str:
        what = " with ".join(f"{name}={level}" for name, level in self.levels.items())
        kept = f"keeps {self.kept} of {self.planned} conditions" if self.kept else "never runs"
        return f"{what} {kept} ({', '.join(self.constraints)})"


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """The balance of a study's conditions, and what its constraints did to it.

    before: the balance of all conditions
    after: the balance of those that may run
    excluded: how many may not
    lost_levels: the levels of factors that constraints made uneven
    lost_cells: the pairs of levels that never meet, though each of the two still runs
    lost_cells_left_out: how many more of these there are
    """

    before: DesignBalance
    after: DesignBalance
    excluded: int
    lost_levels: tuple[Loss, ...]
    lost_cells: tuple[Loss, ...]
    lost_cells_left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        data: dict[str, Any] = dump(self)
        return data


def design_balance(
    rows: Sequence[Mapping[str, Any]],
    levels: Mapping[str, Sequence[Any]] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> DesignBalance:
    """Counts each factor's levels, and measures how each two factors go together.

    levels: those that each factor is meant to have, where that is known
    names: what these are called, if not by their values
    """
    return _balance(read_columns(rows, levels, names), len(rows))


def _balance(columns: Sequence[Column], rows: int) -> DesignBalance:
    pairs = list(itertools.islice(itertools.combinations(columns, 2), MAX_PAIRS))
    return DesignBalance(
        rows=rows,
        factors=tuple(_factor_balance(column) for column in columns),
        pairs=tuple(
            PairBalance(first.name, second.name, *associate(first, second))
            for first, second in pairs
        ),
        pairs_left_out=math.comb(len(columns), 2) - len(pairs),
    )


def _factor_balance(column: Column) -> FactorBalance:
    counts = {} if column.is_scale else column.counts
    return FactorBalance(
        name=column.name,
        n_levels=len(column.counts),
        counts={column.labels[code]: count for code, count in counts.items()},
        max_to_min_ratio=column.ratio,
        unused=tuple(column.unused),
    )


def design_balance_report(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Each factor's number of levels and the ratio of its most to its least frequent one."""
    return {
        column.name: {"n_levels": float(len(column.counts)), "max_to_min_ratio": column.ratio}
        for column in read_columns(rows)
    }


def balance_report(study: Study, conditions: Sequence[Condition]) -> BalanceReport:
    """The balance of the conditions that may run, and which excluded ones made it uneven.

    Blocks count as columns named `block_<name>`.
    """
    rows = [
        {
            **condition.factor_assignments,
            **{f"block_{name}": value for name, value in condition.block_assignments.items()},
        }
        for condition in conditions
    ]
    kept = [row for row, each in zip(rows, conditions, strict=True) if each.admissible]
    levels: dict[str, Sequence[Any]] = {f.name: f.iter_values() for f in study.factors if f.levels}
    levels |= {f"block_{block.name}": block.levels for block in study.blocks}
    names = {factor.name: [level.name for level in factor.levels] for factor in study.factors}
    columns = read_columns(rows, levels, names)
    exclusions = _Exclusions(study, conditions)
    cells = list(_lost_cells(columns, exclusions))
    before = _balance(columns, len(rows))
    excluded = len(rows) - len(kept)
    return BalanceReport(
        before=before,
        after=design_balance(kept, levels, names) if excluded else before,
        excluded=excluded,
        lost_levels=tuple(_lost_levels(columns, exclusions)),
        lost_cells=tuple(cells[:MAX_LISTED]),
        lost_cells_left_out=max(0, len(cells) - MAX_LISTED),
    )


class _Exclusions:
    """Which conditions constraints rule out, by position, and which constraints those are."""

    def __init__(self, study: Study, conditions: Sequence[Condition]) -> None:
        errors = {
            message_of(constraint): constraint.constraint_id
            for constraint in study.constraints
            if constraint.severity is ConstraintSeverity.ERROR
        }
        self.reasons = {
            position: [errors[text] for text in condition.constraint_messages if text in errors]
            for position, condition in enumerate(conditions)
            if not condition.admissible
        }

    def losses(self, columns: Sequence[Column]) -> Iterator[Loss]:
        """What each level (of one column) or meeting of levels (of two) lost."""
        codes = list(zip(*(column.codes for column in columns), strict=True))
        planned = Counter(codes)
        lost = Counter(codes[position] for position in self.reasons)
        reasons: dict[tuple[int, ...], dict[str, None]] = {}
        for position, names in self.reasons.items():
            reasons.setdefault(codes[position], {}).update(dict.fromkeys(names))
        for cell, count in planned.items():
            yield Loss(
                levels={
                    column.name: column.labels[code]
                    for column, code in zip(columns, cell, strict=True)
                },
                planned=count,
                kept=count - lost[cell],
                constraints=tuple(reasons.get(cell, ())),
            )


def _lost_levels(columns: Sequence[Column], exclusions: _Exclusions) -> Iterator[Loss]:
    """The levels that lost conditions, of factors whose levels did not all lose the same share."""
    for column in columns:
        if column.is_scale:
            continue
        losses = list(exclusions.losses([column]))
        if len({loss.kept / loss.planned for loss in losses}) > 1:
            yield from (loss for loss in losses if loss.kept < loss.planned)


def _lost_cells(columns: Sequence[Column], exclusions: _Exclusions) -> Iterator[Loss]:
    """The pairs of levels of which nothing is left, though each of the two still runs."""
    if not exclusions.reasons:
        return
    levels = [column for column in columns if not column.is_scale]
    gone = {
        (column.name, label)
        for column in levels
        for loss in exclusions.losses([column])
        for label in loss.levels.values()
        if not loss.kept
    }
    for pair in itertools.islice(itertools.combinations(levels, 2), MAX_PAIRS):
        for loss in exclusions.losses(pair):
            if not loss.kept and not gone & set(loss.levels.items()):
                yield loss
