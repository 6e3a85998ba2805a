"""The summary of a ledger: counts and sums, without reading results."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.study.model.runs import FailureKind, RunStatus


@dataclass(frozen=True, slots=True)
class Summary:
    """The progress of a study. Counts cover runs of the plan only; costs cover all attempts.

    counts: the number of runs by status
    failures: the number of failed and broken runs by failure kind
    planned: how many runs are to be done
    skipped: how many more a balanced `max_runs` leaves out
    decided_early: how many more are not needed, because planned looks decided the claims
    left_out: how many results belong to runs that are no longer in the plan
    cost_usd: the costs of all attempts; for unfinished ones those in their journals
    tokens: the tokens of all attempts, likewise
    live: the progress as last reported by the process that runs the study
    last_session: the last session: process, times, and how it ended
    is_running: whether a process runs the study right now
    """

    counts: Mapping[str, int]
    failures: Mapping[str, int]
    planned: int
    skipped: int
    left_out: int
    cost_usd: float
    tokens: int
    live: Mapping[str, Any] | None
    last_session: Mapping[str, Any] | None
    is_running: bool
    decided_early: int = 0

    @property
    def done(self) -> int:
        """How many runs have a result."""
        return sum(self.counts.values())

    @property
    def pending(self) -> int:
        """How many runs have no result yet, including those under way."""
        return max(0, self.planned - self.done)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**fields, "done": self.done, "pending": self.pending}


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a run that is not its result: broken and retried, cancelled, or replaced.

    execution_index: the run's position in the order of execution
    attempt: its number, 1 for the first
    session: the session that made it
    status: its status
    failure_kind: why it did not succeed
    cost_usd: its costs
    tokens: its tokens
    latency_s: how long it took
    details: everything else (`fairtrial.study.ledger.packing.Body`)
    stdout: what it printed
    stderr: what it printed to stderr
    """

    execution_index: int
    attempt: int
    session: int
    status: RunStatus
    failure_kind: FailureKind | None
    cost_usd: float
    tokens: int
    latency_s: float
    details: Mapping[str, Any]
    stdout: str
    stderr: str


def sum_counts(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the sum of each name's numbers, without zeros, sorted by name."""
    sums: Counter[str] = Counter()
    for name, number in pairs:
        sums[str(name)] += number
    return {name: sums[name] for name in sorted(sums) if sums[name]}


def spell_cost(cost_usd: float) -> str:
    """Return a cost as text: `$12.30`, and with two significant digits below $0.10: `$0.0028`."""
    if cost_usd >= 0.1:
        return f"${cost_usd:,.2f}"
    return f"${float(f'{cost_usd:.2g}'):.12f}".rstrip("0").rstrip(".")
