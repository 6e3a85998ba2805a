"""How far apart points lie, and how to move those of a Latin hypercube apart.

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

# Gains below this are rounding, which differs between machines.
_LEAST_GAIN = 1e-12


def measure_spread(points: Sequence[Sequence[float]]) -> float | None:
    """The smallest distance between two points; None where there is only one."""
    import numpy as np

    if len(points) < 2:
        return None
    return math.sqrt(float(_squared_distances(np.array(points, dtype=float)).min()))


def spread_apart(
    points: Sequence[Sequence[float]], tries: int, rng: random.Random
) -> Sequence[Sequence[float]]:
    """The same values on every axis, combined so that the two closest points are further apart.

    Takes the closest pair, swaps one coordinate of one of the two with another point's, and keeps
    the swap if none of the distances that it changes is as small as the pair's was. So the smallest
    distance never falls, and each axis keeps its values: a Latin hypercube stays one.
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
        # The two points' own distance is the same after the swap.
        moved_one[other] = moved_other[one] = squared[one, other]
        moved_one[one] = moved_other[other] = np.inf
        if min(moved_one.min(), moved_other.min()) <= squared[closest] + _LEAST_GAIN:
            continue
        axis[one], axis[other] = axis[other], axis[one]
        squared[one] = squared[:, one] = moved_one
        squared[other] = squared[:, other] = moved_other
        closest = divmod(int(squared.argmin()), count)
    apart: list[list[float]] = cube.tolist()
    return apart


def _squared_distances(cube: Floats) -> Floats:
    """Of each point to each other one; infinite to itself."""
    import numpy as np

    squared = np.zeros((len(cube), len(cube)))
    for axis in cube.T:
        squared += (axis[:, None] - axis) ** 2
    np.fill_diagonal(squared, np.inf)
    return squared
