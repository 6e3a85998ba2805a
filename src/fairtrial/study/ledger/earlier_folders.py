"""Output directories beside a study's own that hold earlier results of the same study.

A claim that was picked from these results is not tested by the same runs again, and a repetition
of the same runs with the same seeds is no independent evidence.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fairtrial.core import LedgerError, dump_record
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.amendments import StudyVersion, read_versions
from fairtrial.study.ledger.claim_changes import ClaimKey, collect_claims, find_departures
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import APPLICATION_ID, LEDGER_NAME
from fairtrial.study.ledger.sqlite_errors import SQLITE_ERRORS, damaged
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

FOLDERS_FACT = "earlier folders"
MAX_FOLDERS = 200
"""How many ledgers are looked at."""
MAX_ENTRIES = 2_000
"""How many entries of a directory are looked at for ledgers."""
MAX_COMPARED = 100_000
"""How many results of another ledger are compared with the plan."""
BUSY_S = 0.2
RUNS_TABLE = "runs.csv"
LOST_LEDGER = "."
"""The path, relative to the study's directory, of a ledger that was in it before."""
_COUNT = "SELECT count(*) FROM results WHERE status = 'success'"
_RUNS = "SELECT run_id, seed FROM results WHERE status = 'success' ORDER BY turn LIMIT ?"


@dataclass(frozen=True, slots=True)
class EarlierFolder:
    """Another output directory with earlier results of the same study.

    path: the directory, relative to the study's own; "." if its own had another ledger before
    started_at: when its first session started
    results: how many runs had succeeded in it; one in which all failed has nothing to pick from
    shared_runs: the ids of its runs that are runs of this study with the same seeds
    same_claims: the claims, by hypothesis and plan, that were laid down there, before its first
        result, as they are here
    study_id: the id of the study there, if it is another one; it then compares the same levels of
        the same factors and agents on some of the same problems
    dropped_problems: its problems that this study leaves out, if all of this study's are among them
    """

    path: str
    started_at: str
    results: int
    shared_runs: tuple[str, ...] = ()
    same_claims: tuple[ClaimKey, ...] = ()
    study_id: str = ""
    dropped_problems: tuple[str, ...] = ()

    @property
    def may_be_picked(self) -> bool:
        """Whether this study may be a choice of runs whose results were known."""
        return bool(self.shared_runs or self.dropped_problems)

    @property
    def shared(self) -> int:
        """How many of its runs are runs of this study with the same seeds."""
        return len(self.shared_runs)

    def to_dict(self) -> dict[str, Any]:
        """Return the main facts as plain data."""
        facts = {"path": self.path, "started_at": self.started_at, "results": self.results}
        return {**facts, "shared": self.shared}


def find_earlier_folders(folder: Path, plan: RunPlan, before: str) -> tuple[EarlierFolder, ...]:
    """Return the directories beside a study's own that have earlier results of the same study.

    Looks at directories beside `folder`, and in `artifacts` in the study's folder. Directories that
    can't be read are skipped. A study without hypotheses has none.

    folder: the study's output directory
    before: only sessions that started before this time count
    """
    study = plan.study
    if not study.hypotheses:
        return ()
    folders = []
    for path in islice(_find_ledgers(folder, study), MAX_FOLDERS):
        try:
            with closing(_open(path)) as connection:
                earlier = _inspect(LedgerReader(connection, path), folder, plan)
        except (LedgerError, *SQLITE_ERRORS, OSError, ValueError, TypeError, LookupError):
            continue
        if earlier is not None and earlier.started_at < before:
            folders.append(earlier)
    return tuple(folders)


def find_lost_ledger(folder: Path, plan: RunPlan) -> tuple[EarlierFolder, ...]:
    """Return what the tables in a study's own directory tell of a ledger that is gone.

    Tables of another study, and tables that can't be read, tell nothing.

    folder: the study's output directory, whose ledger has no result
    """
    study = plan.study
    if not study.hypotheses:
        return ()
    runs, started_at = set(), ""
    try:
        with (folder / RUNS_TABLE).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["study_id"] == study.study_id and row["status"] == RunStatus.SUCCESS.value:
                    runs.add((row["run_id"], int(row["seed"])))
                    started_at = min(started_at or row["start_time"], row["start_time"])
    except (OSError, ValueError, TypeError, KeyError, csv.Error):
        return ()
    if not runs:
        return ()
    shared = tuple(spec.run_id for spec in plan.specs() if (spec.run_id, spec.seed) in runs)
    return (EarlierFolder(LOST_LEDGER, started_at, len(runs), shared),)


def _find_ledgers(folder: Path, study: Study) -> Iterator[Path]:
    """Yield the ledgers of the directories beside a study's own."""
    own = os.path.realpath(folder)
    parents = [folder.parent, *([study.folder / "artifacts"] if study.folder is not None else [])]
    seen = {own}
    for parent in parents:
        try:
            with os.scandir(parent) as entries:
                names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
        except OSError:
            continue
        for name in names:
            path = parent / name / LEDGER_NAME
            key = os.path.realpath(path.parent)
            if key not in seen and path.is_file():
                seen.add(key)
                yield path


def _open(path: Path) -> sqlite3.Connection:
    """Open a ledger without changing anything beside it.

    SQLite would create files beside a ledger that is not in use; `immutable` prevents it. A ledger
    whose log holds something is in use or was killed, and has these files already.
    """
    log = path.with_name(f"{path.name}-wal")
    is_quiet = not log.exists() or not log.stat().st_size
    options = "mode=ro&immutable=1" if is_quiet else "mode=ro"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}", uri=True, timeout=BUSY_S, isolation_level=None
    )
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise LedgerError(f"{path} is no ledger")
    except BaseException:
        connection.close()
        raise
    return connection


def _inspect(reader: LedgerReader, folder: Path, plan: RunPlan) -> EarlierFolder | None:
    """Return what a ledger has of the same study; None if nothing."""
    text = reader.fact("study")
    other_id = None if text is None else str(json.loads(text)["study_id"])
    is_same = other_id == plan.study.study_id
    if other_id is None or not (is_same or _overlaps(reader.study, plan.study)):
        return None
    results, sessions = reader.connection.execute(_COUNT).fetchone()[0], reader.sessions
    if not results or not sessions or reader.path is None:
        return None
    first, _ = read_versions(reader)
    return EarlierFolder(
        path=os.path.relpath(reader.path.parent, folder),
        started_at=str(next(iter(sessions.values()))["started_at"]),
        results=results,
        # The ids and seeds of runs contain the study's id.
        shared_runs=_find_shared(reader, plan) if is_same else (),
        same_claims=_find_same_claims(first, plan.study),
        study_id="" if is_same else other_id,
        dropped_problems=_find_dropped_problems(reader.study, plan.study),
    )


def _overlaps(other: Study, study: Study) -> bool:
    """Return whether two studies of different ids test a comparison on the same material.

    They do if they have a factor, a problem and all compared agents in common, as far as there are
    any, and a hypothesis about the same variables and outcomes.
    """
    names = [(set(one.agents), set(one.problems) or set(one.problem_ids)) for one in (other, study)]
    (agents, problems), (own_agents, own_problems) = names
    has_same_agents = all(
        name in own_agents and other.agents[name] == study.agents[name] for name in agents
    )
    if not has_same_agents or bool(agents) != bool(own_agents):
        return False
    if own_problems and not problems & own_problems:
        return False
    if other.condition_runner != study.condition_runner:
        return False
    factors = [
        {factor.name: {level.name for level in factor.levels} for factor in one.factors}
        for one in (other, study)
    ]
    is_same_factor = any(factors[0].get(name) == levels for name, levels in factors[1].items())
    if not is_same_factor:
        return False
    claims = [
        {(claim.independent_vars, claim.dependent_vars) for claim in one.hypotheses}
        for one in (other, study)
    ]
    return bool(claims[0] & claims[1])


def _find_dropped_problems(other: Study, study: Study) -> tuple[str, ...]:
    """Return the problems that a study leaves out of another's; none if it has others, too."""
    names = [one.problem_ids or tuple(one.problem_names) for one in (other, study)]
    if not names[1] or not set(names[1]) <= set(names[0]):
        return ()
    return tuple(name for name in names[0] if name not in names[1])


def _find_shared(reader: LedgerReader, plan: RunPlan) -> tuple[str, ...]:
    runs = set(reader.connection.execute(_RUNS, (MAX_COMPARED,)).fetchall())
    return tuple(spec.run_id for spec in plan.specs() if (spec.run_id, spec.seed) in runs)


def _find_same_claims(first: StudyVersion | None, study: Study) -> tuple[ClaimKey, ...]:
    """Return the claims of a study that another one had laid down before its first result."""
    if first is None or first.runs_done:
        return ()
    departures = find_departures(collect_claims(first.study), collect_claims(study))
    keys = [
        (hypothesis_id, plan.analysis_plan_id)
        for plan in study.analysis_plans
        for hypothesis_id in plan.hypothesis_ids
    ]
    return tuple(key for key in keys if key not in departures)


def read_earlier_folders(reader: LedgerReader) -> tuple[EarlierFolder, ...]:
    """Return the directories that the first run found; raises `LedgerError` if damaged."""
    text = reader.fact(FOLDERS_FACT)
    try:
        return tuple(_read_folder(fields) for fields in json.loads(text or "[]"))
    except (ValueError, TypeError, KeyError) as error:
        raise damaged(reader.path, f"'{FOLDERS_FACT}' can't be read: {error}") from error


def _read_folder(fields: dict[str, Any]) -> EarlierFolder:
    claims = tuple((claim, plan) for claim, plan in fields["same_claims"])
    runs, dropped = tuple(fields["shared_runs"]), tuple(fields.get("dropped_problems", ()))
    return EarlierFolder(
        **{**fields, "shared_runs": runs, "same_claims": claims, "dropped_problems": dropped}
    )


def folder_facts(folders: Sequence[EarlierFolder]) -> dict[str, str]:
    """Return the facts that record earlier directories."""
    return {FOLDERS_FACT: json.dumps([dump_record(folder) for folder in folders])}
