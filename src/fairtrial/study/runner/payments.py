"""What runs pay, however they end: counted by what their journals say.

An attempt that comes to its end tells what it took. One that dies, is stopped or is cut off with
the whole study doesn't; but what it put into its journal as paid for is on disk.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from fairtrial.study.ledger.journal import Journals, untold_payments
from fairtrial.study.ledger.journal_entries import add_up_paid
from fairtrial.study.ledger.packing import pack, unpack
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.expenses import NO_EXPENSE, Expense
from fairtrial.study.model.runs import FailureKind, Finished, Outcome, RunSpec, RunStatus

CUT_OFF = "the study was cut off while this was under way"
Run = tuple[str, int]
"""A run's id and seed, by which its journal is found."""


class Books:
    """The journals of a study's runs, and what attempts under way have paid for."""

    def __init__(self, journals: Journals) -> None:
        self._journals = journals
        self._under_way: dict[Run, Expense] = {}

    @property
    def under_way(self) -> Expense:
        """What was paid for by attempts that have not come to an end."""
        total = NO_EXPENSE
        for paid in self._under_way.values():
            total = total.plus(paid)
        return total

    def add(self, spec: RunSpec, attempt: int, data: bytes) -> None:
        """Add an entry to a run's journal; it is on disk when this returns."""
        self._journals.add(spec, attempt, data)
        paid = add_up_paid([data])
        if any(paid):
            run = spec.run_id, spec.seed
            self._under_way[run] = self._under_way.get(run, NO_EXPENSE).plus(paid)

    def close(self, spec: RunSpec, outcome: Outcome) -> Outcome:
        """The outcome of an attempt, with what it has paid for if nobody lived to tell that."""
        now = self._under_way.pop((spec.run_id, spec.seed), NO_EXPENSE)
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
    """Put attempts that were cut off with the whole study among the others, with what they paid.

    Before the plan is laid down again: they belong to the one that is there.
    """
    untold: dict[Run, dict[int, Expense]] = {}
    for run_id, seed, attempt, paid in untold_payments(ledger.connection, ledger.path):
        untold.setdefault((run_id, seed), {})[attempt] = paid
    if not untold:
        return
    reader = LedgerReader(ledger.connection, ledger.path)
    session = max(reader.sessions, default=0)
    for turn, spec in _find_turns(reader, untold):
        known = {each.attempt for each in reader.attempts(turn)}
        for attempt, paid in untold[spec.run_id, spec.seed].items():
            if attempt in known:  # by a version that didn't mark its entries
                continue
            body = {"error_info": CUT_OFF, "metrics": paid._asdict()}
            how = RunStatus.PENDING, FailureKind.CANCELLED
            outcome = Outcome(*how, paid.cost_usd, paid.tokens, 0.0, pack(body))
            ledger.add_attempt(Finished(turn, attempt, outcome), spec, session)
    ledger.commit()


def _find_turns(reader: LedgerReader, wanted: Container[Run]) -> Iterator[tuple[int, RunSpec]]:
    """The turns of the runs that are wanted, as far as they are in the plan."""
    for place, spec in enumerate(reader.plan.specs()):
        if (spec.run_id, spec.seed) in wanted:
            yield reader.turns[place], spec
