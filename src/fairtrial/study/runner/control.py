"""Control a running study: signals, and the file that `fairtrial pause` and `cancel` write."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal

from fairtrial.core import atomic_write
from fairtrial.study.ledger.lock import owner_of
from fairtrial.study.ledger.reader import LedgerReader

CONTROL_NAME = "control"
ControlRequest = Literal["pause", "cancel"]
POLL_S = 0.2


def request(folder: Path, wanted: ControlRequest | None) -> None:
    """Ask the process that runs the study in a folder to pause or to stop; None takes it back."""
    path = folder / CONTROL_NAME
    if wanted is None:
        with suppress(FileNotFoundError):
            path.unlink()
        return
    with atomic_write(path) as file:
        file.write(wanted)


def requested(folder: Path) -> str | None:
    """Return the current request for a folder; None if there is none."""
    try:
        return (folder / CONTROL_NAME).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def control_study(folder: Path, action: ControlRequest | Literal["resume"]) -> bool:
    """Ask the process that runs the study in a folder to pause, to stop, or to end a pause.

    Returns whether it was asked: False if no process runs the study or, for `resume`, if it isn't
    paused. Raises `LedgerError` for `pause` and `cancel` if there is no study in the folder.
    """
    if action == "resume":
        if owner_of(folder) is None or requested(folder) != "pause":
            return False
        request(folder, None)
        return True
    LedgerReader.open(folder).close()
    if owner_of(folder) is None:
        return False
    request(folder, action)
    return True


class ControlFile:
    """The control file of a running study, polled a few times a second."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._polled_at = 0.0
        self._last_request: str | None = None
        self.clear()  # a request to an earlier session

    def clear(self) -> None:
        """Remove the request."""
        if self._folder is not None:
            with suppress(OSError):  # a folder of that name is no request
                request(self._folder, None)

    def current_request(self) -> str | None:
        """Return the current request; None if there is none."""
        if self._folder is not None and time.monotonic() - self._polled_at >= POLL_S:
            self._polled_at = time.monotonic()
            self._last_request = requested(self._folder)
        return self._last_request


class Interrupts:
    """Handles Ctrl-C, SIGTERM and SIGHUP while a study runs, so that it can end cleanly.

    The first signal is only counted, unless `raise_at_once` is set (a run executes in this thread);
    the second one raises KeyboardInterrupt.

    count: the number of signals so far
    """

    def __init__(self, *, raise_at_once: bool = False) -> None:
        self.count = 0
        self.raise_at_once = raise_at_once
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # None: Python can't restore it; SIG_IGN: ignored on purpose, as by nohup
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._previous_handlers[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def send(self) -> None:
        """Interrupt the main thread from another one.

        Uses a signal that is handled: a process in the background of a shell ignores SIGINT.
        """
        if self._previous_handlers:
            signal.pthread_kill(
                threading.main_thread().ident or 0, next(iter(self._previous_handlers))
            )

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.raise_at_once or self.count > 1:
            raise KeyboardInterrupt
