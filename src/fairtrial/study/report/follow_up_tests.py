"""Smaller comparisons within a question: pairs of levels, strata, a check with averaged runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.model.hypotheses import HypothesisKind
from fairtrial.study.report.pairing import circumstances, put_together
from fairtrial.study.report.samples import Sample
from fairtrial.study.report.test_result import Detail
from fairtrial.study.stats.finding import Finding, UntestableError
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.two_groups import paired_t_test, welch_t_test

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

Compare = Callable[["Values", "Values"], Finding]
LEAST_SETS = 3
ELSEWHERE = "The difference elsewhere (described, not tested)"


def compare_pairs(
    sample: Sample, compare: Compare, columns: Sequence[Values], *, is_paired: bool = False
) -> tuple[str, tuple[Detail, ...]]:
    """Two levels at a time: each with the baseline for a claim with a side, else all pairs.

    compare: the test of two of the columns
    columns: the values of each level; pair by pair if `is_paired`
    """
    question, names = sample.question, sample.names
    last = len(names) - 1
    if question.alternative == "two-sided":
        chosen = list(itertools.combinations(range(last + 1), 2))
        title = "Pairs of levels"
    else:
        chosen = [(index, last) for index in range(last)]
        title = f"Levels against {names[last]}"
    found = [
        _detail(f"{names[a]} − {names[b]}", compare, columns[a], columns[b], is_paired)
        for a, b in chosen
    ]
    # That all pairs are equivalent takes every single test, so nothing is to be adjusted.
    if question.is_equivalence:
        return title, tuple(found)
    return f"{title} (p adjusted by Holm)", _adjust(found)


def _detail(
    label: str, compare: Compare, left: Values, right: Values, is_paired: bool = False
) -> Detail:
    sizes = (len(left),) if is_paired else (len(left), len(right))
    try:
        found = compare(left, right)
    except UntestableError:
        has_both = bool(len(left) and len(right))
        return Detail(label, sizes, float(left.mean() - right.mean()) if has_both else None)
    return Detail(
        label,
        sizes,
        found.estimate,
        found.interval,
        found.bounds,
        found.p,
        found.p_opposite,
        found.estimate_of,
    )


def _adjust(details: Sequence[Detail]) -> tuple[Detail, ...]:
    adjusted = _holm([each.p for each in details])
    opposite = _holm([each.p_opposite for each in details])
    return tuple(
        replace(each, p=p, p_opposite=other)
        for each, p, other in zip(details, adjusted, opposite, strict=True)
    )


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    known = iter(adjust_p([p for p in p_values if p is not None], "holm"))
    return [None if p is None else next(known) for p in p_values]


def simple_effects(sample: Sample) -> tuple[str, tuple[Detail, ...]]:
    """The difference of two levels at each level of a moderator."""
    rows, columns = sample.question.levels(0), sample.question.levels(1)
    if len(rows) != 2:
        return "", ()
    found = [
        _detail(
            f"{rows[0]} − {rows[1]} at {column}",
            welch_t_test,
            sample.of(index),
            sample.of(len(columns) + index),
        )
        for index, column in enumerate(columns)
    ]
    return "Simple effects (Welch's t, two-sided, p adjusted by Holm)", _adjust(found)


def describe_strata(sample: Sample) -> tuple[str, tuple[Detail, ...]]:
    """For a claim of robustness: the difference under each level of each circumstance."""
    if sample.question.hypothesis.kind is not HypothesisKind.ROBUSTNESS:
        return "", ()
    found = []
    for name, codes in circumstances(sample).items():
        variable, all_codes = sample.question.table.variable(name)
        lowest = int(all_codes[sample.rows].min())
        for index, level in enumerate(variable.values):
            inside = codes == index - lowest
            left, right = (sample.y[inside & (sample.group == group)] for group in (0, 1))
            if len(left) and len(right):
                size = float(left.mean() - right.mean())
                found.append(Detail(f"{name} = {level}", (len(left), len(right)), size))
    return ELSEWHERE, tuple(found)


def check_by_sets(sample: Sample) -> list[str]:
    """The same difference with replicates averaged: do problems and blocks agree on it?"""
    if len(sample.names) != 2 or sample.question.is_equivalence:
        return []
    sets = put_together(sample, by_replicate=False)
    if not sets.shared or len(sets.table) < LEAST_SETS or not sets.averaged:
        return []
    try:
        found = paired_t_test(sets.table[:, 0], sets.table[:, 1], sample.question.alternative)
    except UntestableError:
        return []
    if found.estimate is None or found.interval is None:
        return []
    low, high = found.interval
    return [
        f"check with replicates averaged, {len(sets.table)} pairs by {sets.text}: "
        f"{found.estimate:+.3g} [{low:.3g}, {high:.3g}], paired t test, p = {found.p:.2g}"
    ]
