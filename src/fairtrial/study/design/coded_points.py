"""Coded points of numeric factors: -1 is a factor's smallest level, 1 its largest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.core import Mistake, StudyError
from fairtrial.study.design.rows import Assignment, is_number
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study

Point = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of one factor.

    name: the factor
    low: its smallest level
    high: its largest level
    whole: whether it takes whole numbers only
    """

    name: str
    low: float
    high: float
    whole: bool

    def decode(self, code: float) -> float:
        """Return the value at a code; -1 and 1 give exactly the levels."""
        if abs(code) == 1:
            value = self.low if code < 0 else self.high
        else:
            value = (self.low + self.high) / 2 + code * (self.high - self.low) / 2
        return int(value) if self.whole and value.is_integer() else value


def read_axes(study: Study, minimum: int) -> list[Axis]:
    """Return each factor's range; raises one `StudyError` with all mistakes.

    minimum: the smallest number of factors that the design needs
    """
    kind = study.design_spec.kind
    mistakes = []
    if len(study.factors) < minimum:
        message = f"{kind} needs at least {minimum} factors; got {len(study.factors)}"
        mistakes.append(Mistake(("factors",), message))
    for index, factor in enumerate(study.factors):
        if reason := _explain_unsuitable(factor):
            mistakes.append(Mistake(("factors", index), f"'{factor.name}' {reason}"))
    whole = any(factor.dtype == "int" for factor in study.factors)
    if whole and study.design_spec.center_points:
        path = ("design_spec", "center_points")
        mistakes.append(Mistake(path, "are not whole numbers", "use options.center"))
    if mistakes:
        raise StudyError(mistakes)
    return [
        Axis(
            factor.name,
            float(min(factor.iter_values())),
            float(max(factor.iter_values())),
            factor.dtype == "int",
        )
        for factor in study.factors
    ]


def _explain_unsuitable(factor: Factor) -> str:
    """Return why a factor's levels are no range, or don't fit coded points; empty if they do."""
    values = factor.iter_values()
    if not all(is_number(value) for value in values) or len(set(values)) < 2:
        return "has no numeric range; give two numbers as levels, low and high"
    low, high = min(values), max(values)
    middle = (low + high) / 2
    tolerance = 1e-9 * (high - low)
    unused = [
        value
        for value in values
        if value not in (low, high) and not math.isclose(value, middle, abs_tol=tolerance)
    ]
    if unused:
        return (
            f"has the level {unused[0]:g}, where this design has no point: its levels are "
            f"{low:g}, {middle:g} (halfway) and {high:g}; give low and high alone, or halfway too"
        )
    return ""


def refuse_fractions(axes: Sequence[Axis], codes: Sequence[float]) -> None:
    """Raise `StudyError` if the design would set factors of whole numbers to fractions."""
    mistakes = []
    for index, axis in enumerate(axes):
        values = sorted({axis.decode(code) for code in codes})
        if axis.whole and not all(isinstance(value, int) for value in values):
            shown = ", ".join(f"{value:.4g}" for value in values)
            mistakes.append(
                Mistake(
                    ("factors", index, "dtype"),
                    f"'{axis.name}' takes whole numbers, and the design has {shown}",
                    "use a range with a whole middle, and face: faced for a central composite",
                )
            )
    if mistakes:
        raise StudyError(mistakes)


def decode_point(axes: Sequence[Axis], point: Point) -> Assignment:
    """Return a coded point as a row of the factors' values."""
    return {axis.name: axis.decode(code) for axis, code in zip(axes, point, strict=True)}
