"""What is to be seen while candidates are judged: a table that fills, lines in a log, nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from fairtrial.arena import Estimate, Judgement, estimate_text
from fairtrial.cli.live_display import Canvas, Step, can_draw
from fairtrial.cli.output import count, note
from fairtrial.cli.verdict_rows import Row, lay_out
from fairtrial.cli.verdict_text import count_verdicts, row_of, shown_name

LINES_S = 10.0
AROUND = 4
"""Lines of a terminal that the rows of the table can't have: header, rule, state, cursor."""


class Watch:
    """Is told how far the candidates are, and keeps their judgements; shows nothing."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._judged: dict[int, Judgement] = {}
        self._timed: dict[int, tuple[int, Estimate | None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    @property
    def judged(self) -> list[Judgement]:
        """What there is so far, in the order in which candidates were given."""
        return [self._judged[place] for place in sorted(self._judged)]

    @property
    def state(self) -> str:
        """`5 of 6 judged: 3 passed, 2 rejected`."""
        counts = count_verdicts(list(self._judged.values()))
        text = f"{len(self._judged)} of {len(self._names)} judged"
        return f"{text}: {counts}" if counts else text

    @property
    def timing(self) -> str:
        """`timing deque.diff: 10 sessions, 1.04x [0.99, 1.09]`; nothing if nobody is timed."""
        timed = list(self._timed.items())  # in one step: the table is drawn by another thread
        if not timed:
            return ""
        place, (sessions, estimate) = timed[-1]
        told = [count(sessions, "session")] if sessions else []
        told += [estimate_text(estimate)] if estimate else []
        text = f"timing {shown_name(self._names[place])}"
        text = f"{text}: {', '.join(told)}" if told else text
        others = len(timed) - 1
        return f"{text} ({others} more in the race)" if others else text

    def say(self, text: str) -> None:
        """What is going on before the first candidate is looked at."""

    def begin(self, place: int) -> None:
        """A candidate's checks begin."""

    def time(self, place: int, sessions: int, estimate: Estimate | None) -> None:
        """A candidate is being timed, and how it stands; told between sessions."""
        self._timed.pop(place, None)  # the last that was told of is the last
        self._timed[place] = sessions, estimate

    def judge(self, place: int, judgement: Judgement) -> None:
        """A candidate has its verdict."""
        self._timed.pop(place, None)
        self._judged[place] = judgement


class Lines(Watch):
    """A line for each step, and for how far it is every now and then: for logs."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._told = time.monotonic()

    def say(self, text: str) -> None:
        self._told = time.monotonic()
        note(f"{text} ...")

    def time(self, place: int, sessions: int, estimate: Estimate | None) -> None:
        is_first = not self._timed
        super().time(place, sessions, estimate)
        if is_first or time.monotonic() - self._told >= LINES_S:
            self.say(self.timing)

    def judge(self, place: int, judgement: Judgement) -> None:
        super().judge(place, judgement)
        if time.monotonic() - self._told >= LINES_S and len(self._judged) < len(self._names):
            self.say(self.state)


class LiveTable(Watch):
    """The table while it fills, on standard error; gone when the block ends."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._began: dict[int, float] = {}
        self._step = Step("starting")
        self.canvas = Canvas(self._render, lambda: bool(self._timed))

    def __enter__(self) -> Self:
        self.canvas.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.canvas.__exit__(kind, error, trace)

    def say(self, text: str) -> None:
        self._step.say(text)

    def time(self, place: int, sessions: int, estimate: Estimate | None) -> None:
        self._step.end()
        super().time(place, sessions, estimate)
        self.canvas.touch()

    def begin(self, place: int) -> None:
        self._step.end()
        self._began.setdefault(place, time.monotonic())

    def judge(self, place: int, judgement: Judgement) -> None:
        self._step.end()
        super().judge(place, judgement)

    def _render(self, canvas: Canvas) -> Any:
        from rich.text import Text

        shown = self._choose(max(canvas.height - AROUND, 1))
        text = Text(no_wrap=True, overflow="ellipsis")
        if self._names:
            rows = [self._row(place) for place in shown]
            for before, verdict, after, colour in lay_out(rows, canvas.width, folded=False):
                text.append(before)
                text.append(verdict, style=colour or "")
                text.append(f"{after}\n")
        step = self._step.name  # once: it is drawn by another thread
        waited = time.monotonic() - self._step.began
        timing = self.timing
        done = f"{timing}; {self.state}" if timing else self.state
        line = f"{step} ... {waited:.0f} s" if step else f"{done} ..."
        if len(shown) < len(self._names):
            line += f" ({count(len(self._names) - len(shown), 'candidate')} not shown)"
        return text.append(line, style="dim")

    def _choose(self, room: int) -> list[int]:
        """Which candidates there is room for, in their order.

        Those that are being timed or checked, then the last that were judged, then the next.
        """
        if len(self._names) <= room:
            return list(range(len(self._names)))
        return sorted(list(self._by_interest())[:room])

    def _by_interest(self) -> Iterator[int]:
        judged, timed = list(self._judged), list(self._timed)
        yield from reversed(timed)
        begun = {*judged, *timed}
        yield from (place for place in list(self._began) if place not in begun)
        yield from (place for place in reversed(judged) if place not in timed)
        seen = {*begun, *self._began}
        yield from (place for place in range(len(self._names)) if place not in seen)

    def _row(self, place: int) -> Row:
        judgement = self._judged.get(place)
        if judgement is not None:
            return row_of(judgement)
        timed = self._timed.get(place)
        if timed is not None:
            sessions, estimate = timed
            name = shown_name(self._names[place])
            speed, told = estimate_text(estimate), str(sessions)
            return Row(name, "timing", "so far", "", "bold", speed=speed, sessions=told)
        began = self._began.get(place)
        state = "waiting" if began is None else "checking"
        taken = "" if began is None else f"{time.monotonic() - began:.1f} s"
        return Row(shown_name(self._names[place]), state, "", taken, "dim")


def watch(names: Sequence[str], *, is_silent: bool) -> Watch:
    """The way to show it that fits where it is shown."""
    if is_silent:
        return Watch(names)
    return LiveTable(names) if can_draw() else Lines(names)
