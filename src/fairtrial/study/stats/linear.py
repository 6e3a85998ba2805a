"""Straight lines and linear models: slopes, correlations, regression, factorial analysis.

A model is a list of terms, each of them columns of numbers. Levels are coded so that the
coefficient of two levels is the difference of their means, and that of two such terms multiplied
is the difference of differences.

References::

    Scheffé (1959), The analysis of variance
    MacKinnon and White (1985), J. Econometrics 29, 305-325: HC3 standard errors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.study.stats.finding import (
    CONFIDENCE,
    Alternative,
    Finding,
    UntestableError,
    equivalence_p,
    from_estimate,
    need_statsmodels,
    quiet,
    spread,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line through points.

    finding: the test of its slope; the estimate is the rise over `span`
    residual_sd: how far points lie from it
    """

    finding: Finding
    residual_sd: float


def slope(
    x: Values, y: Values, span: float, alternative: Alternative = "two-sided", margin: float = 0.0
) -> Line:
    """The slope of a straight line, as its rise over `span`.

    With a `margin` the test is whether that rise lies within ±margin.
    """
    import numpy as np
    from scipy import stats

    if len(x) < 3:
        raise UntestableError(f"a line through {len(x)} points leaves nothing to judge it by")
    if spread(x) == 0:
        raise UntestableError("all runs have the same x")
    with quiet():
        line = stats.linregress(x / span, y)
        df = len(x) - 2
        residuals = y - (line.intercept + line.slope * (x / span))
        sd = float(np.sqrt(np.sum(residuals**2) / df))
        if sd <= 1e-12 * float(np.max(np.abs(y))):
            raise UntestableError("the values lie on a line exactly, or don't vary")
        p, opposite, interval = from_estimate(line.slope, line.stderr, df, alternative)
        if margin:
            p, opposite = equivalence_p(line.slope, line.stderr, df, margin), None
        finding = Finding(
            method=f"{'two one-sided tests (TOST) of a' if margin else 'regression'} slope",
            p=p,
            statistic_name="t",
            statistic=line.slope / line.stderr,
            df=(df,),
            estimate=line.slope,
            estimate_of="rise of the line over the range",
            interval=interval,
            bounds=interval,
            effect_name="r",
            effect_size=line.rvalue,
            p_opposite=opposite,
        )
    return Line(finding, sd)


def correlation(
    x: Values, y: Values, alternative: Alternative = "two-sided", *, by_rank: bool = False
) -> Finding:
    """Pearson's correlation, or Spearman's by rank."""
    from scipy import stats

    if len(x) < 4:
        raise UntestableError(f"{len(x)} points are too few for a correlation; it needs 4")
    if spread(x) == 0 or spread(y) == 0:
        raise UntestableError("the values don't vary")
    test = stats.spearmanr if by_rank else stats.pearsonr
    name = "Spearman's ρ" if by_rank else "Pearson's r"
    opposite = {"greater": "less", "less": "greater"}.get(alternative)
    with quiet():
        found = test(x, y, alternative=alternative)
        interval = None if by_rank else test(x, y).confidence_interval(CONFIDENCE)
        return Finding(
            method=f"{name.partition(' ')[0]} correlation",
            p=found.pvalue,
            statistic_name="ρ" if by_rank else "r",
            statistic=found.statistic,
            df=(len(x) - 2,),
            effect_name=name,
            effect_size=found.statistic,
            effect_interval=interval,
            p_opposite=test(x, y, alternative=opposite).pvalue if opposite else None,
        )


def code_levels(codes: Codes, count: int) -> Values:
    """Columns for levels numbered from 0: ½ and -½ for two of them, else effect coding."""
    import numpy as np

    if count == 2:
        return np.where(codes == 0, 0.5, -0.5)[:, None]
    columns = np.zeros((len(codes), count - 1))
    for level in range(count - 1):
        columns[:, level] = (codes == level).astype(float) - (codes == count - 1)
    return columns


def cross(one: Values, other: Values) -> Values:
    """The columns of an interaction: every column of one term times every one of the other."""
    import numpy as np

    products = [one[:, i] * other[:, j] for i in range(one.shape[1]) for j in range(other.shape[1])]
    return np.column_stack(products)


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model, and where the tested term stands in it."""

    result: Any
    first: int
    width: int
    df: float


def fit_model(y: Values, terms: Sequence[Values], *, robust: bool) -> Fit:
    """Ordinary least squares of `y` on a constant and the terms; the first term is to be tested.

    robust: whether standard errors allow for variances that differ (HC3)
    """
    import numpy as np

    need_statsmodels()
    from statsmodels.regression.linear_model import OLS

    exog = design_matrix(terms)
    df = len(y) - exog.shape[1]
    if df < 1:
        raise UntestableError(f"{len(y)} runs are too few for a model of {exog.shape[1]} terms")
    with quiet():
        model = OLS(y, exog)
        plain = model.fit()
        if float(np.sqrt(plain.mse_resid)) <= 1e-12 * float(np.max(np.abs(y), initial=0.0)):
            raise UntestableError("the values don't vary within the groups")
        if robust and float(plain.get_influence().hat_matrix_diag.max()) > 1 - 1e-9:
            raise UntestableError("some term of the model rests on a single run")
        return Fit(
            model.fit(cov_type="HC3", use_t=True) if robust else plain, 1, terms[0].shape[1], df
        )


def design_matrix(terms: Sequence[Values]) -> Values:
    """A constant and the terms, side by side; refuses terms that can't be told apart."""
    import numpy as np

    exog = np.column_stack([np.ones(len(terms[0])), *terms])
    if np.linalg.matrix_rank(exog) < exog.shape[1]:
        raise UntestableError(
            "the terms of the model can't be told apart: some combinations of levels have no runs"
        )
    return exog


def judge_term(
    fit: Fit, method: str, alternative: Alternative = "two-sided", margin: float = 0.0
) -> Finding:
    """The test of a model's first term: by t if it is one column, else by F and without a side.

    With a `margin` the test of a single column is whether it lies within ±margin.
    """
    import numpy as np

    with quiet():
        if fit.width > 1:
            pick = np.eye(len(fit.result.params))[fit.first : fit.first + fit.width]
            found = fit.result.f_test(pick)
            return Finding(
                method=method,
                p=float(found.pvalue),
                statistic_name="F",
                statistic=float(np.squeeze(found.fvalue)),
                df=(found.df_num, found.df_denom),
            )
        estimate = float(fit.result.params[fit.first])
        error = float(fit.result.bse[fit.first])
        return judge_estimate(estimate, error, fit.df, method, alternative, margin)


def judge_estimate(
    estimate: float,
    error: float,
    df: float,
    method: str,
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
) -> Finding:
    """The test of a coefficient by its standard error."""
    p, opposite, interval = from_estimate(estimate, error, df, alternative)
    if margin:
        p, opposite = equivalence_p(estimate, error, df, margin), None
        method = f"two one-sided tests (TOST), {method}"
    return Finding(
        method=method,
        p=p,
        statistic_name="t",
        statistic=estimate / error,
        df=(df,),
        estimate=estimate,
        estimate_of="difference, adjusted by the model",
        interval=interval,
        bounds=interval,
        p_opposite=opposite,
    )
