"""A function on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def smooth(values: NDArray[Any]) -> NDArray[Any]:
    """Return sorted running means of an array, several times over."""
    import numpy

    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) / width
    return values
