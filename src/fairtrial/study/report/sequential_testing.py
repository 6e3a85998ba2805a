"""Tests of claims with planned looks: each at the look where it was decided, or at the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from fairtrial.study.design.look_schedule import LookSchedule, schedule_looks
from fairtrial.study.ledger.planned_looks import FUTILE, ClaimLook, LookClaimKey
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.look_levels import LookLevel, find_look_claims, find_look_level
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.verdicts import TestVerdict

REPEATED_NOTE = (
    "the interval is a repeated confidence interval: it holds at all planned looks at once, and so "
    "at the one where the study stopped"
)
BIAS_NOTE = (
    "the claim was decided before the last look; estimates of studies that stop early tend to be "
    "too far from zero"
)
CHANGED_NOTE = (
    "results that this look saw were changed afterwards (rescored or run again); what was decided "
    "then: {}"
)


class RunFamily(Protocol):
    """Runs the deciding test of a plan on the claims of some hypotheses."""

    def __call__(
        self,
        table: RunTable,
        plan: AnalysisPlan,
        hypotheses: Sequence[Hypothesis],
        look: LookLevel | None,
    ) -> Iterable[HypothesisTest]: ...


def get_key(test: HypothesisTest) -> LookClaimKey:
    """Return what identifies the claim of a test."""
    plan, claim = test.analysis_plan_id, test.hypothesis_id
    return plan, claim, test.outcome, test.variables, test.agents


def run_at_looks(
    table: RunTable, plan: AnalysisPlan, hypotheses: Sequence[Hypothesis], run_family: RunFamily
) -> Iterator[HypothesisTest]:
    """Yield the deciding tests of a plan with planned looks.

    A claim that a look decided is tested on the runs that the look saw, at its level; the others on
    those of the last look that was made. Claims without looks, such as exploratory ones, are tested
    on all runs. Without a ledger, looks are unknown, and all runs are tested at the last level.
    """
    schedule = schedule_looks(table.study, table.conditions)
    assert schedule is not None
    claims = {*find_look_claims(table.study, table.conditions)}
    log = table.look_log
    last = {} if log is None else log.last_tests()
    is_recorded = log is not None and not log.is_void
    stages: dict[int, list[Hypothesis]] = {}
    for hypothesis in hypotheses:
        keys = [
            key for key in claims if key[:2] == (plan.analysis_plan_id, hypothesis.hypothesis_id)
        ]
        numbers = {last[key][0] if key in last else 0 for key in keys} if is_recorded else {-1}
        for number in numbers or {0}:
            stages.setdefault(number, []).append(hypothesis)
    for number, group in stages.items():
        at = schedule.looks if number == -1 else number
        level = find_look_level(table.study, table.conditions, schedule, plan, at)
        seen = table.look_tables.get(number, table)
        for test in run_family(seen, _without_policy(plan), group, level):
            key = get_key(test)
            if key not in claims:
                continue
            stage, claim = last.get(key, (0, None)) if is_recorded else (-1, None)
            if stage == number:
                yield _describe(test, schedule, at, claim, is_void=bool(log and log.is_void))
    for test in run_family(table, plan, hypotheses, None):
        if get_key(test) not in claims:
            yield test


def _without_policy(plan: AnalysisPlan) -> AnalysisPlan:
    """Return a plan whose p values are not adjusted: the levels of the looks do that."""
    return replace(plan, multiple_comparison_policy="none")


def _describe(
    test: HypothesisTest,
    schedule: LookSchedule,
    number: int,
    claim: ClaimLook | None,
    *,
    is_void: bool,
) -> HypothesisTest:
    """Return a test with its look, in words."""
    test = replace(test, look=number, looks=schedule.looks)
    if not number:
        why = f"no planned look was made yet; the first of {schedule.looks} is still to come"
        return replace(test, verdict=TestVerdict.INCONCLUSIVE, why=why)
    if test.verdict in (TestVerdict.NOT_TESTED, TestVerdict.EXPLORATORY):
        return test
    if is_void:
        why = f"the plan was changed after a planned look; {test.why}"
        return replace(test, verdict=TestVerdict.EXPLORATORY, why=why)
    name = f"look {number} of {schedule.looks}"
    notes = [*test.notes, *([REPEATED_NOTE] if test.interval else [])]
    if claim is None or number == schedule.looks:
        return replace(test, why=f"{test.why} ({name}, the last)", notes=tuple(notes))
    if not claim.is_decided:
        why = f"not decided at {name}, and the study continues"
        return replace(test, verdict=TestVerdict.INCONCLUSIVE, why=why, notes=tuple(notes))
    if claim.decision == FUTILE:
        why = f"stopped at {name} for futility: {claim.why}"
    else:
        why = f"{test.why} (stopped at {name})"
        notes.append(BIAS_NOTE)
        if claim.decision != str(test.verdict):
            notes.append(CHANGED_NOTE.format(claim.decision))
    return replace(test, why=why, notes=tuple(notes))
