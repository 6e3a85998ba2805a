"""Tests of all hypotheses of a study, as its analysis plans declare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fairtrial.study.design.look_schedule import schedule_looks
from fairtrial.study.hypotheses.averages import describe_averages
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.ledger.amendments import ClaimStanding
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, HypothesisKind
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.report.deviations import why_late
from fairtrial.study.report.follow_up_tests import STRATA_TITLE
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.look_levels import (
    LookLevel,
    find_look_level,
    scale_optional,
    scale_p,
)
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.samples import ComparisonSample, failure_note, select_sample
from fairtrial.study.report.sequential_testing import run_at_looks
from fairtrial.study.report.test_execution import run_test
from fairtrial.study.report.test_requests import TestRequest, request_tests
from fairtrial.study.report.test_results import TestResult
from fairtrial.study.report.test_verdicts import TestVerdict, judge
from fairtrial.study.stats.finding import UntestableError, suppress_warnings
from fairtrial.study.stats.multiplicity import adjust_p, is_policy, policy_name
from fairtrial.study.stats.test_names import find_test, suggest_test

FALLBACK_POLICY = "bonferroni"
"""The strictest policy replaces an unknown one."""

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
    tests: list[HypothesisTest] = []
    planned: set[str] = set()
    for plan in table.study.analysis_plans:
        names = [name for name in dict.fromkeys(plan.hypothesis_ids) if name in hypotheses]
        planned.update(names)
        tests += _run_plan(table, plan, [hypotheses[name] for name in names])
    for hypothesis in table.study.hypotheses:
        if hypothesis.hypothesis_id not in planned:
            tests += _run_family(table, None, [hypothesis], DEFAULT_TEST, decides=True)
    standings = table.record.standings(table.study)
    return [
        _apply_standing(test, standings[test.hypothesis_id, test.analysis_plan_id])
        for test in tests
    ]


def judge_at_look(table: RunTable, number: int) -> list[HypothesisTest]:
    """Test the claims that have planned looks, at the levels of one of these looks.

    table: the runs that the look sees
    """
    schedule = schedule_looks(table.study, table.conditions)
    assert schedule is not None
    hypotheses = {hypothesis.hypothesis_id: hypothesis for hypothesis in table.study.hypotheses}
    tests: list[HypothesisTest] = []
    for plan in table.study.analysis_plans:
        if plan.stopping is not None:
            names = [name for name in dict.fromkeys(plan.hypothesis_ids) if name in hypotheses]
            level = find_look_level(table.study, table.conditions, schedule, plan, number)
            unadjusted = replace(plan, multiple_comparison_policy="none")
            tests += _run_deciding_test(
                table, unadjusted, [hypotheses[name] for name in names], level
            )
    return tests


def _run_deciding_test(
    table: RunTable,
    plan: AnalysisPlan,
    hypotheses: Sequence[Hypothesis],
    look: LookLevel | None,
) -> Iterator[HypothesisTest]:
    return _run_family(table, plan, hypotheses, plan.tests[0], decides=True, look=look)


def _apply_standing(test: HypothesisTest, stands: ClaimStanding) -> HypothesisTest:
    """Set the standing of a test; claims made or changed after results become exploratory."""
    test = replace(test, standing=stands.standing)
    if stands.why is None or test.verdict in (TestVerdict.EXPLORATORY, TestVerdict.NOT_TESTED):
        return test
    why = f"{why_late(stands.why, stands.known)}; {test.why}"
    return replace(test, verdict=TestVerdict.EXPLORATORY, why=why)


def _run_plan(
    table: RunTable, plan: AnalysisPlan, hypotheses: Sequence[Hypothesis]
) -> list[HypothesisTest]:
    """Run all tests of a plan; returns them sorted by hypothesis."""
    tests = [
        test
        for position, name in enumerate(dict.fromkeys(plan.tests))
        for test in (
            run_at_looks(table, plan, hypotheses, _run_deciding_test)
            if position == 0 and plan.stopping is not None
            else _run_family(table, plan, hypotheses, name, decides=position == 0)
        )
    ]
    order = {hypothesis.hypothesis_id: index for index, hypothesis in enumerate(hypotheses)}
    return sorted(tests, key=lambda test: order[test.hypothesis_id])


@dataclass(frozen=True, slots=True)
class _TestOutcome:
    """A test that was requested and tried.

    request: the requested test
    sample: the runs; None if there are none to test
    result: the result; None if the test could not be done
    reason: why there is no result
    """

    request: TestRequest
    sample: ComparisonSample | None
    result: TestResult | None
    reason: str = ""


def _run_family(
    table: RunTable,
    plan: AnalysisPlan | None,
    hypotheses: Sequence[Hypothesis],
    test_name: str,
    *,
    decides: bool,
    look: LookLevel | None = None,
) -> Iterator[HypothesisTest]:
    """Run one test of a plan on all its hypotheses, the family of the p value adjustment.

    look: the planned look whose levels replace alpha
    """
    requests = [
        request for hypothesis in hypotheses for request in request_tests(table, plan, hypothesis)
    ]
    outcomes = [_try_test(request, test_name) for request in requests]
    if look is not None:
        outcomes = [
            replace(outcome, result=outcome.result and look.restate(outcome.result))
            for outcome in outcomes
        ]
    findings = [outcome.result.finding for outcome in outcomes if outcome.result is not None]
    policy, remark = _find_policy(plan)
    adjusted = iter(adjust_p([finding.p for finding in findings], policy))
    one_sided = [finding.p_opposite for finding in findings if finding.p_opposite is not None]
    opposite = iter(adjust_p(one_sided, policy))
    for outcome in outcomes:
        test = _make_record(outcome, test_name, decides=decides)
        if outcome.result is None:
            yield test
            continue
        p = next(adjusted)
        p_opposite = None if outcome.result.finding.p_opposite is None else next(opposite)
        test = replace(
            test, p_adjusted=p, p_opposite=p_opposite, policy=policy, family=len(findings)
        )
        if look is not None:
            level = look.p_level(outcome.request, outcome.result)
            p, p_opposite = scale_p(p, level), scale_optional(p_opposite, level)
            test = replace(test, p_adjusted=p, p_opposite=p_opposite, level=level)
        verdict, why = judge(outcome.request, outcome.result, p, p_opposite)
        why += FAILURES_DIFFER if failure_note(test.groups) else ""
        yield _mark_exploratory(outcome.request, replace(test, verdict=verdict, why=why), remark)


def _try_test(request: TestRequest, test_name: str) -> _TestOutcome:
    sample, named_test = None, find_test(test_name)
    try:
        with suppress_warnings():
            sample = select_sample(request)
            if named_test is None:
                hint = suggest_test(test_name)
                raise UntestableError(f"'{test_name}' is not a test that fairtrial knows; {hint}")
            return _TestOutcome(request, sample, run_test(sample, named_test.name))
    except UntestableError as error:
        return _TestOutcome(request, sample, None, str(error))


def _find_policy(plan: AnalysisPlan | None) -> tuple[str, str]:
    """Return the policy for multiple comparisons, and a note if the declared one is unknown."""
    declared = "none" if plan is None else plan.multiple_comparison_policy
    if is_policy(declared):
        return policy_name(declared), ""
    note = f"policy '{declared}' is unknown; {FALLBACK_POLICY}, the strictest, is used instead"
    return FALLBACK_POLICY, note


def _make_record(outcome: _TestOutcome, test_name: str, *, decides: bool) -> HypothesisTest:
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
        test=test_name,
        decides=decides,
        verdict=TestVerdict.NOT_TESTED,
        why=outcome.reason,
        groups=sample.groups if sample else (),
        notes=_sample_notes(sample) if sample else (),
    )
    return test if result is None else _add_result(test, request, result)


def _add_result(test: HypothesisTest, request: TestRequest, result: TestResult) -> HypothesisTest:
    finding = result.finding
    return replace(
        test,
        method=_describe_method(request, result),
        unit=result.unit,
        difference=result.difference,
        estimate=finding.estimate,
        estimate_of=finding.estimate_of,
        interval=finding.interval,
        statistic_name=finding.statistic_name,
        statistic=finding.statistic,
        df=finding.df,
        p_value=finding.p,
        effect_name=finding.effect_name,
        effect_size=finding.effect_size,
        effect_interval=finding.effect_interval,
        bounds=finding.bounds,
        minimum_effect=result.margin.text if result.margin else "",
        minimum_size=result.margin.size if result.margin else None,
        details_title=result.details_title,
        details=result.details,
        notes=(
            *test.notes,
            *_averaging_notes(request),
            *result.notes,
            *_mean_notes(request, result),
            *_unused_notes(request, test.test),
        ),
    )


def _averaging_notes(request: TestRequest) -> list[str]:
    note = describe_averages(request.study, request.plan, request.comparison)
    return [note] if note else []


def _mean_notes(request: TestRequest, result: TestResult) -> list[str]:
    """Return the interval of the difference of means if the verdict, but not the test, uses it."""
    finding = result.finding
    if result.margin is None or request.is_equivalence or finding.bounds is None:
        return []
    if finding.bounds == finding.interval:
        return []
    low, high = finding.bounds
    return [
        "the smallest effect of interest is compared with the difference of means, 95% CI "
        f"[{low:.3g}, {high:.3g}]"
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


def _mark_exploratory(request: TestRequest, test: HypothesisTest, remark: str) -> HypothesisTest:
    """Make tests without a plan or a claim exploratory; adds notes, `remark` among them."""
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
