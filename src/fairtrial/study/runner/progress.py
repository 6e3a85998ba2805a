"""How far a study has come: a bar on a terminal, plain lines in a log, nothing when told so."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from fairtrial.study.ledger.summary import spell_cost
from fairtrial.study.runner.settings import ProgressMode

BAR_S = 0.1
LINES_S = 10.0
WINDOW_S, WINDOW_RUNS = 60.0, 10
"""The rate is that of the last minute, as runs differ and the first ones start slowly; or of the
last so many runs, where those take longer."""
NOTE_S = 0.5
ENOUGH = 3
"""From fewer runs than this, or than are under way, nothing is said of the rest."""


@dataclass(slots=True)
class Tally:
    """What is safely written down, in numbers.

    again: how many of them are run once more, by what they came to: they are yet to be done
    is_part: this session does only a part of what is left, so how long that takes is unknown
    is_only_again: it does nothing but what is run again
    is_paused: nothing new starts for a while
    under_way: when each run began that is under way
    remark: what else is to be known of how it goes
    """

    total: int
    success: int = 0
    failed: int = 0
    broken: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    again: Counter[str] = field(default_factory=Counter)
    is_part: bool = False
    is_only_again: bool = False
    is_paused: bool = False
    under_way: Callable[[], Sequence[float]] = tuple
    remark: Callable[[], str] = str
    clock: Callable[[], float] = time.monotonic
    _begun: int | None = None
    _taken_s: float = 0.0
    _timed: int = 0
    _recent: deque[tuple[float, float]] = field(default_factory=deque)

    @property
    def done(self) -> int:
        return self.success + self.failed + self.broken - self.again.total()

    def count(self, status: str, instead_of: str | None = None) -> None:
        """One more result, or one in the place of another."""
        setattr(self, status, getattr(self, status) + 1)
        if instead_of is not None:
            setattr(self, instead_of, getattr(self, instead_of) - 1)
            self.again[instead_of] = max(0, self.again[instead_of] - 1)

    def note_duration(self, seconds: float) -> None:
        """How long a run took that has come to its end."""
        self._taken_s += seconds
        self._timed += 1

    def note_time(self) -> None:
        """Remember how much is done by now, for the rate."""
        now = self.clock()
        if self._begun is None:
            self._begun = self.done
        is_unsure = not self._timed and self.under_way()  # of how far those are
        if self._recent and (is_unsure or now - self._recent[-1][0] < NOTE_S):
            return
        worked = self._worked
        self._recent.append((now, worked))
        while len(self._recent) > 2:
            noted, before = self._recent[1]
            if now - noted < WINDOW_S or worked - before < WINDOW_RUNS:
                break
            self._recent.popleft()

    def settled(self, *, is_over: bool = False) -> dict[str, int]:
        """How many came to what; those to be run again only when it is over: nobody did."""
        return {
            status: getattr(self, status) - (0 if is_over else self.again[status])
            for status in ("success", "failed", "broken")
        }

    @property
    def _worked(self) -> float:
        """Runs that are done, and of those under way the part that they have behind them.

        Else long runs that end in pairs would make the rate fall and jump all the time. None counts
        for more than the whole, however long it takes.
        """
        usual_s = self._taken_s / self._timed if self._timed else 0.0
        if not usual_s:
            return float(self.done)
        now = self.clock()
        return self.done + sum(min(1.0, (now - began) / usual_s) for began in self.under_way())

    @property
    def rate(self) -> float | None:
        """Runs per second, of late; None while that can't be told."""
        if not self._recent or self._begun is None:
            return None
        if self.done - self._begun < max(ENOUGH, len(self.under_way())):
            return None
        began, before = self._recent[0]
        took, worked = self.clock() - began, self._worked - before
        return worked / took if took > 0 and worked > 0 else None

    @property
    def eta_s(self) -> float | None:
        """How long the rest will take at this rate."""
        rate = self.rate
        if rate is None or self.is_part:
            return None
        left = self.again.total() if self.is_only_again else self.total - self.done
        return max(0.0, left - (self._worked - self.done)) / rate

    def line(self, *, is_over: bool = False) -> str:
        """`120/1,000 runs, 3 failed, 25.1/s, 0:35 left, $0.12`."""
        again = 0 if is_over else self.again.total()
        counts = self.settled(is_over=is_over)
        parts = [f"{sum(counts.values()):,}/{self.total:,} runs"]
        parts += [f"{again:,} to be run again"] if again else []
        parts += [f"{n:,} {status}" for status, n in counts.items() if n and status != "success"]
        if not is_over and self.is_paused:
            parts.append("paused")
        elif not is_over and self.done < self.total and (rate := self.rate) is not None:
            left = self.eta_s
            parts.append(spell_rate(rate))
            parts += [] if left is None or left < 0.5 else [f"{spell_time(left)} left"]
        parts += [spell_cost(self.cost_usd)] if self.cost_usd else []
        parts += [remark] if not is_over and (remark := self.remark()) else []
        return ", ".join(parts)


def spell_rate(rate: float) -> str:
    """Runs per second, or per minute or hour where that is easier to read."""
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if round(rate * factor, 1) >= 1:  # as it is read: 0.99 a minute is 1.0, not 59.7 an hour
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
        self._bar = _Bar(self._stream, tally) if mode == "bar" else None

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
            if self._bar is not None:
                self._bar.show(line)
            else:
                print(line, file=self._stream, flush=True)
        except (OSError, ValueError):  # whoever listened is gone, or the log's disk is full
            self._mode = "none"

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Something else is told meanwhile, on lines of its own, where the bar was."""
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.end(stays=False)
        yield
        if self._bar is not None and self._mode == "bar":
            self._bar = _Bar(self._stream, self._tally)

    def close(self) -> None:
        """The last word: the bar stays where it is, a log gets its last line."""
        if self._mode == "none":
            return
        self._tell(is_over=True)
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.end(stays=True)


class _Bar:
    """A bar on a terminal, and a line beside it."""

    def __init__(self, stream: TextIO, tally: Tally) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as RichProgress, TextColumn

        self._tally = tally
        # No refresh thread: workers are forked from this process.
        self._bar = RichProgress(
            BarColumn(),
            TextColumn("{task.fields[line]}"),
            console=Console(file=stream),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(
            "", total=tally.total, completed=tally.done, line=tally.line()
        )
        self._bar.start()

    def show(self, line: str) -> None:
        """How things stand now."""
        tally = self._tally
        self._bar.update(self._task, completed=tally.done, total=tally.total, line=line)
        self._bar.refresh()

    def end(self, *, stays: bool) -> None:
        """No more is drawn; what was drawn last stays, or goes."""
        self._bar.live.transient = not stays
        self._bar.stop()
