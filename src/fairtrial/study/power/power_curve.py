"""Power curves: the power against the number of problems, and of replicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairtrial.core import dump_record
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import PowerAnalysis, analyze_power
from fairtrial.study.stats.by_problem import MIN_PROBLEMS

MULTIPLES = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4)
"""The points of a curve, as multiples of the planned number."""


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """The power of one planned test against the size of the study.

    hypothesis_id: the hypothesis
    outcome: the outcome that is tested
    variables: the variables that are compared
    over: what varies: problems or replicates
    planned: its number in the plan
    points: pairs of number and power; None where there is no test
    """

    hypothesis_id: str
    outcome: str
    variables: tuple[str, ...]
    over: Literal["problems", "replicates"]
    planned: int
    points: tuple[tuple[int, float | None], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def power_curves(study: Study, conditions: Sequence[Condition]) -> list[PowerCurve]:
    """Return the curves of each hypothesis that states a minimum effect.

    Tests by problem have one over problems and one over replicates, others only the second.
    """
    replicates = count_replicates(study)
    return [
        curve
        for analysis in analyze_power(study, conditions)
        for curve in _draw_curves(analysis, replicates)
    ]


def _draw_curves(analysis: PowerAnalysis, replicates: int) -> Iterator[PowerCurve]:
    record, model = analysis.record, analysis.model
    if model is None:
        return
    names = (record.hypothesis_id, record.outcome, record.variables)
    if model.problems:
        points = _compute_points(
            lambda count: model.power_at(replicates, count),
            model.problems,
            record.needed_problems,
            MIN_PROBLEMS,
        )
        yield PowerCurve(*names, "problems", model.problems, points)
    points = _compute_points(
        lambda count: model.power_at(count, model.problems), replicates, record.needed_replicates, 1
    )
    yield PowerCurve(*names, "replicates", replicates, points)


def _compute_points(
    power_at: Callable[[int], float | None], planned: int, needed: int | None, least: int
) -> tuple[tuple[int, float | None], ...]:
    numbers = {max(least, round(planned * multiple)) for multiple in MULTIPLES} | {planned}
    if needed is not None and needed <= 10 * planned:
        numbers.add(needed)
    return tuple((number, power_at(number)) for number in sorted(numbers))
