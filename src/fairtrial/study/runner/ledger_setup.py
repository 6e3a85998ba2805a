"""Store a plan in the ledger, for a new study or a resumed one, and select the runs to do."""

from __future__ import annotations

import heapq
import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fairtrial.core import LedgerError
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.amendments import count_known_results
from fairtrial.study.ledger.claim_changes import describe_claim_changes
from fairtrial.study.ledger.earlier_folders import (
    find_earlier_folders,
    find_lost_ledger,
    folder_facts,
)
from fairtrial.study.ledger.fingerprint import differences, study_fingerprint
from fairtrial.study.ledger.plan_changes import reconcile_order
from fairtrial.study.ledger.reader import PROBLEM_NAMES_FACT, LedgerReader
from fairtrial.study.ledger.recording import (
    LockComparison,
    amendment_facts,
    code_change_facts,
    first_version_facts,
)
from fairtrial.study.ledger.schema import REMOVED
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.ledger.study_lock import describe_lock_changes, read_lock
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.runner.locking import make_lock
from fairtrial.study.runner.payment_tracker import record_interrupted_attempts
from fairtrial.study.runner.pilot import matcher
from fairtrial.study.runner.run_settings import RunSettings

MAX_DIFFERENCES = 20
PROBLEM_FINGERPRINTS = "code problems"
"""The key of what problems add to the fingerprint; ledgers contain it, so it must not change."""


def store_plan(
    ledger: Ledger,
    plan: RunPlan,
    settings: RunSettings,
    problem_fingerprints: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> array[int]:
    """Store the plan in the ledger; return the plan index for each execution index.

    Raises `LedgerError` for a ledger with results unless the study is to be resumed, and for one of
    a different study unless the changes are accepted. Broken runs have no result: while there are
    no others, a study can be mended and run again. Changes after results were known (of claims, of
    replicates, and accepted ones) are recorded, and the first version of the claims is kept. A
    study without results is locked, unless it is locked already.

    problem_fingerprints: what results depend on beyond the study file, by problem
    """
    study = plan.study
    reader = LedgerReader(ledger.connection, ledger.path)
    facts = {
        "study": json.dumps(study.to_dict()),
        "folder": None if study.folder is None else str(study.folder),
        "print": json.dumps(
            {**study_fingerprint(study, plan.conditions), **_problem_part(problem_fingerprints)}
        ),
    }
    if study.dataset is not None:
        facts[PROBLEM_NAMES_FACT] = json.dumps(study.dataset.dump_names())
    has_plan = ledger.fact("print") is not None
    accepted: list[str] = []
    if has_plan and _has_any(ledger, "results"):
        accepted = _refuse_changes(reader, plan, settings, facts["print"] or "")
    if has_plan:  # only now: a refused start must not change the ledger
        record_interrupted_attempts(ledger)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    old_lock = read_lock(reader)
    lock = old_lock, make_lock(plan, problem_fingerprints, "run", with_commit=old_lock is None)
    # Cancelled attempts and events keep their execution indexes even without a result.
    has_begun = has_plan and _has_any(ledger, "results", "attempts", "events")
    known = count_known_results(reader) if has_begun else 0
    code_changes = code_change_facts(reader, lock, now) if known else {}
    if has_begun and all(ledger.fact(name) == facts[name] for name in facts):
        ledger.write_facts(code_changes)
        return reader.order
    order = reconcile_order(reader, plan) if has_begun else plan.order()
    facts |= (
        amendment_facts(reader, plan, now, lock, accepted)
        if has_begun
        else first_version_facts(study, now, lock)
    )
    if not known:
        facts |= _earlier_folder_facts(plan, lock)
    changes = describe_claim_changes(reader.study, study) if known else []
    ledger.write_plan({**facts, **code_changes}, plan.conditions, order)
    _tell_changes(settings, lock, changes, known)
    return order


def _earlier_folder_facts(plan: RunPlan, lock: LockComparison) -> dict[str, str]:
    """Return the facts on earlier results of the same study, found before the first run."""
    folder = Path(plan.study.output_dir or ".").absolute()
    old, new = lock
    laid_down_at = old.at if old is not None and old.is_explicit else new.at
    earlier = find_earlier_folders(folder, plan, laid_down_at)
    return folder_facts((*find_lost_ledger(folder, plan), *earlier))


def _tell_changes(
    settings: RunSettings, lock: LockComparison, claim_changes: list[str], known: int
) -> None:
    """Warn of changes that the report will list."""
    if claim_changes:
        results = f"{known:,} result{'s were' if known > 1 else ' was'} known"
        shown = "; ".join(_shorten(claim_changes))
        settings.notify(f"claims changed after {results}, which the report will say: {shown}")
    old, new = lock
    if not known and old is not None and old.is_explicit and old.digest != new.digest:
        shown = "; ".join(_shorten(describe_lock_changes(old, new)))
        settings.notify(
            f"this is not the study that was locked {old.at}, which the report will say: {shown}"
        )


def _problem_part(fingerprints: Mapping[str, Any]) -> dict[str, Any]:
    return {PROBLEM_FINGERPRINTS: dict(fingerprints)} if fingerprints else {}


def _has_any(ledger: Ledger, *tables: str) -> bool:
    exists = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
    return bool(_query_value(ledger, f"SELECT {exists}"))


def _query_value(ledger: Ledger, query: str) -> Any:
    with explained(ledger.path):
        return ledger.connection.execute(query).fetchone()[0]


def _refuse_changes(
    reader: LedgerReader, plan: RunPlan, settings: RunSettings, fingerprint: str
) -> list[str]:
    """Raise `LedgerError` if this study can't be resumed; returns the accepted changes."""
    folder = reader.path.parent if reader.path is not None else None
    old, new = json.loads(reader.fact("print")), json.loads(fingerprint)
    if PROBLEM_FINGERPRINTS not in old:  # an old ledger
        new.pop(PROBLEM_FINGERPRINTS, None)
    changes = differences(old, new)
    if old["study_id"] == new["study_id"] and not count_known_results(reader):
        if changes or not settings.resume:
            shown = f", with {'; '.join(_shorten(changes))}" if changes else ""
            settings.notify(f"no run has a result yet, all broke: they are run again{shown}")
        return []
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
            f"{folder} holds results of this study already; continue with --resume (in Python: "
            "resume=True), or choose another output directory (--output; output_dir)"
        )
    return _shorten(changes)


def _shorten(changes: list[str]) -> list[str]:
    more = len(changes) - MAX_DIFFERENCES
    return [*changes[:MAX_DIFFERENCES], *([f"and {more:,} more"] if more > 0 else [])]


def select_runs(
    ledger: Ledger, plan: RunPlan, order: array[int], settings: RunSettings
) -> Iterator[int]:
    """Return the execution indexes of the runs of this session: pending ones and reruns.

    Broken runs and, on request, failed ones are run again. They keep their result until there is a
    new one, so that a session that is stopped early loses nothing.
    """
    matches = matcher(plan, order, settings.only)
    ledger.reruns = {
        index: status for index, status in _find_reruns(ledger, settings) if matches(index)
    }
    pending = iter(()) if settings.only_reruns else pending_indexes(ledger, plan, order)
    indexes = heapq.merge(sorted(ledger.reruns), filter(matches, pending))
    if settings.limit is None:
        return indexes
    selected = list(itertools.islice(indexes, settings.limit))
    ledger.reruns = {index: ledger.reruns[index] for index in selected if index in ledger.reruns}
    return iter(selected)


def _find_reruns(ledger: Ledger, settings: RunSettings) -> Iterator[tuple[int, str]]:
    reader = LedgerReader(ledger.connection, ledger.path)
    statuses = [RunStatus.BROKEN]
    if settings.retry == "failed":
        statuses.append(RunStatus.FAILED)
    for status in statuses:
        yield from ((index, status.value) for index in reader.indexes_with_status(status))


def pending_indexes(ledger: Ledger, plan: RunPlan, order: array[int]) -> Iterator[int]:
    """Yield the execution indexes of runs without a result.

    Reads the finished ones in batches: memory stays flat, and no query stays open, which would keep
    the write-ahead log from being checkpointed.
    """
    done = LedgerReader(ledger.connection, ledger.path).done_indexes()
    next_done = next(done, None)
    for index, plan_index in enumerate(order):
        while next_done is not None and next_done < index:
            next_done = next(done, None)
        if index != next_done and plan_index != REMOVED and not plan.is_skipped(plan_index):
            yield index


def make_attempt_counter(ledger: Ledger) -> Callable[[int], int]:
    """Return a function that gives the number of the next attempt at a run.

    Only runs up to the highest index of earlier sessions can have attempts; those that were killed
    have left only events.
    """
    tables = ("results", "attempts", "events")  # their column `turn` is the execution index
    query = " UNION ALL ".join(f"SELECT max(turn) AS turn FROM {name}" for name in tables)
    highest = _query_value(ledger, f"SELECT max(turn) FROM ({query})")
    if highest is None:
        return lambda index: 1
    reader = LedgerReader(ledger.connection, ledger.path)
    return lambda index: 1 if index > highest else reader.last_attempt(index) + 1
