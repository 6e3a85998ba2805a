"""Progress of `fairtrial optimize`: lines for what happens, and in a terminal the current state."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

import click

from fairtrial.arena import events as arena_events
from fairtrial.cli.event_text import describe_event
from fairtrial.cli.live_display import Canvas, CurrentActivity, can_draw
from fairtrial.cli.output import count, fold, style
from fairtrial.cli.timing_text import COLORS
from fairtrial.core import events, on_one_line
from fairtrial.optimize import UsageTotal, events as optimize_events
from fairtrial.study import spell_cost

if TYPE_CHECKING:
    from rich.text import Text

LONGEST = 160
LONG_S = 1.0
"""Replies that take longer are shown, also if no tokens are counted."""
MOST_NAMED = 4
_TOTALS = events.Phase.WHOLE_PROCESSES


@dataclass(slots=True)
class ProgressLog:
    """Prints a line for each event, on standard error.

    began: when it began
    stream: where lines go; a run's own standard error is captured
    intro: printed before the first phase, and not at all if everything is known already
    best: the highest lower bound so far, and the text of its candidate
    spent: the usage of all replies
    """

    began: float = field(default_factory=time.monotonic)
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    intro: str = ""
    best: tuple[float, str] | None = None
    spent: UsageTotal = field(default_factory=UsageTotal)

    def receive(self, event: events.Event) -> None:
        """Print the line of an event, if it has one."""
        if isinstance(event, optimize_events.ProposalReceived):
            self._log_reply(event)
        elif isinstance(event, optimize_events.CandidateEntered):
            self._log_entered(event)
        elif isinstance(event, arena_events.TimingProgress):
            self._log_timing(event)
        elif isinstance(event, arena_events.CandidateJudged):
            self._log_judged(event)
        elif isinstance(event, optimize_events.CandidateDropped):
            self._log_activity(f"{event.candidate_id} is out: {event.why}.")
        elif isinstance(event, events.Remark):
            self._log_activity(event.text)
        elif text := describe_event(event):
            self._log_activity(f"{text} ...")

    def _log_activity(self, text: str) -> None:
        if self.intro:
            self.print_intro(fold(self.intro))
            self.intro = ""
        self.print(text)

    def _log_reply(self, event: optimize_events.ProposalReceived) -> None:
        self.spent.add(event.usage)
        usage, parts = event.usage, []
        if usage.tokens or usage.cost_usd or usage.seconds >= LONG_S:
            parts = [f"answered in {usage.seconds:.1f} s"]
            if describe_usage(self.spent):
                parts.append(f"so far {describe_usage(self.spent)}")
        if event.refusal:
            parts.append(event.refusal)
        if parts:
            self.print(f"lineage {event.lineage}, {event.kind.value}: {'; '.join(parts)}")

    def _log_entered(self, event: optimize_events.CandidateEntered) -> None:
        about = "" if event.parent_id is None else f" of {event.parent_id}"
        note = "; ".join(line for line in event.note.splitlines() if line.strip())
        text = f"{event.name} ({note})" if note else event.name
        if event.duplicate_of is not None:
            text = f"same as {event.duplicate_of}"
        self.print(f"{event.candidate_id}  proposed ({event.kind.value}{about}): {text}")

    def _log_timing(self, event: arena_events.TimingProgress) -> None:
        if event.sessions:
            self.print(f"{event.candidate_id}  timed: {event.text}")

    def _log_judged(self, event: arena_events.CandidateJudged) -> None:
        id, judgement = event.candidate_id, event.judgement
        rejection, measured = judgement.rejection, judgement.measurement
        color = COLORS[judgement.verdict]
        if rejection is not None:
            self.print(f"{id}  {judgement.verdict.value}: {rejection}", color)
            return
        estimate = measured.estimate if measured else None
        text = judgement.verdict_text
        if measured and estimate is None:  # its notes explain why there is no estimate
            text = ": ".join([text, *measured.notes[:1]])
        self.print(f"{id}  {text}", color)
        if not (measured and measured.adopt and estimate):
            return
        if self.best is None or estimate.low > self.best[0]:
            self.best = (estimate.low, f"{id}, {estimate.text()}")
            self.print(f"best so far: {self.best[1]}", color)

    def print_intro(self, text: str) -> None:
        """Print the text above all lines."""
        click.echo(text, file=self.stream)

    def print(self, text: str, color: str | None = None) -> None:
        """Print a line with the time since the beginning."""
        line = style(on_one_line(text, LONGEST), fg=color)
        click.echo(f"{self.seconds:6.1f} s  {line}", file=self.stream)

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return time.monotonic() - self.began


@dataclass(slots=True)
class LiveProgress(ProgressLog):
    """Prints lines that scroll by; the state of requests, checks, timing and the best stays below.

    asking: how many replies are awaited
    proposed: how many candidates have come
    same: how many of them equal another
    rejected: how many were rejected
    unjudged: how many the evaluator failed to judge
    checked: the ids of candidates that are being checked
    waiting: the ids of candidates that wait to be timed
    timed: the candidate that is timed, with its speed so far; empty if none is
    activity: the current phase
    """

    asking: int = 0
    proposed: int = 0
    same: int = 0
    rejected: int = 0
    unjudged: int = 0
    checked: dict[str, None] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    timed: str = ""
    activity: CurrentActivity = field(default_factory=lambda: CurrentActivity(""))
    canvas: Canvas = field(init=False)

    def __post_init__(self) -> None:
        self.canvas = Canvas(self.render, lambda: bool(self.timed))

    def receive(self, event: events.Event) -> None:
        """Update the state, and print the line of the event."""
        if isinstance(event, optimize_events.ProposalRequested):
            self.activity.end()
            self.asking += 1
        elif isinstance(
            event, (optimize_events.ProposalReceived, optimize_events.RequestWithdrawn)
        ):
            self.asking -= 1
        elif isinstance(event, optimize_events.CandidateEntered):
            self.proposed += 1
            self.same += event.duplicate_of is not None
        elif isinstance(event, arena_events.CheckStarted):
            self.checked[event.candidate_id] = None
        elif isinstance(event, optimize_events.CandidatePassed):
            self.checked.pop(event.candidate_id, None)
            self.waiting[event.candidate_id] = None
        elif isinstance(event, arena_events.TimingProgress):
            self._show_timing(event)
            return
        elif isinstance(event, arena_events.CandidateJudged):
            self._count_judged(event)
        elif isinstance(event, events.PhaseStarted) and event.phase == _TOTALS:
            # It is still timed, so the display is redrawn rarely.
            self.timed = f"{event.candidate_id}, in whole processes"
            self.canvas.draw()
            return
        elif isinstance(event, (events.Remark, optimize_events.CandidateDropped)):
            self.activity.end()
            self.timed = ""
        else:
            self.activity.receive(event)
            self.timed = ""
        ProgressLog.receive(self, event)

    def _show_timing(self, event: arena_events.TimingProgress) -> None:
        self.waiting.pop(event.candidate_id, None)
        figures = event.text
        self.timed = f"{event.candidate_id}: {figures}" if figures else event.candidate_id
        if event.sessions:
            self.canvas.touch()
        else:
            self.canvas.draw()  # before the first session: drawing would disturb it later

    def _count_judged(self, event: arena_events.CandidateJudged) -> None:
        self.checked.pop(event.candidate_id, None)
        self.waiting.pop(event.candidate_id, None)
        self.timed = ""
        judgement = event.judgement
        self.rejected += judgement.rejection is not None and not judgement.is_unjudged
        self.unjudged += judgement.is_unjudged

    def print_intro(self, text: str) -> None:
        """Print the text above the state."""
        from rich.text import Text

        self.canvas.print(Text(text))

    def print(self, text: str, color: str | None = None) -> None:
        """Print a line above the state."""
        from rich.text import Text

        line = Text(f"{self.seconds:6.1f} s  ")
        room = self.canvas.width - len(line) - 1
        self.canvas.print(line.append(on_one_line(text, room), style=color or ""))

    def render(self, canvas: Canvas) -> Text:
        """Return the state in two lines."""
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis", style="dim")
        text.append(f"{self.seconds:6.0f} s  {'; '.join(self._list_activities()) or 'starting'} ")
        text.append(f"...\n{'':10}{'; '.join(self._list_totals())}")
        return text

    def _list_activities(self) -> list[str]:
        parts = [activity] if (activity := self.activity.name) else []
        if self.asking:
            parts.append(f"{count(self.asking, 'answer')} awaited")
        parts += [f"checking {_list_ids(self.checked)}"] if self.checked else []
        parts += [f"{_list_ids(self.waiting)} passed, to be timed"] if self.waiting else []
        parts += [f"timing {self.timed}"] if self.timed else []
        return parts

    def _list_totals(self) -> list[str]:
        """Return the totals; the least important ones last, where a narrow terminal cuts."""
        parts = [f"{self.proposed} proposed, {self.rejected} rejected"]
        parts += [f"{self.unjudged} could not be judged"] if self.unjudged else []
        parts += _describe_cost(self.spent)
        parts.append(f"best: {self.best[1]}" if self.best else "none is faster yet")
        parts += [f"{self.same} the same as others"] if self.same else []
        return [*parts, *_describe_tokens(self.spent)]


def _list_ids(ids: dict[str, None]) -> str:
    listed = list(ids)  # a copy: another thread draws it
    more = len(listed) - MOST_NAMED
    return ", ".join(listed[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def describe_usage(spent: UsageTotal) -> str:
    """Return `1,234 tokens, $0.03`; empty if nothing was spent."""
    return ", ".join([*_describe_tokens(spent), *_describe_cost(spent)])


def _describe_tokens(spent: UsageTotal) -> list[str]:
    return [f"{spent.tokens:,} tokens"] if spent.tokens else []


def _describe_cost(spent: UsageTotal) -> list[str]:
    if not spent.is_cost_known:
        return ["cost unknown"]
    return [spell_cost(spent.cost_usd)] if spent.cost_usd else []


def make_display(
    intro: str, *, is_silent: bool
) -> tuple[events.Emit, AbstractContextManager[object]]:
    """Return the function that shows events as suits standard error, and its context."""
    if is_silent:
        return events.ignore_event, nullcontext()
    if not can_draw():
        return ProgressLog(intro=intro).receive, nullcontext()
    live = LiveProgress(intro=intro)
    return live.receive, live.canvas
