"""What a ledger says at a glance: counts and sums, without a single result."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.study.model.runs import FailureKind, RunStatus


@dataclass(frozen=True, slots=True)
class Summary:
    """How far a study has come. Only what is in the plan is counted; all that was spent is.

    counts: how many runs came to each status
    failures: how many of those that failed or broke did so for which reason
    planned: how many runs are to happen
    skipped: how many more a balanced `max_runs` leaves out
    left_out: how many results there are of runs that are no longer in the plan
    cost_usd, tokens: what was spent on all attempts; of those under way, and of those that were cut
        off, what their journals say
    live: what is going on, as the process that runs the study last told it
    last_session: who ran the study last, when, and how that ended
    is_running: whether a process is at it
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

    @property
    def done(self) -> int:
        """How many runs have a result."""
        return sum(self.counts.values())

    @property
    def pending(self) -> int:
        """How many runs are still to come, those under way among them."""
        return max(0, self.planned - self.done)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        told = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {**told, "done": self.done, "pending": self.pending}


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a run that is not its result: broken and tried again, cancelled, set aside.

    told: what else is known of it (`fairtrial.study.ledger.packing.Body`)
    """

    execution_index: int
    attempt: int
    session: int
    status: RunStatus
    failure_kind: FailureKind | None
    cost_usd: float
    tokens: int
    latency_s: float
    told: Mapping[str, Any]
    stdout: str
    stderr: str


def add_up(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How many there are of each name, without those of which there are none."""
    sums: Counter[str] = Counter()
    for name, number in pairs:
        sums[str(name)] += number
    return {name: sums[name] for name in sorted(sums) if sums[name]}


def spell_cost(cost_usd: float) -> str:
    """`$12.30`; where that would say nothing, two digits that do: `$0.0028`."""
    if cost_usd >= 0.1:
        return f"${cost_usd:,.2f}"
    return f"${float(f'{cost_usd:.2g}'):.12f}".rstrip("0").rstrip(".")
