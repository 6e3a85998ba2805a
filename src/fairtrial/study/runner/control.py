"""Stopping a study from outside: signals, and a file that `fairtrial pause` and `cancel` write."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal

from fairtrial.core import replacing

CONTROL_NAME = "control"
Request = Literal["pause", "cancel"]
LOOK_S = 0.2


def request(folder: Path, what: Request | None) -> None:
    """Ask whoever runs the study in a folder to pause or to stop; None takes it back."""
    path = folder / CONTROL_NAME
    if what is None:
        with suppress(FileNotFoundError):
            path.unlink()
        return
    with replacing(path) as file:
        file.write(what)


def requested(folder: Path) -> str | None:
    """What was asked for, if anything."""
    try:
        return (folder / CONTROL_NAME).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


class ControlFile:
    """The file as the running study sees it: looked at a few times a second."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._looked = 0.0
        self._told: str | None = None
        self.clear()  # what was asked of an earlier session

    def clear(self) -> None:
        """Nothing is asked for any more."""
        if self._folder is not None:
            with suppress(OSError):  # a stray folder of that name asks for nothing
                request(self._folder, None)

    def told(self) -> str | None:
        """What is asked for right now."""
        if self._folder is not None and time.monotonic() - self._looked >= LOOK_S:
            self._looked = time.monotonic()
            self._told = requested(self._folder)
        return self._told


class Interrupts:
    """Ctrl-C and SIGTERM while a study runs: counted, so that it can end in good order.

    The first is only noted, unless `raise_at_once` (a run goes on in this very thread); the second
    is a KeyboardInterrupt like any other.
    """

    def __init__(self, *, raise_at_once: bool = False) -> None:
        self.count = 0
        self.raise_at_once = raise_at_once
        self._earlier: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # None: not Python's to give back; a closed terminal may be ignored (nohup)
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._earlier[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    def send(self) -> None:
        """Interrupt the main thread from another one.

        By a signal that comes through: what a shell starts in the background ignores SIGINT.
        """
        if self._earlier:
            signal.pthread_kill(threading.main_thread().ident or 0, next(iter(self._earlier)))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.raise_at_once or self.count > 1:
            raise KeyboardInterrupt
