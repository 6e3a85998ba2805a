"""The versions of a study, and its changes after results were known, as a ledger records them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

AMENDMENTS_FACT = "amendments"
FIRST_STUDY_FACT = "first study"
CHANGES_FACT = "changes"
FIRST_CONDITIONS_FACT = "first conditions"
CODE_CHANGES_FACT = "code changes"
_WITH_RESULT = (RunStatus.SUCCESS.value, RunStatus.FAILED.value)
_COUNT_KNOWN = (
    "SELECT count(*) FROM (SELECT turn FROM results WHERE status IN (?, ?) "
    "UNION SELECT turn FROM attempts WHERE status IN (?, ?))"
)


@dataclass(frozen=True, slots=True)
class Amendment:
    """A change of the number of replicates after results were known.

    before: the replicates of each run before the change
    after: the replicates of each run after it
    runs_done: how many runs had succeeded or failed by then
    at: when the new plan was stored
    """

    before: int
    after: int
    runs_done: int
    at: str


@dataclass(frozen=True, slots=True)
class LockedCodeChange:
    """A change of the study's code, compared with its lock, after results were known.

    at: when it was noticed
    runs_done: how many results were known by then
    changes: which files differ from the lock since then; empty if they are the locked ones again
    session: the last session before it; None if it was not recorded
    digest: the digest of the code since then; empty if it was not recorded
    """

    at: str
    runs_done: int
    changes: tuple[str, ...]
    session: int | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class StudyVersion:
    """One version of a study.

    study: the study
    runs_done: how many runs had succeeded or failed by then, those that left the plan included
    at: when it was stored; None for a version that was only passed to a report
    accepted: other changes that came with it: agents, factors, limits
    session: the last session before it; None if it was not recorded
    """

    study: Study
    runs_done: int
    at: str | None
    accepted: tuple[str, ...] = ()
    session: int | None = None


def read_amendments(reader: LedgerReader) -> tuple[Amendment, ...]:
    """Return the amendments of a study, the earliest first; raises `LedgerError` if damaged."""
    text = reader.fact(AMENDMENTS_FACT)
    try:
        return tuple(Amendment(**fields) for fields in json.loads(text or "[]"))
    except (ValueError, TypeError) as error:
        raise damaged(reader.path, f"'{AMENDMENTS_FACT}' can't be read: {error}") from error


def read_versions(
    reader: LedgerReader,
) -> tuple[StudyVersion | None, tuple[StudyVersion, ...]]:
    """Return the first version of a study and the later ones, the earliest first.

    The first is None in an old ledger. Raises `LedgerError` if the record is damaged.
    """
    first, later = reader.fact(FIRST_STUDY_FACT), reader.fact(CHANGES_FACT)
    try:
        return (
            None if first is None else _read_version(json.loads(first)),
            tuple(map(_read_version, json.loads(later or "[]"))),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(reader.path, f"the history of the claims can't be read: {error}") from error


def _read_version(data: dict[str, Any]) -> StudyVersion:
    study = Study.from_dict(data["study"])
    if study.dataset is not None and "problem_names" in data:
        study.dataset.use_stored(data["problem_names"])
    accepted, session = tuple(data.get("accepted", ())), data.get("session")
    return StudyVersion(study, int(data["runs_done"]), data["at"], accepted, session)


def count_known_results(reader: LedgerReader) -> int:
    """Return how many runs have had a result that can have been seen.

    Includes runs that left the plan, and those whose result was replaced by another attempt's.
    """
    with explained(reader.path):
        return int(
            reader.connection.execute(_COUNT_KNOWN, (*_WITH_RESULT, *_WITH_RESULT)).fetchone()[0]
        )


def read_code_changes(reader: LedgerReader) -> tuple[LockedCodeChange, ...]:
    """Return the changes of code since the lock, the earliest first; `LedgerError` if damaged."""
    text = reader.fact(CODE_CHANGES_FACT)
    try:
        return tuple(
            LockedCodeChange(
                entry["at"],
                int(entry["runs_done"]),
                tuple(entry["changes"]),
                entry.get("session"),
                entry.get("digest", ""),
            )
            for entry in json.loads(text or "[]")
        )
    except (ValueError, TypeError, KeyError) as error:
        raise damaged(reader.path, f"'{CODE_CHANGES_FACT}' can't be read: {error}") from error
