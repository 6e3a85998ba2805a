"""The maximin criterion: the smallest distance between points of a Latin hypercube, maximized.

Distances are between points of the unit cube.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Gains below this are rounding errors, which differ between machines.
_LEAST_GAIN = 1e-12


def measure_spread(points: Sequence[Sequence[float]]) -> float | None:
    """Return the smallest distance between two points; None if there is only one."""
    import numpy as np

    if len(points) < 2:
        return None
    return math.sqrt(float(_squared_distances(np.array(points, dtype=float)).min()))


def spread_apart(
    points: Sequence[Sequence[float]], tries: int, rng: random.Random
) -> Sequence[Sequence[float]]:
    """Return points with the same values on every axis and a larger smallest distance.

    Each try swaps a coordinate of one of the two closest points with that of another point, and
    keeps the swap if all distances that it changes are larger than the smallest distance before. So
    the smallest distance never decreases, and each axis keeps its values: the points remain a Latin
    hypercube.
    """
    import numpy as np

    cube = np.array(points, dtype=float)
    count, dimensions = cube.shape
    if count < 3 or dimensions < 2:
        return points
    squared = _squared_distances(cube)
    closest = divmod(int(squared.argmin()), count)
    for _ in range(tries):
        one, other = rng.choice(closest), rng.randrange(count)
        axis = cube[:, rng.randrange(dimensions)]
        if other in closest:
            continue
        change = (axis - axis[other]) ** 2 - (axis - axis[one]) ** 2
        moved_one, moved_other = squared[one] + change, squared[other] - change
        # The swap doesn't change the distance between the two points.
        moved_one[other] = moved_other[one] = squared[one, other]
        moved_one[one] = moved_other[other] = np.inf
        if min(moved_one.min(), moved_other.min()) <= squared[closest] + _LEAST_GAIN:
            continue
        axis[one], axis[other] = axis[other], axis[one]
        squared[one] = squared[:, one] = moved_one
        squared[other] = squared[:, other] = moved_other
        closest = divmod(int(squared.argmin()), count)
    improved: list[list[float]] = cube.tolist()
    return improved


def _squared_distances(cube: Floats) -> Floats:
    """Return the squared distances between all points, infinite on the diagonal."""
    import numpy as np

    squared = np.zeros((len(cube), len(cube)))
    for axis in cube.T:
        squared += (axis[:, None] - axis) ** 2
    np.fill_diagonal(squared, np.inf)
    return squared
