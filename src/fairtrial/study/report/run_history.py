"""How the runs of a study came about, as its ledger tells: what was run again, judged again, when.

Figures can't show it, and a reader should know.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairtrial.study.ledger.amendments import (
    ClaimHistory,
    StudyVersion,
    count_known_results,
    read_claim_history,
)
from fairtrial.study.ledger.claim_changes import describe_claim_changes
from fairtrial.study.ledger.interim_looks import InterimLook, read_interim_looks
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

_AGAIN = (
    "SELECT results.status, count(DISTINCT turn) FROM attempts JOIN results USING (turn) "
    "WHERE attempts.status = ? GROUP BY results.status"
)
_RESCORED = "SELECT evaluator, count(*) FROM scores GROUP BY evaluator ORDER BY evaluator"
_SESSIONS = "SELECT session, count(*) FROM results GROUP BY session ORDER BY session"


@dataclass(frozen=True, slots=True)
class History:
    """How the runs came about.

    again: runs that had failed and were run again on request, by what they came to
    rescored: how many runs were judged anew, by evaluator
    commits: how many runs were made at which commit of the study's folder
    versions: the versions of each package that runs were made with, where there were several
    left_out: how many results there are of runs that are no longer in the plan
    ended_how: how the last session ended; None if it goes on, or was cut off
    looks: when somebody was shown verdicts before all results were there
    """

    again: Mapping[str, int] = field(default_factory=dict)
    rescored: Mapping[str, int] = field(default_factory=dict)
    commits: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ended_how: str | None = None
    left_out: int = 0
    looks: tuple[InterimLook, ...] = ()


def read_history(reader: LedgerReader) -> History:
    """What a ledger tells of how its results came about."""
    with explained(reader.path):
        again = dict(reader.connection.execute(_AGAIN, (RunStatus.FAILED.value,)).fetchall())
        rescored = dict(reader.connection.execute(_RESCORED).fetchall())
        runs = dict(reader.connection.execute(_SESSIONS).fetchall())
    sessions = reader.sessions
    told = {key: _provenance(sessions[key]) for key in runs if key in sessions}
    commits: Counter[str] = Counter()
    versions: dict[str, dict[str, None]] = {}
    for session, facts in told.items():
        if facts.get("git_sha"):
            commits[_commit(facts)] += runs[session]
        packages = {"python": facts.get("python_version"), **(facts.get("package_versions") or {})}
        for name, version in packages.items():
            versions.setdefault(str(name), {})[str(version)] = None
    last = next(reversed(sessions.values()), {})
    several = {name: tuple(found) for name, found in versions.items() if len(found) > 1}
    ended_how = last.get("ended_how")
    looks = () if reader.path is None else read_interim_looks(reader.path.parent)
    return History(again, rescored, commits, several, ended_how, reader.left_out, looks)


def _provenance(session: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        facts = json.loads(session.get("provenance") or "{}")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _commit(facts: Mapping[str, Any]) -> str:
    return f"{str(facts['git_sha'])[:12]}{' with changes' if facts.get('git_dirty') else ''}"


def record_for(reader: LedgerReader, study: Study) -> ClaimHistory:
    """How the claims of a study came to be; one that is not the ledger's is a change, too."""
    record = read_claim_history(reader)
    if study == reader.study or not describe_claim_changes(reader.study, study):
        return record
    known = count_known_results(reader)
    if record.first is None:  # at least what the ledger holds now can be told from it
        record = ClaimHistory(StudyVersion(reader.study, known, None))
    return replace(record, later=(*record.later, StudyVersion(study, known, None)))
