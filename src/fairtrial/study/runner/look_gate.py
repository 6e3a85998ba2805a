"""Planned looks during a session: no run of the next batch starts before the look at this one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.planned_looks import (
    LookClaimKey,
    LookLog,
    PlannedLook,
    store_look_log,
    void_changed_looks,
)
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import REMOVED
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.runs import RunResult
from fairtrial.study.report.look_levels import find_look_claims
from fairtrial.study.stopping.decisions import decide_claims
from fairtrial.study.stopping.look_events import LookFinished
from fairtrial.study.stopping.needed_runs import find_needed_cells


class LookGate:
    """Makes the planned looks of a study, each once all runs that it sees have a result."""

    def __init__(
        self,
        plan: RunPlan,
        order: array[int],
        ledger: Ledger,
        log: LookLog,
        *,
        is_ignored: bool = False,
    ) -> None:
        schedule = plan.schedule
        assert schedule is not None
        self._plan, self._order, self._ledger = plan, order, ledger
        self._reader = LedgerReader(ledger.connection, ledger.path).with_plan(plan)
        self._schedule = schedule
        self._log = replace(log, signature=schedule.signature(plan.study, plan.conditions))
        self._is_ignored = is_ignored
        last = log.last_tests()
        self._undecided: set[LookClaimKey] = {
            key
            for key in find_look_claims(plan.study, plan.conditions)
            if key not in last or not last[key][1].is_decided
        }

    @property
    def next_look(self) -> int | None:
        """The number of the next look; None if there is none to come."""
        number = len(self._log.looks) + 1
        return number if number <= self._schedule.looks and self._undecided else None

    def is_open(self, execution_index: int) -> bool:
        """Return whether a run may start before the next look."""
        number = self.next_look
        return self._is_ignored or number is None or self.get_batch(execution_index) <= number

    def get_batch(self, execution_index: int) -> int:
        """Return the number of the first look that sees a run; 0 if it left the plan."""
        plan_index = self._order[execution_index]
        return 0 if plan_index == REMOVED else self._plan.batches[plan_index]

    def sort(self, pending: Iterator[int]) -> Iterator[int]:
        """Return execution indexes by look; a changed plan may have them in another order."""
        return iter(sorted(pending, key=self.get_batch))

    def make_due_look(self) -> LookFinished | None:
        """Make the next look if all its runs have a result; None if there is none or it must wait.

        Its decisions are stored when this returns, and the plan skips the runs that they save.
        """
        number = self.next_look
        if number is None:
            return None
        done = self._find_done()
        batches, plan = self._plan.batches, self._plan
        if any(
            batch <= number and not done[index] and not plan.is_skipped(index)
            for index, batch in enumerate(batches)
        ):
            return None
        claims = decide_claims(plan, number, self._read_results(number), self._undecided)
        undecided = self._undecided - {claim.key for claim in claims if claim.is_decided}
        needed = find_needed_cells(plan.study, plan.conditions, undecided)
        before = self._count_pending(done)
        plan.leave_out(number, None if needed is None else {*needed})
        look = PlannedLook(
            number=number,
            units=self._schedule.units[number - 1],
            runs=sum(done[index] for index, batch in enumerate(batches) if batch <= number),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            claims=claims,
            needed=needed,
            skipped=before - self._count_pending(done),
        )
        log = replace(self._log, looks=(*self._log.looks, look))
        store_look_log(self._ledger, log)
        self._log, self._undecided = log, undecided
        return LookFinished(look, self._schedule.looks, self._schedule.unit, len(undecided))

    def _find_done(self) -> bytearray:
        """Return for each plan index whether its run has a result."""
        done = bytearray(len(self._plan))
        for execution_index in self._reader.done_indexes():
            plan_index = self._order[execution_index]
            if plan_index != REMOVED:
                done[plan_index] = 1
        return done

    def _count_pending(self, done: bytearray) -> int:
        return sum(
            not has_result and not self._plan.is_skipped(index)
            for index, has_result in enumerate(done)
        )

    def _read_results(self, number: int) -> Iterator[RunResult]:
        """Yield the results of the runs that a look sees, in plan order."""
        for result in self._reader.results():
            spec = result.run_spec
            assert spec is not None
            if self._schedule.batch(spec.problem_spec_ref, spec.replicate) <= number:
                yield result


def open_gate(
    ledger: Ledger, plan: RunPlan, order: array[int], *, is_pilot: bool
) -> LookGate | None:
    """Return the gate of a session; None for a study without planned looks.

    Also None if the plan was changed after a look: then all runs are done. Runs that earlier looks
    decided about are skipped by the plan from here on.

    is_pilot: whether the runs of this session were selected by an expression
    """
    log = void_changed_looks(ledger, plan)
    log.apply(plan)
    if plan.schedule is None or log.is_void:
        return None
    return LookGate(plan, order, ledger, log, is_ignored=is_pilot)
