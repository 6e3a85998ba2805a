"""The lost runs of a test, and the values that they may have had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES
from fairtrial.study.report.flow import GroupedRuns, group_runs
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.named_tests import missing_data_policy
from fairtrial.study.stats.proportions import is_binary

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

MAX_SHIFTED = 6
"""Of several groups, at most this many are shifted up and down, one after the other."""


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


class LostRuns:
    """The lost runs of a test: those that failed, broke or have no value, and don't count as 0.

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
