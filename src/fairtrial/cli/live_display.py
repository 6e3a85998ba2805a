"""A part of the terminal that is drawn again and again, and quietly while something is timed."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fairtrial.sandbox import GOING_ON, WAITING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

REFRESH_PER_S = 8
TIMED_REFRESH_S = 1.0
QUIET_S = 10.0
"""While something is timed it is drawn when we are told of it, which is between sessions, and no
more often than the first says; unasked only after the second. Drawing takes 0.5 ms for 4 candidates
and 5 ms for 90, in the process whose clock decides: as long as a sample."""


@dataclass(slots=True)
class Step:
    """What is going on, by name; whoever has to wait for the machine comes back to it afterwards.

    began: when it began
    """

    name: str
    began: float = field(default_factory=time.monotonic)
    _before: tuple[str, float] | None = None

    def say(self, text: str) -> None:
        """What is going on now."""
        if text == GOING_ON:
            self.name, self.began = self._before or (self.name, self.began)
            self._before = None
            return
        if not is_waiting(text):
            self._before = None
        elif not is_waiting(self.name):  # it is said again and again
            self._before = self.name, self.began
        self.name, self.began = text, time.monotonic()

    def end(self) -> None:
        """It is over, and no other has a name."""
        self.name, self._before = "", None


def is_waiting(text: str) -> bool:
    """Whether it says that somebody else has the machine."""
    return text.startswith(WAITING.partition("{")[0])


class Canvas:
    """On standard error; gone when the block ends.

    render: what is to be seen on it now; called from another thread, too
    is_timing: whether something is being timed
    """

    def __init__(
        self, render: Callable[[Canvas], RenderableType], is_timing: Callable[[], bool]
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._is_timing = is_timing
        # What standard error is now: while a study's run is under way it is that run's own.
        self._console = Console(file=sys.stderr)
        self._live = Live(
            get_renderable=lambda: render(self),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._drawn, self._ended = 0.0, Event()
        self._drawing = Thread(target=self._keep_drawing, daemon=True)

    def __enter__(self) -> Self:
        self._live.start()
        self._drawing.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._drawing.join()
        self._live.stop()

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._console.width

    @property
    def height(self) -> int:
        """Lines of the terminal."""
        return self._console.height

    def print(self, text: Text) -> None:
        """A line above it, which stays; and below it how things are now, not before."""
        self._console.print(text, soft_wrap=True)
        self.draw()

    def touch(self) -> None:
        """Something has changed, and this is a good moment: draw it, if that isn't too often."""
        if time.monotonic() - self._drawn >= TIMED_REFRESH_S:
            self.draw()

    def _keep_drawing(self) -> None:
        while not self._ended.wait(TIMED_REFRESH_S if self._is_timing() else 1 / REFRESH_PER_S):
            if not self._is_timing() or time.monotonic() - self._drawn >= QUIET_S:
                self.draw()

    def draw(self) -> None:
        """Show how things are now."""
        self._drawn = time.monotonic()
        self._live.refresh()


def can_draw() -> bool:
    """Whether standard error is a terminal that nobody else draws on."""
    is_dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
    return not is_dumb and sys.stderr.isatty() and not _has_reader()


def _has_reader() -> bool:
    """Whether a program reads what we print: `less` has the screen then."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False
