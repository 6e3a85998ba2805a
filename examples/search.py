"""Agents and problems of search.yaml: three ways to look for the lowest point of a function."""

from __future__ import annotations

import itertools
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


def ellipsoid(point: Point) -> float:
    """Smooth, but steeper in some directions than in others: 0 at the origin."""
    return sum((10.0**index) * x * x for index, x in enumerate(point))


def rosenbrock(point: Point) -> float:
    """A long, bent valley: 0 where all coordinates are 1."""
    pairs = itertools.pairwise(point)
    return sum(100 * (after - x * x) ** 2 + (1 - x) ** 2 for x, after in pairs)


def zakharov(point: Point) -> float:
    """A flat valley with steep sides: 0 at the origin."""
    slope = sum((index + 1) * x for index, x in enumerate(point)) / 2
    return sphere(point) + slope**2 + slope**4


def griewank(point: Point) -> float:
    """A wide bowl with many small bumps: 0 at the origin."""
    waves = math.prod(math.cos(x / math.sqrt(index + 1)) for index, x in enumerate(point))
    return sphere(point) / 4000 - waves + 1


def levy(point: Point) -> float:
    """Wavy, with steep walls: 0 where all coordinates are 1."""
    first, *rest = [1 + (x - 1) / 4 for x in point]
    ws = [first, *rest]
    inner = sum((w - 1) ** 2 * (1 + 10 * math.sin(math.pi * w + 1) ** 2) for w in ws[:-1])
    last = (ws[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * ws[-1]) ** 2)
    return math.sin(math.pi * first) ** 2 + inner + last


def alpine(point: Point) -> float:
    """Many sharp valleys: 0 at the origin."""
    return sum(abs(x * math.sin(x) + 0.1 * x) for x in point)


def steps(point: Point) -> float:
    """Flat terraces, so that small moves often change nothing: 0 around the origin."""
    return float(sum(math.floor(x + 0.5) ** 2 for x in point))


FUNCTIONS: Mapping[str, Callable[[Point], float]] = {
    function.__name__: function
    for function in (
        *(sphere, ellipsoid, rosenbrock, zakharov),
        *(rastrigin, ackley, griewank, levy, alpine, steps),
    )
}


def random_search(task: Task) -> dict[str, Any]:
    """Guess, and keep the best."""
    function, guess, steps = _setting(task)
    best = min((guess() for _ in range(steps)), key=function)
    return {"x": best}


def climb(task: Task, *, temperature: float) -> dict[str, Any]:
    """Step to a neighbor when it is lower; while it is hot, now and then also when it is not."""
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


def make_judge(function: Callable[[Point], float]) -> Callable[[Point], dict[str, float]]:
    """Return an evaluator: how far above the lowest point, 0, an answer lies.

    In orders of magnitude, down to a hundredth, and as it is.
    """

    def judge(point: Point) -> dict[str, float]:
        gap = function(point)
        return {"log_gap": math.log10(max(gap, 0.01)), "gap": gap}

    return judge


judge_sphere = make_judge(sphere)
judge_ellipsoid = make_judge(ellipsoid)
judge_rosenbrock = make_judge(rosenbrock)
judge_zakharov = make_judge(zakharov)
judge_rastrigin = make_judge(rastrigin)
judge_ackley = make_judge(ackley)
judge_griewank = make_judge(griewank)
judge_levy = make_judge(levy)
judge_alpine = make_judge(alpine)
judge_steps = make_judge(steps)
