"""Tests of all hypotheses of a study, as its analysis plans declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from fairtrial.study.design.look_schedule import schedule_looks
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.report.claim_families import Adjustment, TestOutcome, adjust_families
from fairtrial.study.report.comparison_requests import TestRequest, request_tests
from fairtrial.study.report.confounding import allow_for_aliases
from fairtrial.study.report.execution import run_test
from fairtrial.study.report.hypothesis_records import make_record, mark_exploratory, set_intervals
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.look_levels import LookLevel, adjust_at_look, find_look_level
from fairtrial.study.report.losses import (
    SecondVerdict,
    fix_margin,
    get_direction,
    loss_notes,
    qualify_by_losses,
)
from fairtrial.study.report.lost_runs import LostRuns
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.samples import select_sample
from fairtrial.study.report.sequential_testing import run_at_looks
from fairtrial.study.report.standing import apply_standings
from fairtrial.study.report.verdicts import judge
from fairtrial.study.stats.finding import UntestableError, suppress_warnings
from fairtrial.study.stats.named_tests import find_test, suggest_test

Adjust = Callable[[Sequence[TestOutcome]], list[Adjustment | None]]
"""Adjusts the p values of tests for the number of tests, or of planned looks."""


def judge_hypotheses(
    study: Study, conditions: Sequence[Condition], run_results: Iterable[RunResult]
) -> list[HypothesisTest]:
    """Test every hypothesis of a study as its plans declare; returns one record for each test.

    A hypothesis without a plan is tested by the default test, as exploratory.

    run_results: read once, in any order
    """
    return judge_table(collect_run_table(study, conditions, run_results))


def judge_table(table: RunTable) -> list[HypothesisTest]:
    """Test every hypothesis of a study whose results are in a run table."""
    outcomes: list[TestOutcome] = []
    planned: set[str] = set()
    for plan in table.study.analysis_plans:
        planned.update(plan.hypothesis_ids)
        outcomes += _run_plan(table, plan, _list_claims(plan, table.study))
    for hypothesis in table.study.hypotheses:
        if hypothesis.hypothesis_id not in planned:
            outcomes += _run_tests(table, None, hypothesis, DEFAULT_TEST, decides=True)
    tests = _judge_outcomes(outcomes)
    for plan in table.study.analysis_plans:
        if plan.stopping is not None:
            claims = _list_claims(plan, table.study)
            tests = [*run_at_looks(table, plan, claims, _run_deciding_test), *tests]
    return apply_standings(table, tests, judge_table)


def judge_plans(table: RunTable, plans: Sequence[AnalysisPlan]) -> list[HypothesisTest]:
    """Run the first test of each of some plans, for all their hypotheses and outcomes.

    Plans of the same name and policy are adjusted together.

    table: the runs; its study has the hypotheses
    """
    outcomes = [
        outcome
        for plan in plans
        for hypothesis in _list_claims(plan, table.study)
        for outcome in _run_tests(table, plan, hypothesis, plan.tests[0], decides=True)
    ]
    return _judge_outcomes(outcomes)


def judge_at_look(table: RunTable, number: int) -> list[HypothesisTest]:
    """Test the claims that have planned looks, at the levels of one of these looks.

    table: the runs that the look sees
    """
    schedule = schedule_looks(table.study, table.conditions)
    assert schedule is not None
    tests: list[HypothesisTest] = []
    for plan in table.study.analysis_plans:
        if plan.stopping is not None:
            level = find_look_level(table.study, table.conditions, schedule, plan, number)
            tests += _run_deciding_test(table, plan, _list_claims(plan, table.study), level)
    return tests


def _list_claims(plan: AnalysisPlan, study: Study) -> list[Hypothesis]:
    """Return the hypotheses of a plan that the study has."""
    hypotheses = {hypothesis.hypothesis_id: hypothesis for hypothesis in study.hypotheses}
    names = dict.fromkeys(plan.hypothesis_ids)
    return [hypotheses[name] for name in names if name in hypotheses]


def _run_deciding_test(
    table: RunTable,
    plan: AnalysisPlan,
    hypotheses: Sequence[Hypothesis],
    look: LookLevel | None,
) -> list[HypothesisTest]:
    """Run the first test of a plan, at the levels of a planned look if one is given."""
    outcomes = [
        outcome
        for hypothesis in hypotheses
        for outcome in _run_tests(table, plan, hypothesis, plan.tests[0], decides=True)
    ]
    if look is None:
        return _judge_outcomes(outcomes)
    restated = [
        replace(outcome, result=outcome.result and look.restate_details(outcome.result))
        for outcome in outcomes
    ]
    tests = []
    for outcome, test in zip(
        outcomes, _judge_outcomes(restated, partial(adjust_at_look, look)), strict=True
    ):
        if outcome.result is not None:
            level = look.p_level(outcome.request, outcome.result)
            test = replace(test, level=level)
            if not level:  # nothing can be decided at this look: its intervals are infinite
                test = replace(test, interval=None, bounds=None, bound=None)
        tests.append(test)
    return tests


def _run_plan(
    table: RunTable, plan: AnalysisPlan, hypotheses: Sequence[Hypothesis]
) -> Iterator[TestOutcome]:
    """Run all tests of a plan, hypothesis by hypothesis."""
    for hypothesis in hypotheses:
        for position, name in enumerate(dict.fromkeys(plan.tests)):
            if position == 0 and plan.stopping is not None:
                continue  # tested at its looks
            yield from _run_tests(table, plan, hypothesis, name, decides=position == 0)


def _run_tests(
    table: RunTable,
    plan: AnalysisPlan | None,
    hypothesis: Hypothesis,
    test_name: str,
    *,
    decides: bool,
) -> Iterator[TestOutcome]:
    """Run one test of a plan on a hypothesis, for each of its outcomes and comparisons."""
    for request in request_tests(table, plan, hypothesis):
        yield _try_test(request, test_name, decides=decides)


def _try_test(request: TestRequest, test_name: str, *, decides: bool) -> TestOutcome:
    sample, named_test = None, find_test(test_name)
    try:
        with suppress_warnings():
            sample = select_sample(request)
            if named_test is None:
                hint = suggest_test(test_name)
                raise UntestableError(f"'{test_name}' is not a test that fairtrial knows; {hint}")
            result = run_test(sample, named_test.name)
            return TestOutcome(request, test_name, decides, sample, result)
    except UntestableError as error:
        return TestOutcome(request, test_name, decides, sample, None, str(error))


def _judge_outcomes(
    outcomes: Sequence[TestOutcome], adjust: Adjust = adjust_families
) -> list[HypothesisTest]:
    """Return the records of tests with their verdicts; p values are adjusted, by family."""
    return [
        _judge_outcome(outcomes, index, adjustment, adjust)
        for index, adjustment in enumerate(adjust(outcomes))
    ]


def _judge_outcome(
    outcomes: Sequence[TestOutcome], index: int, adjustment: Adjustment | None, adjust: Adjust
) -> HypothesisTest:
    """Return the record of one of some tests; not tested without an adjusted p value."""
    outcome = outcomes[index]
    test = make_record(outcome)
    if outcome.result is None or outcome.sample is None or adjustment is None:
        return test
    p, p_opposite, alpha = adjustment.p, adjustment.p_opposite, adjustment.alpha
    test = replace(
        test,
        p_adjusted=p,
        p_opposite=p_opposite,
        policy=adjustment.policy,
        family=adjustment.family,
    )
    verdict, why = judge(outcome.request, outcome.result, p, p_opposite, alpha=alpha)
    test = replace(set_intervals(test, outcome, alpha), verdict=verdict, why=why)
    test = _allow_for_losses(test, outcomes, index, adjust)
    test = allow_for_aliases(test, outcome.sample)
    test = _add_order(test, outcome.request.table)
    return mark_exploratory(outcome.request, test)


def _allow_for_losses(
    test: HypothesisTest, outcomes: Sequence[TestOutcome], index: int, adjust: Adjust
) -> HypothesisTest:
    """Qualify the verdict of a test by its lost runs.

    outcomes: all tests whose p values are adjusted together
    index: the place of this test among them
    adjust: adjusts their p values
    """
    outcome = outcomes[index]
    result, sample = outcome.result, outcome.sample
    if result is None or sample is None:
        return test
    lost = LostRuns(sample)
    if not len(lost):
        return test

    def rejudge(table: RunTable) -> SecondVerdict | None:
        request = fix_margin(replace(outcome.request, table=table), result)
        second = _try_test(request, outcome.test_name, decides=outcome.decides)
        changed = [*outcomes[:index], second, *outcomes[index + 1 :]]
        adjustment = adjust(changed)[index]
        if second.result is None or adjustment is None:
            return None
        judged = judge(
            request, second.result, adjustment.p, adjustment.p_opposite, alpha=adjustment.alpha
        )
        return SecondVerdict(*judged, get_direction(second.result.finding))

    judged = (test.verdict, test.why)
    verdict, why, losses = qualify_by_losses(lost, result, judged, rejudge)
    notes = (*test.notes, *loss_notes(losses, test.groups))
    return replace(test, verdict=verdict, why=why, losses=losses, notes=notes)


def _add_order(test: HypothesisTest, table: RunTable) -> HypothesisTest:
    """Say in the reason that treatments of repeated measures were not in the planned order."""
    check = table.order_check
    if check is None or check.is_kept:
        return test
    note = f"{check.text}: carry-over from one treatment to the next is not balanced"
    return replace(test, why=f"{test.why}; {check.text}", notes=(*test.notes, note))
