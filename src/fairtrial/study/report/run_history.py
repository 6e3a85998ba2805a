"""The history of a study's runs from its ledger: repeated and rescored runs, commits, versions.

A report discloses it, because the numbers don't show it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairtrial.study.ledger.amendments import (
    LockedCodeChange,
    StudyVersion,
    count_known_results,
    read_code_changes,
)
from fairtrial.study.ledger.claim_changes import describe_claim_changes
from fairtrial.study.ledger.claim_history import ClaimHistory, read_claim_history
from fairtrial.study.ledger.earlier_folders import find_earlier_folders
from fairtrial.study.ledger.interim_looks import InterimLook, read_interim_looks
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.ledger.study_lock import StudyLock, read_lock
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

_REPEATED = (
    "SELECT results.status, count(DISTINCT turn) FROM attempts JOIN results USING (turn) "
    "WHERE attempts.status = ? GROUP BY results.status"
)
_RESCORED = "SELECT evaluator, count(*) FROM scores GROUP BY evaluator ORDER BY evaluator"
_SESSIONS = "SELECT session, count(*) FROM results GROUP BY session ORDER BY session"


@dataclass(frozen=True, slots=True)
class RunHistory:
    """How the runs of a study came about.

    repeated: number of failed runs that were run again on request, by their final status
    rescored: number of rescored runs, by evaluator
    commits: number of runs at each commit of the study's folder
    versions: the versions of each package that changed between runs
    ended_how: how the last session ended; None if it is running or was killed
    left_out: number of results of runs that are no longer in the plan
    looks: interim looks at verdicts before all runs were done
    lock: the lock of the study; None if none was recorded
    code_changes: changes of code since the lock
    """

    repeated: Mapping[str, int] = field(default_factory=dict)
    rescored: Mapping[str, int] = field(default_factory=dict)
    commits: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ended_how: str | None = None
    left_out: int = 0
    looks: tuple[InterimLook, ...] = ()
    lock: StudyLock | None = None
    code_changes: tuple[LockedCodeChange, ...] = ()


def read_history(reader: LedgerReader) -> RunHistory:
    """Read the history of the runs from a ledger."""
    with explained(reader.path):
        repeated = dict(reader.connection.execute(_REPEATED, (RunStatus.FAILED.value,)).fetchall())
        rescored = dict(reader.connection.execute(_RESCORED).fetchall())
        runs = dict(reader.connection.execute(_SESSIONS).fetchall())
    sessions = reader.sessions
    provenances = {key: _parse_provenance(sessions[key]) for key in runs if key in sessions}
    commits: Counter[str] = Counter()
    versions: dict[str, dict[str, None]] = {}
    for session, provenance in provenances.items():
        if provenance.get("git_sha"):
            commits[_describe_commit(provenance)] += runs[session]
        packages = {
            "python": provenance.get("python_version"),
            **(provenance.get("package_versions") or {}),
        }
        for name, version in packages.items():
            versions.setdefault(str(name), {})[str(version)] = None
    last_session = next(reversed(sessions.values()), {})
    return RunHistory(
        repeated=repeated,
        rescored=rescored,
        commits=commits,
        versions={name: tuple(used) for name, used in versions.items() if len(used) > 1},
        ended_how=last_session.get("ended_how"),
        left_out=reader.left_out,
        looks=() if reader.path is None else read_interim_looks(reader.path.parent),
        lock=read_lock(reader),
        code_changes=read_code_changes(reader),
    )


def _parse_provenance(session: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        provenance = json.loads(session.get("provenance") or "{}")
    except ValueError:
        return {}
    return provenance if isinstance(provenance, dict) else {}


def _describe_commit(provenance: Mapping[str, Any]) -> str:
    suffix = " with changes" if provenance.get("git_dirty") else ""
    return f"{str(provenance['git_sha'])[:12]}{suffix}"


def record_for(reader: LedgerReader, study: Study) -> ClaimHistory:
    """Return how a study's hypotheses were registered and changed.

    study: the study to report; if it differs from the ledger's, that is a further change
    """
    record = _add_found_folders(reader, read_claim_history(reader))
    if study == reader.study or not describe_claim_changes(reader.study, study):
        return record
    known = count_known_results(reader)
    if record.first is None:  # the ledger's present study is the earliest version known
        record = replace(record, first=StudyVersion(reader.study, known, None))
    return replace(record, later=(*record.later, StudyVersion(study, known, None)))


def _add_found_folders(reader: LedgerReader, record: ClaimHistory) -> ClaimHistory:
    """Return a history with earlier results of the same study that were not found at its start."""
    lock = read_lock(reader)
    if lock is None or reader.path is None:
        return record
    folders = find_earlier_folders(reader.path.parent, reader.plan, lock.at)
    recorded = {folder.started_at for folder in record.folders}  # a folder may have been moved
    new = [folder for folder in folders if folder.started_at not in recorded]
    return replace(record, folders=(*record.folders, *new))
