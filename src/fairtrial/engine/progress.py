"""How far a study has come: a bar on a terminal, plain lines in a log, nothing when told so."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from fairtrial.engine.settings import ProgressMode
from fairtrial.ledger.summary import spell_cost

BAR_S = 0.1
LINES_S = 10.0
WINDOW_S = 60.0
"""The rate is that of the last minute: runs differ, and the first ones start slowly."""


@dataclass(slots=True)
class Tally:
    """What is safely written down, in numbers.

    is_part: this session does only a part of what is left, so how long that takes is unknown
    is_paused: nothing new starts for a while
    remark: what else is to be known of how it goes
    """

    total: int
    success: int = 0
    failed: int = 0
    broken: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    is_part: bool = False
    is_paused: bool = False
    remark: Callable[[], str] = str
    clock: Callable[[], float] = time.monotonic
    _recent: deque[tuple[float, int]] = field(default_factory=deque)

    @property
    def done(self) -> int:
        return self.success + self.failed + self.broken

    def count(self, status: str, instead_of: str | None = None) -> None:
        """One more result, or one in the place of another."""
        setattr(self, status, getattr(self, status) + 1)
        if instead_of is not None:
            setattr(self, instead_of, getattr(self, instead_of) - 1)

    def note_time(self) -> None:
        """Remember how many are done by now, for the rate."""
        now = self.clock()
        if self._recent and now - self._recent[-1][0] < 0.05:
            return
        self._recent.append((now, self.done))
        while len(self._recent) > 2 and now - self._recent[0][0] > WINDOW_S:
            self._recent.popleft()

    @property
    def rate(self) -> float | None:
        """Runs per second, of late; None while that can't be told."""
        if not self._recent:
            return None
        began, before = self._recent[0]
        took = self.clock() - began
        return (self.done - before) / took if took > 0 and self.done > before else None

    @property
    def eta_s(self) -> float | None:
        """How long the rest will take at this rate."""
        rate = self.rate
        return None if rate is None or self.is_part else (self.total - self.done) / rate

    def line(self, *, is_over: bool = False) -> str:
        """`120/1,000 runs, 3 failed, 25.1/s, 0:35 left, $0.12`."""
        parts = [f"{self.done:,}/{self.total:,} runs"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"{self.broken:,} broken"] if self.broken else []
        if not is_over and self.is_paused:
            parts.append("paused")
        elif self.rate is not None and self.done < self.total and not is_over:
            left = self.eta_s
            parts.append(spell_rate(self.rate))
            parts += [] if left is None else [f"{spell_time(left)} left"]
        parts += [spell_cost(self.cost_usd)] if self.cost_usd else []
        parts += [remark] if not is_over and (remark := self.remark()) else []
        return ", ".join(parts)


def spell_rate(rate: float) -> str:
    """Runs per second, or per minute or hour where that is easier to read."""
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * factor >= 1:
            return f"{rate * factor:,.1f}/{unit}"
    return f"{rate * 3600:,.2f}/h"


def spell_time(seconds: float) -> str:
    """`0:35`, `1:02:03`, `3 days 4:05:06`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    text = f"{hour}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{days} day{'s' if days > 1 else ''} {text}" if days else text


class Progress:
    """Tells people how far it has come; `update` may be called as often as you like."""

    def __init__(self, mode: ProgressMode, tally: Tally, stream: TextIO | None = None) -> None:
        self._mode, self._tally = mode, tally
        self._stream = stream or sys.stderr
        self._told = tally.clock()
        self._show = _start_bar(self._stream, tally) if mode == "bar" else None

    def update(self) -> None:
        if self._mode == "none":
            return
        now = self._tally.clock()
        if now - self._told < (BAR_S if self._mode == "bar" else LINES_S):
            return
        self._told = now
        self._tell()

    def update_remark(self) -> None:
        """Tell it all the same while a run has the loop's thread, if there is a remark."""
        if self._mode != "none" and self._tally.clock() - self._told >= LINES_S:
            self._told = self._tally.clock()
            if self._tally.remark():
                self._tell()

    def _tell(self, *, is_over: bool = False) -> None:
        line = self._tally.line(is_over=is_over)
        try:
            if self._show is not None:
                self._show(line)
            else:
                print(line, file=self._stream, flush=True)
        except (OSError, ValueError):  # whoever listened is gone, or the log's disk is full
            self._mode = "none"

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Something else is told meanwhile, on lines of its own."""
        if self._show is not None:
            with suppress(OSError, ValueError):
                self._show(None)
        yield
        if self._mode == "bar":
            self._show = _start_bar(self._stream, self._tally)

    def close(self) -> None:
        """The last word: the bar stays where it is, a log gets its last line."""
        if self._mode == "none":
            return
        self._tell(is_over=True)
        if self._show is not None:
            with suppress(OSError, ValueError):
                self._show(None)


def _start_bar(stream: TextIO, tally: Tally) -> Callable[[str | None], None]:
    """A bar on a terminal; returns what shows a new line beside it, and with None ends it."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    # No refresh thread: workers are forked from this process.
    bar = RichProgress(
        BarColumn(),
        TextColumn("{task.fields[line]}"),
        console=Console(file=stream),
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task("", total=tally.total, completed=tally.done, line=tally.line())
    bar.start()

    def show(line: str | None) -> None:
        if line is None:
            bar.stop()
            return
        bar.update(task, completed=tally.done, total=tally.total, line=line)
        bar.refresh()

    return show
