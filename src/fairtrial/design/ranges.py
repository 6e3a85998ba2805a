"""The numeric ranges that space-filling designs sample, and all that can be wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fairtrial.design.table import Assignment, bounds
from fairtrial.errors import Mistake, StudyError, did_you_mean
from fairtrial.model.factors import Factor
from fairtrial.model.study import Study

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
    mistakes.extend(_conditional_factors(study))
    ranges = _ranges(study, explicit, mistakes)
    whole = {factor.name for factor in study.factors if integers and factor.dtype == "int"}
    if integers:
        mistakes.extend(_fractions(study, ranges, whole))
    if mistakes:
        raise StudyError(mistakes)
    assert spec.n_samples is not None
    found = [Range(name, low, high, name in whole) for name, (low, high) in ranges.items()]
    return spec.n_samples, found


def _conditional_factors(study: Study) -> Iterator[Mistake]:
    def word(factor: Factor) -> str | None:
        if factor.tied_to is not None:
            return "tied_to"
        is_conditional = factor.when or any(level.when for level in factor.levels)
        return "when" if is_conditional else None

    for index, factor in enumerate(study.factors):
        if found := word(factor):
            yield Mistake(
                ("factors", index),
                f"'{factor.name}' uses `{found}`, which goes by levels; {study.design_spec.kind} "
                "samples ranges",
                f"leave out `{found}`, or use d_optimal or a factorial",
            )


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
        return bounds(study, explicit)
    try:
        found = bounds(study, None)
    except StudyError as error:
        mistakes.extend(
            replace(mistake, hint=f"{mistake.hint}; for named levels use d_optimal or a factorial")
            for mistake in error.mistakes
        )
        return {}
    mistakes.extend(
        mistake.under(("factors", index))
        for index, name in enumerate(names)
        for mistake in empty_ranges({name: found[name]}, "levels")
    )
    return found


def empty_ranges(ranges: Bounds | None, field: str = "bounds") -> Iterator[Mistake]:
    """A mistake for each range that does not go up."""
    for name, (low, high) in (ranges or {}).items():
        if not high > low:
            path = (field, name) if field == "bounds" else (field,)
            yield Mistake(
                path, f"the range of '{name}' must go up, got {low:g} to {high:g}", "[low, high]"
            )


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
