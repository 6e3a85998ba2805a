"""Tests by linear models: regression, factorial analysis of variance, mixed models."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.core import did_you_mean
from fairtrial.study.design.rows import is_number
from fairtrial.study.design.runs import PROBLEM_FACTORS, SUBJECT
from fairtrial.study.hypotheses.groups import Variable, explain_disjoint
from fairtrial.study.report.pairing import has_variable, replicate_is_subject
from fairtrial.study.report.problem_cells import (
    generalizes,
    has_several_problems,
    problem_codes,
)
from fairtrial.study.report.run_table import REPLICATE
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.finding import Alternative, Finding, UntestableError
from fairtrial.study.stats.linear import (
    code_levels,
    fit_ols,
    interaction_columns,
    rests_on_single_run,
    wald_test,
)
from fairtrial.study.stats.mixed import mixed_model

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

Terms = dict[str, "Values"]


def numeric_levels(sample: ComparisonSample) -> Values:
    """Return the compared variable of each run as a number.

    Raises `UntestableError` if its levels are not numbers.
    """
    import numpy as np

    name = sample.request.comparison.variables[0]
    levels = sample.request.levels(0)
    values = sample.request.table.variable(name)[0].values
    if not all(is_number(values[level]) for level in levels):
        raise UntestableError(f"the levels of '{name}' are not numbers")
    return np.asarray([float(values[level]) for level in levels])[sample.parts[0]]


def level_range(sample: ComparisonSample) -> tuple[float, float]:
    """Return the smallest and largest level of the compared variable, sampled or declared."""
    name = sample.request.comparison.variables[0]
    variable, _ = sample.request.table.variable(name)
    ends = [float(variable.values[level]) for level in sample.request.comparison.levels[0]]
    ends += [float(variable.values[level]) for level in variable.declared]
    return min(ends), max(ends)


def fit_regression(sample: ComparisonSample, alternative: Alternative, margin: float) -> Finding:
    """Test the compared variable by least squares with HC3 standard errors.

    The model has the hypothesis's other variables and the plan's covariates, too.
    """
    terms = {**_tested_terms(sample), **_other_terms(sample), **_covariate_terms(sample)}
    fit = fit_ols(sample.y, list(terms.values()), robust=True)
    return wald_test(fit, f"regression ({_describe(terms)}; HC3 errors)", alternative, margin)


def fit_factorial(sample: ComparisonSample, alternative: Alternative, margin: float) -> Finding:
    """Test the compared variable by factorial analysis of variance (type III), robustly.

    The model has the hypothesis's other variables, all interactions, and the plan's covariates.
    """
    mains = {**_tested_terms(sample), **_other_terms(sample)}
    terms = {**mains, **_covariate_terms(sample)}
    if sample.request.comparison.shape != "interaction":
        terms |= dict(_interaction_terms(sample, mains))
    columns = list(terms.values())
    # A single run of a combination says nothing about its variance.
    robust = not rests_on_single_run(columns)
    fit = fit_ols(sample.y, columns, robust=robust)
    method = f"factorial analysis of variance ({_describe(terms)}; type III)"
    note = "" if robust else "some combination has a single run: equal variances are assumed"
    return wald_test(fit, method, alternative, margin).with_notes(note)


def adjust_for_covariates(sample: ComparisonSample) -> ComparisonSample:
    """Return a sample whose values are adjusted for other variables and covariates.

    Their coefficients are those of a least-squares fit within problems.

    Raises `UntestableError` if the compared variable can't be told apart from them.
    """
    import numpy as np

    others = {**_other_terms(sample), **_covariate_terms(sample)}
    columns = [columns for columns in others.values() if columns.shape[1]]
    if not columns:
        return sample
    names, problem = problem_codes(sample)
    base = np.column_stack([(problem[:, None] == np.arange(len(names))).astype(float), *columns])
    tested = np.column_stack(list(_tested_terms(sample).values()))
    exog = np.column_stack([base, tested])
    if np.linalg.matrix_rank(exog) < np.linalg.matrix_rank(base) + tested.shape[1]:
        raise UntestableError(
            "the terms of the model can't be told apart: some combinations of levels have no runs"
        )
    coefficients = np.linalg.lstsq(exog, sample.y, rcond=None)[0]
    adjusting = np.column_stack(columns)
    shift = adjusting @ coefficients[len(names) : len(names) + adjusting.shape[1]]
    return replace(sample, y=sample.y - shift)


def fit_mixed(sample: ComparisonSample, alternative: Alternative, margin: float) -> Finding:
    """Test the compared variable by a linear mixed model.

    It has the terms of a regression as fixed effects, and the plan's random effects.
    """
    effects = _random_effects(sample)
    compared = set(sample.request.comparison.variables)
    if clash := [name for name in effects if has_variable(compared, name)]:
        raise UntestableError(
            f"'{min(clash)}' is what is compared; it can't be a random effect too"
        )
    fixed = {
        name: columns
        for name, columns in {
            **_tested_terms(sample),
            **_other_terms(sample),
            **_covariate_terms(sample),
        }.items()
        if not has_variable(set(effects), name)
    }
    finding = mixed_model(
        sample.y,
        list(fixed.values()),
        None if sample.request.comparison.shape == "slope" else sample.group,
        list(effects.values()),
        alternative,
        margin,
    )
    return finding.with_notes(f"random effects: {', '.join(effects)}; fixed: {_describe(fixed)}")


def fit_mixed_pair(
    sample: ComparisonSample, left: Codes, right: Codes, alternative: Alternative
) -> Finding:
    """Test the difference of two of several levels by a linear mixed model of their runs.

    left, right: indices of the runs of each level
    """
    import numpy as np

    rows = np.concatenate([left, right])
    cells = np.repeat([0, 1], [len(left), len(right)])
    others = {**_other_terms(sample), **_covariate_terms(sample)}
    effects = _random_effects(sample)
    fixed = [terms[rows] for name, terms in others.items() if not has_variable(set(effects), name)]
    fixed = [terms[:, np.ptp(terms, axis=0) > 0] for terms in fixed]
    return mixed_model(
        sample.y[rows],
        [code_levels(cells, 2), *fixed],
        cells,
        [np.unique(codes[rows], return_inverse=True)[1] for codes in effects.values()],
        alternative,
    )


def _tested_terms(sample: ComparisonSample) -> Terms:
    """Return the tested term first; for an interaction the two main effects follow it."""
    names = sample.request.comparison.variables
    if sample.request.comparison.shape == "slope":
        low, high = level_range(sample)
        return {names[0]: (numeric_levels(sample) / (high - low))[:, None]}
    columns = [
        code_levels(part, len(sample.request.levels(position)))
        for position, part in enumerate(sample.parts)
    ]
    if len(names) == 1:
        return {names[0]: columns[0]}
    return {
        " × ".join(names): interaction_columns(*columns),
        names[0]: columns[0],
        names[1]: columns[1],
    }


def _other_terms(sample: ComparisonSample) -> Terms:
    """Return terms for the variables of the hypothesis that are not compared."""
    hypothesis = sample.request.hypothesis
    moderators = [moderator.name for moderator in hypothesis.moderators]
    names = [*hypothesis.independent_vars, *moderators]
    compared = sample.request.comparison.variables
    return dict(_make_term(sample, name) for name in names if name not in compared)


def _covariate_terms(sample: ComparisonSample) -> Terms:
    """Return terms for the plan's covariates that vary, and for problems that are fixed."""
    plan = sample.request.plan
    names = list(plan.covariates) if plan else []
    if has_several_problems(sample) and not generalizes(sample):
        names += [] if set(names) & set(PROBLEM_FACTORS) else ["problem_id"]
    compared = sample.request.comparison.variables
    terms = (_make_term(sample, name) for name in names if name not in compared)
    return {name: columns for name, columns in terms if columns.shape[1]}


def _make_term(sample: ComparisonSample, name: str) -> tuple[str, Values]:
    """Return the columns of a variable of the study, or of a metric as a number.

    Raises `UntestableError` if some runs lack the metric.
    """
    import numpy as np

    table = sample.request.table
    variable, codes = table.variable(name)
    if variable.source:
        run_codes = codes[sample.rows]
        # An option of one agent is nested in the agent: 0 for runs of others.
        applies = run_codes >= (-1 if variable.agents is None else 0)
        coded = _code_variable(variable, run_codes[applies])
        columns = np.zeros((len(run_codes), coded.shape[1]))
        columns[applies] = coded
        return name, columns
    values = table.values(name)[sample.rows]
    if np.isnan(values).any():
        names = [*(factor.name for factor in table.study.factors), *table.totals.metrics]
        missing = int(np.isnan(values).sum())
        raise UntestableError(
            f"covariate '{name}': {missing:,} of {len(values):,} runs have no such number; "
            f"{did_you_mean(name, names)}"
        )
    return name, _center(values)


def _code_variable(variable: Variable, codes: Codes) -> Values:
    """Return a numeric variable as one column, or the coded levels; no column for one level."""
    import numpy as np

    if _is_sampled(variable, codes):
        numbers = np.asarray([float(value) for value in variable.values.values()])
        return _center(numbers[codes])
    levels, compact = np.unique(codes, return_inverse=True)
    empty: Values = np.empty((len(codes), 0))
    return code_levels(compact, len(levels)) if len(levels) > 1 else empty


def _is_sampled(variable: Variable, codes: Codes) -> bool:
    """Return whether a factor's levels are points on a scale, so that it is numeric here."""
    levels = list(variable.values)
    used = sorted(set(codes.tolist()))
    return bool(used) and used[0] >= 0 and variable.is_sampled([levels[code] for code in used])


def _center(values: Values) -> Values:
    """Return a column of the values centered at 0 and scaled to about 1."""
    import numpy as np

    scale = float(np.max(np.abs(values))) or 1.0
    column: Values = ((values - values.mean()) / scale)[:, None]
    return column


def _interaction_terms(sample: ComparisonSample, mains: Terms) -> Iterator[tuple[str, Values]]:
    """Yield all two- and three-way interactions of variables that occur together in runs."""
    variable = sample.request.table.variable
    terms = [(name, columns) for name, columns in mains.items() if columns.shape[1]]
    for size in (2, 3):
        for chosen in itertools.combinations(terms, size):
            if not explain_disjoint([variable(name)[0] for name, _ in chosen]):
                product = functools.reduce(interaction_columns, [columns for _, columns in chosen])
                yield " × ".join(name for name, _ in chosen), product


def _random_effects(sample: ComparisonSample) -> dict[str, Codes]:
    """Return the levels of the plan's random effects; by default the subject or the problem.

    Raises `UntestableError` for an unknown random effect.
    """
    import numpy as np

    table = sample.request.table
    plan = sample.request.plan
    names = list(plan.random_effects) if plan else []
    if not names:
        has_subject = any(block.name == SUBJECT for block in table.study.blocks)
        names = [SUBJECT] if has_subject else ["problem_id"]
        names = [REPLICATE] if replicate_is_subject(table.study) else names
    effects: dict[str, Codes] = {}
    for name in names:
        variable, codes = table.variable(name)
        if name == REPLICATE:
            codes = table.column(REPLICATE)
        elif not variable.source:
            variables = [block.name for block in table.study.blocks]
            variables += [factor.name for factor in table.study.factors]
            hint = did_you_mean(name, [*variables, "agent_id", "problem_id", REPLICATE])
            raise UntestableError(f"random effect '{name}' is no factor, block or problem; {hint}")
        effects[name] = np.unique(codes[sample.rows], return_inverse=True)[1]
    return effects


def _describe(terms: Terms) -> str:
    return " + ".join(name for name, columns in terms.items() if columns.shape[1])
