"""The decision on a claim at a planned look: efficacy, futility, or going on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Set

from fairtrial.core import sequential
from fairtrial.study.design.look_schedule import LookSchedule
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.planned_looks import (
    CONTINUES,
    FUTILE,
    ClaimLook,
    LookClaimKey,
)
from fairtrial.study.model.runs import RunResult
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_at_look
from fairtrial.study.report.look_levels import ANYTIME
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.sequential_testing import get_key
from fairtrial.study.report.verdicts import TestVerdict
from fairtrial.study.stats.finding import finite_interval
from fairtrial.study.stats.power import TARGET_POWER

FUTILITY_CHANCE = 0.1
"""A claim stops for futility if the chance that the last look shows it is below this."""
UNDECIDED = (TestVerdict.INCONCLUSIVE, TestVerdict.NOT_TESTED, TestVerdict.EXPLORATORY)


def decide_claims(
    plan: RunPlan, number: int, results: Iterable[RunResult], undecided: Set[LookClaimKey]
) -> tuple[ClaimLook, ...]:
    """Test the undecided claims at a planned look, and decide on each of them.

    results: those of all runs that the look sees, in plan order
    """
    schedule = plan.schedule
    assert schedule is not None
    table = RunTable(plan.study, plan.conditions)
    for result in results:
        table.add(result)
    tests = {get_key(test): test for test in judge_at_look(table, number)}
    equivalences = {h.hypothesis_id for h in plan.study.hypotheses if h.is_equivalence}
    last = {}
    if number < schedule.looks and schedule.stopping.futility:
        last = {get_key(test): test.level for test in judge_at_look(table, schedule.looks)}
    return tuple(
        _decide(test, schedule, number, last.get(key), is_equivalence=key[1] in equivalences)
        for key, test in tests.items()
        if key in undecided
    )


def _decide(
    test: HypothesisTest,
    schedule: LookSchedule,
    number: int,
    last_level: float | None,
    *,
    is_equivalence: bool,
) -> ClaimLook:
    """Return the decision on one claim.

    last_level: the level of its test at the last look
    is_equivalence: whether it claims that there is no difference that matters
    """
    decision, why, chance = CONTINUES, test.why, None
    is_last = number == schedule.looks
    if test.verdict not in UNDECIDED or is_last:
        decision = str(test.verdict)
    elif schedule.stopping.futility and schedule.stopping.spending != ANYTIME:
        fraction = schedule.fractions[number - 1]
        chance = _find_chance(test, fraction, last_level, is_equivalence=is_equivalence)
        if chance is not None and chance < FUTILITY_CHANCE:
            decision = FUTILE
            why = f"the chance that the last look would show it was {chance:.1%}"
    return ClaimLook(
        *get_key(test),
        decision=decision,
        why=why,
        estimate=test.estimate,
        interval=finite_interval(test.interval),
        p=test.p_value,
        level=test.level,
        chance=chance,
    )


def _find_chance(
    test: HypothesisTest, fraction: float, last_level: float | None, *, is_equivalence: bool
) -> float | None:
    """Return the chance that the last look shows a claim; None if it has no single estimate.

    The true effect is taken to be as estimated so far, or as large as the smallest effect of
    interest (if none is stated: an effect that the study would show with a power of 0.8), whichever
    gives the larger chance: only a claim that is hopeless either way stops.
    """
    from scipy import special

    if test.p_value is None or test.estimate is None or not last_level:
        return None
    sides = 1 if is_equivalence or test.p_opposite is not None else 2
    p = min(max(test.p_value / sides, 1e-300), 1 - 1e-16)
    z, level = -float(special.ndtri(p)), last_level / sides
    drift = float(special.ndtri(TARGET_POWER) - special.ndtri(level))
    error = _find_standard_error(test, z)
    if test.minimum_size is not None and error and not is_equivalence:
        drift = test.minimum_size / (error * math.sqrt(fraction))
    trend = z / math.sqrt(fraction)
    return max(sequential.conditional_power(z, fraction, level, value) for value in (trend, drift))


def _find_standard_error(test: HypothesisTest, z: float) -> float | None:
    statistic = test.statistic if test.statistic_name == "t" else z
    return abs(test.estimate / statistic) if statistic and test.estimate else None
