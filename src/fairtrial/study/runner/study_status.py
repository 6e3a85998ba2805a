"""The status of a study, read from its folder while it runs or afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.study.ledger.ledger_summary import Summary
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.ledger.study_lock import StudyLock, read_lock
from fairtrial.study.model.study import Study
from fairtrial.study.runner.progress import spell_rate, spell_time

MAX_WAIT_S, POLL_S = 10.0, 0.1
SHORTEST_LEFT_S = 0.5


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """The status of a study at one moment.

    study: the study as the ledger stores it
    summary: its progress
    owner: pid and host of the process that runs it; None if it isn't running
    lock: the lock of the study; None if none was recorded
    """

    study: Study
    summary: Summary
    owner: Mapping[str, Any] | None
    lock: StudyLock | None = None

    @property
    def live(self) -> Mapping[str, Any]:
        """The progress as last reported by a process that runs the study; may be empty."""
        return self.summary.live or {}

    @property
    def reruns(self) -> Mapping[str, int]:
        """The number of runs that are being repeated, by the status that they had."""
        return (self.live.get("again") or {}) if self.owner is not None else {}

    @property
    def is_paused(self) -> bool:
        """Whether the study starts no new runs at present."""
        return bool(self.live.get("paused"))

    @property
    def rate_text(self) -> str:
        """How many runs end per second, minute or hour; empty if unknown, or if it is paused."""
        rate = self.live.get("rate")
        return spell_rate(rate) if rate and not self.is_paused else ""

    @property
    def left_text(self) -> str:
        """The estimated time to the end; empty if it is unknown or already over."""
        left_s = self.seconds_left()
        return "" if left_s is None else spell_time(left_s)

    def current_runs(self) -> Iterator[tuple[Mapping[str, Any], str]]:
        """Yield each run that is under way, and for how long as text."""
        for run in self.live.get("runs", ()):
            yield run, spell_time(max(0.0, time.time() - run["began"]))

    def seconds_left(self) -> float | None:
        """Return the estimated time to the end; None if it is unknown or already over."""
        estimate_s = self.live.get("eta_s")
        if estimate_s is None or self.is_paused:
            return None
        now = time.time()
        left_s: float = estimate_s - max(0.0, now - self.live.get("reported_at", now))
        return left_s if left_s >= SHORTEST_LEFT_S else None


def read_status(folder: Path) -> StudyStatus:
    """Return the status of the study in a folder; raises `LedgerError` if there is none.

    A study that has just been started has no plan yet; this waits for it for a few seconds.
    """
    _wait_for_plan(folder)
    owner = owner_of(folder)
    reader = LedgerReader.open(folder)
    try:
        return StudyStatus(reader.study, reader.summary(), owner, read_lock(reader))
    finally:
        reader.close()


def _wait_for_plan(folder: Path) -> None:
    deadline = time.monotonic() + MAX_WAIT_S
    while owner_of(folder) is not None and not _has_plan(folder) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _has_plan(folder: Path) -> bool:
    if not (folder / LEDGER_NAME).exists():
        return False
    reader = LedgerReader.open(folder)
    try:
        return reader.fact("study") is not None
    finally:
        reader.close()
