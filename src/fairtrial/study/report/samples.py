"""The sample of a test: which runs count, their groups and values, and which are missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.core import canonical_json, did_you_mean, is_scalar, scalar_text
from fairtrial.study.hypotheses.planned_tests import choose_test, explain_few_problems
from fairtrial.study.hypotheses.problem_units import find_problem_unit
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.host_block import block_by_host
from fairtrial.study.report.run_table import REPLICATE, RunTable
from fairtrial.study.stats.finding import UntestableError, finite, sample_sd
from fairtrial.study.stats.named_tests import MISSING_DATA_POLICIES, missing_data_policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes, Values


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Summary of the runs of one level, or of one combination of levels.

    name: the level or combination
    n: number of runs in the test
    runs: number of all finished runs of the group
    mean, sd, median: of the values in the test
    failed: number of failed runs, which have no value
    missing: number of successful runs without a value
    planned: number of planned runs
    broken: number of runs that broke through no fault of the agent, and have no value
    pending: number of planned runs that are not done yet
    """

    name: str
    n: int
    runs: int = 0
    mean: float | None = None
    sd: float | None = None
    median: float | None = None
    failed: int = 0
    missing: int = 0
    planned: int = 0
    broken: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class ComparisonSample:
    """The runs that a test compares.

    request: the requested test
    names: names of the groups; a difference of two groups is the first minus the second
    rows: row of each run in the run table
    y: value of each run
    group: group index of each run
    parts: for each variable the level of each run, numbered in the order of the request's levels
    groups: summary of each group
    notes: how runs without a value were treated
    """

    request: TestRequest
    names: tuple[str, ...]
    rows: Codes
    y: Values
    group: Codes
    parts: tuple[Codes, ...]
    groups: tuple[GroupSummary, ...]
    notes: tuple[str, ...]

    def group_values(self, group: int) -> Values:
        """Return the values of one group."""
        values: Values = self.y[self.group == group]
        return values

    @property
    def values(self) -> list[Values]:
        """The values of each group."""
        return [self.group_values(group) for group in range(len(self.names))]


def select_sample(request: TestRequest) -> ComparisonSample:
    """Return the runs that a test compares.

    Raises `UntestableError` if the test can't be done, or no run has a value.
    """
    import numpy as np

    if request.reason:
        raise UntestableError(request.reason)
    table = request.table
    reader = table.readers[request.outcome.name]
    if reader.reason:
        raise UntestableError(reader.reason)
    names, parts = assign_groups(request)
    member = np.all(np.stack(parts) >= 0, axis=0) & match_filters(request)
    group = number_groups(request, parts)
    values, blocked = block_by_host(
        table, request.outcome.name, table.values(request.outcome.name).copy(), member, group
    )
    empty = np.isnan(values) & member
    failed, missing = empty & table.failed, empty & ~table.failed
    notes = _fill_missing(request, values, empty, int(failed.sum()), int(missing.sum()))
    counted = member & ~np.isnan(values)
    if not counted.any():
        raise UntestableError(_explain_empty(request, int(member.sum())))
    rows = np.flatnonzero(counted)
    groups = []
    for index, name in enumerate(names):
        inside = member & (group == index)
        lost = [int((mask & inside).sum()) for mask in (failed, missing)]
        groups.append(_summarize(name, int(inside.sum()), values[counted & inside], lost))
    return ComparisonSample(
        request=request,
        names=names,
        rows=rows,
        y=values[rows],
        group=group[rows],
        parts=tuple(part[rows] for part in parts),
        groups=tuple(groups),
        notes=(*notes, *blocked),
    )


def assign_groups(request: TestRequest) -> tuple[tuple[str, ...], list[Codes]]:
    """Return the names of the groups, and for each variable the level of each run (-1: none)."""
    import numpy as np

    parts, level_names = [], []
    for position, name in enumerate(request.comparison.variables):
        variable, codes = request.table.variable(name)
        levels = request.levels(position)
        ranks = {level: rank for rank, level in enumerate(levels)}
        # The last entry is for runs that the variable doesn't apply to (code -1).
        numbers = [ranks.get(level, -1) for level in variable.values] + [-1]
        parts.append(np.asarray(numbers, dtype=np.intp)[codes])
        level_names.append(levels)
    if request.comparison.shape == "slope":
        return ("all",), parts
    if len(parts) == 1:
        return level_names[0], parts
    combinations = itertools.product(*level_names)
    return tuple(" × ".join(levels) for levels in combinations), parts


def number_groups(request: TestRequest, parts: Sequence[Codes]) -> Codes:
    """Return the group index of each run from the levels that `assign_groups` returns."""
    import numpy as np

    group = np.zeros(len(parts[0]), dtype=np.intp)
    if request.comparison.shape != "slope":
        for part, levels in zip(parts, request.comparison.levels, strict=True):
            group = group * len(levels) + part
    return group


def _summarize(name: str, runs: int, values: Values, lost: Sequence[int]) -> GroupSummary:
    """Return the summary of a group; `lost` are its failed runs and those without a value."""
    import numpy as np

    failed, missing = lost
    if not len(values):
        return GroupSummary(name, 0, runs, failed=failed, missing=missing)
    sd = sample_sd(values) if len(values) > 1 else None
    mean, median = finite(math.fsum(values / len(values))), finite(np.median(values))
    return GroupSummary(name, len(values), runs, mean, finite(sd), median, failed, missing)


def _fill_missing(
    request: TestRequest, values: Values, empty: NDArray[np.bool_], failed: int, missing: int
) -> tuple[str, ...]:
    """Apply the outcome's policy for missing data to `values`; returns notes about it.

    empty: which runs have no value
    failed, missing: number of those that failed, and of others

    Raises `UntestableError` if the policy is unknown, or is to refuse the test.
    """
    if not failed + missing:
        return ()
    missing_runs = " and ".join(
        text
        for count, text in (
            (failed, f"{failed:,} that failed"),
            (missing, f"{missing:,} without a value"),
        )
        if count
    )
    declared = request.outcome.missing_data_policy
    policy = missing_data_policy(declared)
    if policy is None:
        hint = did_you_mean(declared, MISSING_DATA_POLICIES)
        raise UntestableError(
            f"runs are missing ({missing_runs}) and policy '{declared}' is unknown; {hint}"
        )
    if policy == "fail":
        raise UntestableError(
            f"runs are missing ({missing_runs}), and the outcome's policy is to stop"
        )
    if policy == "zero":
        values[empty] = 0.0
        return (f"runs that count as 0: {missing_runs}",)
    return (f"runs left out: {missing_runs}",)


def _explain_empty(request: TestRequest, runs: int) -> str:
    """Return why no run has a value; `runs` is the number of runs in the groups."""
    table, name = request.table, request.outcome.name
    if not len(table):
        return _explain_plan(request) or "no run has ended yet"
    if not runs:
        return "no run belongs to the groups that are compared"
    reader = table.readers[name]
    if table.failed.all() and not reader.unreadable:
        return "every run failed"
    return reader.explain_missing()


def _explain_plan(request: TestRequest) -> str:
    """Return why the plan has too few problems for a test; empty if it has enough."""
    study, plan, comparison = request.study, request.plan, request.comparison
    test_name = choose_test(study, plan, request.outcome.name, comparison)
    unit = find_problem_unit(study, request.table.conditions, plan, comparison)
    return explain_few_problems(test_name, unit)


def match_filters(request: TestRequest) -> NDArray[np.bool_]:
    """Return which runs match the plan's filters: ``{column: value}`` or ``{column: [values]}``.

    Raises `UntestableError` for an invalid filter.
    """
    import numpy as np

    keep = np.ones(len(request.table), dtype=bool)
    filters: Mapping[str, Any] = request.plan.filters if request.plan else {}
    for column, accepted in filters.items():
        is_list = isinstance(accepted, (list, tuple, set, frozenset))
        values = list(accepted) if is_list else [accepted]
        if not all(map(is_scalar, values)):
            raise UntestableError(
                f"filter '{column}' is neither a value nor a list of values: {accepted!r}"
            )
        keep &= _match_values(request.table, column, values)
    return keep


def _match_values(table: RunTable, column: str, accepted: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which runs have one of the accepted values in a column."""
    import numpy as np

    if column == "status":
        statuses = {str(value).lower() for value in accepted}
        return np.where(table.failed, "failed" in statuses, "success" in statuses)
    if column == REPLICATE:
        return np.isin(table.column(REPLICATE), [v for v in accepted if isinstance(v, int)])
    # As in the exported tables: a filter by an option of one agent also filters runs of others.
    variable, codes = table.assigned(column)
    if not variable.source:
        study = table.study
        names = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
        hint = did_you_mean(column, [*names, "agent_id", "problem_id", REPLICATE, "status"])
        raise UntestableError(f"the plan filters by '{column}', which is no column here; {hint}")
    ranks = {level: rank for rank, level in enumerate(variable.values)}
    accepted_ranks = []
    for value in accepted:
        text = scalar_text(value) if is_scalar(value) else canonical_json(value)
        level = variable.find_level(text)
        if level is None:
            hint = did_you_mean(text, variable.values)
            raise UntestableError(f"the plan's filter: '{text}' is no level of {column}; {hint}")
        accepted_ranks.append(ranks[level])
    return np.isin(codes, accepted_ranks)
