"""The numeric ranges that space-filling designs sample, and their mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.rows import Assignment, is_number
from fairtrial.study.model.study import Study

Bounds = Mapping[str, tuple[float, float]]
Points = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Range:
    """The range of one factor.

    name: the factor
    low, high: the limits of the range
    whole: whether the factor takes whole numbers only
    """

    name: str
    low: float
    high: float
    whole: bool = False

    def scale(self, point: float) -> float:
        """Return the value at a point between 0 and 1."""
        if not self.whole:
            return self.low + point * (self.high - self.low)
        low, high = int(self.low), int(self.high)
        # A point may be rounded up to 1, which is beyond the last number's share.
        return min(low + math.floor(point * (high - low + 1)), high)


def scale(ranges: Sequence[Range], points: Points) -> list[Assignment]:
    """Return points of the unit cube as rows of the factors' values."""
    return [
        {span.name: span.scale(value) for span, value in zip(ranges, point, strict=True)}
        for point in points
    ]


def plan_samples(study: Study, bounds: Bounds | None, integers: bool) -> tuple[int, list[Range]]:
    """Return the number of samples and the factors' ranges; raises one `StudyError`.

    bounds: the ranges in place of the factors' levels
    integers: whether factors of dtype int take whole numbers
    """
    spec = study.design_spec
    mistakes: list[Mistake] = []
    if spec.n_samples is None:
        mistakes.append(
            Mistake(("design_spec", "n_samples"), f"{spec.kind} needs a number of samples")
        )
    if not study.factors:
        mistakes.append(Mistake(("factors",), f"{spec.kind} needs at least one factor"))
    limits = _find_limits(study, bounds, mistakes)
    whole = {factor.name for factor in study.factors if integers and factor.dtype == "int"}
    if integers:
        mistakes.extend(_find_fractions(study, limits, whole))
    if mistakes:
        raise StudyError(mistakes)
    assert spec.n_samples is not None
    ranges = [Range(name, low, high, name in whole) for name, (low, high) in limits.items()]
    return spec.n_samples, ranges


def _find_limits(
    study: Study, bounds: Bounds | None, mistakes: list[Mistake]
) -> dict[str, tuple[float, float]]:
    """Return the limits of each factor's range, and append mistakes in them."""
    names = [factor.name for factor in study.factors]
    if bounds is not None:
        path = ("design_spec", "options", "bounds")
        mistakes.extend(
            Mistake((*path, name), f"'{name}' is not a factor", did_you_mean(name, names))
            for name in bounds
            if name not in names
        )
        mistakes.extend(
            Mistake(path, f"there is no range for '{name}'", "give each factor its [low, high]")
            for name in names
            if name not in bounds
        )
        return dict(bounds)
    limits: dict[str, tuple[float, float]] = {}
    for index, factor in enumerate(study.factors):
        values = factor.iter_values()
        if len(values) < 2 or not all(is_number(value) for value in values):
            mistakes.append(
                Mistake(
                    ("factors", index, "levels"),
                    f"{study.design_spec.kind} needs a numeric range; '{factor.name}' has none",
                    "give two numbers as levels, or set design_spec.options.bounds; for named "
                    "levels use d_optimal or a factorial",
                )
            )
            continue
        limits[factor.name] = (float(min(values)), float(max(values)))
        range_mistakes = find_range_mistakes({factor.name: limits[factor.name]}, "levels")
        mistakes.extend(mistake.under(("factors", index)) for mistake in range_mistakes)
    return limits


def find_range_mistakes(ranges: Bounds | None, field: str = "bounds") -> Iterator[Mistake]:
    """Yield a mistake for each range that is empty, reversed or too wide to compute with."""
    for name, (low, high) in (ranges or {}).items():
        path = (field, name) if field == "bounds" else (field,)
        got = f"got {low:g} to {high:g}"
        if not (is_number(low) and is_number(high)):
            yield Mistake(path, f"the range of '{name}' is too wide, {got}")
        elif not high > low:
            yield Mistake(path, f"the range of '{name}' must go up, {got}", "[low, high]")


def _find_fractions(study: Study, ranges: Bounds, whole: set[str]) -> Iterator[Mistake]:
    """Yield what prevents factors of whole numbers from having whole values."""
    if not whole:
        path = ("design_spec", "options", "integers")
        yield Mistake(path, "no factor has the dtype int", "say so: `dtype: int`")
    for name, (low, high) in ranges.items():
        if name in whole and not (low.is_integer() and high.is_integer()):
            yield Mistake(
                ("factors", [factor.name for factor in study.factors].index(name)),
                f"'{name}' has the dtype int and a range from {low:g} to {high:g}",
                "start and end at whole numbers",
            )
    if whole and study.design_spec.center_points:
        yield Mistake(
            ("design_spec", "center_points"),
            "the middle of whole numbers need not be one",
            "leave out center_points, or options.integers",
        )
