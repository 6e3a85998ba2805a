"""What is to be seen while candidates are proposed, checked, timed: a line for each step."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

import click

from fairtrial.agents.optimise.lines import Entry
from fairtrial.cli.output import style
from fairtrial.cli.timings import COLOURS, verdict_text
from fairtrial.errors import on_one_line
from fairtrial.model.candidates import Candidate
from fairtrial.model.judgements import Judgement
from fairtrial.model.proposals import Reply, Request
from fairtrial.model.timings import Estimate
from fairtrial.stats.ratios import estimate_text

LONGEST = 160


@dataclass(slots=True)
class Lines:
    """A line for each thing that happens, on standard error."""

    began: float = field(default_factory=time.monotonic)
    stream: TextIO = field(default_factory=lambda: sys.stderr)  # a run's own is kept with the run
    best: tuple[float, str, str] | None = None
    cost_usd: float = 0.0
    notes: dict[str, str] = field(default_factory=dict)

    def say(self, text: str) -> None:
        self._print(f"{text} ...")

    def asked(self, request: Request) -> None:
        """The answer will be told."""

    def replied(self, request: Request, reply: Reply) -> None:
        self.cost_usd += reply.usage.cost_usd or 0.0
        if reply.refusal:
            self._print(f"line {request.line}, {request.kind.value}: {reply.refusal}")

    def entered(self, entry: Entry, candidate: Candidate) -> None:
        self.notes[entry.id] = candidate.note
        about = "" if entry.parent is None else f" of {entry.parent}"
        told = candidate.note or candidate.name
        if entry.duplicate_of is not None:
            told = f"same as {entry.duplicate_of}"
        self._print(f"{entry.id}  proposed ({entry.kind.value}{about}): {told}")

    def checking(self, entry: Entry) -> None:
        """Its verdict will be told."""

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None:
        self._print(f"{entry.id}  timed: {sessions} sessions, {estimate_text(estimate)}")

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        rejection, measured = judgement.rejection, judgement.measurement
        colour = COLOURS[judgement.verdict]
        if rejection is not None:
            told = f"{judgement.verdict.value}: {rejection.reason.value}: {rejection.message}"
            self._print(f"{entry.id}  {told}", colour)
            return
        estimate = measured.estimate if measured else None
        told = verdict_text(judgement.verdict, estimate)
        self._print(f"{entry.id}  {told}", colour)
        if not (measured and measured.adopt and estimate):
            return
        if self.best is None or estimate.low > self.best[0]:
            self.best = (estimate.low, entry.id, estimate_text(estimate))
            self._print(f"best so far: {entry.id}, {self.best[2]}", colour)

    def _print(self, text: str, colour: str | None = None) -> None:
        seconds = time.monotonic() - self.began
        told = style(on_one_line(text, LONGEST), fg=colour)
        click.echo(f"{seconds:6.1f} s  {told}", file=self.stream)


class Nothing:
    """Tells nothing."""

    def say(self, text: str) -> None: ...

    def asked(self, request: Request) -> None: ...

    def replied(self, request: Request, reply: Reply) -> None: ...

    def entered(self, entry: Entry, candidate: Candidate) -> None: ...

    def checking(self, entry: Entry) -> None: ...

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None: ...

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None: ...
