"""Variances for a power analysis, estimated from the results of an earlier study.

Uses the method of moments on cell means: a cell is one condition and agent on one problem.
Replicates of a cell give the variance of runs, cell means that between problems, and contrasts of
cell means that of the effect.

Reference: Searle, Casella and McCulloch (1992), Variance components, ch. 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, StudyError, dump_record
from fairtrial.study.design.runs import PROBLEM_FACTORS
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.model.hypotheses import Hypothesis, HypothesisKind, OutcomeSpec
from fairtrial.study.model.study import Study
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.tables.results import open_results

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

MAX_ICC = 0.999
FEW_PROBLEMS = 10
"""Variances between fewer problems than this are rough estimates."""


@dataclass(frozen=True, slots=True)
class PilotVariances:
    """Variances of one outcome in an earlier study, rounded to three digits.

    outcome: the outcome
    runs: the number of runs with a value
    problems: the number of problems
    sd: its standard deviation within groups, over all problems
    icc: the share of its variance that lies between problems
    slope_sd: the standard deviation of the effect between problems, in the outcome's units; the
        largest, if there are hypotheses about several variables
    """

    outcome: str
    runs: int
    problems: int
    sd: float
    icc: float
    slope_sd: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data

    def __str__(self) -> str:
        return (
            f"{self.outcome}: sd {self.sd:.3g}, icc {self.icc:.2f}, slope_sd {self.slope_sd:.3g} "
            f"({self.runs:,} runs of {self.problems:,} problems{self._caution})"
        )

    @property
    def _caution(self) -> str:
        return "; rough, as these are few" if self.problems < FEW_PROBLEMS else ""


def estimate_variances(folder: Path, study: Study) -> list[PilotVariances]:
    """Estimate the variances of a study's tested outcomes from an earlier study's output folder.

    Outcomes are found by the definitions of `study`. Raises `StudyError` if the folder has too few
    results of an outcome, and `LedgerError` if it has no readable ledger.
    """
    with open_results(folder) as results:
        pilot = replace(results.study, outcomes=study.outcomes, hypotheses=(), analysis_plans=())
        table = collect_run_table(pilot, results.conditions, list(results))
    return [_estimate(table, study, spec) for spec in _find_outcomes(study)]


def apply_pilot(study: Study, variances: Sequence[PilotVariances]) -> Study:
    """Return the study with the variances of a pilot in place of those that it states.

    Minimum effects keep their units: those of an outcome without a stated sd stay in standard
    deviations.
    """
    by_name = {entry.outcome: entry for entry in variances}
    outcomes = []
    for spec in study.outcomes:
        entry = by_name.get(spec.name)
        if entry is None:
            outcomes.append(spec)
        elif spec.sd is None:
            slope_sd = entry.slope_sd / entry.sd
            outcomes.append(replace(spec, icc=entry.icc, slope_sd=slope_sd))
        else:
            outcomes.append(replace(spec, icc=entry.icc, slope_sd=entry.slope_sd, sd=entry.sd))
    return replace(study, outcomes=tuple(outcomes))


def _find_outcomes(study: Study) -> Iterator[OutcomeSpec]:
    """Yield the outcomes of hypotheses that state a minimum effect."""
    names = {
        name
        for hypothesis in study.hypotheses
        if hypothesis.minimum_effect_of_interest is not None
        for name in hypothesis.dependent_vars or study.primary_outcomes
    }
    return (spec for spec in study.outcomes if spec.name in names)


def _estimate(table: RunTable, study: Study, spec: OutcomeSpec) -> PilotVariances:
    import numpy as np

    values = table.values(spec.name)
    rows = np.flatnonzero(~np.isnan(values))
    y = values[rows]
    problem = table.column("problem")[rows]
    group = table.column("condition")[rows] * (len(table.agents) + 1) + table.column("agent")[rows]
    problems = len(np.unique(problem))
    if problems < 2:
        raise _too_little(spec, "runs of two problems or more")
    _, group = np.unique(group, return_inverse=True)
    means, counts = _average(y, problem, [group])
    degrees = len(y) - int((counts > 0).sum())
    if degrees < 1:
        raise _too_little(spec, "replicates, so that runs can be told from problems")
    residual = _residual_squares(y, problem, group) / degrees
    between = _between_problems(means, counts, residual)
    total = residual + between
    if total <= 0:
        raise _too_little(spec, "values that differ")
    slopes = [
        _estimate_slope(table, rows, y, problem, variables, residual)
        for variables in _find_variables(study, spec.name, table.study)
    ]
    known = [slope for slope in slopes if slope is not None]
    if not known:
        known = [_effect_sd(means, counts, 1, residual) or 0.0]
    sd, slope_sd = (float(f"{value:.3g}") for value in (math.sqrt(total), max(known)))
    # A share of 1 is that of a deterministic agent; there is no power at no variance.
    icc = min(round(between / total, 3), MAX_ICC)
    return PilotVariances(spec.name, len(y), problems, sd, icc, slope_sd)


def _too_little(spec: OutcomeSpec, lack: str) -> StudyError:
    return StudyError(Mistake(("--pilot",), f"the pilot's '{spec.name}' has no {lack}"))


def _average(y: Values, problem: Codes, parts: Sequence[Codes]) -> tuple[Values, Values]:
    """Return means and counts of cells: an axis for the problem, then one for each part."""
    import numpy as np

    shape = [int(codes.max()) + 1 for codes in (problem, *parts)]
    cell = np.ravel_multi_index((problem, *parts), shape)
    size = math.prod(shape)
    counts = np.bincount(cell, minlength=size).astype(float)
    sums = np.bincount(cell, weights=y, minlength=size)
    means = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means.reshape(shape), counts.reshape(shape)


def _residual_squares(y: Values, problem: Codes, group: Codes) -> float:
    means, _ = _average(y, problem, [group])
    return float(((y - means[problem, group]) ** 2).sum())


def _between_problems(means: Values, counts: Values, residual: float) -> float:
    """Return the variance between problems within a group, without that of the runs."""
    import numpy as np

    variances = []
    for column in range(means.shape[1]):
        used = counts[:, column] > 0
        if used.sum() > 1:
            error = residual * float(np.mean(1 / counts[used, column]))
            variances.append(float(np.var(means[used, column], ddof=1)) - error)
    return max(0.0, float(np.mean(variances))) if variances else 0.0


def _find_variables(study: Study, outcome: str, pilot: Study) -> Iterator[tuple[str, ...]]:
    """Yield the variables of hypotheses about an outcome, if the pilot has them."""
    for hypothesis in study.hypotheses:
        if outcome not in (hypothesis.dependent_vars or study.primary_outcomes):
            continue
        for variables in _list_comparisons(hypothesis):
            is_problem = set(variables) & set(PROBLEM_FACTORS)
            if not is_problem and all(Variable(pilot, name).source for name in variables):
                yield variables


def _list_comparisons(hypothesis: Hypothesis) -> Iterator[tuple[str, ...]]:
    """Yield the variables of each comparison: pairs for a moderation, else single ones."""
    names = hypothesis.independent_vars
    moderators = tuple(moderator.name for moderator in hypothesis.moderators)
    if moderators:
        yield from itertools.product(names, moderators)
    elif hypothesis.kind is HypothesisKind.MODERATION:
        yield from itertools.combinations(names, 2)
    else:
        yield from ((name,) for name in names)


def _estimate_slope(
    table: RunTable,
    rows: Codes,
    y: Values,
    problem: Codes,
    variables: Sequence[str],
    residual: float,
) -> float | None:
    """Return the sd of the effect of variables between problems; None if it can't be estimated."""
    import numpy as np

    codes = [table.variable(name)[1][rows] for name in variables]
    applies = np.all(np.stack(codes) >= 0, axis=0)
    if not applies.any():
        return None
    parts = [np.unique(part[applies], return_inverse=True)[1] for part in codes]
    means, counts = _average(y[applies], problem[applies], parts)
    return _effect_sd(means, counts, len(parts), residual)


def _effect_sd(means: Values, counts: Values, axes: int, residual: float) -> float | None:
    """Return the sd between problems of a difference, or of a difference of differences.

    means, counts: an axis for the problem, then one for each variable
    """
    import numpy as np

    used = (counts > 0).all(axis=tuple(range(1, axes + 1)))
    levels = means.shape[1:]
    if used.sum() < 2 or min(levels) < 2:
        return None
    effects = means[used]
    for axis in range(1, axes + 1):
        effects = effects - effects.mean(axis=axis, keepdims=True)
    deviations = effects - effects.mean(axis=0)
    degrees = (int(used.sum()) - 1) * math.prod(size - 1 for size in levels)
    error = residual * float(np.mean(1 / counts[used]))
    variance = float((deviations**2).sum()) / degrees - error
    return math.sqrt(2**axes * max(0.0, variance))
