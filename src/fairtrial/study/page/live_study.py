"""A study that is read again and again while it runs: its progress, its new runs, one run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fairtrial.core import LedgerError
from fairtrial.study.ledger.interim_looks import record_interim_look
from fairtrial.study.ledger.ledger_summary import Summary
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.packing import UnreadableError, unpack
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import LEDGER_NAME, REMOVED
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.ledger.study_lock import read_lock
from fairtrial.study.page import page_data, run_rows
from fairtrial.study.page.plain_data import clean_data, clean_text
from fairtrial.study.page.spending_charts import chart_spending
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.runner.control import requested
from fairtrial.study.runner.study_status import StudyStatus
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.spending import Spending

MOST_LIVE_RUNS = 100_000
BATCH_RUNS, READ_TOGETHER = 2_000, 250
"""How many new results are read at once, so that a large study is shown bit by bit."""
SHOWN_RUNS = 12
SHOWN_EVENTS = 8
LONGEST_EVENT = 300
ENDINGS = {
    "budget": "a budget is used up",
    "failure": "stopped at the first failure",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "error": "it ended with an error",
    "done": "",
    None: "its process was killed",
}


class _Version(NamedTuple):
    """A result in the ledger, which a later attempt may replace."""

    turn: int
    attempt: int
    session: int
    run_id: str


class _NotBegunError(Exception):
    """The ledger has no plan yet."""


class LiveStudy:
    """The study in a folder, as its ledger grows. Not thread-safe.

    While runs are pending, nothing but `full_page` says how conditions compare: the rest has
    neither verdicts nor outcomes.

    epoch: changes when everything must be read anew: after a resume, a retry, a change of the plan
    arrivals: the execution indexes of the results that were read, in the order of reading
    state: the progress, as plain data
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.epoch = secrets.token_hex(4)
        self.arrivals: list[int] = []
        self.state: dict[str, Any] = {"state": "waiting", "message": "Nothing was read yet."}
        self._reader: LedgerReader | None = None
        self._identity: tuple[Any, ...] = ()
        self._versions: dict[int, tuple[int, int]] = {}
        self._rows: dict[int, run_rows.RunRow] = {}
        self._codes: tuple[dict[str | None, int], dict[str | None, int]] = ({}, {})
        self._condition_indexes: dict[str, int] = {}
        self._data_version = -1

    def close(self) -> None:
        """Close the ledger, and forget what was read."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._identity, self._data_version = None, (), -1
        self._versions, self._rows, self._codes = {}, {}, ({}, {})
        self.arrivals = []
        self.epoch = secrets.token_hex(4)

    @property
    def key(self) -> str:
        """What data of a page is about: with another key it must be read anew."""
        return f"{self.epoch}-{'finished' if self.is_finished else 'pending'}"

    # -- reading --

    def poll(self, *, with_rows: bool = True) -> bool:
        """Read the progress and some of the new results; returns whether more of them are there.

        A ledger that can't be read is a state of the study, not an error: it may be back later.

        with_rows: whether to read results; those of a finished study are read by `full_page`
        """
        try:
            with explained(self.folder / LEDGER_NAME):
                reader = self._open()
                self.state = self._describe(_read_status(reader, self.folder), reader)
                return self._read_rows(reader) if with_rows and not self.is_finished else False
        except (FileNotFoundError, _NotBegunError):
            self._set_aside("waiting", "This study hasn't begun.")
        except (LedgerError, OSError) as error:
            self._set_aside("unreadable", clean_text(error, 500))
        return False

    def _set_aside(self, state: str, message: str) -> None:
        if self._reader is not None:
            self.close()
        self.state = {"state": state, "message": message}

    def _open(self) -> LedgerReader:
        """Return a reader of the ledger; a new one if the plan may be another one."""
        inode = (self.folder / LEDGER_NAME).stat().st_ino
        if self._reader is not None and self._identity == _identify(self._reader, inode):
            return self._reader
        self.close()
        reader = LedgerReader.open(self.folder)
        try:
            if reader.fact("study") is None:
                raise _NotBegunError
            self._identity = _identify(reader, inode)
            names = {condition.condition_id: i for i, condition in enumerate(reader.conditions)}
        except BaseException:
            reader.close()
            raise
        self._reader, self._condition_indexes = reader, names
        return reader

    def _read_rows(self, reader: LedgerReader) -> bool:
        version = reader.connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._data_version:
            return False
        new = self._find_new(reader)
        chosen = new[:BATCH_RUNS]
        for start in range(0, len(chosen), READ_TOGETHER):
            self._read_together(reader, chosen[start : start + READ_TOGETHER])
        if len(chosen) == len(new):
            self._data_version = version
        return len(chosen) < len(new)

    def _read_together(self, reader: LedgerReader, new: Sequence[_Version]) -> None:
        turns = {one.run_id: one.turn for one in new}
        order = reader.order
        for result in reader.results_at(sorted(order[one.turn] for one in new)):
            turn = turns[result.run_id]
            row = run_rows.make_row(order[turn], result, self._condition_indexes)
            if row is not None:
                self._rows[turn] = row
                self.arrivals.append(turn)
        self._versions |= {one.turn: (one.attempt, one.session) for one in new}

    def _find_new(self, reader: LedgerReader) -> list[_Version]:
        """Return the results that were not read yet, in the order of execution."""
        if len(self._versions) >= MOST_LIVE_RUNS:
            return []
        order = reader.order
        query = "SELECT turn, attempt, session, run_id FROM results ORDER BY turn"
        versions = map(_Version._make, reader.connection.execute(query).fetchall())
        return [
            one
            for one in versions
            if self._versions.get(one.turn) != (one.attempt, one.session)
            and one.turn < len(order)
            and order[one.turn] != REMOVED
        ]

    # -- what pages show --

    @property
    def is_finished(self) -> bool:
        """Whether no run is pending, so that verdicts can be shown unasked."""
        return bool(self.state.get("is_finished"))

    def _describe(self, status: StudyStatus, reader: LedgerReader) -> dict[str, Any]:
        summary, live = status.summary, status.live
        is_running = status.owner is not None
        running = list(status.current_runs())[:SHOWN_RUNS] if is_running else []
        return {
            "state": _name_state(status, self.folder),
            "title": clean_text(status.study.title or status.study.study_id, 300),
            "study": clean_text(status.study.study_id, 200),
            "message": "" if is_running else _explain_end(summary),
            "progress": page_data.describe_progress(summary),
            "is_finished": not summary.pending and summary.done > 0,
            "has_claims": bool(status.study.hypotheses),
            "running": live.get("running", 0) if is_running else 0,
            "runs": [
                {
                    "id": run.get("run_id"),
                    "agent": clean_text(run.get("agent_id") or "", 200),
                    "problem": clean_text(run.get("problem_id") or "", 200),
                    "age": age,
                    "events": _read_events(reader, run),
                }
                for run, age in running
            ],
            "rate": status.rate_text if is_running else "",
            "left": status.left_text if is_running else "",
            "again": sum(status.reruns.values()),
            "owner": clean_data(dict(status.owner or {})),
            "locked": status.lock.at if status.lock and status.lock.is_explicit else "",
        }

    def overview(self) -> dict[str, Any]:
        """Return the page's data without anything that compares conditions."""
        reader = self._require_reader()
        summary = reader.summary()
        study, conditions, rows = reader.study, reader.conditions, list(self._rows.values())
        return {
            **page_data.describe_study(study, self.folder, summary),
            "warning": [],
            "parts": [],
            "scripts": [],
            "verdicts": [],
            "standing": [],
            "effects": [],
            "precision": [],
            "conditions": page_data.describe_conditions(conditions, _varied_factors(reader)),
            "factors": [],
            "outcomes": [],
            "runs": run_rows.pack_rows(rows, *self._codes),
            "all_runs": len(rows),
            "details": {},
            "record": [],
            "environment": page_data.describe_environment(reader.sessions),
            **self.charts(),
        }

    def charts(self) -> dict[str, Any]:
        """Return failures by kind, and cost and time, of the runs so far."""
        reader = self._require_reader()
        data, rows = RunTable(reader.study, ()), list(self._rows.values())
        data.spent = Spending.from_summary(reader.summary())
        return {
            "failures": run_rows.group_failures(rows),
            "spending": chart_spending(data, rows),
        }

    def rows_since(self, number: int) -> dict[str, Any] | None:
        """Return the rows of all but the first `number` arrivals, as columns; None if none."""
        new = [self._rows[turn] for turn in self.arrivals[number:]]
        return run_rows.pack_rows(new, *self._codes) if new else None

    def full_page(self) -> dict[str, Any]:
        """Return the page's data with verdicts and outcomes.

        Of a study with undecided claims this is an interim look, and is recorded as one.
        """
        with Results(LedgerReader.open(self.folder)) as results:
            data = page_data.collect_page(results, most_runs=MOST_LIVE_RUNS, with_details=False)
            record_interim_look(self.folder, results.study, results.reader.summary())
        return data

    def detail(self, run_id: str) -> dict[str, Any] | None:
        """Return everything known of one run; None if it has no result."""
        reader = self._require_reader()
        query = "SELECT turn FROM results WHERE run_id = ?"
        with explained(self.folder / LEDGER_NAME):
            rows = reader.connection.execute(query, (run_id,)).fetchall()
            order = reader.order
            for (turn,) in rows:
                if turn < len(order) and order[turn] != REMOVED:
                    result = reader.result(order[turn])
                    if result is not None:
                        return run_rows.describe_run(reader, order[turn], result)
        return None

    def _require_reader(self) -> LedgerReader:
        if self._reader is None:
            raise LedgerError(str(self.state.get("message") or f"{self.folder} can't be read"))
        return self._reader


def _identify(reader: LedgerReader, inode: int) -> tuple[Any, ...]:
    """Return what changes when a plan or the results before may have changed."""
    row = reader.connection.execute(
        "SELECT (SELECT max(session) FROM sessions), (SELECT value FROM facts WHERE name = "
        "'print'), (SELECT length(value) FROM facts WHERE name = 'order'), "
        "(SELECT count(*) FROM scores)"
    ).fetchone()
    return (inode, *row)


def _read_status(reader: LedgerReader, folder: Path) -> StudyStatus:
    return StudyStatus(reader.study, reader.summary(), owner_of(folder), read_lock(reader))


def _name_state(status: StudyStatus, folder: Path) -> str:
    if status.owner is not None:
        is_paused = status.is_paused or requested(folder) == "pause"
        return "paused" if is_paused else "running"
    return "stopped" if status.summary.pending else "finished"


def _explain_end(summary: Summary) -> str:
    if not summary.pending:
        return "planned looks decided the claims early" if summary.decided_early else ""
    left = f"{summary.pending:,} {'run is' if summary.pending == 1 else 'runs are'} left"
    why = ENDINGS.get((summary.last_session or {}).get("ended_how"), "")
    return f"{why}; {left}" if why else left


def _read_events(reader: LedgerReader, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the last events of a run that is under way."""
    turn = run.get("turn")
    if not isinstance(turn, int):
        return []
    rows = reader.connection.execute(
        "SELECT data FROM events WHERE turn = ? AND attempt = ? ORDER BY number DESC LIMIT ?",
        (turn, run.get("attempt"), SHOWN_EVENTS),
    ).fetchall()
    events = []
    with suppress(UnreadableError):
        for (data,) in reversed(rows):
            event = unpack(data)
            events.append(
                {
                    "time": str(event.get("timestamp") or "")[11:19],
                    "type": clean_text(event.get("event_type") or "", 80),
                    "text": clean_text(event.get("text") or "", LONGEST_EVENT),
                    "facts": clean_data(event.get("meta") or {}, LONGEST_EVENT),
                }
            )
    return events


def _varied_factors(reader: LedgerReader) -> Sequence[str]:
    """Return the factors that have several levels in the conditions; all if none has."""
    names = [factor.name for factor in reader.study.factors]
    assigned = [condition.factor_assignments for condition in reader.conditions]
    varied = [name for name in names if len({str(one.get(name)) for one in assigned}) > 1]
    return varied or names
