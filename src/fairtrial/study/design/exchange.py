"""An exchange algorithm that selects the rows of a D-optimal design from a set of candidates.

A design's rows, coded as model columns, are a matrix X. The larger the determinant of X'X, its
*information matrix*, the smaller is the joint uncertainty of the model's coefficients; a design
with the largest determinant is D-optimal. The search is the modified Fedorov algorithm: Cook and
Nachtsheim, "A comparison of algorithms for constructing exact D-optimal designs", Technometrics 22
(1980).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.study.design.terms import SINGULAR

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

MAX_PASSES = 100
# Relative gains below this are rounding errors, which differ between machines: of equally good
# candidates the first is chosen on every machine.
_TOLERANCE = 1e-8
# The multiplications for an upper bound: about half a second.
_BOUND_WORK = 10**9


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The best design of all restarts.

    rows: the sorted indexes of the selected candidates; one may occur more than once
    log_determinant: the log-determinant of the information matrix of these and the kept rows
    reached: how many of the restarts reached this determinant
    """

    rows: tuple[int, ...]
    log_determinant: float
    reached: int


def search_rows(
    candidates: Floats, kept: Floats, count: int, restarts: int, rng: random.Random
) -> ExchangeResult | None:
    """Return the best `count` candidates to add to the kept rows.

    None if the information matrix stays singular in all restarts.
    """
    results = []
    for _ in range(restarts):
        start = rng.choices(range(len(candidates)), k=count)
        results.append(improve_rows(candidates, kept, start))
    best = max(log_determinant for _, log_determinant in results)
    if best == -math.inf:
        return None
    tolerance = _TOLERANCE * candidates.shape[1]
    best_rows = [rows for rows, value in results if value >= best - tolerance]
    return ExchangeResult(tuple(sorted(best_rows[0])), best, len(best_rows))


def improve_rows(candidates: Floats, kept: Floats, start: Sequence[int]) -> tuple[list[int], float]:
    """Exchange one row after the other for the best candidate, until no exchange is a gain.

    Returns the rows and the log-determinant, which is minus infinity for a singular matrix.
    """
    import numpy as np

    rows = list(start)
    for _ in range(MAX_PASSES):
        information = _information(candidates[rows], kept)
        ridge = _ridge(information)
        inverse: Floats = np.linalg.inv(information + ridge * np.eye(len(information)))
        if not _exchange_each(candidates, rows, inverse):
            break
    information = _information(candidates[rows], kept)
    if _ridge(information):
        return rows, -math.inf
    return rows, float(np.linalg.slogdet(information)[1])


def _exchange_each(candidates: Floats, rows: list[int], inverse: Floats) -> bool:
    """Exchange each row in place if that is a gain; return whether any was exchanged.

    With variances d(x) = x'Mx and covariances d(x, y) = x'My, where M is the inverse of the
    information matrix, exchanging row x for candidate y multiplies the determinant by
    1 + d(y) - d(x) - d(x) d(y) + d(x, y)^2. M and the variances are changed by rank-one updates.
    """
    import numpy as np

    variances = ((candidates @ inverse) * candidates).sum(axis=1)
    exchanged = False
    for index, row in enumerate(rows):
        old = candidates[row]
        covariances = candidates @ (inverse @ old)
        variance = covariances[row]
        gains = variances - variance - variance * variances + covariances**2
        largest = gains.max()
        if largest <= _TOLERANCE:
            continue
        chosen = int(np.argmax(gains >= largest - _TOLERANCE * (1 + largest)))
        # The new row is added before the old one is removed, so that the matrix is never singular.
        for point, sign in ((candidates[chosen], 1.0), (old, -1.0)):
            direction = inverse @ point
            scale = sign / (1.0 + sign * (point @ direction))
            inverse -= scale * np.outer(direction, direction)
            variances -= scale * (candidates @ direction) ** 2
        rows[index] = chosen
        exchanged = True
    return exchanged


def _information(rows: Floats, kept: Floats) -> Floats:
    information: Floats = rows.T @ rows + kept.T @ kept
    return information


def _ridge(information: Floats) -> float:
    """Return what to add to the diagonal of a singular matrix to invert it; 0 if it is regular."""
    import numpy as np

    eigenvalues = np.linalg.eigvalsh(information)
    return 1e-6 if eigenvalues[0] <= SINGULAR * eigenvalues[-1] else 0.0


def bound_log_determinant(points: Floats, design: Floats) -> float:
    """Return an upper bound of the log-determinant of X'X / n over all designs of these points.

    Any weights of the points give a bound (`_bound`), and the optimal weights the tightest one. The
    weights are those of the design itself, equal weights, and those that the multiplicative
    algorithm of Silvey, Titterington and Torsney (1978) derives from them.
    """
    import numpy as np

    count, parameters = points.shape
    best, _ = _bound(points, design.T @ design / len(design))
    weights = np.full(count, 1.0 / count)
    for _ in range(max(10, min(1000, _BOUND_WORK // (count * parameters**2)))):
        bound, excess = _bound(points, (points * weights[:, None]).T @ points)
        best = min(best, bound)
        if excess.max() < 1.0001:
            break
        weights *= excess
    return best


def _bound(points: Floats, information: Floats) -> tuple[float, Floats]:
    """Return a bound of the log-determinant, and each point's variance relative to their average.

    Let M be this information matrix, and B any other weighted mean of xx'. The geometric mean of
    the p eigenvalues of inv(M) B is at most the arithmetic one, trace(inv(M) B) / p. That is a mean
    of variances x' inv(M) x over p, so det B / det M is at most (largest variance / p)^p.
    """
    import numpy as np

    parameters = points.shape[1]
    excess = ((points @ np.linalg.inv(information)) * points).sum(axis=1) / parameters
    log_determinant = float(np.linalg.slogdet(information)[1])
    return log_determinant + parameters * math.log(float(excess.max())), excess
