"""Agents and problems of search.yaml: three ways to look for the lowest point of a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairtrial import Task

Point = Sequence[float]


def sphere(point: Point) -> float:
    """Smooth, with one lowest point: 0 at the origin."""
    return sum(x * x for x in point)


def rastrigin(point: Point) -> float:
    """Bumpy: a low point near every whole number, the lowest 0 at the origin."""
    return sum(x * x - 10 * math.cos(2 * math.pi * x) + 10 for x in point)


def ackley(point: Point) -> float:
    """Nearly flat far out, with one deep hole: 0 at the origin."""
    size = len(point)
    spread = math.sqrt(sum(x * x for x in point) / size)
    waves = sum(math.cos(2 * math.pi * x) for x in point) / size
    return 20 + math.e - 20 * math.exp(-0.2 * spread) - math.exp(waves)


FUNCTIONS: Mapping[str, Callable[[Point], float]] = {
    "sphere": sphere,
    "rastrigin": rastrigin,
    "ackley": ackley,
}


def random_search(task: Task) -> dict[str, Any]:
    """Guess, and keep the best."""
    function, guess, steps = _setting(task)
    best = min((guess() for _ in range(steps)), key=function)
    return {"x": best}


def climb(task: Task, *, temperature: float) -> dict[str, Any]:
    """Step to a neighbour when it is lower; while it is hot, now and then also when it is not."""
    function, guess, steps = _setting(task)
    here = best = guess()
    height = lowest = function(here)
    for step in range(steps - 1):
        heat = temperature * (1 - step / steps) ** 2
        there = [x + task.rng.gauss(0, 0.5) for x in here]
        level = function(there)
        is_lower = level <= height
        if is_lower or (heat > 0 and task.rng.random() < math.exp((height - level) / heat)):
            here, height = there, level
        if height < lowest:
            best, lowest = here, height
            task.emit("improvement", f"{lowest:.4g}", step=step)
    return {"x": best, "lowest": lowest}


def _setting(task: Task) -> tuple[Callable[[Point], float], Callable[[], list[float]], int]:
    payload = task.problem.payload
    bound = payload["bound"]

    def guess() -> list[float]:
        return [task.rng.uniform(-bound, bound) for _ in range(payload["dimensions"])]

    return FUNCTIONS[payload["function"]], guess, task.condition.factor_assignments["steps"]


def judge_sphere(point: Point) -> dict[str, float]:
    return _judge(sphere(point))


def judge_rastrigin(point: Point) -> dict[str, float]:
    return _judge(rastrigin(point))


def judge_ackley(point: Point) -> dict[str, float]:
    return _judge(ackley(point))


def _judge(gap: float) -> dict[str, float]:
    """How far above the lowest point an answer lies, as it is and in orders of magnitude."""
    return {"log_gap": math.log10(max(gap, 1e-12)), "gap": gap}
