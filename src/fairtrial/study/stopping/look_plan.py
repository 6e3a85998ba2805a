"""The planned looks of a study before any run: bounds, expected number of runs, and saving."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.core import dump_record
from fairtrial.study.design.look_schedule import LookSchedule, schedule_looks
from fairtrial.study.ledger.planned_looks import LookClaimKey
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import Hypothesis, HypothesisDirection
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import HypothesisPower
from fairtrial.study.report.look_levels import (
    ANYTIME,
    LookLevel,
    find_look_claims,
    find_look_level,
)
from fairtrial.study.stats.power import TARGET_POWER
from fairtrial.study.stopping.decisions import FUTILITY_CHANCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]

SIMULATIONS = 20_000
SEED = 7
EXTREME_POWER = 1e-4


@dataclass(frozen=True, slots=True)
class LookPlan:
    """The planned looks of a study, and the runs that they are expected to save.

    unit: what looks add: problems or replicates
    units: how many of them each look sees
    runs: how many runs each look sees
    spending: how alpha is spent
    levels: the level of each look for the first claim: it is decided if p is below
    sides: whether that test is one-sided or two-sided
    without_effect: the expected number of runs if no claim holds
    with_effect: the expected number of runs if each claim holds with its smallest effect of
        interest; None if the power of none of them is known
    """

    unit: str
    units: tuple[int, ...]
    runs: tuple[int, ...]
    spending: str
    levels: tuple[float, ...]
    sides: str
    without_effect: float
    with_effect: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def plan_looks(
    study: Study, conditions: Sequence[Condition], powers: Sequence[HypothesisPower]
) -> LookPlan | None:
    """Return the planned looks of a study; None if there are none, or no claim that they test.

    The expected number of runs is that of a seeded simulation with independent claims, all runs
    being needed until the last claim is decided.

    powers: the power of the study's hypotheses, from which the expected z values follow
    """
    schedule = schedule_looks(study, conditions)
    claims = find_look_claims(study, conditions)
    if schedule is None or not claims:
        return None
    counts = Counter(schedule.batches(study, conditions))
    runs = [sum(counts[b] for b in range(1, n + 1)) for n in range(1, schedule.looks + 1)]
    models = [_model_claim(study, conditions, schedule, key, powers) for key in claims]
    is_known = any(model.effect_drift is not None for model in models)
    return LookPlan(
        unit=schedule.unit,
        units=schedule.units,
        runs=tuple(runs),
        spending=schedule.stopping.spending,
        levels=tuple(models[0].sides * level for level in models[0].tails),
        sides="one-sided" if models[0].sides == 1 else "two-sided",
        without_effect=_expect_runs(schedule, models, runs, has_effect=False),
        with_effect=_expect_runs(schedule, models, runs, has_effect=True) if is_known else None,
    )


@dataclass(frozen=True, slots=True)
class _ClaimModel:
    """A claim for the simulation.

    tails: the one-sided level of each look
    sides: 1 or 2
    effect_drift: the expected z value at the last look if the claim holds; None if unknown
    is_equivalence: whether the claim holds if there is no effect
    """

    tails: tuple[float, ...]
    sides: int
    effect_drift: float | None
    is_equivalence: bool


def _model_claim(
    study: Study,
    conditions: Sequence[Condition],
    schedule: LookSchedule,
    key: LookClaimKey,
    powers: Sequence[HypothesisPower],
) -> _ClaimModel:
    plan = next(plan for plan in study.analysis_plans if plan.analysis_plan_id == key[0])
    claim = next(h for h in study.hypotheses if h.hypothesis_id == key[1])
    sides = 2 if _is_two_sided(claim) else 1
    levels: list[LookLevel] = [
        find_look_level(study, conditions, schedule, plan, number)
        for number in range(1, schedule.looks + 1)
    ]
    tails = tuple(level.tail(is_one_sided=sides == 1) for level in levels)
    return _ClaimModel(tails, sides, _find_drift(key, powers, sides), claim.is_equivalence)


def _is_two_sided(claim: Hypothesis) -> bool:
    return claim.direction is HypothesisDirection.DIFFERENT and not claim.is_equivalence


def _find_drift(key: LookClaimKey, powers: Sequence[HypothesisPower], sides: int) -> float | None:
    """Return the z value at the last look that gives the claim its planned power."""
    from scipy import special

    for power in powers:
        is_same = (power.hypothesis_id, power.variables) == (key[1], key[3])
        if is_same and power.outcome in (key[2], "") and power.power is not None:
            clipped = min(max(power.power, EXTREME_POWER), 1 - EXTREME_POWER)
            return float(special.ndtri(clipped) - special.ndtri(power.alpha / sides))
    return None


def _expect_runs(
    schedule: LookSchedule, models: Sequence[_ClaimModel], runs: Sequence[int], *, has_effect: bool
) -> float:
    """Return the mean number of runs until all claims are decided."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    last = np.zeros(SIMULATIONS, dtype=np.intp)
    for model in models:
        last = np.maximum(last, _simulate_stops(rng, schedule, model, has_effect=has_effect))
    return float(np.mean(np.asarray(runs, dtype=float)[last]))


def _simulate_stops(
    rng: np.random.Generator, schedule: LookSchedule, model: _ClaimModel, *, has_effect: bool
) -> IntArray:
    """Return the index of the look that decides a claim, in each simulated study."""
    import numpy as np
    from scipy import special

    tails = np.asarray(model.tails)
    designed = float(special.ndtri(TARGET_POWER) - special.ndtri(max(tails[-1], 1e-300)))
    expected = designed if model.effect_drift is None else model.effect_drift
    drift = expected if has_effect != model.is_equivalence else 0.0
    score, before = np.zeros(SIMULATIONS), 0.0
    stops = np.full(SIMULATIONS, schedule.looks - 1, dtype=np.intp)
    is_open = np.ones(SIMULATIONS, dtype=bool)
    for index, fraction in enumerate(schedule.fractions):
        step = fraction - before
        score += drift * step + math.sqrt(step) * rng.standard_normal(SIMULATIONS)
        before = fraction
        z = score / math.sqrt(fraction)
        z = np.abs(z) if model.sides == 2 else z
        decided = special.ndtr(-z) < tails[index]
        if model.sides == 1 and not model.is_equivalence:  # contradicted
            decided |= special.ndtr(z) < tails[index] / 2
        if schedule.stopping.futility and schedule.stopping.spending != ANYTIME and fraction < 1:
            trend = z / math.sqrt(fraction)
            chances = [_chance(z, fraction, tails[-1], value) for value in (trend, expected)]
            decided |= np.maximum(*chances) < FUTILITY_CHANCE
        stops[is_open & decided] = index
        is_open &= ~decided
    return stops


def _chance(z: FloatArray, fraction: float, level: float, drift: FloatArray | float) -> FloatArray:
    """Return the conditional power of many studies."""
    from scipy import special

    expected = z * math.sqrt(fraction) + drift * (1 - fraction)
    chance: FloatArray = special.ndtr((expected + special.ndtri(level)) / math.sqrt(1 - fraction))
    return chance
