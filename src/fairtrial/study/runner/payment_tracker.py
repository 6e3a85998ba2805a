"""Account for the costs of runs, however they end, by their journals.

An attempt that ends reports its costs. One that dies, is stopped or is interrupted with the whole
study doesn't; but the costs of its journal entries are on disk.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from fairtrial.study.ledger.journal_entries import total_paid
from fairtrial.study.ledger.journal_store import JournalStore, unreported_payments
from fairtrial.study.ledger.packing import pack, unpack
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.expenses import NO_EXPENSE, Expense
from fairtrial.study.model.runs import FailureKind, Finished, Outcome, RunSpec, RunStatus

INTERRUPTED = "the study was cut off while this was under way"
RunKey = tuple[str, int]
"""A run's id and seed, which are the key of its journal."""


class PaymentTracker:
    """Writes journal entries and adds up the costs of attempts under way."""

    def __init__(self, journals: JournalStore) -> None:
        self._journals = journals
        self._under_way: dict[RunKey, Expense] = {}
        self._by_agent: dict[str | None, Expense] = {}

    @property
    def under_way(self) -> Expense:
        """The total costs of attempts that have not ended."""
        total = NO_EXPENSE
        for paid in self._by_agent.values():
            total = total.plus(paid)
        return total

    def of_agent(self, agent: str | None) -> Expense:
        """Return the total costs of an agent's attempts that have not ended."""
        return self._by_agent.get(agent, NO_EXPENSE)

    def add(self, *entries: tuple[RunSpec, int, bytes]) -> None:
        """Append packed entries to the journals of runs; all are on disk when this returns.

        entries: the run, the attempt and the packed entry of each
        """
        self._journals.add(entries)
        for spec, _, data in entries:
            self._count(spec, total_paid([data]))

    def _count(self, spec: RunSpec, paid: Expense) -> None:
        if any(paid):
            run = spec.run_id, spec.seed
            self._under_way[run] = self._under_way.get(run, NO_EXPENSE).plus(paid)
            agent = spec.agent_spec_ref
            self._by_agent[agent] = self._by_agent.get(agent, NO_EXPENSE).plus(paid)

    def close(self, spec: RunSpec, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt, with the costs in its journal if it reports none."""
        own = NO_EXPENSE
        if self._under_way:
            own = self._under_way.pop((spec.run_id, spec.seed), NO_EXPENSE)
            agent = spec.agent_spec_ref
            self._by_agent[agent] = self._by_agent.get(agent, NO_EXPENSE).minus(own)
            if not self._under_way:
                self._by_agent.clear()  # and with it what rounding left
        if outcome.status is RunStatus.SUCCESS:
            return outcome
        total = total_paid(self._journals.entries(spec))
        if not any(total):
            return outcome
        body = unpack(outcome.body)
        if "cost_usd" in body["metrics"]:  # reported by its worker
            return outcome
        body["metrics"] |= total._asdict()
        return outcome._replace(cost_usd=own.cost_usd, tokens=own.tokens, body=pack(body))


def record_interrupted_attempts(ledger: Ledger) -> None:
    """Store attempts that were interrupted with the whole study, with their costs.

    Call it before a new plan is stored: they belong to the old one.
    """
    unreported: dict[RunKey, dict[int, Expense]] = {}
    for run_id, seed, attempt, paid in unreported_payments(ledger.connection, ledger.path):
        unreported.setdefault((run_id, seed), {})[attempt] = paid
    if not unreported:
        return
    reader = LedgerReader(ledger.connection, ledger.path)
    session = max(reader.sessions, default=0)
    for execution_index, spec in _find_runs(reader, unreported):
        recorded = {item.attempt for item in reader.attempts(execution_index)}
        for attempt, paid in unreported[spec.run_id, spec.seed].items():
            if attempt in recorded:  # by a version that didn't mark entries as accounted for
                continue
            body = {"error_info": INTERRUPTED, "metrics": paid._asdict()}
            status = RunStatus.PENDING, FailureKind.CANCELLED
            outcome = Outcome(*status, paid.cost_usd, paid.tokens, 0.0, pack(body))
            ledger.add_attempt(Finished(execution_index, attempt, outcome), spec, session)
    ledger.commit()


def _find_runs(reader: LedgerReader, wanted: Container[RunKey]) -> Iterator[tuple[int, RunSpec]]:
    """Yield execution index and spec of the wanted runs that are in the plan."""
    for plan_index, spec in enumerate(reader.plan.specs()):
        if (spec.run_id, spec.seed) in wanted:
            yield reader.execution_indexes[plan_index], spec
