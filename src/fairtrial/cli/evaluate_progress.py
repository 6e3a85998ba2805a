"""Progress of `fairtrial evaluate`: a table in a terminal, lines in a log, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from fairtrial.arena import Judgement, events as arena_events
from fairtrial.cli.event_text import describe_event
from fairtrial.cli.live_display import Canvas, CurrentActivity, can_draw
from fairtrial.cli.output import count, note
from fairtrial.cli.verdict_rows import Row, lay_out
from fairtrial.cli.verdict_text import count_verdicts, make_row, shown_name
from fairtrial.core import events

LINES_S = 10.0
AROUND = 4
"""The lines of a terminal that rows of the table can't have: header, rule, state, cursor."""


class EvaluationProgress(AbstractContextManager["EvaluationProgress"]):
    """Follows the events of an evaluation, and keeps the judgements; shows nothing."""

    def __init__(self, names: Sequence[str]) -> None:
        """Follow candidates with these names, which are unique."""
        self._names = names
        self._places = {name: place for place, name in enumerate(names)}
        self._judged: dict[int, Judgement] = {}
        self._timed: dict[int, arena_events.TimingProgress] = {}

    def __exit__(self, *raised: object) -> None:
        """End the display; there is none here."""

    @property
    def judged(self) -> list[Judgement]:
        """The judgements so far, in the order of the candidates."""
        return [self._judged[place] for place in sorted(self._judged)]

    @property
    def state(self) -> str:
        """`5 of 6 judged: 3 passed, 2 rejected`."""
        counts = count_verdicts(list(self._judged.values()))
        text = f"{len(self._judged)} of {len(self._names)} judged"
        return f"{text}: {counts}" if counts else text

    @property
    def timing(self) -> str:
        """`timing deque.diff: 10 sessions, 1.04x [0.99, 1.09]`; empty if none is timed."""
        timed = list(self._timed.items())  # a copy: the table is drawn by another thread
        if not timed:
            return ""
        place, progress = timed[-1]
        text = f"timing {shown_name(self._names[place])}"
        text = f"{text}: {progress.text}" if progress.text else text
        others = len(timed) - 1
        return f"{text} ({others} more in the race)" if others else text

    def receive(self, event: events.Event) -> None:
        """Follow one event."""
        if isinstance(event, arena_events.CheckStarted):
            self.start_check(self._places[event.candidate_id])
        elif isinstance(event, arena_events.TimingProgress):
            self.show_timing(self._places[event.candidate_id], event)
        elif isinstance(event, arena_events.CandidateJudged):
            self.judge(self._places[event.candidate_id], event.judgement)
        else:
            self.show_activity(event)

    def show_activity(self, event: events.Event) -> None:
        """Show a phase, or a wait for the machine."""

    def start_check(self, place: int) -> None:
        """Show that a candidate's checks begin."""

    def show_timing(self, place: int, progress: arena_events.TimingProgress) -> None:
        """Show a candidate's speed so far; called between sessions."""
        self._timed.pop(place, None)  # the latest is the last
        self._timed[place] = progress

    def judge(self, place: int, judgement: Judgement) -> None:
        """Keep a candidate's judgement."""
        self._timed.pop(place, None)
        self._judged[place] = judgement


class EvaluationLog(EvaluationProgress):
    """Prints a line for each phase, and one for the state every now and then."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._printed_s = time.monotonic()

    def show_activity(self, event: events.Event) -> None:
        self._print(describe_event(event))

    def show_timing(self, place: int, progress: arena_events.TimingProgress) -> None:
        is_first = not self._timed
        super().show_timing(place, progress)
        if is_first or time.monotonic() - self._printed_s >= LINES_S:
            self._print(self.timing)

    def judge(self, place: int, judgement: Judgement) -> None:
        super().judge(place, judgement)
        is_due = time.monotonic() - self._printed_s >= LINES_S
        if is_due and len(self._judged) < len(self._names):
            self._print(self.state)

    def _print(self, text: str) -> None:
        self._printed_s = time.monotonic()
        note(f"{text} ...")


class LiveTable(EvaluationProgress):
    """The table of candidates while it fills, on standard error; removed when the block ends."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._began: dict[int, float] = {}
        self._activity = CurrentActivity("starting")
        self.canvas = Canvas(self._render, lambda: bool(self._timed))

    def __enter__(self) -> Self:
        self.canvas.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.canvas.__exit__(*raised)

    def show_activity(self, event: events.Event) -> None:
        self._activity.receive(event)

    def show_timing(self, place: int, progress: arena_events.TimingProgress) -> None:
        self._activity.end()
        super().show_timing(place, progress)
        self.canvas.touch()

    def start_check(self, place: int) -> None:
        self._activity.end()
        self._began.setdefault(place, time.monotonic())

    def judge(self, place: int, judgement: Judgement) -> None:
        self._activity.end()
        super().judge(place, judgement)

    def _render(self, canvas: Canvas) -> Any:
        from rich.text import Text

        shown = self._choose(max(canvas.height - AROUND, 1))
        text = Text(no_wrap=True, overflow="ellipsis")
        if self._names:
            rows = [self._row(place) for place in shown]
            for before, verdict, after, color in lay_out(rows, canvas.width, folded=False):
                text.append(before)
                text.append(verdict, style=color or "")
                text.append(f"{after}\n")
        activity = self._activity.name  # read once: another thread may change it
        waited_s = time.monotonic() - self._activity.began
        timing = self.timing
        done = f"{timing}; {self.state}" if timing else self.state
        line = f"{activity} ... {waited_s:.0f} s" if activity else f"{done} ..."
        if len(shown) < len(self._names):
            line += f" ({count(len(self._names) - len(shown), 'candidate')} not shown)"
        return text.append(line, style="dim")

    def _choose(self, room: int) -> list[int]:
        """Return the candidates that fit on the screen, in their order.

        Those that are timed or checked come first, then the last that were judged, then the next.
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
            return make_row(judgement)
        name = shown_name(self._names[place])
        timed = self._timed.get(place)
        if timed is not None:
            speed = timed.estimate.text() if timed.estimate else ""
            sessions = str(timed.sessions)
            return Row(name, "timing", "so far", "", "bold", speed=speed, sessions=sessions)
        began = self._began.get(place)
        state = "waiting" if began is None else "checking"
        duration = "" if began is None else f"{time.monotonic() - began:.1f} s"
        return Row(name, state, "", duration, "dim")


def make_display(names: Sequence[str], *, is_silent: bool) -> EvaluationProgress:
    """Return the display that suits standard error."""
    if is_silent:
        return EvaluationProgress(names)
    return LiveTable(names) if can_draw() else EvaluationLog(names)
