"""What runs pay, however they end: counted by what their journals say.

An attempt that comes to its end tells what it took. One that dies, is stopped or is cut off with
the whole study doesn't; but what it put into its journal as paid for is on disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.agents.journal import add_up_paid
from fairtrial.agents.payments import NOTHING, Paid
from fairtrial.ledger.journal import Journals, attempts_without_result, read_attempt
from fairtrial.ledger.packing import pack, unpack
from fairtrial.ledger.reading import LedgerReader
from fairtrial.ledger.store import Ledger
from fairtrial.model.runs import FailureKind, Finished, Outcome, RunSpec, RunStatus

CUT_OFF = "the study was cut off while this was under way"
Run = tuple[str, int]
"""A run's id and seed, by which its journal is found."""


class Books:
    """The journals of a study's runs, and what attempts under way have paid for."""

    def __init__(self, journals: Journals) -> None:
        self._journals = journals
        self._under_way: dict[Run, Paid] = {}

    @property
    def under_way(self) -> Paid:
        """What was paid for by attempts that have not come to an end."""
        total = NOTHING
        for paid in self._under_way.values():
            total = total.plus(paid)
        return total

    def add(self, spec: RunSpec, attempt: int, data: bytes) -> None:
        """Add an entry to a run's journal; it is on disk when this returns."""
        self._journals.add(spec, attempt, data)
        paid = add_up_paid([data])
        if any(paid):
            run = spec.run_id, spec.seed
            self._under_way[run] = self._under_way.get(run, NOTHING).plus(paid)

    def close(self, spec: RunSpec, outcome: Outcome) -> Outcome:
        """The outcome of an attempt, with what it has paid for if nobody lived to tell that."""
        now = self._under_way.pop((spec.run_id, spec.seed), NOTHING)
        if outcome.status is RunStatus.SUCCESS:
            return outcome
        total = add_up_paid(self._journals.of(spec))
        if not any(total):
            return outcome
        body = unpack(outcome.body)
        if "cost_usd" in body["metrics"]:  # its worker has told
            return outcome
        body["metrics"] |= total._asdict()
        return outcome._replace(cost_usd=now.cost_usd, tokens=now.tokens, body=pack(body))


def note_cut_off(ledger: Ledger) -> None:
    """Put attempts that were cut off with the whole study among the others, if they have paid.

    Before the plan is laid down again: they belong to the one that is there.
    """
    reader = LedgerReader(ledger.connection, ledger.path)
    if ledger.fact("print") is None:
        return
    untold = set(attempts_without_result(ledger.connection, ledger.path))
    sessions = reader.sessions if untold else {}
    for turn, run, attempt in _find_turns(reader, untold):
        if any(known.attempt == attempt for known in reader.attempts(turn)):
            continue
        paid = add_up_paid(read_attempt(ledger.connection, ledger.path, *run, attempt))
        if any(paid):
            body = {"error_info": CUT_OFF, "metrics": paid._asdict()}
            how = RunStatus.PENDING, FailureKind.CANCELLED
            outcome = Outcome(*how, paid.cost_usd, paid.tokens, 0.0, pack(body))
            ledger.add_attempt(Finished(turn, attempt, outcome), max(sessions, default=0))
    ledger.commit()


def _find_turns(
    reader: LedgerReader, wanted: set[tuple[str, int, int]]
) -> Iterator[tuple[int, Run, int]]:
    """The turns of attempts whose runs are in the plan, with run and attempt."""
    if not wanted:
        return
    attempts: dict[Run, list[int]] = {}
    for run_id, seed, attempt in wanted:
        attempts.setdefault((run_id, seed), []).append(attempt)
    for place, spec in enumerate(reader.plan.specs()):
        run = spec.run_id, spec.seed
        for attempt in sorted(attempts.get(run, ())):
            yield reader.turns[place], run, attempt
