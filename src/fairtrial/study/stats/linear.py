"""Linear models: regression slopes, correlations, least squares and factorial analysis.

A model is a list of terms, each a matrix with one or more columns. Levels are coded so that the
coefficient of a two-level term is the difference of the two means, and the coefficient of the
product of two such terms is the difference of differences.

References::

    Scheffé (1959), The analysis of variance
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtrial.study.stats.cells import TermEstimate
from fairtrial.study.stats.finding import (
    CONFIDENCE,
    Alternative,
    Finding,
    UntestableError,
    sample_sd,
    suppress_warnings,
    t_inference,
    tost_p_value,
)
from fairtrial.study.stats.robust_errors import contrast_cells, estimate_by_hc3

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values


@dataclass(frozen=True, slots=True)
class SlopeFit:
    """A simple linear regression.

    finding: test of the slope; the estimate is the rise over the range of x
    residual_sd: standard deviation of the residuals
    """

    finding: Finding
    residual_sd: float


def fit_slope(
    x: Values, y: Values, span: float, alternative: Alternative = "two-sided", margin: float = 0.0
) -> SlopeFit:
    """Fit a straight line and test its slope; the variance may change along the line.

    Args:
        x: predictor values.
        y: response values.
        span: the range of x over which the rise of the line is reported.
        alternative: the alternative hypothesis about the slope.
        margin: if above 0, test instead that the rise lies within ±margin (TOST).

    Raises:
        UntestableError: for fewer than three points, a constant x, or an exact line.
    """
    import numpy as np

    if len(x) < 3:
        raise UntestableError(f"a line through {len(x)} points leaves nothing to judge it by")
    if sample_sd(x) == 0:
        raise UntestableError("all runs have the same x")
    with suppress_warnings():
        fit = fit_ols(y, [(x / span)[:, None]], robust=True)
        finding = wald_test(fit, "regression slope (HC3 errors)", alternative, margin)
    residual_sd = float(np.sqrt(fit.residual_variance))
    finding = replace(
        finding,
        estimate_of="rise of the line over the range",
        effect_name="r",
        effect_size=float(np.corrcoef(x, y)[0, 1]),
    )
    return SlopeFit(finding, residual_sd)


def correlation(
    x: Values, y: Values, alternative: Alternative = "two-sided", *, by_rank: bool = False
) -> Finding:
    """Test Pearson's correlation, or Spearman's rank correlation.

    Args:
        x: values of one variable.
        y: values of the other.
        alternative: the alternative hypothesis about the correlation.
        by_rank: Spearman's instead of Pearson's.

    Raises:
        UntestableError: for fewer than four points, or a variable that does not vary.
    """
    from scipy import stats

    if len(x) < 4:
        raise UntestableError(f"{len(x)} points are too few for a correlation; it needs 4")
    if sample_sd(x) == 0 or sample_sd(y) == 0:
        raise UntestableError("the values don't vary")
    test = stats.spearmanr if by_rank else stats.pearsonr
    name = "Spearman's ρ" if by_rank else "Pearson's r"
    opposite = {"greater": "less", "less": "greater"}.get(alternative)
    with suppress_warnings():
        result = test(x, y, alternative=alternative)
        interval = None if by_rank else test(x, y).confidence_interval(CONFIDENCE)
        return Finding(
            method=f"{name.partition(' ')[0]} correlation",
            p=result.pvalue,
            statistic_name="ρ" if by_rank else "r",
            statistic=result.statistic,
            df=(len(x) - 2,),
            effect_name=name,
            effect_size=result.statistic,
            effect_interval=interval,
            p_opposite=test(x, y, alternative=opposite).pvalue if opposite else None,
        )


def code_levels(codes: Codes, count: int) -> Values:
    """Code the levels of a categorical variable as columns of numbers.

    Args:
        codes: level of each run, numbered from 0.
        count: number of levels.

    Returns:
        One column of ½ and -½ for two levels; else effect coding in `count` - 1 columns.
    """
    import numpy as np

    if count == 2:
        return np.where(codes == 0, 0.5, -0.5)[:, None]
    columns = np.zeros((len(codes), count - 1))
    for level in range(count - 1):
        columns[:, level] = (codes == level).astype(float) - (codes == count - 1)
    return columns


def interaction_columns(first: Values, second: Values) -> Values:
    """Return the products of every column of one term with every column of the other."""
    import numpy as np

    products = [
        first[:, i] * second[:, j] for i in range(first.shape[1]) for j in range(second.shape[1])
    ]
    return np.column_stack(products)


@dataclass(frozen=True, slots=True)
class LinearFit:
    """A fitted linear model.

    term: the coefficients of the tested term, and how they are tested
    residual_variance: variance of the residuals
    """

    term: TermEstimate
    residual_variance: float


def fit_ols(y: Values, terms: Sequence[Values], *, robust: bool) -> LinearFit:
    """Fit ordinary least squares of `y` on a constant and the terms.

    Args:
        y: response values.
        terms: columns of each term; the first term is the one to be tested.
        robust: allow for unequal variances. A model with a parameter for each combination of
            levels is tested as a contrast of cell means (`stats.cells`), any other one by HC3
            standard errors with the degrees of freedom of Bell and McCaffrey.

    Raises:
        UntestableError: if there are too few runs, terms are collinear, the fit is exact, or (with
            `robust`) a coefficient depends on a single run.
    """
    import numpy as np

    exog = design_matrix(terms)
    df = len(y) - exog.shape[1]
    if df < 1:
        raise UntestableError(f"{len(y)} runs are too few for a model of {exog.shape[1]} terms")
    tested = slice(1, 1 + terms[0].shape[1])
    with suppress_warnings():
        basis, triangle = np.linalg.qr(exog)
        weights = np.linalg.solve(triangle, basis.T)[tested]
        residuals = y - basis @ (basis.T @ y)
        variance = float(residuals @ residuals) / df
        if not np.isfinite(variance):
            raise UntestableError("the values are too large to compute with")
        if np.sqrt(variance) <= 1e-12 * float(np.max(np.abs(y), initial=0.0)):
            raise UntestableError("the values don't vary around the model")
        estimates = weights @ y
        if not robust:
            scale = 1 / len(estimates)
            term = TermEstimate(estimates, variance * (weights @ weights.T), df, scale)
            return LinearFit(term, variance)
        if rests_on_single_run(terms):
            raise UntestableError("some term of the model rests on a single run")
        term = contrast_cells(y, exog, tested) or estimate_by_hc3(
            estimates, weights, basis, residuals
        )
        return LinearFit(term, variance)


def rests_on_single_run(terms: Sequence[Values]) -> bool:
    """Return whether some run alone decides about a coefficient of the model."""
    import numpy as np

    basis, _ = np.linalg.qr(design_matrix(terms))
    return bool(np.max(np.sum(basis**2, axis=1)) > 1 - 1e-9)


def design_matrix(terms: Sequence[Values]) -> Values:
    """Return the design matrix: a constant column and the terms.

    Raises:
        UntestableError: if the columns are linearly dependent.
    """
    import numpy as np

    exog = np.column_stack([np.ones(len(terms[0])), *terms])
    if np.linalg.matrix_rank(exog) < exog.shape[1]:
        raise UntestableError(
            "the terms of the model can't be told apart: some combinations of levels have no runs"
        )
    return exog


def wald_test(
    fit: LinearFit, method: str, alternative: Alternative = "two-sided", margin: float = 0.0
) -> Finding:
    """Test the first term of a model: by t if it has one column, else by F without a direction.

    Args:
        fit: the fitted model.
        method: name of the method for the finding.
        alternative: the alternative hypothesis, for a single column.
        margin: if above 0, test that a single coefficient lies within ±margin (TOST).
    """
    from scipy import stats

    term = fit.term
    with suppress_warnings():
        if len(term.estimates) > 1:
            df = (len(term.estimates), term.df)
            f = term.wald_f()
            return Finding(method, stats.f.sf(f, *df), "F", f, df)
        estimate, error = float(term.estimates[0]), float(term.covariance[0, 0]) ** 0.5
        return coefficient_test(estimate, error, term.df, method, alternative, margin)


def coefficient_test(
    estimate: float,
    error: float,
    df: float,
    method: str,
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
) -> Finding:
    """Test a coefficient by Student's t, given its standard error.

    Args:
        estimate: the coefficient.
        error: its standard error.
        df: degrees of freedom.
        method: name of the method for the finding.
        alternative: the alternative hypothesis.
        margin: if above 0, test that the coefficient lies within ±margin (TOST).
    """
    p, opposite, interval = t_inference(estimate, error, df, alternative)
    if margin:
        p, opposite = tost_p_value(estimate, error, df, margin), None
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
