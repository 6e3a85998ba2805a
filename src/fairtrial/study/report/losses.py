"""Lost runs and verdicts: whether runs without a value could explain a result.

A run is lost if it failed, broke or has no value, and doesn't count as 0. Losses affect a verdict
if they differ between the compared groups (Fisher's exact test), or if the verdict would be another
one with the lost runs at the worst of the observed values (0 or 1 for yes/no outcomes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.comparison_results import TestResult
from fairtrial.study.report.lost_runs import ArmLosses, LostRuns, compare_losses
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.samples import GroupSummary
from fairtrial.study.report.verdicts import TestVerdict, VerdictWithReason
from fairtrial.study.stats.finding import Finding

MAX_SHOWN = 6
UNEQUAL = 2.0
"""Groups are unequal by plan if the largest has this many times the runs of the smallest."""
CONDITION = "if losses are harmless"


class SecondVerdict(NamedTuple):
    """The verdict of a test on other values.

    verdict, why: the verdict and its reason
    direction: the sign of the effect; 0 if it has none
    """

    verdict: TestVerdict
    why: str
    direction: int


Rejudge = Callable[[RunTable], SecondVerdict | None]
"""Makes a test again on another run table; returns None if that is impossible."""


@dataclass(frozen=True, slots=True)
class LossAssessment:
    """How lost runs affect a verdict.

    arms: the lost runs of each group
    p_differ: p value of Fisher's exact test that losses differ between the groups
    worst_case: the verdict with lost runs at the worst values; empty if it was not tried
    is_harmless: whether losses neither differ nor could turn the verdict
    """

    arms: tuple[ArmLosses, ...]
    p_differ: float
    worst_case: str = ""
    is_harmless: bool = True


def get_direction(finding: Finding) -> int:
    """Return the sign of an effect; 0 if the finding has none."""
    size = finding.rank_direction
    for number in (finding.estimate, finding.effect_size):
        size = number if size is None else size
    return 0 if not size else 1 if size > 0 else -1


def qualify_by_losses(
    lost: LostRuns,
    result: TestResult,
    judged: VerdictWithReason,
    rejudge: Rejudge,
) -> tuple[TestVerdict, str, LossAssessment]:
    """Return the verdict and its reason with losses allowed for, and how they affect it.

    lost: the lost runs, at least one
    result, judged: the result of the test without them, and its verdict
    """
    verdict, why = judged
    arms = lost.count_by_arm()
    p = compare_losses(arms)
    worst = _find_worst_case(lost, result, verdict, rejudge)
    is_turned = worst is not None and worst.verdict is not verdict
    shown = "" if worst is None else str(worst.verdict)
    assessment = LossAssessment(arms, p, shown, not is_turned and p >= ALPHA)
    if verdict is TestVerdict.INCONCLUSIVE:
        remark = f"; {describe_losses(arms)}: {_difference_text(p)}" if p < ALPHA else ""
        return verdict, why + remark, assessment
    if assessment.is_harmless:
        if worst is not None and worst.why != why:
            why += f" (with lost runs at their worst: {worst.why})"
        return verdict, why, assessment
    reasons = []
    if p < ALPHA:
        reasons.append(_difference_text(p))
    if is_turned:
        reasons.append(f"with lost runs at their worst the verdict would be {shown}")
    text = f"{describe_losses(arms)}: {', and '.join(reasons)}"
    if verdict is TestVerdict.SUPPORTED:
        return TestVerdict.SUPPORTED_IF_LOSSES_HARMLESS, f"{why}, but {text}", assessment
    if worst is not None and is_turned:
        why = f"{verdict} only {CONDITION} ({why}), but {text}"
        is_ruled_out = worst.verdict is TestVerdict.NOT_SUPPORTED
        return worst.verdict if is_ruled_out else TestVerdict.INCONCLUSIVE, why, assessment
    return verdict, f"{why}, {CONDITION}: {text}", assessment


def fix_margin(request: TestRequest, result: TestResult) -> TestRequest:
    """State the smallest effect of interest in the outcome's units, as the result has it.

    Otherwise filled values would change it with the standard deviation.
    """
    if result.margin is None:
        return request
    hypothesis = replace(request.hypothesis, minimum_effect_of_interest=result.margin.size)
    return replace(request, hypothesis=hypothesis, outcome=replace(request.outcome, sd=1.0))


def _difference_text(p: float) -> str:
    return f"losses differ between the groups (Fisher's exact test, p = {p:.2g})"


def _find_worst_case(
    lost: LostRuns, result: TestResult, verdict: TestVerdict, rejudge: Rejudge
) -> SecondVerdict | None:
    """Return the verdict in the worst case for a verdict; None if there is nothing to turn.

    Of several cases the first that turns the verdict. A reversed effect counts as inconclusive: in
    between there would be none.
    """
    worst = None
    direction = get_direction(result.finding)
    for table in _make_worst_cases(lost, result, verdict):
        second = rejudge(table)
        if second is None:
            return SecondVerdict(TestVerdict.NOT_TESTED, "the test could not be made", 0)
        is_claim = verdict is TestVerdict.SUPPORTED and not lost.sample.request.is_equivalence
        is_reversed = direction != 0 and second.direction == -direction
        if is_claim and is_reversed and not result.is_omnibus:
            return second._replace(verdict=TestVerdict.INCONCLUSIVE)
        worst = second
        if second.verdict is not verdict:
            break
    return worst


def _make_worst_cases(
    lost: LostRuns, result: TestResult, verdict: TestVerdict
) -> Iterator[RunTable]:
    request = lost.sample.request
    claimed = {"greater": 1, "less": -1}.get(request.alternative, 0)
    if verdict is TestVerdict.SUPPORTED and not request.is_equivalence:
        if result.is_omnibus and not claimed:
            yield lost.level_out()
        else:
            yield lost.shift(-(claimed or get_direction(result.finding) or 1))
    elif verdict is TestVerdict.CONTRADICTED:
        yield lost.shift(claimed or -get_direction(result.finding))
    elif verdict in (TestVerdict.SUPPORTED, TestVerdict.NOT_SUPPORTED):
        if len(lost.sample.names) > 2 and len(request.comparison.variables) == 1:
            yield from lost.separate()
        else:
            yield from (lost.shift(sign) for sign in ((claimed,) if claimed else (1, -1)))


def describe_losses(arms: Sequence[ArmLosses]) -> str:
    """Return the losses of each group: `runs were lost, 20 of 60 for fancy and 0 of 60 for plain`.

    Of many groups only those with the largest shares.
    """
    ranked = sorted(arms, key=lambda arm: -arm.lost / max(1, arm.runs))
    *first, last = [f"{arm.lost:,} of {arm.runs:,} for {arm.name}" for arm in ranked[:MAX_SHOWN]]
    shown = f"{', '.join(first)} and {last}" if first else last
    more = len(arms) - MAX_SHOWN
    return f"runs were lost, {shown}" + (f" (and in {more:,} more groups)" if more > 0 else "")


def loss_notes(assessment: LossAssessment, groups: Sequence[GroupSummary]) -> list[str]:
    """Return a note on lost runs and on what they could change."""
    kinds = (
        ("failed", sum(group.failed for group in groups)),
        ("broke", sum(group.broken for group in groups)),
        ("have no value", sum(group.missing for group in groups)),
    )
    listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds if count)
    text = f"{describe_losses(assessment.arms)} ({listed})"
    if assessment.p_differ < ALPHA:
        return [
            f"{text}; {_difference_text(assessment.p_differ)}: a comparison of the runs that are "
            "left may be unfair"
        ]
    if not assessment.worst_case:
        return [f"{text}; losses don't differ between the groups by more than chance"]
    if assessment.is_harmless:
        return [f"{text}; even at the worst observed values they would not change the verdict"]
    return [f"{text}; at the worst observed values they would change the verdict"]


def imbalance_notes(groups: Sequence[GroupSummary]) -> list[str]:
    """Return notes on groups of unequal size: by plan, or by runs that are not done yet."""
    notes = []
    planned = [group.planned for group in groups]
    if len(groups) > 1 and min(planned) and max(planned) >= UNEQUAL * min(planned):
        sizes = _list_counts([(group.planned, group.name) for group in groups])
        notes.append(f"the groups are of unequal size by plan: {sizes}")
    pending = [ArmLosses(group.name, group.pending, group.planned) for group in groups]
    if any(group.pending for group in groups) and (p := compare_losses(pending)) < ALPHA:
        sizes = _list_counts([(group.pending, group.name) for group in groups])
        notes.append(
            f"runs that are not done yet differ between the groups ({sizes}; Fisher's exact test, "
            f"p = {p:.2g}): those that are done may not represent them equally"
        )
    return notes


def _list_counts(counts: Sequence[tuple[int, str]]) -> str:
    shown = ", ".join(f"{count:,} for {name}" for count, name in counts[:MAX_SHOWN])
    return f"{shown}, …" if len(counts) > MAX_SHOWN else shown
