"""Coded points and the ranges behind them: -1 is a factor's smallest level, 1 its largest."""

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
    """One factor's range; `whole` where it takes whole numbers only."""

    name: str
    low: float
    high: float
    whole: bool

    def at(self, code: float) -> float:
        """The value at a code: exactly the levels at -1 and 1."""
        if abs(code) == 1:
            value = self.low if code < 0 else self.high
        else:
            value = (self.low + self.high) / 2 + code * (self.high - self.low) / 2
        return int(value) if self.whole and value.is_integer() else value


def read_axes(study: Study, least: int) -> list[Axis]:
    """Each factor's range; raises one error with all that doesn't fit."""
    kind = study.design_spec.kind
    mistakes = []
    if len(study.factors) < least:
        message = f"{kind} needs at least {least} factors; got {len(study.factors)}"
        mistakes.append(Mistake(("factors",), message))
    for index, factor in enumerate(study.factors):
        if wrong := _objection(factor):
            mistakes.append(Mistake(("factors", index), f"'{factor.name}' {wrong}"))
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


def _objection(factor: Factor) -> str:
    """Why a factor has no range, if it hasn't."""
    values = factor.iter_values()
    if not all(is_number(value) for value in values) or len(set(values)) < 2:
        return "has no numeric range; give two numbers as levels, low and high"
    low, high = min(values), max(values)
    middle = (low + high) / 2
    near = 1e-9 * (high - low)
    unused = [
        value
        for value in values
        if value not in (low, high) and not math.isclose(value, middle, abs_tol=near)
    ]
    if unused:
        return (
            f"has the level {unused[0]:g}, where this design has no point: its levels are "
            f"{low:g}, {middle:g} (halfway) and {high:g}; give low and high alone, or halfway too"
        )
    return ""


def refuse_fractions(axes: Sequence[Axis], codes: Sequence[float]) -> None:
    """Refuse whole-number factors that the design would set to fractions."""
    mistakes = []
    for index, axis in enumerate(axes):
        values = sorted({axis.at(code) for code in codes})
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


def read_point(axes: Sequence[Axis], point: Point) -> Assignment:
    """A coded point as a row of the factors' values."""
    return {axis.name: axis.at(code) for axis, code in zip(axes, point, strict=True)}
