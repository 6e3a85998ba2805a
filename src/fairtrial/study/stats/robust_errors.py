"""Standard errors of least squares that allow for unequal variances.

References::

    MacKinnon and White (1985), J. Econometrics 29, 305-325: HC3 standard errors
    Bell and McCaffrey (2002), Survey Methodology 28, 169-181: their degrees of freedom
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.study.stats.cells import TermEstimate, estimate_contrasts
from fairtrial.study.stats.finding import UntestableError

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values


def contrast_cells(y: Values, exog: Values, tested: slice) -> TermEstimate | None:
    """Estimate a term as contrasts of cell means; None unless the model has a mean for each cell.

    The cells are the distinct rows of the design matrix.

    Args:
        y: response values.
        exog: the design matrix.
        tested: the columns of the term.
    """
    import numpy as np

    rows, cell = np.unique(exog, axis=0, return_inverse=True)
    if len(rows) != exog.shape[1]:
        return None
    contrasts = np.asarray(np.linalg.inv(rows)[tested], dtype=np.float64)
    contrasts[np.abs(contrasts) < 1e-12] = 0.0
    return estimate_contrasts([y[cell.ravel() == index] for index in range(len(rows))], contrasts)


def estimate_by_hc3(
    estimates: Values, weights: Values, basis: Values, residuals: Values
) -> TermEstimate:
    """Estimate coefficients with HC3 errors and the degrees of freedom of Bell and McCaffrey.

    Args:
        estimates: the coefficients.
        weights: a row for each coefficient: its weights of the response values.
        basis: orthonormal columns that span the design matrix.
        residuals: residuals of the model.

    Raises:
        UntestableError: if there are too few runs for several coefficients.
    """
    import numpy as np

    leverage = np.sum(basis**2, axis=1)
    inflation = 1 / (1 - leverage) ** 2
    covariance = (weights * (inflation * residuals**2)) @ weights.T
    count = len(estimates)
    # Coefficients are made uncorrelated: each then has degrees of freedom of its own.
    orthogonal = np.linalg.solve(np.linalg.cholesky(weights @ weights.T), weights)
    df = min(_satterthwaite_df(row**2 * inflation, leverage, basis) for row in orthogonal)
    if count == 1:
        return TermEstimate(estimates, covariance, df)
    # Hotelling's T squared: several variances and covariances are estimated.
    if df - count + 1 < 1:
        raise UntestableError("too few runs for a test that allows for unequal variances")
    scale = (df - count + 1) / (df * count)
    return TermEstimate(estimates, covariance, df - count + 1, scale)


def _satterthwaite_df(weights: Values, leverage: Values, basis: Values) -> float:
    """Compute the degrees of freedom of a weighted sum of squared residuals."""
    import numpy as np

    mean = float(np.sum(weights * (1 - leverage)))
    products = (basis.T * weights) @ basis
    spread = float(np.sum(weights**2 * (1 - 2 * leverage)) + np.sum(products**2))
    return mean**2 / spread
