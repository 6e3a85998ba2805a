"""Linear models of a sample: what is tested, what else is in the model, and how it is fitted."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairtrial.core import did_you_mean
from fairtrial.study.design.rows import is_number
from fairtrial.study.design.runs import SUBJECT
from fairtrial.study.hypotheses.groups import Variable, why_apart
from fairtrial.study.report.pairing import is_taken, replicate_is_subject
from fairtrial.study.report.samples import Sample
from fairtrial.study.report.values import REPLICATE
from fairtrial.study.stats.finding import Alternative, Finding, UntestableError
from fairtrial.study.stats.linear import code_levels, cross, fit_model, judge_term
from fairtrial.study.stats.mixed import mixed_model

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

Terms = dict[str, "Values"]


def numbers_of(sample: Sample) -> Values:
    """The compared variable as a number, for each run."""
    import numpy as np

    name = sample.question.comparison.variables[0]
    levels = sample.question.levels(0)
    values = sample.question.table.variable(name)[0].values
    if not all(is_number(values[level]) for level in levels):
        raise UntestableError(f"the levels of '{name}' are not numbers")
    return np.asarray([float(values[level]) for level in levels])[sample.parts[0]]


def span_of(sample: Sample) -> tuple[float, float]:
    """The range that the compared variable was sampled from: of its levels, and of the plan."""
    name = sample.question.comparison.variables[0]
    variable, _ = sample.question.table.variable(name)
    ends = [float(variable.values[level]) for level in sample.question.comparison.levels[0]]
    ends += [float(variable.values[level]) for level in variable.declared]
    return min(ends), max(ends)


def fit_regression(sample: Sample, alternative: Alternative, margin: float) -> Finding:
    """Least squares with HC3 errors: what is compared, the claim's other variables, covariates."""
    terms = {**_tested(sample), **_others(sample), **_covariates(sample)}
    fit = fit_model(sample.y, list(terms.values()), robust=True)
    return judge_term(fit, f"regression ({_spell(terms)}; HC3 errors)", alternative, margin)


def fit_factorial(sample: Sample, alternative: Alternative, margin: float) -> Finding:
    """Least squares on what is compared, the claim's other variables, and all interactions."""
    mains = {**_tested(sample), **_others(sample)}
    if sample.question.comparison.shape == "interaction":
        terms = {**mains, **_covariates(sample)}
    else:
        terms = {**mains, **_covariates(sample), **dict(_interactions(sample, mains))}
    fit = fit_model(sample.y, list(terms.values()), robust=False)
    method = f"factorial analysis of variance ({_spell(terms)}; type III)"
    return judge_term(fit, method, alternative, margin).noting(
        "it assumes equal variances in all cells"
    )


def fit_mixed(sample: Sample, alternative: Alternative, margin: float) -> Finding:
    """A linear mixed model: the terms of a regression, and the plan's random effects."""
    effects = _random_effects(sample)
    compared = set(sample.question.comparison.variables)
    if clash := [name for name in effects if is_taken(name, compared)]:
        raise UntestableError(
            f"'{min(clash)}' is what is compared; it can't be a random effect too"
        )
    fixed = {
        name: columns
        for name, columns in {**_tested(sample), **_others(sample), **_covariates(sample)}.items()
        if not is_taken(name, set(effects))
    }
    found = mixed_model(
        sample.y,
        list(fixed.values()),
        None if sample.question.comparison.shape == "slope" else sample.group,
        list(effects.values()),
        alternative,
        margin,
    )
    return found.noting(f"random effects: {', '.join(effects)}; fixed: {_spell(fixed)}")


def _tested(sample: Sample) -> Terms:
    """The term that is tested, first; for an interaction the two it is made of as well."""
    names = sample.question.comparison.variables
    if sample.question.comparison.shape == "slope":
        low, high = span_of(sample)
        return {names[0]: (numbers_of(sample) / (high - low))[:, None]}
    columns = [
        code_levels(part, len(sample.question.levels(position)))
        for position, part in enumerate(sample.parts)
    ]
    if len(names) == 1:
        return {names[0]: columns[0]}
    return {" × ".join(names): cross(*columns), names[0]: columns[0], names[1]: columns[1]}


def _others(sample: Sample) -> Terms:
    """The claim's other variables."""
    hypothesis = sample.question.hypothesis
    names = [*hypothesis.independent_vars, *(each.name for each in hypothesis.moderators)]
    compared = sample.question.comparison.variables
    return dict(_columns(sample, name) for name in names if name not in compared)


def _covariates(sample: Sample) -> Terms:
    plan = sample.question.plan
    names = plan.covariates if plan else ()
    compared = sample.question.comparison.variables
    found = (_columns(sample, name) for name in names if name not in compared)
    return {name: columns for name, columns in found if columns.shape[1]}


def _columns(sample: Sample, name: str) -> tuple[str, Values]:
    """A variable of the study coded by its levels, or another metric as the number it is."""
    import numpy as np

    table = sample.question.table
    variable, codes = table.variable(name)
    if variable.source:
        met = codes[sample.rows]
        # An option of one agent is nested in it: 0 for the runs of others.
        has_it = met >= (-1 if variable.agents is None else 0)
        own = _coded(variable, met[has_it])
        columns = np.zeros((len(met), own.shape[1]))
        columns[has_it] = own
        return name, columns
    values = table.values(name)[sample.rows]
    if np.isnan(values).any():
        known = [*(factor.name for factor in table.study.factors), *table.tally.metrics]
        lost = int(np.isnan(values).sum())
        raise UntestableError(
            f"covariate '{name}': {lost:,} of {len(values):,} runs have no such number; "
            f"{did_you_mean(name, known)}"
        )
    return name, _centre(values)


def _coded(variable: Variable, codes: Codes) -> Values:
    """A variable of the study as numbers, or by its levels; no column if it has only one."""
    import numpy as np

    if _is_sampled(variable, codes):
        numbers = np.asarray([float(value) for value in variable.values.values()])
        return _centre(numbers[codes])
    levels, compact = np.unique(codes, return_inverse=True)
    empty: Values = np.empty((len(codes), 0))
    return code_levels(compact, len(levels)) if len(levels) > 1 else empty


def _is_sampled(variable: Variable, codes: Codes) -> bool:
    """Whether a factor's levels are points on a scale: then it is a number here, too."""
    levels = list(variable.values)
    met = sorted(set(codes.tolist()))
    return bool(met) and met[0] >= 0 and variable.is_sampled([levels[code] for code in met])


def _centre(values: Values) -> Values:
    """A column of numbers around 0, none of them much above 1."""
    import numpy as np

    scale = float(np.max(np.abs(values))) or 1.0
    column: Values = ((values - values.mean()) / scale)[:, None]
    return column


def _interactions(sample: Sample, mains: Terms) -> Iterator[tuple[str, Values]]:
    """Every two, and every three, of the terms multiplied; but for those that no run tells of."""
    variable = sample.question.table.variable
    named = [(name, columns) for name, columns in mains.items() if columns.shape[1]]
    for size in (2, 3):
        for chosen in itertools.combinations(named, size):
            if not why_apart([variable(name)[0] for name, _ in chosen]):
                product = functools.reduce(cross, [columns for _, columns in chosen])
                yield " × ".join(name for name, _ in chosen), product


def _random_effects(sample: Sample) -> dict[str, Codes]:
    """The plan's random effects; else the subject, or the problem."""
    import numpy as np

    table = sample.question.table
    plan = sample.question.plan
    names = list(plan.random_effects) if plan else []
    if not names:
        has_subject = any(block.name == SUBJECT for block in table.study.blocks)
        names = [SUBJECT] if has_subject else ["problem_id"]
        names = [REPLICATE] if replicate_is_subject(table.study) else names
    found: dict[str, Codes] = {}
    for name in names:
        variable, codes = table.variable(name)
        if name == REPLICATE:
            codes = table.column(REPLICATE)
        elif not variable.source:
            known = [block.name for block in table.study.blocks]
            known += [factor.name for factor in table.study.factors]
            hint = did_you_mean(name, [*known, "agent_id", "problem_id", REPLICATE])
            raise UntestableError(f"random effect '{name}' is no factor, block or problem; {hint}")
        found[name] = np.unique(codes[sample.rows], return_inverse=True)[1]
    return found


def _spell(terms: Terms) -> str:
    return " + ".join(name for name, columns in terms.items() if columns.shape[1])
