"""A part of the terminal that is redrawn regularly, and rarely while something is timed."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from fairtrial.cli.event_text import describe_event
from fairtrial.core import events

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

REFRESH_PER_S = 8
TIMED_REFRESH_S = 1.0
QUIET_S = 10.0
"""While something is timed, the display is redrawn between sessions, at most every
`TIMED_REFRESH_S`; at other moments only after `QUIET_S`. Drawing takes 0.5 ms for 4 candidates and
5 ms for 90, in the process that holds the clock: as long as a sample."""


@dataclass(slots=True)
class CurrentActivity:
    """The activity that a display names; a wait for the machine interrupts it.

    name: its text; empty while none is named
    began: when it began
    """

    name: str
    began: float = field(default_factory=time.monotonic)
    _interrupted: tuple[str, float] | None = None

    def receive(self, event: events.Event) -> None:
        """Follow an event: a phase, or a wait that begins or ends."""
        if isinstance(event, events.PhaseStarted):
            self._interrupted = None
            self.name, self.began = describe_event(event), time.monotonic()
        elif isinstance(event, events.HostWaitStarted):  # it is repeated while the wait lasts
            self._interrupted = self._interrupted or (self.name, self.began)
            self.name, self.began = describe_event(event), time.monotonic()
        elif isinstance(event, events.HostWaitEnded) and self._interrupted is not None:
            (self.name, self.began), self._interrupted = self._interrupted, None

    def end(self) -> None:
        """Name no activity."""
        self.name, self._interrupted = "", None


class Canvas:
    """A display on standard error, which is removed when its block ends."""

    def __init__(
        self, render: Callable[[Canvas], RenderableType], is_timing: Callable[[], bool]
    ) -> None:
        """Make a display.

        render: returns its content; also called from another thread
        is_timing: returns whether something is being timed
        """
        from rich.console import Console
        from rich.live import Live

        self._is_timing = is_timing
        # Standard error as it is now: during a run of a study it is captured.
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

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._drawing.join()
        self._live.stop()

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self._console.width

    @property
    def height(self) -> int:
        """The lines of the terminal."""
        return self._console.height

    def print(self, text: Text) -> None:
        """Print a line above the display, which stays, and redraw the display."""
        self._console.print(text, soft_wrap=True)
        self.draw()

    def touch(self) -> None:
        """Redraw the display after a change, unless that was done just before."""
        if time.monotonic() - self._drawn >= TIMED_REFRESH_S:
            self.draw()

    def _keep_drawing(self) -> None:
        while not self._ended.wait(TIMED_REFRESH_S if self._is_timing() else 1 / REFRESH_PER_S):
            if not self._is_timing() or time.monotonic() - self._drawn >= QUIET_S:
                self.draw()

    def draw(self) -> None:
        """Redraw the display."""
        self._drawn = time.monotonic()
        self._live.refresh()


def can_draw() -> bool:
    """Return whether standard error is a terminal that no other program draws on."""
    is_dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
    return not is_dumb and sys.stderr.isatty() and not _has_reader()


def _has_reader() -> bool:
    """Return whether standard output is a pipe: its reader, such as `less`, may draw."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False
