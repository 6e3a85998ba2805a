"""Decode and compare encoded numpy arrays."""

from __future__ import annotations

from typing import Any

from fairtrial.arena.checks.encoded_values import Encoded, read_bytes

_LONGEST_NAME = 40


def read_array(node: Encoded) -> Any:
    """Decode a numpy array of numbers, dates or texts; raise ValueError for one of objects."""
    import numpy

    name = str(node["dtype"])
    if len(name) > _LONGEST_NAME:
        raise ValueError("not the name of a plain dtype")
    dtype = numpy.dtype(name)
    if dtype.hasobject or dtype.kind not in "biufcmMSU":
        raise ValueError("not an array of plain values")
    return numpy.frombuffer(read_bytes(node), dtype).reshape([int(size) for size in node["shape"]])


def find_unequal(one: Any, other: Any, rel_tol: float, abs_tol: float) -> Any:
    """Return the indexes where two arrays of one dtype and shape differ, as numpy's `argwhere`.

    The rules are those of single floats (`fairtrial.arena.checks.value_comparison`).
    """
    import numpy

    same = one == other
    if one.dtype.kind in "fc":
        with numpy.errstate(all="ignore"):
            limit = numpy.maximum(abs(one), abs(other)) * rel_tol
            near = abs(one - other) <= numpy.maximum(limit, abs_tol)
        # An infinity would be within the tolerance of everything.
        same = same | (near & numpy.isfinite(one) & numpy.isfinite(other))
        if rel_tol == 0 == abs_tol and one.dtype.kind == "f":
            same = same & (numpy.signbit(one) == numpy.signbit(other))
        same = same | (numpy.isnan(one) & numpy.isnan(other))
    elif one.dtype.kind in "mM":
        same = same | (numpy.isnat(one) & numpy.isnat(other))
    return numpy.argwhere(~same)
