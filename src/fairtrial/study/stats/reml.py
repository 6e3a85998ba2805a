"""Restricted maximum likelihood (REML) fits of linear mixed models, by statsmodels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.study.stats.finding import suppress_warnings

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

OPTIMIZERS = ["powell", "lbfgs"]
"""Powell's method finds variances of zero, where methods that need gradients fail."""


@dataclass(frozen=True, slots=True)
class FixedEffects:
    """The fixed effects of a fitted model.

    estimates, covariance: the coefficients and their covariance matrix
    log_likelihood: the restricted log-likelihood of the model
    components: number of variance components besides the residual
    contributions: what each group adds to the covariance matrix; they sum up to it
    """

    estimates: Values
    covariance: Values
    log_likelihood: float
    components: int
    contributions: Values

    def effective_groups(self, width: int) -> float:
        """Return the number of equal groups that would estimate the first term as evenly.

        width: the number of coefficients of the first term, which follows the intercept
        """
        import numpy as np

        tested = slice(1, 1 + width)
        parts = self.contributions[:, tested, tested]
        shares = np.trace(np.linalg.solve(parts.sum(axis=0), parts), axis1=1, axis2=2) / width
        return float(1 / np.sum(shares**2))


def fit_reml(y: Values, exog: Values, groups: Codes, components: Sequence[Codes]) -> FixedEffects:
    """Fit a linear mixed model with as many variance components as possible.

    Components with a variance of zero make the covariance matrix singular in statsmodels, so the
    largest subset that can be fitted is used; plain least squares if there is none.

    Args:
        y: response values.
        exog: design matrix of the fixed effects.
        groups: independent group of each run, numbered from 0.
        components: for each variance component the level of each run, numbered from 0.
    """
    import numpy as np

    for size in range(len(components), 0, -1):
        attempts = (
            _fit_components(y, exog, groups, subset)
            for subset in itertools.combinations(components, size)
        )
        fits = [fit for fit in attempts if fit is not None]
        if fits:
            return max(fits, key=lambda fit: fit.log_likelihood)
    from statsmodels.regression.linear_model import OLS

    ols = OLS(y, exog).fit()
    parts = _find_contributions(exog, groups, (), (), float(ols.scale))
    return FixedEffects(np.asarray(ols.params), np.asarray(ols.cov_params()), 0.0, 0, parts)


def _find_contributions(
    exog: Values,
    groups: Codes,
    components: Sequence[Codes],
    variances: Sequence[float],
    residual: float,
) -> Values:
    """Return what each group adds to the covariance matrix of generalized least squares."""
    import numpy as np

    information = []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        covariance = residual * np.eye(len(rows))
        for codes, variance in zip(components, variances, strict=True):
            covariance += variance * (codes[rows][:, None] == codes[rows])
        information.append(exog[rows].T @ np.linalg.solve(covariance, exog[rows]))
    inverse = np.linalg.inv(np.sum(information, axis=0))
    return np.asarray([inverse @ part @ inverse for part in information])


def _fit_components(
    y: Values, exog: Values, groups: Codes, components: Sequence[Codes]
) -> FixedEffects | None:
    """Fit the model with exactly these components; None if it is singular or does not converge."""
    import numpy as np
    from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

    count = exog.shape[1]
    try:
        with suppress_warnings():
            model = MixedLM(y, exog, groups, exog_vc=_component_spec(groups, components))
            start = MixedLMParams.from_components(
                fe_params=np.zeros(count),
                cov_re=np.zeros((0, 0)),
                vcomp=_starting_variances(y, exog, components),
            )
            result = model.fit(start_params=start, reml=True, method=OPTIMIZERS)
            covariance = np.asarray(result.cov_params())[:count, :count]
    except (np.linalg.LinAlgError, ValueError):
        return None
    is_valid = np.all(np.isfinite(covariance)) and np.all(np.diag(covariance) > 0)
    if not result.converged or not is_valid:
        return None
    parts = _find_contributions(exog, groups, components, result.vcomp, float(result.scale))
    return FixedEffects(
        np.asarray(result.fe_params), covariance, float(result.llf), len(components), parts
    )


def _starting_variances(y: Values, exog: Values, components: Sequence[Codes]) -> Values:
    """Estimate rough variances, relative to the residual variance, as starting values.

    From 1, the default of statsmodels, the search does not reach a variance that is thousands of
    times the residual variance, as where runs of one problem hardly differ.
    """
    import numpy as np

    residuals = y - exog @ np.linalg.lstsq(exog, y)[0]
    counts = [np.bincount(codes) for codes in components]
    means = [
        np.bincount(codes, weights=residuals) / np.maximum(1, count)
        for codes, count in zip(components, counts, strict=True)
    ]
    variances = [np.var(mean[count > 0]) for mean, count in zip(means, counts, strict=True)]
    df = len(y) - int((counts[-1] > 0).sum())
    within = float(np.sum((residuals - means[-1][components[-1]]) ** 2)) / max(1, df)
    residual = within if df > 0 and within > 0 else float(np.var(residuals)) / 100
    return np.maximum(1e-3, np.asarray(variances) / (residual or 1.0))


def _component_spec(groups: Codes, components: Sequence[Codes]) -> Any:
    """Build the variance component specification of statsmodels: indicator columns per group."""
    import numpy as np
    from statsmodels.regression.mixed_linear_model import VCSpec

    mats, names = [], []
    for codes in components:
        columns = [np.unique(codes[groups == group]) for group in np.unique(groups)]
        mats.append(
            [
                (codes[groups == group][:, None] == kinds).astype(float)
                for group, kinds in zip(np.unique(groups), columns, strict=True)
            ]
        )
        names.append([[str(kind) for kind in kinds] for kinds in columns])
    return VCSpec([f"component {number}" for number in range(len(components))], names, mats)
