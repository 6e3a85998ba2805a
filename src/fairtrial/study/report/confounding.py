"""Confounded effects: what else could explain a difference in the runs that there are.

An effect is aliased if another factor, block, agent, problem or two-factor interaction changes with
it, completely or in part. Computed from the runs in the test, so that fractions, constraints and
missing cells count.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtrial.study.design.association import CONFOUNDED
from fairtrial.study.design.effect_correlations import (
    correlate_interaction,
    correlate_levels,
    correlate_numbers,
    indicator_columns,
    interaction_columns,
    orthonormal_basis,
)
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS
from fairtrial.study.model.factors import FactorKind
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.pairing import match_runs, nuisance_factors
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.report.verdicts import TestVerdict
from fairtrial.study.stats.named_tests import find_test

if TYPE_CHECKING:
    from fairtrial.study.design.effect_correlations import Matrix
    from fairtrial.study.stats.finding import Codes

PARTLY = 0.3
"""From this correlation on an effect is aliased in part."""
MAX_SHOWN = 3
MAX_PAIRS = 300
MAX_CELLS = 256
"""Limits of the interactions that are looked at: their number, and the cells of each."""
MAX_GROUPS = 64
"""Effects with more groups or cells than this have no aliases looked for."""
PAIRED_TESTS = ("paired_t", "wilcoxon", "mcnemar")
ADJUSTING_TESTS = ("regression", "factorial_anova", "mixed_effects")


@dataclass(frozen=True, slots=True)
class Alias:
    """An effect that the runs can't tell from the tested one.

    name: a variable, or `a × b` for an interaction
    correlation: 1 if it can't be told apart at all
    """

    name: str
    correlation: float

    @property
    def text(self) -> str:
        """Its name, with the correlation if it is aliased in part."""
        is_full = self.correlation >= CONFOUNDED
        return self.name if is_full else f"{self.name} (correlation {self.correlation:.2f})"


class _Cells:
    """The combinations of condition, agent and problem in a sample, and the tested effect there.

    weights: number of runs of each
    basis: the tested effect
    """

    def __init__(self, sample: ComparisonSample) -> None:
        import numpy as np

        self.sample = sample
        table = sample.request.table
        keys = [table.column(name)[sample.rows] for name in ("condition", "agent", "problem")]
        combined = np.zeros(len(sample.rows), dtype=np.int64)
        for key in keys:
            combined = combined * (int(key.max()) + 1) + key
        _, self._first, counts = np.unique(combined, return_index=True, return_counts=True)
        self.weights: Matrix = counts.astype(float)
        parts = [part[self._first] for part in sample.parts]
        if sample.request.comparison.shape == "slope":
            effect = self._read_scale(sample.request.comparison.variables[0])[:, None]
        else:
            columns = [indicator_columns(part) for part in parts]
            effect = columns[0]
            if len(columns) == 2:
                effect = interaction_columns(columns[0], columns[1], self.weights)
        self.basis = orthonormal_basis(effect, self.weights)

    def read(self, codes: Codes) -> Codes:
        """Return the level in each cell from that of each run in the sample."""
        cell_codes: Codes = codes[self._first]
        return cell_codes

    def _read_scale(self, name: str) -> Matrix:
        import numpy as np

        variable, codes = self.sample.request.table.variable(name)
        numbers = np.asarray([float(value) for value in variable.values.values()])
        column: Matrix = numbers[codes[self.sample.rows][self._first]]
        return column

    def correlate(self, name: str, codes: Codes) -> float:
        """Return the correlation of the tested effect with a variable."""
        if self.is_scale(name):
            return correlate_numbers(self.basis, self._read_scale(name), self.weights)
        return correlate_levels(self.basis, codes, self.weights)

    def is_scale(self, name: str) -> bool:
        """Return whether a variable's levels in the sample are points on a scale."""
        variable, codes = self.sample.request.table.variable(name)
        used = sorted(set(codes[self.sample.rows].tolist()))
        levels = list(variable.values)
        return used[0] >= 0 and variable.is_sampled([levels[code] for code in used])


def find_aliases(sample: ComparisonSample, test_name: str) -> list[Alias]:
    """Return the effects that can't be told from the tested one, the strongest first.

    test_name: the test; variables that it adjusts for count only if they are confounded completely
    """
    if len(sample.names) > MAX_GROUPS:
        return []
    cells = _Cells(sample)
    nuisance = {name: cells.read(codes) for name, codes in nuisance_factors(sample).items()}
    adjusted = _find_adjusted(sample, test_name)
    aliases = []
    for name, codes in nuisance.items():
        size = cells.correlate(name, codes)
        if size >= CONFOUNDED and _is_named(cells, name, codes):
            aliases.append(Alias(name, 1.0))
        elif PARTLY <= size < CONFOUNDED and name not in adjusted:
            aliases.append(Alias(name, size))
    complete = {alias.name for alias in aliases if alias.correlation >= CONFOUNDED}
    for first, second in _find_interactions(cells, [n for n in nuisance if n not in complete]):
        size = correlate_interaction(cells.basis, nuisance[first], nuisance[second], cells.weights)
        if size >= PARTLY:
            aliases.append(Alias(f"{first} × {second}", 1.0 if size >= CONFOUNDED else size))
    return sorted(aliases, key=lambda alias: -alias.correlation)


def _is_named(cells: _Cells, name: str, codes: Codes) -> bool:
    """Return whether a completely confounded variable counts as an alias.

    Blocks and problems are samples: if each group has several of its own, they are nested in the
    groups, and the uncertainty between them is that of the test.
    """
    table = cells.sample.request.table
    if table.variable(name)[0].source != "block" and name not in PROBLEM_FACTORS:
        return True
    group = cells.read(cells.sample.group)
    return any(len(set(codes[group == index].tolist())) < 2 for index in set(group.tolist()))


def _find_interactions(cells: _Cells, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of factors (or agents) whose interaction may explain the tested effect.

    Interactions of problems and blocks, and of two nuisance factors, are taken as noise.
    """
    study = cells.sample.request.table.study
    kinds = {factor.name: factor.kind for factor in study.factors}
    candidates = [
        name
        for name in names
        if (name in kinds or name in AGENT_FACTORS)
        and name not in PROBLEM_FACTORS
        and not cells.is_scale(name)
    ]
    manipulated = (FactorKind.MANIPULATED, None)
    pairs = itertools.combinations(candidates, 2)
    for first, second in itertools.islice(pairs, MAX_PAIRS):
        levels = [len(cells.sample.request.table.variable(n)[0].values) for n in (first, second)]
        is_noise = all(kinds.get(name) not in manipulated for name in (first, second))
        if not is_noise and levels[0] * levels[1] <= MAX_CELLS:
            yield first, second


def _find_adjusted(sample: ComparisonSample, test_name: str) -> set[str]:
    """Return the variables whose imbalance doesn't bias a test, because it adjusts for them.

    Problems are among them: how they enter a test is a question of its unit of analysis.
    """
    plan, named_test = sample.request.plan, find_test(test_name)
    name = named_test.name if named_test else ""
    adjusted = set(PROBLEM_FACTORS)
    if name in PAIRED_TESTS:
        adjusted.update(match_runs(sample).shared)
    if name in ADJUSTING_TESTS and plan is not None:
        adjusted.update(plan.covariates, sample.request.hypothesis.independent_vars)
        adjusted.update(plan.random_effects if name == "mixed_effects" else ())
    return adjusted


def allow_for_aliases(test: HypothesisTest, sample: ComparisonSample) -> HypothesisTest:
    """Name the aliases of a tested effect in its verdict.

    A supported claim becomes `supported, or an alias is`; others get a remark in the reason, or in
    the notes if nothing was found.
    """
    aliases = find_aliases(sample, test.test)
    test = _add_ties(test, sample)
    if not aliases:
        return test
    shown = [alias.text for alias in aliases[:MAX_SHOWN]]
    more = len(aliases) - len(shown)
    names = " or ".join(shown) + (f" or one of {more:,} more" if more > 0 else "")
    is_partial = all(alias.correlation < CONFOUNDED for alias in aliases)
    apart = f"the design can't{' fully' if is_partial else ''} tell them apart"
    test = replace(test, aliases=tuple(alias.text for alias in aliases))
    verdict = test.verdict
    if verdict in (TestVerdict.SUPPORTED, TestVerdict.SUPPORTED_IF_LOSSES_HARMLESS):
        text = f"supported, or {names} is: {apart}"
        if sample.request.is_equivalence:
            text = f"supported, unless {names} offsets a difference: {apart}"
        if verdict is TestVerdict.SUPPORTED:
            verdict = TestVerdict.SUPPORTED_OR_ALIAS
        return replace(test, verdict=verdict, why=f"{text}; {test.why}")
    if verdict is TestVerdict.CONTRADICTED:
        return replace(test, why=f"{test.why}, or {names} is the cause: {apart}")
    if verdict is TestVerdict.NOT_SUPPORTED:
        return replace(test, why=f"{test.why}, unless {names} offsets it: {apart}")
    note = f"what is estimated is the effect together with {names}: {apart}"
    return replace(test, notes=(*test.notes, note))


def _add_ties(test: HypothesisTest, sample: ComparisonSample) -> HypothesisTest:
    """Say that an effect is that of several factors if others are tied to the compared one."""
    factors = sample.request.table.study.factors
    compared = set(sample.request.comparison.variables)
    leaders = {factor.tied_to for factor in factors if factor.name in compared and factor.tied_to}
    bundle = {*compared, *leaders}
    tied = [
        factor.name
        for factor in factors
        if factor.name not in compared and (factor.tied_to in bundle or factor.name in leaders)
    ]
    if not tied:
        return test
    names = ", ".join([*sample.request.comparison.variables, *tied])
    note = f"{names} are tied: the effect is that of all of them together"
    return replace(test, notes=(*test.notes, note))
