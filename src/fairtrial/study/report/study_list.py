"""The studies below a folder, each in one line: state, progress, cost, verdicts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.core import FairtrialError, StudyError, dump_record
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.report.known_verdicts import KnownVerdict, read_verdicts
from fairtrial.study.report.study_reports import judge_study

MAX_DEPTH = 4
"""How deep below the folder studies are looked for."""
RUNNING, PAUSED, FINISHED, DECIDED, STOPPED = "running", "paused", "finished", "decided", "stopped"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ListedStudy:
    """A study in a list.

    folder: its folder
    study_id, title, tags: from the study
    state: running, paused, finished, decided (planned looks ended it), stopped, or unreadable
    ended_how: how its last session ended, if it is stopped: budget, interrupted, ...; `killed` if
        its process was
    done, planned: number of runs with a result, and of planned runs
    failed, broken: number of failed and of broken runs
    cost_usd, tokens: what all attempts used
    began: when its first session began
    hypotheses: number of hypotheses
    verdicts: verdicts as last reported; None if they were not, or results have come since
    error: why it can't be read; empty if it can
    """

    folder: str
    study_id: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    state: str = UNREADABLE
    ended_how: str = ""
    done: int = 0
    planned: int = 0
    failed: int = 0
    broken: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    began: str = ""
    hypotheses: int = 0
    verdicts: tuple[KnownVerdict, ...] | None = field(default=None)
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def list_studies(folder: Path, *, judge: bool = False) -> Iterator[ListedStudy]:
    """Yield the studies in a folder and below it, by path; one that can't be read says why.

    Raises `StudyError` if there is no such folder.

    judge: whether to test the hypotheses of finished studies whose verdicts are not known yet
    """
    if not folder.is_dir():
        raise StudyError("there is no such folder", source=str(folder))
    for study in _find_folders(folder):
        try:
            yield _read(study, judge=judge)
        except (FairtrialError, OSError) as error:
            reason = str(error).partition("\n")[0]
            yield ListedStudy(str(study), error=reason or type(error).__name__)


def _find_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders with a ledger; nothing is looked for inside of them."""
    for path, folders, files in os.walk(folder):
        here = Path(path)
        folders.sort()
        if LEDGER_NAME in files or LEDGER_NAME in folders:
            folders.clear()
            yield here
            continue
        depth = len(here.relative_to(folder).parts)
        folders[:] = [
            name for name in folders if depth < MAX_DEPTH and not name.startswith((".", "_"))
        ]


def _read(folder: Path, *, judge: bool) -> ListedStudy:
    reader = LedgerReader.open(folder)
    try:
        study, summary = reader.study, reader.summary()
        sessions: Sequence[Any] = list(reader.sessions.values())
    finally:
        reader.close()
    state, ended_how = FINISHED, ""
    if owner_of(folder) is not None:
        state = PAUSED if (summary.live or {}).get("paused") else RUNNING
    elif summary.pending:
        state = STOPPED
        ended_how = str((summary.last_session or {}).get("ended_how") or "killed")
    elif summary.decided_early:
        state = DECIDED
    verdicts = read_verdicts(folder, summary.done)
    if verdicts is None and judge and study.hypotheses and state in (FINISHED, DECIDED):
        verdicts = judge_study(folder)
    return ListedStudy(
        folder=str(folder),
        study_id=study.study_id,
        title=study.title,
        tags=study.tags,
        state=state,
        ended_how=ended_how if ended_how != "done" else "",
        done=summary.done,
        planned=summary.planned,
        failed=summary.counts.get("failed", 0),
        broken=summary.counts.get("broken", 0),
        cost_usd=summary.cost_usd,
        tokens=summary.tokens,
        began=str(sessions[0].get("started_at") or "") if sessions else "",
        hypotheses=len(study.hypotheses),
        verdicts=verdicts,
    )
