"""The direction of a difference in words: which level is higher, or where an effect is larger."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import TestResult, name_cells

MINUS = " − "


@dataclass(frozen=True, slots=True)
class DirectionWords:
    """What a difference means, in words.

    above: a difference above zero
    below: a difference below zero
    """

    above: str
    below: str


ANY_DIRECTION = DirectionWords("the difference is above 0", "the difference is below 0")


def describe_directions(request: TestRequest, result: TestResult) -> DirectionWords:
    """Return what the difference of a test means in words."""
    comparison = request.comparison
    if comparison.shape == "interaction" and not result.is_omnibus:
        rows, columns = name_cells(request)
        effect = f"{rows[0]}{MINUS}{rows[1]}"
        return DirectionWords(
            f"{effect} is larger at {columns[0]} than at {columns[1]}",
            f"{effect} is smaller at {columns[0]} than at {columns[1]}",
        )
    is_slope = comparison.shape == "slope" or result.difference.startswith("correlation with ")
    if is_slope:
        outcome, variable = request.outcome.name, comparison.variables[0]
        return DirectionWords(
            f"{outcome} rises with {variable}", f"{outcome} falls with {variable}"
        )
    levels = result.difference.split(MINUS)
    if len(levels) != 2:
        return ANY_DIRECTION
    verb = "is" if result.finding.rank_direction is None else "tends to be"
    first, second = levels
    return DirectionWords(
        f"{first} {verb} higher than {second}", f"{first} {verb} lower than {second}"
    )
