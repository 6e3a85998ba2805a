"""Show the progress of a study: a bar on a terminal, lines in a log, or nothing."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from fairtrial.study.ledger.ledger_summary import spell_cost
from fairtrial.study.runner.run_settings import ProgressMode

BAR_INTERVAL_S = 0.1
LINE_INTERVAL_S = 10.0
WINDOW_S, WINDOW_RUNS = 60.0, 10
"""The rate is that of the last minute, since runs differ and the first ones start slowly, or of the
last 10 runs if those take longer."""
SAMPLE_INTERVAL_S = 0.5
MIN_RUNS = 3
"""With fewer finished runs than this, or than are under way, no rate is shown."""


@dataclass(slots=True)
class ProgressCounts:
    """The progress of a study in numbers; only committed results count.

    total: how many runs the plan has
    success: how many succeeded
    failed: how many failed
    broken: how many broke
    cost_usd: the costs so far
    tokens: the tokens so far
    reruns: how many results are to be replaced by a rerun, by status; they don't count as done
    is_part: whether this session does only a part of what is left, so that its end is unknown
    is_reruns_only: whether it does nothing but reruns
    is_paused: whether nothing new starts for now
    under_way: returns the start times of the runs under way
    remark: returns a text to show with the progress, or an empty one
    place: returns where runs execute, such as `3 workers on 2 nodes`, or an empty text
    clock: the monotonic clock
    """

    total: int
    success: int = 0
    failed: int = 0
    broken: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    reruns: Counter[str] = field(default_factory=Counter)
    is_part: bool = False
    is_reruns_only: bool = False
    is_paused: bool = False
    under_way: Callable[[], Sequence[float]] = tuple
    remark: Callable[[], str] = str
    place: Callable[[], str] = str
    clock: Callable[[], float] = time.monotonic
    _done_at_start: int | None = None
    _total_s: float = 0.0
    _timed_runs: int = 0
    _samples: deque[tuple[float, float]] = field(default_factory=deque)

    @property
    def done(self) -> int:
        """How many runs have a result that stays."""
        return self.success + self.failed + self.broken - self.reruns.total()

    def count(self, status: str, replaced: str | None = None) -> None:
        """Count a result, which may replace one with another status."""
        setattr(self, status, getattr(self, status) + 1)
        if replaced is not None:
            setattr(self, replaced, getattr(self, replaced) - 1)
            self.reruns[replaced] = max(0, self.reruns[replaced] - 1)

    def add_duration(self, seconds: float) -> None:
        """Add the duration of a run that has ended."""
        self._total_s += seconds
        self._timed_runs += 1

    def add_sample(self) -> None:
        """Record how much is done by now, for the rate."""
        now = self.clock()
        if self._done_at_start is None:
            self._done_at_start = self.done
        is_unsure = not self._timed_runs and self.under_way()  # how far those are is unknown
        if self._samples and (is_unsure or now - self._samples[-1][0] < SAMPLE_INTERVAL_S):
            return
        worked = self._work_done
        self._samples.append((now, worked))
        while len(self._samples) > 2:
            noted, before = self._samples[1]
            if now - noted < WINDOW_S or worked - before < WINDOW_RUNS:
                break
            self._samples.popleft()

    def finished(self, *, is_over: bool = False) -> dict[str, int]:
        """Return the number of results by status; reruns that never came count once it is over."""
        return {
            status: getattr(self, status) - (0 if is_over else self.reruns[status])
            for status in ("success", "failed", "broken")
        }

    @property
    def _work_done(self) -> float:
        """The number of finished runs, plus the expected fraction of each run under way.

        Without the fractions, long runs that end at the same time would make the rate jump. A run
        under way counts for one at most, however long it takes.
        """
        usual_s = self._total_s / self._timed_runs if self._timed_runs else 0.0
        if not usual_s:
            return float(self.done)
        now = self.clock()
        return self.done + sum(min(1.0, (now - start) / usual_s) for start in self.under_way())

    @property
    def rate(self) -> float | None:
        """The recent number of runs per second; None while it is unknown."""
        if not self._samples or self._done_at_start is None:
            return None
        if self.done - self._done_at_start < max(MIN_RUNS, len(self.under_way())):
            return None
        began, before = self._samples[0]
        took, worked = self.clock() - began, self._work_done - before
        return worked / took if took > 0 and worked > 0 else None

    @property
    def eta_s(self) -> float | None:
        """How many seconds the rest will take at this rate; None if unknown."""
        rate = self.rate
        if rate is None or self.is_part:
            return None
        left = self.reruns.total() if self.is_reruns_only else self.total - self.done
        return max(0.0, left - (self._work_done - self.done)) / rate

    def line(self, *, is_over: bool = False) -> str:
        """Return a line such as `120/1,000 runs, 3 failed, 25.1/s, 0:35 left, $0.12`."""
        reruns = 0 if is_over else self.reruns.total()
        counts = self.finished(is_over=is_over)
        parts = [f"{sum(counts.values()):,}/{self.total:,} runs"]
        parts += [f"{reruns:,} to be run again"] if reruns else []
        parts += [f"{n:,} {status}" for status, n in counts.items() if n and status != "success"]
        if not is_over and self.is_paused:
            parts.append("paused")
        elif not is_over and self.done < self.total and (rate := self.rate) is not None:
            left = self.eta_s
            parts.append(spell_rate(rate))
            parts += [] if left is None or left < 0.5 else [f"{spell_time(left)} left"]
        parts += [spell_cost(self.cost_usd)] if self.cost_usd else []
        parts += [place] if not is_over and (place := self.place()) else []
        parts += [remark] if not is_over and (remark := self.remark()) else []
        return ", ".join(parts)


def spell_rate(rate: float) -> str:
    """Return a rate per second, minute or hour, whichever is easiest to read."""
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if round(rate * factor, 1) >= 1:  # rounded: 0.99 a minute is 1.0, not 59.7 an hour
            return f"{rate * factor:,.1f}/{unit}"
    return f"{rate * 3600:,.2f}/h"


def spell_time(seconds: float) -> str:
    """Return a duration as text: `0:35`, `1:02:03`, `3 days 4:05:06`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    text = f"{hour}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{days} day{'s' if days > 1 else ''} {text}" if days else text


class Progress:
    """Shows the progress; `update` limits how often."""

    def __init__(
        self, mode: ProgressMode, counts: ProgressCounts, stream: TextIO | None = None
    ) -> None:
        self._mode, self._counts = mode, counts
        self._stream = stream or sys.stderr
        self._shown_at = counts.clock()
        self._bar = _Bar(self._stream, counts) if mode == "bar" else None

    def update(self) -> None:
        """Show the progress if that is due."""
        if self._mode == "none":
            return
        now = self._counts.clock()
        if now - self._shown_at < (BAR_INTERVAL_S if self._mode == "bar" else LINE_INTERVAL_S):
            return
        self._shown_at = now
        self._show()

    def update_remark(self) -> None:
        """Show the progress while a run occupies the loop's thread, if there is a remark."""
        if self._mode != "none" and self._counts.clock() - self._shown_at >= LINE_INTERVAL_S:
            self._shown_at = self._counts.clock()
            if self._counts.remark():
                self._show()

    def _show(self, *, is_over: bool = False) -> None:
        line = self._counts.line(is_over=is_over)
        try:
            if self._bar is not None:
                self._bar.show(line)
            else:
                print(line, file=self._stream, flush=True)
        except (OSError, ValueError):  # the terminal is gone, or the log's disk is full
            self._mode = "none"

    @contextmanager
    def hidden_bar(self) -> Iterator[None]:
        """Remove the bar while other lines are printed within the block."""
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.end(stays=False)
        yield
        if self._bar is not None and self._mode == "bar":
            self._bar = _Bar(self._stream, self._counts)

    def close(self) -> None:
        """Show the final state: the bar stays, a log gets its last line."""
        if self._mode == "none":
            return
        self._show(is_over=True)
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.end(stays=True)


class _Bar:
    """A progress bar on a terminal with a line of text."""

    def __init__(self, stream: TextIO, counts: ProgressCounts) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as RichProgress, TextColumn

        self._counts = counts
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
            "", total=counts.total, completed=counts.done, line=counts.line()
        )
        self._bar.start()

    def show(self, line: str) -> None:
        """Draw the bar with the current numbers and this line."""
        counts = self._counts
        self._bar.update(self._task, completed=counts.done, total=counts.total, line=line)
        self._bar.refresh()

    def end(self, *, stays: bool) -> None:
        """Stop drawing; the bar stays on the terminal or is removed."""
        self._bar.live.transient = not stays
        self._bar.stop()
