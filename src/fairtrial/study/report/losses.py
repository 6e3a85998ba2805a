"""Lost runs and verdicts: whether runs without a value could explain a result.

A run is lost if it failed, broke or has no value, and doesn't count as 0. Losses bear on a verdict
if they differ between the compared groups (Fisher's exact test), or if the verdict would be another
one with the lost runs at the worst of the observed values (0 or 1 for yes/no outcomes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.flow import GroupedRuns, group_runs
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.samples import ComparisonSample, GroupSummary
from fairtrial.study.report.test_results import TestResult
from fairtrial.study.report.test_verdicts import TestVerdict, VerdictWithReason
from fairtrial.study.stats.finding import Finding
from fairtrial.study.stats.proportions import is_binary
from fairtrial.study.stats.test_names import missing_data_policy

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

MAX_SHOWN = 6
MAX_SHIFTED = 6
"""Of several groups, at most this many are shifted up and down, one after the other."""
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
class ArmLosses:
    """The lost runs of one group.

    name: the group
    lost: number of lost runs
    runs: number of all runs that ended
    """

    name: str
    lost: int
    runs: int


@dataclass(frozen=True, slots=True)
class LossAssessment:
    """How lost runs bear on a verdict.

    arms: the lost runs of each group
    p_differ: p value of Fisher's exact test that losses differ between the groups
    worst_case: the verdict with lost runs at the worst values; empty if it was not tried
    is_harmless: whether losses neither differ nor could turn the verdict
    """

    arms: tuple[ArmLosses, ...]
    p_differ: float
    worst_case: str = ""
    is_harmless: bool = True


def direction_of(finding: Finding) -> int:
    """Return the sign of an effect; 0 if the finding has none."""
    size = finding.rank_direction
    for number in (finding.estimate, finding.effect_size):
        size = number if size is None else size
    return 0 if not size else 1 if size > 0 else -1


class LostRuns:
    """The lost runs of a test.

    sample: the runs that have a value
    """

    def __init__(self, sample: ComparisonSample) -> None:
        import numpy as np

        request = sample.request
        self.sample = sample
        self._runs: GroupedRuns = group_runs(request, request.table.with_broken)
        table = self._runs.table
        empty = np.isnan(table.values(request.outcome.name))
        if missing_data_policy(request.outcome.missing_data_policy) == "zero":
            # Failed runs and runs without a value count as 0; broken ones are lost all the same.
            empty &= np.arange(len(table)) >= len(request.table)
        self.rows: Codes = np.flatnonzero(empty & (self._runs.group >= 0))
        self._group: Codes = self._runs.group[self.rows]
        self._parts = [part[self.rows] for part in self._runs.parts]

    def __len__(self) -> int:
        return len(self.rows)

    def count_by_arm(self) -> tuple[ArmLosses, ...]:
        """Return the losses of each group; for a slope, of the lower and the upper half."""
        import numpy as np

        if self.sample.request.comparison.shape != "slope":
            size = len(self.sample.names)
            lost = np.bincount(self._group, minlength=size).tolist()
            runs = self._runs.count(self._runs.group >= 0, size)
            arms = zip(self.sample.names, lost, runs, strict=True)
            return tuple(ArmLosses(*arm) for arm in arms)
        scale = self._scale()
        inside = self._runs.group >= 0
        position = scale[self._runs.parts[0]]
        is_upper = position > np.median(position[inside])
        name = self.sample.request.comparison.variables[0]
        return tuple(
            ArmLosses(
                f"{half} values of {name}",
                int((side[self.rows]).sum()),
                int((side & inside).sum()),
            )
            for half, side in (("upper", is_upper), ("lower", ~is_upper))
        )

    def _scale(self) -> Values:
        """Return the number of each level of the variable of a slope, in the levels' order."""
        import numpy as np

        request = self.sample.request
        variable, _ = request.table.variable(request.comparison.variables[0])
        return np.asarray([float(variable.values[level]) for level in request.levels(0)])

    def fill(self, values: Values) -> RunTable:
        """Return the run table with values for the lost runs."""
        return self._runs.table.with_values(self.sample.request.outcome.name, self.rows, values)

    def _range(self) -> tuple[float, float]:
        """Return the worst and best value that a lost run may have had."""
        sample = self.sample
        declared = sample.request.outcome.expected_type.strip().lower()
        if declared in BINARY_TYPES or is_binary(sample.y):
            return 0.0, 1.0
        return float(sample.y.min()), float(sample.y.max())

    def shift(self, direction: int) -> RunTable:
        """Return the table with lost runs at the values that raise (or lower) the effect most.

        The effect is the difference of the first groups from the last one, the slope, or the
        interaction of two by two levels.
        """
        import numpy as np

        if self.sample.request.comparison.shape == "slope":
            scale = self._scale()
            side = scale[self._parts[0]] - scale[self.sample.parts[0]].mean()
        elif len(self._parts) == 2:
            side = (1 - 2 * self._parts[0]) * (1 - 2 * self._parts[1])
        else:
            side = np.where(self._group == len(self.sample.names) - 1, -1, 1)
        low, high = self._range()
        return self.fill(np.where(side * direction > 0, high, low))

    def separate(self) -> Iterator[RunTable]:
        """Yield tables in which one group's lost runs are high and the others' low, or reversed."""
        import numpy as np

        low, high = self._range()
        with_losses = np.unique(self._group)
        for group in with_losses[:MAX_SHIFTED]:
            inside = self._group == group
            yield self.fill(np.where(inside, high, low))
            yield self.fill(np.where(inside, low, high))

    def level_out(self) -> RunTable:
        """Return the table with values that bring groups as near to each other as possible."""
        import numpy as np

        low, high = self._range()
        values = np.empty(len(self.rows))
        for group in np.unique(self._group):
            observed, lost = self.sample.group_values(group), self._group == group
            target = self._find_level(int(group)) * (len(observed) + lost.sum())
            values[lost] = np.clip((target - observed.sum()) / lost.sum(), low, high)
        return self.fill(values)

    def _find_level(self, group: int) -> float:
        """Return the mean that a group would have without an effect, as the others have it."""
        sample = self.sample
        if len(self._parts) == 1:
            return float(sample.y[sample.group != group].mean())
        # Without an interaction: the sum of both main effects.
        columns = len(sample.request.comparison.levels[1])
        means = [values.mean() if len(values) else sample.y.mean() for values in sample.values]
        row, column = divmod(group, columns)
        of_row = [m for i, m in enumerate(means) if i // columns == row and i != group]
        of_column = [m for i, m in enumerate(means) if i % columns == column and i != group]
        rest = [m for i, m in enumerate(means) if i // columns != row and i % columns != column]
        return float(sum(of_row) / len(of_row) + sum(of_column) / len(of_column)) - float(
            sum(rest) / len(rest)
        )


def compare_losses(arms: Sequence[ArmLosses]) -> float:
    """Return the p value of Fisher's exact test that losses differ between groups.

    For several groups that of the group with the largest share against the others, with p
    multiplied by the number of groups.
    """
    from scipy import stats

    ended = [arm for arm in arms if arm.runs]
    if len(ended) < 2:
        return 1.0
    worst = max(ended, key=lambda arm: arm.lost / arm.runs)
    rest = [arm for arm in ended if arm is not worst]
    lost, runs = sum(arm.lost for arm in rest), sum(arm.runs for arm in rest)
    table = [[worst.lost, worst.runs - worst.lost], [lost, runs - lost]]
    p = float(stats.fisher_exact(table).pvalue)
    return min(1.0, p * (1 if len(ended) == 2 else len(ended)))


def qualify_by_losses(
    lost: LostRuns,
    result: TestResult,
    judged: VerdictWithReason,
    rejudge: Rejudge,
) -> tuple[TestVerdict, str, LossAssessment]:
    """Return the verdict and its reason with losses allowed for, and how they bear on it.

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
        remark = f"; {describe_losses(arms)}; {_difference_text(p)}" if p < ALPHA else ""
        return verdict, why + remark, assessment
    if assessment.is_harmless:
        if worst is not None and worst.why != why:
            why += f" (with lost runs at their worst: {worst.why})"
        return verdict, why, assessment
    reasons = []
    if p < ALPHA:
        reasons.append(_difference_text(p))
    if is_turned:
        reasons.append(f"with lost runs at their worst it would be {shown}")
    text = f"{describe_losses(arms)}; {' and '.join(reasons)}"
    if verdict is TestVerdict.SUPPORTED:
        return TestVerdict.SUPPORTED_IF_LOSSES_HARMLESS, f"{why}, but {text}", assessment
    if is_turned:
        why = f"{verdict} only {CONDITION} ({why}), but {text}"
        return TestVerdict.INCONCLUSIVE, why, assessment
    return verdict, f"{why}, {CONDITION}: {text}", assessment


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
    direction = direction_of(result.finding)
    for table in _make_worst_cases(lost, result, verdict):
        second = rejudge(table)
        if second is None:
            return SecondVerdict(TestVerdict.NOT_TESTED, "the test could not be made", 0)
        if not result.is_omnibus and second.verdict is verdict is TestVerdict.SUPPORTED:
            if not lost.sample.request.is_equivalence and second.direction == -direction:
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
            yield lost.shift(-(claimed or direction_of(result.finding) or 1))
    elif verdict is TestVerdict.CONTRADICTED:
        yield lost.shift(claimed or -direction_of(result.finding))
    elif verdict in (TestVerdict.SUPPORTED, TestVerdict.NOT_SUPPORTED):
        if len(lost.sample.names) > 2 and len(request.comparison.variables) == 1:
            yield from lost.separate()
        else:
            yield from (lost.shift(sign) for sign in ((claimed,) if claimed else (1, -1)))


def describe_losses(arms: Sequence[ArmLosses]) -> str:
    """Return the losses of each group as text: `lost: 20 of 60 for fancy, 0 of 60 for plain`."""
    ranked = sorted(arms, key=lambda arm: -arm.lost / max(1, arm.runs))
    shown = ", ".join(f"{arm.lost:,} of {arm.runs:,} for {arm.name}" for arm in ranked[:MAX_SHOWN])
    return f"lost runs: {shown}{', …' if len(arms) > MAX_SHOWN else ''}"


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
