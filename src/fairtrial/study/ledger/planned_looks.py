"""Planned looks that were made: what each of them saw and decided, as a fact of the ledger.

A look is stored before anything follows from it, and never made again. So a study that was killed
and resumed stops at the same look as one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.run_plan import RunCell, RunPlan
from fairtrial.study.ledger.writer import Ledger

PLANNED_LOOKS_FACT = "planned looks"
CONTINUES = "continues"
FUTILE = "futile"
LookClaimKey = tuple[str | None, str, str, tuple[str, ...], tuple[str, ...]]
"""Plan, hypothesis, outcome, variables and agents of a claim."""


@dataclass(frozen=True, slots=True)
class ClaimLook:
    """The test of one claim at a planned look.

    analysis_plan_id, hypothesis_id, outcome, variables, agents: the claim
    decision: `continues`, `futile`, or the verdict
    why: the reason of the decision
    estimate: the estimated difference
    interval: its repeated confidence interval, which holds at all looks simultaneously
    p: the p value
    level: the level that p is compared with at this look
    chance: the chance that the last look shows the claim, if it is as true as it looks or as the
        smallest effect of interest; None if it isn't computed
    """

    analysis_plan_id: str | None
    hypothesis_id: str
    outcome: str
    variables: tuple[str, ...]
    agents: tuple[str, ...]
    decision: str
    why: str = ""
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    level: float | None = None
    chance: float | None = None

    @property
    def key(self) -> LookClaimKey:
        """What identifies the claim."""
        plan, claim = self.analysis_plan_id, self.hypothesis_id
        return plan, claim, self.outcome, self.variables, self.agents

    @property
    def is_decided(self) -> bool:
        """Whether the claim needs no further runs."""
        return self.decision != CONTINUES


@dataclass(frozen=True, slots=True)
class PlannedLook:
    """A planned look that was made.

    number: its number, from 1
    units: how many problems or replicates it saw
    runs: how many runs had a result by then
    at: when it was made
    claims: the tests of the claims that were undecided before
    needed: the conditions and agents that undecided claims still need; None for all
    skipped: how many runs are no longer needed since this look
    """

    number: int
    units: int
    runs: int
    at: str
    claims: tuple[ClaimLook, ...]
    needed: tuple[RunCell, ...] | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class LookLog:
    """The planned looks of a study that were made.

    signature: a hash of the schedule that they belong to
    looks: the looks, the first one first
    is_void: whether the plan was changed after a look, so that no look counts
    """

    signature: str = ""
    looks: tuple[PlannedLook, ...] = ()
    is_void: bool = False

    @property
    def skipped(self) -> int:
        """How many runs are not needed, because looks decided."""
        return 0 if self.is_void else sum(look.skipped for look in self.looks)

    def last_tests(self) -> dict[LookClaimKey, tuple[int, ClaimLook]]:
        """Return the last test of each claim, with the number of its look."""
        return {claim.key: (look.number, claim) for look in self.looks for claim in look.claims}

    def apply(self, plan: RunPlan) -> None:
        """Have a plan skip the runs that are not needed any more."""
        if self.looks and not self.is_void:
            last = self.looks[-1]
            plan.leave_out(last.number, None if last.needed is None else {*last.needed})


def parse_look_log(text: str | None) -> LookLog:
    """Return the looks that a fact of a ledger holds; raises ValueError, TypeError, KeyError."""
    if text is None:
        return LookLog()
    data = json.loads(text)
    return LookLog(data["signature"], tuple(map(_read_look, data["looks"])), data["is_void"])


def _read_look(data: Mapping[str, Any]) -> PlannedLook:
    claims = tuple(_read_claim(claim) for claim in data["claims"])
    needed = data["needed"]
    cells = None if needed is None else tuple((condition, agent) for condition, agent in needed)
    return PlannedLook(**{**data, "claims": claims, "needed": cells})


def _read_claim(data: Mapping[str, Any]) -> ClaimLook:
    interval = None if data["interval"] is None else tuple(data["interval"])
    names = {name: tuple(data[name]) for name in ("variables", "agents")}
    return ClaimLook(**{**data, **names, "interval": interval})


def store_look_log(ledger: Ledger, log: LookLog) -> None:
    """Store the looks; they are on disk when this returns."""
    with ledger.writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO facts VALUES (?,?)",
            (PLANNED_LOOKS_FACT, json.dumps(dump_record(log))),
        )


def void_changed_looks(ledger: Ledger, plan: RunPlan) -> LookLog:
    """Return the looks of a ledger; void if they belong to another schedule than the plan's."""
    log = parse_look_log(ledger.fact(PLANNED_LOOKS_FACT))
    if not log.looks or log.is_void:
        return log
    schedule = plan.schedule
    if schedule is None or schedule.signature(plan.study, plan.conditions) != log.signature:
        log = replace(log, is_void=True)
        store_look_log(ledger, log)
    return log
