"""Records of tests: what a report says of a test, apart from its verdict."""

from __future__ import annotations

from dataclasses import replace

from fairtrial.study.hypotheses.averages import describe_averages
from fairtrial.study.model.hypotheses import HypothesisKind
from fairtrial.study.report.claim_families import TestOutcome, find_policy
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import TestResult
from fairtrial.study.report.decision_intervals import find_intervals
from fairtrial.study.report.flow import count_flow
from fairtrial.study.report.follow_up_tests import STRATA_TITLE
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.losses import imbalance_notes
from fairtrial.study.report.markdown_text import format_confidence
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.report.verdicts import TestVerdict
from fairtrial.study.stats.assumptions import mean_notes, rank_notes
from fairtrial.study.stats.named_tests import find_test

MIN_VALUES = 2
"""Fewer values of a group have no spread."""


def make_record(outcome: TestOutcome) -> HypothesisTest:
    """Return the record of a test without its verdict and adjusted p values."""
    request, sample, result = outcome.request, outcome.sample, outcome.result
    hypothesis = request.hypothesis
    groups = count_flow(request, sample.groups) if sample else ()
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
        groups=groups,
        notes=(*_sample_notes(sample), *imbalance_notes(groups)) if sample else (),
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
        by_problem=result.by_problem,
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
        f"{format_confidence(test.confidence)} CI [{low:.3g}, {high:.3g}]"
    ]


def _sample_notes(sample: ComparisonSample) -> tuple[str, ...]:
    table = sample.request.table
    reader = table.readers[sample.request.outcome.name]
    notes = [*sample.notes, *table.remarks()]
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


def mark_exploratory(request: TestRequest, test: HypothesisTest) -> HypothesisTest:
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


def set_intervals(test: HypothesisTest, outcome: TestOutcome, alpha: float) -> HypothesisTest:
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
