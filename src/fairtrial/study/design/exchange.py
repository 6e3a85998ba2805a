"""Which rows of a candidate set make the best design of a given size: an exchange algorithm.

A design's rows, coded as model columns, are a matrix X. The larger the determinant of X'X, its
*information matrix*, the smaller the joint uncertainty of the model's coefficients; a design with
the largest is D-optimal. The search is the modified Fedorov algorithm: Cook and Nachtsheim,
"A comparison of algorithms for constructing exact D-optimal designs", Technometrics 22 (1980).
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
# Relative gains below this are taken for rounding, which differs between machines: of candidates
# that are as good as each other the first is chosen everywhere.
_TOLERANCE = 1e-8
# Multiplications to spend on a bound: about half a second.
_BOUND_WORK = 10**9


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The best design of all restarts.

    rows: positions in the candidate set, in its order; one may come more than once
    log_determinant: of the information matrix of these rows and the kept ones
    reached: how many of the restarts ended as well as this one
    """

    rows: tuple[int, ...]
    log_determinant: float
    reached: int


def search(
    candidates: Floats, kept: Floats, count: int, restarts: int, rng: random.Random
) -> ExchangeResult | None:
    """The best `count` candidates to add to the rows that are kept; None if all are singular."""
    ends = []
    for _ in range(restarts):
        start = rng.choices(range(len(candidates)), k=count)
        ends.append(improve(candidates, kept, start))
    best = max(log_determinant for _, log_determinant in ends)
    if best == -math.inf:
        return None
    as_good = [rows for rows, value in ends if value >= best - _TOLERANCE * candidates.shape[1]]
    return ExchangeResult(tuple(sorted(as_good[0])), best, len(as_good))


def improve(candidates: Floats, kept: Floats, start: Sequence[int]) -> tuple[list[int], float]:
    """Exchange one row after the other for the best candidate, until no exchange helps.

    Returns the rows and the log of the determinant, minus infinity where it stays zero.
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
    """One pass over the rows, changing them in place; whether any was exchanged.

    With variances d(x) = x'Mx and covariances d(x, y) = x'My, where M is the inverse of the
    information matrix, exchanging row x for candidate y multiplies the determinant by
    1 + d(y) - d(x) - d(x) d(y) + d(x, y)^2. M and all variances follow by rank-one updates.
    """
    import numpy as np

    variances = ((candidates @ inverse) * candidates).sum(axis=1)
    exchanged = False
    for place, row in enumerate(rows):
        old = candidates[row]
        covariances = candidates @ (inverse @ old)
        own = covariances[row]
        gains = variances - own - own * variances + covariances**2
        largest = gains.max()
        if largest <= _TOLERANCE:
            continue
        chosen = int(np.argmax(gains >= largest - _TOLERANCE * (1 + largest)))
        # First the new row, then without the old one: never through a singular matrix.
        for point, sign in ((candidates[chosen], 1.0), (old, -1.0)):
            direction = inverse @ point
            scale = sign / (1.0 + sign * (point @ direction))
            inverse -= scale * np.outer(direction, direction)
            variances -= scale * (candidates @ direction) ** 2
        rows[place] = chosen
        exchanged = True
    return exchanged


def _information(rows: Floats, kept: Floats) -> Floats:
    information: Floats = rows.T @ rows + kept.T @ kept
    return information


def _ridge(information: Floats) -> float:
    """Zero, or what to add to the diagonal of a singular matrix so that the search gets going."""
    import numpy as np

    eigenvalues = np.linalg.eigvalsh(information)
    return 1e-6 if eigenvalues[0] <= SINGULAR * eigenvalues[-1] else 0.0


def bound_log_determinant(points: Floats, design: Floats) -> float:
    """What the log-determinant of X'X / n exceeds for no design of these points, whatever n.

    Any weights on the points give a bound (`_bound`), and the best weights the tightest one. Tried
    are those of the design itself, equal ones, and what the multiplicative algorithm of Silvey,
    Titterington and Torsney (1978) makes of these.
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
    """A bound on the log-determinant, and each point's variance as a share of their average.

    Let M be this information matrix, and B any other weighted mean of xx'. The geometric mean of
    the p eigenvalues of inv(M) B is at most the arithmetic one, trace(inv(M) B) / p. That is a mean
    of variances x' inv(M) x over p, so det B / det M is at most (largest variance / p)^p.
    """
    import numpy as np

    parameters = points.shape[1]
    excess = ((points @ np.linalg.inv(information)) * points).sum(axis=1) / parameters
    log_determinant = float(np.linalg.slogdet(information)[1])
    return log_determinant + parameters * math.log(float(excess.max())), excess
