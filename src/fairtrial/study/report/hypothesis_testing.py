"""Tests of all hypotheses of a study, as its analysis plans declare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fairtrial.study.hypotheses.averages import describe_averages
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.ledger.amendments import ClaimStanding
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, HypothesisKind
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.report.decision_intervals import find_intervals
from fairtrial.study.report.deviations import why_late
from fairtrial.study.report.follow_up_tests import STRATA_TITLE
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.samples import ComparisonSample, failure_note, select_sample
from fairtrial.study.report.test_execution import run_test
from fairtrial.study.report.test_families import (
    Adjustment,
    TestOutcome,
    adjust_families,
    find_policy,
)
from fairtrial.study.report.test_requests import TestRequest, request_tests
from fairtrial.study.report.test_results import TestResult
from fairtrial.study.report.test_verdicts import TestVerdict, judge
from fairtrial.study.stats.assumptions import mean_notes, rank_notes
from fairtrial.study.stats.finding import UntestableError, suppress_warnings
from fairtrial.study.stats.test_names import find_test, suggest_test

MIN_VALUES = 2
"""Fewer values of a group have no spread."""

FAILURES_DIFFER = " (but failures differ between the groups, and failed runs are left out)"
"""Added to the reason of a verdict if a comparison of the remaining runs may be unfair."""


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
    hypotheses = {hypothesis.hypothesis_id: hypothesis for hypothesis in table.study.hypotheses}
    outcomes: list[TestOutcome] = []
    planned: set[str] = set()
    for plan in table.study.analysis_plans:
        names = [name for name in dict.fromkeys(plan.hypothesis_ids) if name in hypotheses]
        planned.update(names)
        outcomes += _run_plan(table, plan, [hypotheses[name] for name in names])
    for hypothesis in table.study.hypotheses:
        if hypothesis.hypothesis_id not in planned:
            outcomes += _run_tests(table, None, hypothesis, DEFAULT_TEST, decides=True)
    tests = [
        _judge_outcome(outcome, adjustment)
        for outcome, adjustment in zip(outcomes, adjust_families(outcomes), strict=True)
    ]
    standings = table.record.standings(table.study)
    return [
        _apply_standing(test, standings[test.hypothesis_id, test.analysis_plan_id])
        for test in tests
    ]


def _apply_standing(test: HypothesisTest, stands: ClaimStanding) -> HypothesisTest:
    """Set the standing of a test; claims made or changed after results become exploratory."""
    test = replace(test, standing=stands.standing)
    if stands.why is None or test.verdict in (TestVerdict.EXPLORATORY, TestVerdict.NOT_TESTED):
        return test
    why = f"{why_late(stands.why, stands.known)}; {test.why}"
    return replace(test, verdict=TestVerdict.EXPLORATORY, why=why)


def _run_plan(
    table: RunTable, plan: AnalysisPlan, hypotheses: Sequence[Hypothesis]
) -> Iterator[TestOutcome]:
    """Run all tests of a plan, hypothesis by hypothesis."""
    for hypothesis in hypotheses:
        for position, name in enumerate(dict.fromkeys(plan.tests)):
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


def _judge_outcome(outcome: TestOutcome, adjustment: Adjustment | None) -> HypothesisTest:
    """Return the record of a test with its verdict; not tested without an adjusted p value."""
    test = _make_record(outcome)
    if outcome.result is None or adjustment is None:
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
    why += FAILURES_DIFFER if failure_note(test.groups) else ""
    test = replace(_set_intervals(test, outcome, alpha), verdict=verdict, why=why)
    return _mark_exploratory(outcome.request, test)


def _set_intervals(test: HypothesisTest, outcome: TestOutcome, alpha: float) -> HypothesisTest:
    """Set the intervals that match the decision; `alpha` is their error rate."""
    request, result = outcome.request, outcome.result
    if result is None or test.p_adjusted is None:
        return test
    intervals = find_intervals(
        result.finding,
        request.alternative,
        test.p_adjusted,
        test.p_opposite,
        is_equivalence=request.is_equivalence,
        alpha=alpha,
    )
    test = replace(
        test,
        confidence=intervals.confidence,
        interval=intervals.interval,
        bounds=intervals.bounds,
        bound=intervals.bound,
    )
    return replace(test, notes=(*test.notes, *_mean_notes(request, result, test)))


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


def _make_record(outcome: TestOutcome) -> HypothesisTest:
    """Return the record of a test without its verdict and adjusted p values."""
    request, sample, result = outcome.request, outcome.sample, outcome.result
    hypothesis = request.hypothesis
    test = HypothesisTest(
        hypothesis_id=hypothesis.hypothesis_id,
        label=hypothesis.label,
        analysis_plan_id=request.plan.analysis_plan_id if request.plan else None,
        outcome=request.outcome.name,
        variables=request.comparison.variables,
        agents=request.comparison.agents,
        test=outcome.test_name,
        decides=outcome.decides,
        verdict=TestVerdict.NOT_TESTED,
        why=outcome.reason,
        groups=sample.groups if sample else (),
        notes=_sample_notes(sample) if sample else (),
    )
    if sample is None or result is None:
        return test
    test = _add_result(test, request, result)
    return replace(test, notes=(*test.notes, *_assumption_notes(sample, result)))


def _assumption_notes(sample: ComparisonSample, result: TestResult) -> list[str]:
    """Return notes on what the values look like, where the test depends on it."""
    is_binary = sample.request.comparison.shape != "levels" or set(sample.y.tolist()) <= {0.0, 1.0}
    if is_binary or min(map(len, sample.values)) < MIN_VALUES:
        return []
    uses_ranks = result.finding.rank_direction is not None or any(
        "median" in detail.estimate_of for detail in result.details
    )
    return rank_notes(sample.values) if uses_ranks else mean_notes(sample.values, sample.names)


def _add_result(test: HypothesisTest, request: TestRequest, result: TestResult) -> HypothesisTest:
    finding = result.finding
    return replace(
        test,
        method=_describe_method(request, result),
        unit=result.unit,
        difference=result.difference,
        estimate=finding.estimate,
        estimate_of=finding.estimate_of,
        statistic_name=finding.statistic_name,
        statistic=finding.statistic,
        df=finding.df,
        p_value=finding.p,
        effect_name=finding.effect_name,
        effect_size=finding.effect_size,
        effect_interval=finding.effect_interval,
        minimum_effect=result.margin.text if result.margin else "",
        minimum_size=result.margin.size if result.margin else None,
        details_title=result.details_title,
        details=result.details,
        notes=(
            *test.notes,
            *_averaging_notes(request),
            *result.notes,
            *_unused_notes(request, test.test),
        ),
    )


def _averaging_notes(request: TestRequest) -> list[str]:
    note = describe_averages(request.study, request.plan, request.comparison)
    return [note] if note else []


def _mean_notes(request: TestRequest, result: TestResult, test: HypothesisTest) -> list[str]:
    """Return the interval of the difference of means if the verdict, but not the test, uses it."""
    finding = result.finding
    if result.margin is None or request.is_equivalence or test.bounds is None:
        return []
    if finding.bounds == finding.interval:
        return []
    low, high = test.bounds
    return [
        "the smallest effect of interest is compared with the difference of means, "
        f"{100 * test.confidence:.3g}% CI [{low:.3g}, {high:.3g}]"
    ]


def _sample_notes(sample: ComparisonSample) -> tuple[str, ...]:
    table = sample.request.table
    reader = table.readers[sample.request.outcome.name]
    notes = [*sample.notes, failure_note(sample.groups), *table.remarks()]
    if reader.from_evaluations:
        notes.append(
            f"{reader.from_evaluations:,} values were found among evaluations: no metric of the "
            f"runs is called '{reader.spec.column}'"
        )
    if reader.unreadable:
        examples = ", ".join(text for text, _ in reader.unreadable.most_common(3))
        notes.append(f"{reader.unreadable.total():,} values are not numbers: {examples}")
    return tuple(note for note in notes if note)


def _describe_method(request: TestRequest, result: TestResult) -> str:
    method = result.finding.method
    if request.alternative == "two-sided":
        return method
    if result.finding.p_opposite is None:
        return f"{method} (without direction)"
    return f"{method}, one-sided ({request.alternative})"


def _unused_notes(request: TestRequest, test_name: str) -> list[str]:
    """Return notes on covariates and random effects of the plan that this test doesn't use."""
    named_test, plan = find_test(test_name), request.plan
    if named_test is None or plan is None:
        return []
    name, notes = named_test.name, []
    if plan.covariates and name not in ("regression", "factorial_anova", "mixed_effects"):
        notes.append(f"not adjusted for {', '.join(plan.covariates)}: regression does that")
    if plan.random_effects and name != "mixed_effects":
        notes.append(f"without the random effects of the plan ({', '.join(plan.random_effects)})")
    return notes


def _mark_exploratory(request: TestRequest, test: HypothesisTest) -> HypothesisTest:
    """Make tests without a plan or a claim exploratory; adds notes on policy and robustness."""
    _, remark = find_policy(request.plan)
    notes = (*test.notes, remark) if remark else test.notes
    if request.plan is None:
        why = f"no plan declared a test; {test.why}"
        return replace(test, verdict=TestVerdict.EXPLORATORY, why=why, notes=notes)
    if request.hypothesis.kind is HypothesisKind.EXPLORATORY:
        why = f"a question, not a claim; {test.why}"
        return replace(test, verdict=TestVerdict.EXPLORATORY, why=why, notes=notes)
    is_robustness = request.hypothesis.kind is HypothesisKind.ROBUSTNESS
    if is_robustness and request.comparison.shape != "interaction":
        rest = "is described" if test.details_title == STRATA_TITLE else "is not tested"
        notes = (*notes, f"tested: the effect over all runs; that it holds everywhere {rest}")
    return replace(test, notes=notes)
