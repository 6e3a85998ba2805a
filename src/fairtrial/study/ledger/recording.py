"""Record the first version of a study and its later changes, as facts of a ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.ledger.amendments import (
    AMENDMENTS_FACT,
    CHANGES_FACT,
    CODE_CHANGES_FACT,
    FIRST_CONDITIONS_FACT,
    FIRST_STUDY_FACT,
    Amendment,
    LockedCodeChange,
    StudyVersion,
    count_known_results,
    read_amendments,
    read_code_changes,
    read_versions,
)
from fairtrial.study.ledger.claim_changes import describe_claim_changes
from fairtrial.study.ledger.fingerprint import differences, digest_conditions
from fairtrial.study.ledger.ledger_rows import pack_condition
from fairtrial.study.ledger.packing import pack
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.study_lock import (
    ANALYSIS_FIELDS,
    StudyLock,
    describe_code_changes,
    describe_lock_changes,
    lock_facts,
)
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

LIMIT_FIELDS = ("max_runs", "max_runs_policy", "timeout_s")
"""The fields of a budget that decide which runs there are and when one has failed."""
LockComparison = tuple[StudyLock | None, StudyLock]
"""The lock in a ledger, None if there is none; and the lock that the present study would get."""


def first_version_facts(study: Study, at: str, lock: LockComparison) -> dict[str, str]:
    """Return the facts to store with a study that has no results yet.

    A study that was locked on request is the first version, whatever is run in its place.
    """
    old, new = lock
    if old is None or not old.is_explicit:
        return {FIRST_STUDY_FACT: _dump_version(StudyVersion(study, 0, at)), **lock_facts(new)}
    locked = Study.from_dict(old.study)
    if locked.dataset is not None and locked.dataset == study.dataset:
        locked.dataset.use_stored(study.dataset.dump_names())
    first = StudyVersion(locked, 0, old.at)
    code = describe_code_changes(old, new)
    changes = [
        line
        for line in describe_lock_changes(old, new)
        if line not in code and not line.startswith(ANALYSIS_FIELDS)
    ]
    later = []
    if changes or describe_claim_changes(first.study, study):
        later = [StudyVersion(study, 0, at, tuple(changes))]
    return {
        FIRST_STUDY_FACT: _dump_version(first),
        CHANGES_FACT: _dump_versions(later),
        CODE_CHANGES_FACT: _dump_code_changes(
            [LockedCodeChange(at, 0, tuple(code), digest=new.parts["code"])] if code else []
        ),
    }


def amendment_facts(
    reader: LedgerReader, plan: RunPlan, at: str, lock: LockComparison, accepted: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the facts to store with a study that replaces the one in the ledger.

    lock: the lock in the ledger, and that of the new study
    accepted: its differences other than in its claims
    """
    known, study = count_known_results(reader), plan.study
    if not known:
        return first_version_facts(study, at, lock)
    facts: dict[str, Any] = _amended_replicates(reader, study, at)
    (first, later), old = read_versions(reader), reader.study
    if first is None:  # earlier versions are unknown
        facts[FIRST_STUDY_FACT] = _dump_version(StudyVersion(old, known, at))
    facts |= _first_conditions(reader, plan)
    accepted = (*accepted, *_limit_changes(old, study))
    if accepted or describe_claim_changes(old, study):
        session = max(reader.sessions, default=0)
        version = StudyVersion(study, known, at, accepted, session)
        facts[CHANGES_FACT] = _dump_versions([*later, version])
    return facts


def _first_conditions(reader: LedgerReader, plan: RunPlan) -> dict[str, bytes]:
    """Return the fact that keeps the first conditions, if a plan is the first to have others."""
    is_same = digest_conditions(reader.conditions) == digest_conditions(plan.conditions)
    if is_same or reader.fact(FIRST_CONDITIONS_FACT) is not None:
        return {}
    return {FIRST_CONDITIONS_FACT: pack(list(map(pack_condition, reader.conditions)))}


def code_change_facts(reader: LedgerReader, lock: LockComparison, at: str) -> dict[str, str]:
    """Return the facts to store if code changed since the lock; empty if it is as last recorded."""
    old, new = lock
    known = count_known_results(reader)
    if old is None or not known:
        return {}
    recorded = list(read_code_changes(reader))
    changes = tuple(describe_code_changes(old, new))
    digest = new.parts["code"]
    last = recorded[-1] if recorded else LockedCodeChange(at, 0, (), digest=old.parts["code"])
    if (changes, digest) == (last.changes, last.digest or digest):
        return {}
    session = max(reader.sessions, default=0)
    recorded.append(LockedCodeChange(at, known, changes, session, digest))
    return {CODE_CHANGES_FACT: _dump_code_changes(recorded)}


def _dump_code_changes(changes: Sequence[LockedCodeChange]) -> str:
    return json.dumps([dump_record(change) for change in changes])


def _dump_versions(versions: Sequence[StudyVersion]) -> str:
    return f"[{', '.join(map(_dump_version, versions))}]"


def _dump_version(version: StudyVersion) -> str:
    data = {"at": version.at, "runs_done": version.runs_done, "accepted": list(version.accepted)}
    study, dataset = version.study.to_dict(), version.study.dataset
    names = {} if dataset is None else {"problem_names": dataset.dump_names()}
    return json.dumps({**data, "session": version.session, "study": study, **names})


def _limit_changes(old: Study, new: Study) -> list[str]:
    before, after = (
        {name: getattr(study.run_budget, name) for name in LIMIT_FIELDS} for study in (old, new)
    )
    return [f"run_budget.{difference}" for difference in differences(before, after)]


def _amended_replicates(reader: LedgerReader, study: Study, at: str) -> dict[str, str]:
    """Return the fact with a new amendment; empty if replicates are the same or no run is done."""
    before, after = count_replicates(reader.study), count_replicates(study)
    counts = reader.summary().counts
    done = sum(counts.get(status.value, 0) for status in (RunStatus.SUCCESS, RunStatus.FAILED))
    if before == after or not done:
        return {}
    amendments = [*read_amendments(reader), Amendment(before, after, done, at)]
    return {AMENDMENTS_FACT: json.dumps([dump_record(amendment) for amendment in amendments])}
