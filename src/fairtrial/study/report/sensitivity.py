"""Sensitivity of verdicts: each confirmatory claim under other reasonable tests and choices.

The planned test decides. The other rows show whether its verdict depends on a choice: of the test,
of what runs without a value count as, or of the problems that the claim is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.runs import PROBLEM_FACTORS
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.report.comparison_requests import TestRequest, request_tests
from fairtrial.study.report.comparison_results import TestResult, describe_difference, find_margin
from fairtrial.study.report.execution import run_test
from fairtrial.study.report.follow_up_tests import two_group_test
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.look_levels import scale_p
from fairtrial.study.report.pairing import nuisance_factors, replicate_is_subject
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.samples import ComparisonSample, select_sample
from fairtrial.study.report.verdicts import TestVerdict, judge
from fairtrial.study.stats.finding import Interval, UntestableError, pooled_sd, suppress_warnings
from fairtrial.study.stats.multiplicity import adjust_p
from fairtrial.study.stats.named_tests import missing_data_policy
from fairtrial.study.stats.proportions import is_binary
from fairtrial.study.stats.two_groups import welch_t_test

MAX_MODEL_RUNS = 2_000
"""Mixed models of more runs than this take too long for a table beside the verdict."""
MAX_TABLES = 24
"""Further claims get no table."""
TWO_LEVELS = (DEFAULT_TEST, "welch_t", "mann_whitney", "mixed_effects")
PAIRS = ("paired_t", "wilcoxon")
RATES = (DEFAULT_TEST, "fisher_exact", "welch_t", "mixed_effects")
SEVERAL_LEVELS = (DEFAULT_TEST, "welch_anova", "kruskal_wallis", "mixed_effects")
EQUIVALENCE = (DEFAULT_TEST, "mixed_effects")
INTERACTIONS = (DEFAULT_TEST, "regression", "mixed_effects")
SLOPES = (DEFAULT_TEST, "regression", "spearman", "mixed_effects")
RANKS = ("mann_whitney", "wilcoxon", "spearman")
MIN_RANKED_PROBLEMS = 6
"""Ranks of fewer problems can't show any difference at the usual level."""
AS_INDEPENDENT = "runs as independent"
THESE_PROBLEMS = "the claim as one about exactly these problems"
TOO_NARROW = "is too narrow if the effect differs between problems"
NOT_OTHERS = "says nothing about other problems"
POLICIES = {"drop": "runs without a value left out", "zero": "runs without a value count as 0"}


@dataclass(frozen=True, slots=True)
class SensitivityRow:
    """One analysis of a claim.

    choice: how it differs from the plan; `as planned` for the planned one
    method: the statistical test
    estimate, interval: the estimate and its interval, at the confidence of the planned one
    p_value, p_adjusted: the p value, and the same after the plan's adjustment for several tests
    verdict, why: the verdict that it would give
    is_reasonable: whether it tests the claim as it is meant; the others are shown for comparison
    remark: what is wrong with it, if it is not reasonable
    """

    choice: str
    method: str
    estimate: float | None
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    verdict: TestVerdict
    why: str
    is_reasonable: bool = True
    remark: str = ""


@dataclass(frozen=True, slots=True)
class SensitivityTable:
    """The analyses of one claim side by side; the first is the planned one.

    hypothesis_id, label: the hypothesis
    analysis_plan_id: its plan
    outcome: the tested outcome
    variables: the compared variables
    rows: the analyses
    confidence: the confidence of their intervals
    is_robust: whether all reasonable analyses give the same verdict
    conclusion: whether the verdict depends on a choice, in a sentence
    """

    hypothesis_id: str
    label: str
    analysis_plan_id: str
    outcome: str
    variables: tuple[str, ...]
    rows: tuple[SensitivityRow, ...]
    confidence: float
    is_robust: bool
    conclusion: str

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def compare_analyses(table: RunTable, tests: Sequence[HypothesisTest]) -> list[SensitivityTable]:
    """Return a table for each confirmatory claim that was tested.

    tests: the tests of the study
    """
    hypotheses = {hypothesis.hypothesis_id: hypothesis for hypothesis in table.study.hypotheses}
    tables: list[SensitivityTable] = []
    for plan in table.study.analysis_plans:
        family = [test for test in tests if _is_confirmatory(test)]
        for name in dict.fromkeys(plan.hypothesis_ids):
            if name not in hypotheses:
                continue
            for request in request_tests(table, plan, hypotheses[name]):
                planned = _find_test(family, request)
                if planned is not None and len(tables) < MAX_TABLES:
                    tables.append(_compare(request, planned, family))
    return tables


def _is_confirmatory(test: HypothesisTest) -> bool:
    """Return whether a test decides about a claim."""
    undecided = (TestVerdict.NOT_TESTED, TestVerdict.EXPLORATORY)
    return test.decides and test.verdict not in undecided


def _find_test(family: Sequence[HypothesisTest], request: TestRequest) -> HypothesisTest | None:
    assert request.plan is not None
    plan, claim = request.plan.analysis_plan_id, request.hypothesis.hypothesis_id
    key = (plan, claim, request.outcome.name, request.comparison.variables)
    matches = (
        test
        for test in family
        if (test.analysis_plan_id, test.hypothesis_id, test.outcome, test.variables) == key
    )
    return next(matches, None)


def _compare(
    request: TestRequest, planned: HypothesisTest, family: Sequence[HypothesisTest]
) -> SensitivityTable:
    rows = [_make_planned_row(planned)]
    for row in _find_alternatives(request, planned, family):
        # Names such as `welch_t` may stand for the same test as the default one.
        if not any(_is_same(row, other) for other in rows):
            rows.append(row)
    rows.sort(key=lambda row: not row.is_reasonable)
    is_robust, conclusion = _conclude(rows)
    return SensitivityTable(
        hypothesis_id=planned.hypothesis_id,
        label=planned.label,
        analysis_plan_id=planned.analysis_plan_id or "",
        outcome=planned.outcome,
        variables=planned.variables,
        rows=tuple(rows),
        confidence=planned.confidence,
        is_robust=is_robust,
        conclusion=conclusion,
    )


def _is_same(row: SensitivityRow, other: SensitivityRow) -> bool:
    """Return whether two rows have the same figures."""
    return (row.method, row.p_value, row.estimate) == (other.method, other.p_value, other.estimate)


def _make_planned_row(test: HypothesisTest) -> SensitivityRow:
    return SensitivityRow(
        "as planned",
        test.method.partition(", one-sided")[0],
        test.estimate,
        test.interval,
        test.p_value,
        test.p_adjusted,
        test.verdict,
        test.why,
    )


@dataclass(frozen=True, slots=True)
class _Alternative:
    """Another analysis of a claim.

    choice: how it differs from the plan
    request: the request, with the other choice in its plan or outcome
    test: the name of the test; None for Welch's test of runs as independent
    remark: what is wrong with it, if it is not reasonable
    """

    choice: str
    request: TestRequest
    test: str | None
    remark: str = ""


def _find_alternatives(
    request: TestRequest, planned: HypothesisTest, family: Sequence[HypothesisTest]
) -> Iterator[SensitivityRow]:
    for alternative in _list_alternatives(request, planned):
        try:
            with suppress_warnings():
                sample = select_sample(alternative.request)
                if alternative.test is None:
                    result = _test_runs(sample)
                else:
                    result = run_test(sample, alternative.test)
        except UntestableError:
            continue
        yield _make_row(alternative, result, planned, family)


def _list_alternatives(request: TestRequest, planned: HypothesisTest) -> Iterator[_Alternative]:
    """Yield other claims about problems, other tests, and other treatments of missing values."""
    try:
        with suppress_warnings():
            sample = select_sample(request)
    except UntestableError:
        return
    yield from _list_comparisons(request, planned, sample)
    for name in _list_tests(sample):
        if name != planned.test:
            yield _Alternative(f"by {name}", request, name)
    declared = missing_data_policy(request.outcome.missing_data_policy)
    if any(group.failed or group.missing for group in sample.groups):
        for policy, choice in POLICIES.items():
            if policy != declared and (policy != "zero" or _is_share(sample)):
                outcome = replace(request.outcome, missing_data_policy=policy)
                yield _Alternative(choice, replace(request, outcome=outcome), planned.test)


def _is_share(sample: ComparisonSample) -> bool:
    """Return whether all values lie between 0 and 1, so that 0 is the worst or the best of them.

    A failed run that counts as 0 seconds or 0 errors would be a success.
    """
    return bool(((sample.y >= 0) & (sample.y <= 1)).all())


def _list_comparisons(
    request: TestRequest, planned: HypothesisTest, sample: ComparisonSample
) -> Iterator[_Alternative]:
    """Yield analyses that are no tests of the claim as it is meant.

    They come first, so that a test that is the same as one of them is shown as such.
    """
    if _count_problems(sample) < 2:
        return
    if request.plan is not None and request.plan.generalize == "problems":
        plan = replace(request.plan, generalize="these_problems_only")
        narrow = replace(request, plan=plan)
        yield _Alternative(THESE_PROBLEMS, narrow, planned.test, NOT_OTHERS)
    if len(sample.names) == 2 and request.comparison.shape == "levels":
        yield _Alternative(AS_INDEPENDENT, request, None, TOO_NARROW)


def _list_tests(sample: ComparisonSample) -> Iterator[str]:
    """Yield the names of tests that fit a comparison."""
    shape, count = sample.request.comparison.shape, len(sample.names)
    names: Sequence[str]
    if shape != "levels":
        names = SLOPES if shape == "slope" else INTERACTIONS
    elif sample.request.is_equivalence:
        names = EQUIVALENCE
    elif count > 2:
        names = SEVERAL_LEVELS
    else:
        names = RATES if is_binary(sample.y) else TWO_LEVELS
    # Runs that only share the number of their replicate are no pairs.
    is_matched = nuisance_factors(sample) or replicate_is_subject(sample.request.study)
    if shape == "levels" and is_matched and names is not RATES:
        names = (*names, *(PAIRS if not sample.request.is_equivalence else PAIRS[:1]))
    is_ranked = not 1 < _count_problems(sample) < MIN_RANKED_PROBLEMS
    for name in names:
        is_too_large = name == "mixed_effects" and len(sample.y) > MAX_MODEL_RUNS
        if not is_too_large and (is_ranked or name not in RANKS):
            yield name


def _count_problems(sample: ComparisonSample) -> int:
    """Return the number of problems in a sample; 1 if they are what is compared."""
    if set(sample.request.comparison.variables) & set(PROBLEM_FACTORS):
        return 1
    return len(set(sample.request.table.column("problem")[sample.rows].tolist()))


def _test_runs(sample: ComparisonSample) -> TestResult:
    """Compare the runs of two groups by Welch's test, as if they were independent."""
    margin = find_margin(sample.request, pooled_sd(sample.values))
    compare = two_group_test(sample.request, welch_t_test, margin)
    return TestResult(compare(*sample.values), "run", describe_difference(sample), margin)


def _make_row(
    alternative: _Alternative,
    result: TestResult,
    planned: HypothesisTest,
    family: Sequence[HypothesisTest],
) -> SensitivityRow:
    finding = result.finding
    p = _adjust(finding.p, planned, family)
    # The opposite is only adjusted by the number of tests, which is cautious.
    count = 1 if planned.policy == "none" else planned.family
    opposite = None if finding.p_opposite is None else min(1.0, count * finding.p_opposite)
    verdict, why = judge(alternative.request, result, p, opposite)
    return SensitivityRow(
        alternative.choice,
        finding.method,
        finding.estimate,
        finding.interval_at(planned.confidence),
        finding.p,
        p,
        verdict,
        why,
        not alternative.remark,
        alternative.remark,
    )


def _adjust(p: float, planned: HypothesisTest, family: Sequence[HypothesisTest]) -> float:
    """Return a p value as adjusted if it stood in the place of the planned test's.

    family: all tests that decide; those with the same policy are adjusted together
    """
    if planned.level is not None:  # at a planned look
        return scale_p(p, planned.level)
    if planned.p_value is None:
        return p
    tests = [test for test in family if test.p_value is not None and test.policy == planned.policy]
    p_values = [p if test is planned else test.p_value or 0.0 for test in tests]
    adjusted = adjust_p(p_values, planned.policy)
    return next(value for test, value in zip(tests, adjusted, strict=True) if test is planned)


def _conclude(rows: Sequence[SensitivityRow]) -> tuple[bool, str]:
    """Return whether all reasonable analyses agree, and a sentence about it."""
    reasonable = [row for row in rows if row.is_reasonable]
    planned = _summarize(reasonable[0])
    others = [row for row in reasonable if _summarize(row) != planned]
    if len(reasonable) == 1:
        text = "No other reasonable analysis of this claim was possible."
    elif not others:
        count = len(reasonable)
        which = "Both" if count == 2 else f"All {count}"
        text = f"{which} reasonable analyses give the same verdict: {planned}."
    else:
        listed = "; ".join(f"{_summarize(row)} {_phrase(row)}" for row in others)
        text = f"The verdict depends on a choice: {planned} as planned, but {listed}."
    if str(reasonable[0].verdict) != planned:
        text += f" The reservation ({reasonable[0].verdict}) holds for every analysis."
    differing = [row for row in rows if not row.is_reasonable and _summarize(row) != planned]
    for row in differing:
        text += f" Taking {row.choice} would make it {_summarize(row)}, but that {row.remark}."
    return not others, text


def _summarize(row: SensitivityRow) -> str:
    """Return a verdict without its reservations."""
    is_supported = str(row.verdict).startswith(str(TestVerdict.SUPPORTED))
    return str(TestVerdict.SUPPORTED if is_supported else row.verdict)


def _phrase(row: SensitivityRow) -> str:
    return row.choice if row.choice.startswith("by ") else f"with {row.choice}"
