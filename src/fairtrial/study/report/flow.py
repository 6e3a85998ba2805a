"""The flow of runs: how many were planned, finished, failed, broke, have no value, and are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fairtrial.core import dump_record
from fairtrial.study.report.comparison_requests import TestRequest
from fairtrial.study.report.run_table import REPLICATE, RunTable
from fairtrial.study.report.samples import (
    GroupSummary,
    assign_groups,
    match_filters,
    number_groups,
)
from fairtrial.study.stats.named_tests import missing_data_policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes

ALL_RUNS = "all runs"


@dataclass(frozen=True, slots=True)
class RunFlow:
    """The flow of the runs of one agent, or of all.

    name: the agent, or `all runs`
    planned: number of planned runs, without those that a balanced `max_runs` leaves out
    finished: number of runs that succeeded or failed
    failed: number of failed runs
    broken: number of runs that broke through no fault of the agent
    pending: number of planned runs that are not done yet
    no_value: for each outcome, the number of successful runs without a value
    used: for each outcome, the number of runs with a value, or that count as 0
    """

    name: str
    planned: int
    finished: int
    failed: int
    broken: int
    pending: int
    no_value: Mapping[str, int]
    used: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def trace_study(table: RunTable, outcomes: Sequence[str]) -> list[RunFlow]:
    """Return the flow of all runs and, if there are several agents, of the runs of each.

    outcomes: the outcomes whose values are counted
    """
    import numpy as np

    planned, replicates = table.planned_cells
    agents = list(dict.fromkeys([*planned.agents, *table.with_broken.agents]))
    flows = []
    for name in [ALL_RUNS, *(agents if len(agents) > 1 else ())]:
        in_plan = _match_agent(planned, name)
        finished, ended = _match_agent(table, name), _match_agent(table.with_broken, name)
        ok = finished & ~table.failed
        empty = {outcome: np.isnan(table.values(outcome)) for outcome in outcomes}
        counts = int(replicates[in_plan].sum()), int(finished.sum()), int(ended.sum())
        flows.append(
            RunFlow(
                name=name or "none",
                planned=counts[0],
                finished=counts[1],
                failed=counts[1] - int(ok.sum()),
                broken=counts[2] - counts[1],
                pending=max(0, counts[0] - counts[2]),
                no_value={key: int((ok & mask).sum()) for key, mask in empty.items()},
                used={
                    key: int((finished if _counts_as_zero(table, key) else ok & ~mask).sum())
                    for key, mask in empty.items()
                },
            )
        )
    return flows


def _counts_as_zero(table: RunTable, outcome: str) -> bool:
    """Return whether runs without a value count as 0."""
    return missing_data_policy(table.readers[outcome].spec.missing_data_policy) == "zero"


def _match_agent(table: RunTable, name: str | None) -> NDArray[np.bool_]:
    import numpy as np

    if name == ALL_RUNS:
        return np.ones(len(table), dtype=bool)
    mask: NDArray[np.bool_] = table.column("agent") == table.agents.get(name, -1)
    return mask


@dataclass(frozen=True, slots=True)
class GroupedRuns:
    """The runs of a table that belong to the groups of a test, whatever their status.

    table: the table
    group: group index of each run; -1 for runs that belong to none
    parts: for each compared variable, the level of each run
    """

    table: RunTable
    group: Codes
    parts: tuple[Codes, ...]

    def count(self, mask: NDArray[np.bool_], groups: int) -> list[int]:
        """Return how many runs of each group are in a mask."""
        import numpy as np

        inside = self.group[mask & (self.group >= 0)]
        counts: list[int] = np.bincount(inside, minlength=groups).tolist()
        return counts


def group_runs(
    request: TestRequest, table: RunTable, *, ignored_filters: Sequence[str] = ("status",)
) -> GroupedRuns:
    """Return the runs of a table that belong to the groups of a requested test.

    Filters by status are ignored: a plan that tests successful runs only has lost the others.
    """
    import numpy as np

    plan = request.plan
    if plan is not None:
        kept = {key: value for key, value in plan.filters.items() if key not in ignored_filters}
        plan = replace(plan, filters=kept)
    request = replace(request, table=table, plan=plan)
    _, parts = assign_groups(request)
    member = np.all(np.stack(parts) >= 0, axis=0) & match_filters(request)
    group = np.where(member, number_groups(request, parts), -1)
    return GroupedRuns(table, group, tuple(parts))


def count_flow(request: TestRequest, groups: Sequence[GroupSummary]) -> tuple[GroupSummary, ...]:
    """Return the summaries of the groups of a test with the flow of their runs."""
    import numpy as np

    table, size = request.table, len(groups)
    ended = group_runs(request, table.with_broken)
    rows = np.arange(len(ended.group))
    is_broken = rows >= len(table)
    failed = ended.table.failed & ~is_broken
    empty = np.isnan(ended.table.values(request.outcome.name)) & ~ended.table.failed
    counts = [ended.count(mask, size) for mask in (~is_broken, failed, empty, is_broken)]
    planned = _count_planned(request, size)
    return tuple(
        replace(
            group,
            runs=runs,
            failed=failures,
            missing=missing,
            broken=broken,
            planned=number,
            pending=max(0, number - runs - broken),
        )
        for group, number, runs, failures, missing, broken in zip(
            groups, planned, *counts, strict=True
        )
    )


def _count_planned(request: TestRequest, groups: int) -> list[int]:
    """Return the number of planned runs of each group."""
    import numpy as np

    cells, replicates = request.table.planned_cells
    grouped = group_runs(request, cells, ignored_filters=("status", REPLICATE))
    filters: Mapping[str, Any] = request.plan.filters if request.plan else {}
    if REPLICATE in filters:
        accepted = filters[REPLICATE]
        chosen = accepted if isinstance(accepted, (list, tuple, set, frozenset)) else [accepted]
        numbers = [number for number in chosen if isinstance(number, int)]
        kept = [replicates >= number for number in numbers]
        replicates = np.sum(kept, axis=0) if kept else np.zeros_like(replicates)
    inside = grouped.group >= 0
    counts = np.bincount(grouped.group[inside], replicates[inside], groups)
    planned: list[int] = counts.astype(int).tolist()
    return planned
