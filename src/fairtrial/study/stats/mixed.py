"""Linear mixed models: fixed treatments, and problems or subjects as random effects.

The model has a random intercept for each level of the random effects. Where a level has several
runs of one treatment, it also has a random treatment effect within the level; otherwise an effect
that differs between problems would be mistaken for one that holds for problems in general. Tests
use t and F with the degrees of freedom that the smallest random effect leaves, which is exact in
balanced designs; in others, those of as many equal levels as would estimate the effect as evenly.
The z test of statsmodels is anticonservative with few levels. If each level has only one treatment,
the comparison is between levels and has fewer degrees of freedom.

References::

    Laird and Ware (1982), Biometrics 38, 963-974
    Barr, Levy, Scheepers and Tily (2013), J. Mem. Lang. 68, 255-278: random slopes
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairtrial.study.stats.finding import (
    Alternative,
    Finding,
    UntestableError,
    require_statsmodels,
    sample_sd,
    suppress_warnings,
)
from fairtrial.study.stats.linear import coefficient_test, design_matrix
from fairtrial.study.stats.reml import FixedEffects, fit_reml

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

METHOD = "linear mixed model (REML)"
MIN_LEVELS = 3
FEW_LEVELS = 6
NEGLIGIBLE_SPREAD = 1e-3
"""Replicates that differ by less than this share of the overall standard deviation are equal."""
EQUAL_SPREAD = (
    "the effects of all levels are taken to vary equally: if one varies much more than the others, "
    "p is too small; paired_t allows for that"
)
MAX_CROSSED_RUNS = 1_500
"""With several random effects the cost grows with the cube of the number of runs."""


def mixed_model(
    y: Values,
    terms: Sequence[Values],
    cells: Codes | None,
    random: Sequence[Codes],
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
) -> Finding:
    """Test the first fixed term of a linear mixed model fitted by REML.

    Args:
        y: response values.
        terms: columns of each fixed term; the first term is tested.
        cells: the tested level (or combination of levels) of each run, numbered from 0; None for a
            numeric variable, whose slope is assumed to be the same everywhere.
        random: for each random effect the level of each run, numbered from 0.
        alternative: the alternative hypothesis, for a term of one column.
        margin: if above 0, test that the coefficient lies within ±margin (TOST).

    Raises:
        UntestableError: if statsmodels is not installed, there are too few levels or too many
            runs, or the values do not vary around the model.
    """
    import numpy as np

    require_statsmodels()
    fewest = min(int(codes.max()) + 1 for codes in random)
    _check_random_effects(fewest, len(random), len(y))
    # Values are scaled by their standard deviation: the search for variances starts around 1.
    scale = sample_sd(y)
    if scale == 0:
        raise UntestableError(f"every value is {y[0]:g}")
    notes = []
    means, first_runs = _collapse_replicates(y, terms, random)
    if cells is not None and len(first_runs) < len(y):
        # statsmodels can't fit a residual variance of zero.
        notes.append("runs that repeat give about the same value each time: they count once")
        y, cells = means, cells[first_runs]
        terms = [term[first_runs] for term in terms]
        random = [codes[first_runs] for codes in random]
    components, remarks = _variance_components(cells, random)
    notes += remarks
    # Several random effects are crossed: for statsmodels all runs then form one group.
    groups = random[0] if len(random) == 1 else np.zeros(len(y), dtype=np.intp)
    exog = design_matrix(terms)
    scaled = (y - y.mean()) / scale
    if _is_saturated(scaled, exog, random):
        raise UntestableError("the values don't vary around the model")
    width = terms[0].shape[1]
    levels_df, is_between = _degrees_of_freedom(exog, width, random)
    fixed = fit_reml(scaled, exog, groups, components)
    df: float = levels_df
    if len(random) == 1 and not is_between:
        # Problems with few runs count for less: they add fewer degrees of freedom, too.
        df = min(df, max(1.0, fixed.effective_groups(width) - 1))
    if fixed.components < len(components):
        notes.append("a variance that is estimated as zero was left out of the model")
    if fewest < FEW_LEVELS:
        notes.append(
            f"the random effect has only {fewest} levels: its variance is poorly estimated"
        )
    if width > 1:
        finding = _joint_wald_test(fixed, width, df if is_between else width * df)
        notes += [] if is_between else [EQUAL_SPREAD]
    else:
        error = scale * math.sqrt(fixed.covariance[1, 1])
        estimate = scale * float(fixed.estimates[1])
        finding = coefficient_test(estimate, error, df, METHOD, alternative, margin)
    return finding.with_notes(*notes)


def _check_random_effects(fewest_levels: int, effects: int, runs: int) -> None:
    if fewest_levels < MIN_LEVELS:
        raise UntestableError(
            f"a random effect of {fewest_levels} levels is no sample; it needs {MIN_LEVELS} or more"
        )
    if effects > 1 and runs > MAX_CROSSED_RUNS:
        raise UntestableError(
            f"several random effects over more than {MAX_CROSSED_RUNS:,} runs are not fitted here"
        )


def _collapse_replicates(
    y: Values, terms: Sequence[Values], random: Sequence[Codes]
) -> tuple[Values, Codes]:
    """Average runs that the model can't distinguish, if their values hardly vary.

    Deterministic agents repeat themselves, which says nothing about the variance of an effect.

    Returns:
        The mean value of each kind of run and the index of its first run; all values and indices
        unchanged if replicates vary.
    """
    import numpy as np

    table = np.column_stack([*terms, *random])
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    kind = kind.ravel()
    means = np.bincount(kind, weights=y) / np.bincount(kind)
    if np.max(np.abs(y - means[kind])) > NEGLIGIBLE_SPREAD * sample_sd(y):
        return y, np.arange(len(y))
    order = np.argsort(first)
    return means[order], first[order]


def _is_saturated(y: Values, exog: Values, random: Sequence[Codes]) -> bool:
    """Return whether fixed effects and a constant per random level fit all values exactly."""
    import numpy as np

    table = np.column_stack([y, exog])
    for codes in random if len(random) == 1 else ():
        sums = np.zeros((int(codes.max()) + 1, table.shape[1]))
        np.add.at(sums, codes, table)
        table = table - (sums / np.bincount(codes)[:, None])[codes]
    dummies = [np.eye(int(codes.max()) + 1)[codes] for codes in random if len(random) > 1]
    predictors = np.column_stack([table[:, 1:], *dummies])
    residuals = table[:, 0] - predictors @ np.linalg.lstsq(predictors, table[:, 0])[0]
    return float(np.max(np.abs(residuals))) <= 1e-9


def _degrees_of_freedom(exog: Values, width: int, random: Sequence[Codes]) -> tuple[int, bool]:
    """Compute the denominator degrees of freedom of the first term.

    A comparison within the levels of a random effect has one fewer than there are levels. A term
    that is constant within each level has the number of levels minus the rank of all such columns.

    Returns:
        The degrees of freedom of one column, and whether the comparison is between levels.
    """
    import numpy as np

    candidates = []
    for codes in random:
        first = np.unique(codes, return_index=True)[1]
        is_constant = np.all(exog == exog[first][codes], axis=0)
        is_between = bool(is_constant[1 : 1 + width].all())
        used = int(np.linalg.matrix_rank(exog[first][:, is_constant])) if is_between else 1
        candidates.append((len(first) - used, is_between))
    df, is_between = min(candidates)
    if df < 1:
        raise UntestableError("the random effect has too few levels for what is compared")
    return df, is_between


def _variance_components(
    cells: Codes | None, random: Sequence[Codes]
) -> tuple[list[Codes], list[str]]:
    """Return the variance components of the model, and notes on what they leave out.

    These are the random intercepts and, where levels have replicates, the random effect of the
    tested cells within levels.
    """
    if cells is None:
        return list(random), ["the slope is taken as the same for all: if it isn't, p is too small"]
    replicated = [codes for codes in random if _has_replicates(codes, cells)]
    if not replicated:
        note = "each cell has one run: how the effect varies is part of the residual"
        return list(random), [note]
    return [*random, *(codes * (int(cells.max()) + 1) + cells for codes in replicated)], []


def _has_replicates(codes: Codes, cells: Codes) -> bool:
    """Return whether any level has more than one run in one cell."""
    import numpy as np

    pairs = codes * (int(cells.max()) + 1) + cells
    return bool(np.bincount(pairs).max() > 1)


def _joint_wald_test(fixed: FixedEffects, width: int, df: float) -> Finding:
    """Test that all coefficients of the first term are zero, by F with `df` in the denominator."""
    import numpy as np
    from scipy import stats

    estimates = fixed.estimates[1 : 1 + width]
    covariance = fixed.covariance[1 : 1 + width, 1 : 1 + width]
    with suppress_warnings():
        f = float(estimates @ np.linalg.solve(covariance, estimates)) / width
        return Finding(
            method=METHOD,
            p=stats.f.sf(f, width, df),
            statistic_name="F",
            statistic=f,
            df=(width, df),
        )
