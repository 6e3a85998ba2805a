"""What is to be seen while candidates are proposed, checked, timed.

In a terminal, what happened scrolls by and the state of things stands below; in a log there is a
line for each step.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

import click

from fairtrial.arena import Candidate, Estimate, Judgement, estimate_text
from fairtrial.cli.live_display import Canvas, Step, can_draw
from fairtrial.cli.output import count, fold, style
from fairtrial.cli.timing_text import COLOURS, verdict_text
from fairtrial.core import on_one_line
from fairtrial.optimize import Entry, Reply, Request, Spent, Watcher
from fairtrial.study import spell_cost

if TYPE_CHECKING:
    from rich.text import Text

LONGEST = 160
LONG_S = 1.0
"""What takes longer to answer is told, also if nobody counts tokens."""
MOST_NAMED = 4


@dataclass(slots=True)
class Lines(Watcher):
    """A line for each thing that happens, on standard error."""

    began: float = field(default_factory=time.monotonic)
    stream: TextIO = field(default_factory=lambda: sys.stderr)  # a run's own is kept with the run
    intro: str = ""  # told when something begins, so not if all of it is known already
    best: tuple[float, str] | None = None
    spent: Spent = field(default_factory=Spent)

    def say(self, text: str) -> None:
        if self.intro:
            self.print_intro(fold(self.intro))
            self.intro = ""
        self.print(text if text.endswith(".") else f"{text} ...")

    def replied(self, request: Request, reply: Reply) -> None:
        self.spent.add(reply.usage)
        usage, told = reply.usage, []
        if usage.tokens or usage.cost_usd or usage.seconds >= LONG_S:
            told = [f"answered in {usage.seconds:.1f} s"]
            if spent_text(self.spent):
                told.append(f"so far {spent_text(self.spent)}")
        if reply.refusal:
            told.append(reply.refusal)
        if told:
            self.print(f"line {request.line}, {request.kind.value}: {'; '.join(told)}")

    def entered(self, entry: Entry, candidate: Candidate) -> None:
        about = "" if entry.parent is None else f" of {entry.parent}"
        note = "; ".join(line for line in candidate.note.splitlines() if line.strip())
        told = f"{candidate.name} ({note})" if note else candidate.name
        if entry.duplicate_of is not None:
            told = f"same as {entry.duplicate_of}"
        self.print(f"{entry.id}  proposed ({entry.kind.value}{about}): {told}")

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None:
        if sessions:
            told = [count(sessions, "session"), *([estimate_text(estimate)] if estimate else [])]
            self.print(f"{entry.id}  timed: {', '.join(told)}")

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        rejection, measured = judgement.rejection, judgement.measurement
        colour = COLOURS[judgement.verdict]
        if rejection is not None:
            told = f"{judgement.verdict.value}: {rejection.reason.value}: {rejection.message}"
            self.print(f"{entry.id}  {told}", colour)
            return
        estimate = measured.estimate if measured else None
        told = verdict_text(judgement.verdict, estimate)
        if measured and estimate is None:  # its notes say why nothing can be said
            told = ": ".join([told, *measured.notes[:1]])
        self.print(f"{entry.id}  {told}", colour)
        if not (measured and measured.adopt and estimate):
            return
        if self.best is None or estimate.low > self.best[0]:
            self.best = (estimate.low, f"{entry.id}, {estimate_text(estimate)}")
            self.print(f"best so far: {self.best[1]}", colour)

    def print_intro(self, text: str) -> None:
        """What stands above all."""
        click.echo(text, file=self.stream)

    def print(self, text: str, colour: str | None = None) -> None:
        """A line, with the time since the beginning."""
        told = style(on_one_line(text, LONGEST), fg=colour)
        click.echo(f"{self.seconds:6.1f} s  {told}", file=self.stream)

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return time.monotonic() - self.began


@dataclass(slots=True)
class Live(Lines):
    """What happened scrolls by, and below it stands who is asked, checked, timed, and the best."""

    asking: int = 0
    proposed: int = 0
    same: int = 0
    rejected: int = 0
    unjudged: int = 0
    checked: dict[str, None] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    timed: str = ""
    step: Step = field(default_factory=lambda: Step(""))
    canvas: Canvas = field(init=False)

    def __post_init__(self) -> None:
        self.canvas = Canvas(self.render, lambda: bool(self.timed))

    def say(self, text: str) -> None:
        if text.endswith("."):
            self.step.end()
        else:
            self.step.say(text)
        self.timed = ""
        Lines.say(self, text)

    def asked(self, request: Request) -> None:
        self.step.end()
        self.asking += 1

    def replied(self, request: Request, reply: Reply) -> None:
        self.asking -= 1
        Lines.replied(self, request, reply)

    def withdrawn(self, request: Request) -> None:
        self.asking -= 1

    def entered(self, entry: Entry, candidate: Candidate) -> None:
        self.proposed += 1
        self.same += entry.duplicate_of is not None
        Lines.entered(self, entry, candidate)

    def checking(self, entry: Entry) -> None:
        self.checked[entry.id] = None

    def passed(self, entry: Entry) -> None:
        self.checked.pop(entry.id, None)
        self.waiting[entry.id] = None

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None:
        self.waiting.pop(entry.id, None)
        told = [count(sessions, "session")] if sessions else []
        told += [estimate_text(estimate)] if estimate else []
        self.timed = ": ".join([entry.id, *([", ".join(told)] if told else [])])
        if sessions:
            self.canvas.touch()
        else:
            self.canvas.draw()  # nothing is timed yet, and later is no good moment

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        self.checked.pop(entry.id, None)
        self.waiting.pop(entry.id, None)
        self.timed = ""
        self.rejected += judgement.rejection is not None and not judgement.is_unjudged
        self.unjudged += judgement.is_unjudged
        Lines.judged(self, entry, judgement, diff)

    def print_intro(self, text: str) -> None:
        """Above the state of things, which may be drawn already."""
        from rich.text import Text

        self.canvas.print(Text(text))

    def print(self, text: str, colour: str | None = None) -> None:
        """A line above the state of things."""
        from rich.text import Text

        told = Text(f"{self.seconds:6.1f} s  ")
        room = self.canvas.width - len(told) - 1
        self.canvas.print(told.append(on_one_line(text, room), style=colour or ""))

    def render(self, canvas: Canvas) -> Text:
        """The state of things, in two lines."""
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis", style="dim")
        text.append(f"{self.seconds:6.0f} s  {'; '.join(self._now()) or 'starting'} ...\n")
        text.append(f"{'':10}{'; '.join(self._so_far())}")
        return text

    def _now(self) -> list[str]:
        """What is going on."""
        told = [step] if (step := self.step.name) else []
        if self.asking:
            told.append(f"{count(self.asking, 'answer')} awaited")
        told += [f"checking {_names(self.checked)}"] if self.checked else []
        told += [f"{_names(self.waiting)} passed, to be timed"] if self.waiting else []
        told += [f"timing {self.timed}"] if self.timed else []
        return told

    def _so_far(self) -> list[str]:
        """What has come of it; what matters less comes last, where a narrow terminal ends."""
        told = [f"{self.proposed} proposed, {self.rejected} rejected"]
        told += [f"{self.unjudged} could not be judged"] if self.unjudged else []
        told += _spell_costs(self.spent)
        told.append(f"best: {self.best[1]}" if self.best else "none is faster yet")
        told += [f"{self.same} the same as others"] if self.same else []
        return [*told, *_spell_tokens(self.spent)]


def _names(ids: dict[str, None]) -> str:
    known = list(ids)  # in one step: it is drawn by another thread
    more = len(known) - MOST_NAMED
    return ", ".join(known[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def spent_text(spent: Spent) -> str:
    """`1,234 tokens, $0.03`; nothing if nothing was spent."""
    return ", ".join([*_spell_tokens(spent), *_spell_costs(spent)])


def _spell_tokens(spent: Spent) -> list[str]:
    return [f"{spent.tokens:,} tokens"] if spent.tokens else []


def _spell_costs(spent: Spent) -> list[str]:
    if not spent.is_cost_known:
        return ["cost unknown"]
    return [spell_cost(spent.cost_usd)] if spent.cost_usd else []


def watch(intro: str, *, is_silent: bool) -> tuple[Watcher, AbstractContextManager[object]]:
    """The way to show it that fits where it is shown, and what to do it within."""
    if is_silent:
        return Watcher(), nullcontext()
    if not can_draw():
        return Lines(intro=intro), nullcontext()
    live = Live(intro=intro)
    return live, live.canvas
