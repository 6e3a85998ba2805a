"""The plan and the ledger brought together: a fresh start, or going on with what is there."""

from __future__ import annotations

import heapq
import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from fairtrial.core import LedgerError
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.amendments import amended, first_laid, results_known
from fairtrial.study.ledger.claim_changes import claim_changes
from fairtrial.study.ledger.fingerprint import differences, study_print
from fairtrial.study.ledger.plan_changes import carry_order
from fairtrial.study.ledger.reader import GONE, LedgerReader
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.runner.payments import note_cut_off
from fairtrial.study.runner.pilot import matcher
from fairtrial.study.runner.settings import RunSettings

MOST_DIFFERENCES = 20
PROBLEM_FINGERPRINTS = "code problems"
"""The key of what problems add to the fingerprint; ledgers hold it, so it must not change."""


def lay_plan(
    ledger: Ledger,
    plan: RunPlan,
    settings: RunSettings,
    problem_fingerprints: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> array[int]:
    """Lay the plan down in the ledger; returns the order of execution, place by turn.

    Refuses a ledger with results unless it is to be resumed, and one of a different study unless
    the changes are accepted. What was changed after results were there (claims, replicates, what
    was accepted) is noted, and the claims as they were before the first result are kept.

    problem_fingerprints: what results depend on beyond the study file, by problem
    """
    study = plan.study
    reader = LedgerReader(ledger.connection, ledger.path)
    facts = {
        "study": json.dumps(study.to_dict()),
        "folder": None if study.folder is None else str(study.folder),
        "print": json.dumps(
            {**study_print(study, plan.conditions), **_problem_print(problem_fingerprints)}
        ),
    }
    has_plan = ledger.fact("print") is not None
    accepted: list[str] = []
    if has_plan and _has_any(ledger, "results"):
        accepted = _refuse(ledger, plan, settings, facts["print"] or "")
    if has_plan:  # and nobody is refused any more
        note_cut_off(ledger)
    # Attempts that were cancelled, and events, keep their turns though there is no result yet.
    has_begun = has_plan and _has_any(ledger, "results", "attempts", "events")
    if has_begun and all(ledger.fact(name) == facts[name] for name in facts):
        return reader.order
    order = carry_order(reader, plan) if has_begun else plan.order()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    facts |= amended(reader, study, now, accepted) if has_begun else first_laid(study, now)
    known = results_known(reader) if has_begun else 0
    changes = claim_changes(reader.study, study) if known else []
    ledger.write_plan(facts, plan.conditions, order)
    if changes:
        results = f"{known:,} result{'s were' if known > 1 else ' was'} known"
        shown = "; ".join(_shorten(changes))
        settings.tell(f"claims changed after {results}, which the report will tell: {shown}")
    return order


def _problem_print(fingerprints: Mapping[str, Any]) -> dict[str, Any]:
    return {PROBLEM_FINGERPRINTS: dict(fingerprints)} if fingerprints else {}


def _has_any(ledger: Ledger, *tables: str) -> bool:
    found = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
    return bool(_ask(ledger, f"SELECT {found}"))


def _ask(ledger: Ledger, query: str) -> Any:
    with explained(ledger.path):
        return ledger.connection.execute(query).fetchone()[0]


def _refuse(ledger: Ledger, plan: RunPlan, settings: RunSettings, print_: str) -> list[str]:
    """Refuse what is not to be gone on with; returns the changes that were accepted."""
    folder = ledger.path.parent if ledger.path is not None else None
    old, new = json.loads(ledger.fact("print")), json.loads(print_)
    if PROBLEM_FINGERPRINTS not in old:  # nobody wrote it down then
        new.pop(PROBLEM_FINGERPRINTS, None)
    changes = differences(old, new)
    if changes and not (settings.resume and settings.accept_changes):
        raise LedgerError(
            f"{folder} holds results of a different study:\n  "
            + "\n  ".join(_shorten(changes))
            + "\nchoose another --output, or keep the results whose runs are still in the plan, by "
            "`fairtrial run --resume --accept-changes` or `fairtrial resume --accept-changes` (in "
            "Python: resume=True, accept_changes=True)"
        )
    if not settings.resume:
        raise LedgerError(
            f"{folder} holds results of this study already; go on with --resume (in Python: "
            "resume=True), or choose another output directory (--output; output_dir)"
        )
    return _shorten(changes)


def _shorten(changes: list[str]) -> list[str]:
    more = len(changes) - MOST_DIFFERENCES
    return [*changes[:MOST_DIFFERENCES], *([f"and {more:,} more"] if more > 0 else [])]


def choose_turns(
    ledger: Ledger, plan: RunPlan, order: array[int], settings: RunSettings
) -> Iterator[int]:
    """The turns that this session is about: what isn't done yet, and what is run again.

    What broke and, where that is asked for, what failed is run again. It keeps its result until
    there is a new one: a session that comes to nothing takes nothing away.
    """
    matches = matcher(plan, order, settings.only)
    ledger.again = {
        turn: status for turn, status in _results_again(ledger, settings) if matches(turn)
    }
    rest = iter(()) if settings.only_again else pending_turns(ledger, plan, order)
    turns = heapq.merge(sorted(ledger.again), filter(matches, rest))
    if settings.limit is None:
        return turns
    chosen = list(itertools.islice(turns, settings.limit))
    ledger.again = {turn: ledger.again[turn] for turn in chosen if turn in ledger.again}
    return iter(chosen)


def _results_again(ledger: Ledger, settings: RunSettings) -> Iterator[tuple[int, str]]:
    reader = LedgerReader(ledger.connection, ledger.path)
    statuses = [RunStatus.BROKEN]
    if settings.retry == "failed":
        statuses.append(RunStatus.FAILED)
    for status in statuses:
        yield from ((turn, status.value) for turn in reader.turns_with(status))


def pending_turns(ledger: Ledger, plan: RunPlan, order: array[int]) -> Iterator[int]:
    """The turns that are still to come.

    Reads what is done as it goes, in pieces: memory stays flat, and no query stays open, which
    would keep the write-ahead log from being folded back.
    """
    done = LedgerReader(ledger.connection, ledger.path).done_turns()
    next_done = next(done, None)
    for turn in range(len(order)):
        while next_done is not None and next_done < turn:
            next_done = next(done, None)
        if turn != next_done and order[turn] != GONE and not plan.is_skipped(order[turn]):
            yield turn


def attempt_counter(ledger: Ledger) -> Callable[[int], int]:
    """The number of a turn's next attempt.

    Only turns that an earlier session came to can have had one, and those that were cut off by a
    kill have left nothing but events.
    """
    tables = ("results", "attempts", "events")
    query = " UNION ALL ".join(f"SELECT max(turn) AS turn FROM {name}" for name in tables)
    highest = _ask(ledger, f"SELECT max(turn) FROM ({query})")
    if highest is None:
        return lambda turn: 1
    reader = LedgerReader(ledger.connection, ledger.path)
    return lambda turn: 1 if turn > highest else reader.last_attempt(turn) + 1
