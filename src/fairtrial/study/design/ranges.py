"""The numeric ranges that space-filling designs sample, and all that can be wrong with them."""

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
    """One factor's range, and whether only its whole numbers count."""

    name: str
    low: float
    high: float
    whole: bool = False

    def at(self, point: float) -> float:
        """The value at a point between 0 and 1."""
        if not self.whole:
            return self.low + point * (self.high - self.low)
        low, high = int(self.low), int(self.high)
        # A point may round up to 1, which is past the last number's share.
        return min(low + math.floor(point * (high - low + 1)), high)


def scale(ranges: Sequence[Range], points: Points) -> list[Assignment]:
    """Points of the unit cube as rows of the factors' values."""
    return [
        {one.name: one.at(value) for one, value in zip(ranges, point, strict=True)}
        for point in points
    ]


def plan_samples(study: Study, explicit: Bounds | None, integers: bool) -> tuple[int, list[Range]]:
    """How many samples, over which ranges; raises one error with all that doesn't fit."""
    spec = study.design_spec
    mistakes: list[Mistake] = []
    if spec.n_samples is None:
        mistakes.append(
            Mistake(("design_spec", "n_samples"), f"{spec.kind} needs a number of samples")
        )
    if not study.factors:
        mistakes.append(Mistake(("factors",), f"{spec.kind} needs at least one factor"))
    ranges = _ranges(study, explicit, mistakes)
    whole = {factor.name for factor in study.factors if integers and factor.dtype == "int"}
    if integers:
        mistakes.extend(_fractions(study, ranges, whole))
    if mistakes:
        raise StudyError(mistakes)
    assert spec.n_samples is not None
    found = [Range(name, low, high, name in whole) for name, (low, high) in ranges.items()]
    return spec.n_samples, found


def _ranges(
    study: Study, explicit: Bounds | None, mistakes: list[Mistake]
) -> dict[str, tuple[float, float]]:
    names = [factor.name for factor in study.factors]
    if explicit is not None:
        path = ("design_spec", "options", "bounds")
        mistakes.extend(
            Mistake((*path, name), f"'{name}' is not a factor", did_you_mean(name, names))
            for name in explicit
            if name not in names
        )
        mistakes.extend(
            Mistake(path, f"there is no range for '{name}'", "give each factor its [low, high]")
            for name in names
            if name not in explicit
        )
        return dict(explicit)
    found: dict[str, tuple[float, float]] = {}
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
        found[factor.name] = (float(min(values)), float(max(values)))
        empty = empty_ranges({factor.name: found[factor.name]}, "levels")
        mistakes.extend(mistake.under(("factors", index)) for mistake in empty)
    return found


def empty_ranges(ranges: Bounds | None, field: str = "bounds") -> Iterator[Mistake]:
    """A mistake for each range that does not go up, or goes beyond what can be reckoned with."""
    for name, (low, high) in (ranges or {}).items():
        path = (field, name) if field == "bounds" else (field,)
        got = f"got {low:g} to {high:g}"
        if not (is_number(low) and is_number(high)):
            yield Mistake(path, f"the range of '{name}' is too wide, {got}")
        elif not high > low:
            yield Mistake(path, f"the range of '{name}' must go up, {got}", "[low, high]")


def _fractions(study: Study, ranges: Bounds, whole: set[str]) -> Iterator[Mistake]:
    """What keeps whole-number factors from being whole."""
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
