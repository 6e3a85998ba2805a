"""A command-line agent at work: a folder, a prompt, a command, and what it has left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairtrial.arena import LARGEST_MB, AgentSlot, Candidate, Taken, TooLargeError, Workshop
from fairtrial.core import StudyError, on_one_line
from fairtrial.llm import redact_all
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage
from fairtrial.optimize.proposers.command.prompt import write_prompt
from fairtrial.optimize.proposers.command.secrets import Keys
from fairtrial.sandbox import Command, Completed, Ending, Limits

LONGEST_ARGUMENT_BYTES = 120_000
"""Linux takes no argument of 128 KiB or more."""
LONGEST_TAIL, LONGEST_NOTE, LONGEST_PATH, MOST_NAMED, MOST_KEPT = 1_500, 500, 200, 5, 1_000
PROMPT_FILE = "fairtrial-prompt.md"
PROMPT, PYTHON = "{prompt}", "{python}"
NOT_FOUND = 127
_LINE_END = "\n"
Way = Literal["stdin", "argument", "file"]
"""How an agent is told what to do."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a study says of an agent, with everything found that it names.

    argv: the program and its arguments
    way: how it is told what to do
    timeout_s: how long it may take
    limits: what it may use of the machine
    git: whether the project's folder is a repository
    most_at_once: how many of them may run at the same time
    cost_usd: what one request costs; None if nobody knows
    program: where it is installed; None if it is the problem's Python, or comes with the project
    readable: what it may read
    is_alone: whether the program is a script that is shown without what lies beside it
    seed: what its home starts with
    """

    argv: tuple[str, ...]
    way: Way
    timeout_s: float
    limits: Limits
    git: bool
    most_at_once: int
    cost_usd: float | None
    program: Path | None
    readable: tuple[Path, ...]
    is_alone: bool
    seed: Path | None

    @property
    def label(self) -> str:
        """What it is called."""
        return name_agent(self.argv)


def name_agent(argv: Sequence[str]) -> str:
    """What an agent is called: its program, or the script that Python runs."""
    program, *rest = argv[find_program_word(argv) :]
    if program != PYTHON:
        return Path(program).name
    return next((Path(word).name for word in rest[:1] if word[:1] not in ("-", "{")), "python")


def find_program_word(argv: Sequence[str]) -> int:
    """Which of the words is the program: the first, or the one that `env` sets variables for."""
    if Path(argv[0]).name == "env":
        for place, word in enumerate(argv[1:], 1):
            if word.startswith("-"):
                break  # with options of its own it may be anything: that is for `env` to find out
            if "=" not in word:
                return place
    return 0


class CommandAgent:
    """A command-line agent with a place to work."""

    name = "command"
    can_batch = False

    def __init__(self, terms: Terms, workshop: Workshop, keys: Keys) -> None:
        import anyio

        self.terms, self.workshop, self.keys = terms, workshop, keys
        self._seats = anyio.Semaphore(terms.most_at_once)

    @property
    def most_at_once(self) -> int:
        """How many may run at the same time."""
        return self.terms.most_at_once

    def estimate(self, brief: Brief) -> Usage:
        """What one request takes, as far as anybody has said."""
        return Usage(self.terms.label, cost_usd=self.terms.cost_usd)

    def can(self, kind: RequestKind) -> bool:
        """It takes whatever comes."""
        return True

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Let it work; what it leaves is the candidate."""
        prompt = write_prompt(brief, request)
        if self.terms.way == "argument" and len(prompt.encode()) > LONGEST_ARGUMENT_BYTES:
            why = f"the prompt has {len(prompt.encode()):,} bytes, too many for an argument"
            return self._refuse(f"{why}: set `prompt: stdin` or `prompt: file`", 0.0)
        about = request.about[0].diff if request.about else ""
        async with self._seats, self.workshop.lock.shared():
            began_s = time.monotonic()
            try:
                reply = await self._work(request, prompt, about)
            except StudyError as error:
                return self._refuse(str(error), time.monotonic() - began_s)
        return reply

    async def _work(self, request: Request, prompt: str, about: str) -> Reply:
        git = self.terms.git
        async with self.workshop.slot(about=about, git=git, home=self.terms.seed) as slot:
            done = await self.workshop.sandbox.run(self._command(slot, prompt))
            exchange = self._exchange(prompt, done)
            why = self._failure(done)
            if why:
                return self._refuse(f"{why}{self._tail(exchange)}", done.wall_s, exchange)
            try:
                taken = await slot.take()
            except TooLargeError:
                why = f"{self.terms.label} left more than {LARGEST_MB} MB"
                return self._refuse(why, done.wall_s, exchange)
        dropped = self._spell_dropped(taken)
        exchange["dropped"] = [
            self.keys.redact(on_one_line(path, LONGEST_PATH)) for path in taken.dropped[:MOST_KEPT]
        ]
        why = self._find_key(taken)
        if not why and (taken.is_as_given or not taken.diff):
            why = f"{self.terms.label} changed nothing{dropped}{self._tail(exchange)}"
        if why:
            return self._refuse(why, done.wall_s, exchange)
        candidate = Candidate(
            f"{self.terms.label}-{request.line}.{request.step}",
            diff=taken.diff,
            parent=request.about[0].digest if request.about else None,
            origin=f"command: {self.terms.label}",
            note="; ".join(filter(None, (dropped.removeprefix(": "), _note(exchange["stdout"])))),
        )
        return Reply((candidate,), self._usage(done.wall_s), exchange=(exchange,))

    # -- the command --

    def _command(self, slot: AgentSlot, prompt: str) -> Command:
        terms, stdin, told = self.terms, b"", prompt
        if terms.way == "stdin":
            stdin = prompt.encode()
        elif terms.way == "file":
            (slot.home / PROMPT_FILE).unlink(missing_ok=True)  # a link would lead elsewhere
            (slot.home / PROMPT_FILE).write_text(prompt, "utf-8")
            told = str(slot.home_seen / PROMPT_FILE)
        words = [word.replace(PYTHON, slot.python) for word in terms.argv]
        if self.terms.program is not None:
            words[find_program_word(words)] = str(self.terms.program)
        words = [word.replace(PROMPT, told) for word in words]
        return Command(
            # Sandboxes set HOME themselves, last of all.
            argv=("/usr/bin/env", f"HOME={slot.home_seen}", *words),
            cwd=slot.cwd,
            env={**self._with_path(slot.variables()), **self.keys.values},
            view=slot.view(self.terms.readable),
            limits=terms.limits,
            timeout_s=terms.timeout_s,
            stdin=stdin,
        )

    def _with_path(self, variables: Mapping[str, str]) -> dict[str, str]:
        """What lies beside the program is often what it is run by."""
        own = [] if self.terms.program is None else [str(self.terms.program.parent)]
        path = os.pathsep.join([variables["PATH"], *own])
        return {**variables, "PATH": path}

    # -- what came of it --

    def _failure(self, done: Completed) -> str:
        """Why what it left is not used, whatever it is."""
        name = self.terms.label
        if done.ending == Ending.TIMEOUT:
            # Many try again and again without a word when they can't reach their endpoint.
            cut_off = "" if self.terms.limits.network else ", without a network"
            return f"{name} took longer than {self.terms.timeout_s:g} s{cut_off}"
        if done.ending in (Ending.MEMORY, Ending.PROCESSES):
            return f"{name} used too much: {done.ending.value} (see `limits`)"
        if done.ending == Ending.SIGNALLED:
            return f"{name} died of signal {done.signal}"
        if done.exit_code == NOT_FOUND:
            return f"{name} can't be run (name the folders that it needs in `readable`)"
        # What it says then leads astray: that it should be installed anew.
        alone = " (only the program itself is shown to it: see `readable`)"
        hint = alone if self.terms.is_alone else ""
        return f"{name} ended with status {done.exit_code}{hint}" if done.exit_code else ""

    def _tail(self, exchange: Mapping[str, Any]) -> str:
        """The end of what it printed, without keys.

        Of both streams: some tell their troubles on the one and always have a warning for the
        other. Some repeat the prompt first, which nobody needs here.
        """
        told = str(exchange["prompt"]).strip()
        said = [str(exchange[name]).replace(told, "[prompt]") for name in ("stdout", "stderr")]
        parts = [part.strip() for part in said if part.strip()]
        ends = [part[-LONGEST_TAIL // len(parts) :].strip() for part in parts]
        return f"; it said: {_LINE_END.join(ends)}" if ends else ""

    def _spell_dropped(self, taken: Taken) -> str:
        if not taken.dropped:
            return ""
        named = ", ".join(on_one_line(path, LONGEST_PATH) for path in taken.dropped[:MOST_NAMED])
        more = len(taken.dropped) - MOST_NAMED
        return self.keys.redact(
            f": left out, as they are not editable: {named}"
            + (f" and {more} more" if more > 0 else "")
        )

    def _find_key(self, taken: Taken) -> str:
        """A value in what it left: in a file's content or name, or in the lines around a change."""
        for path, state in taken.files.items():
            before = taken.before.get(path)
            for content, old in (
                (state.content if state else b"", before.content if before else b""),
                (os.fsencode(path), os.fsencode(path) if before else b""),
            ):
                found = self.keys.find(content)
                if found and not self.keys.find(old):
                    where = self.keys.redact(on_one_line(path, LONGEST_PATH))
                    return f"{self.terms.label} put the value of {found} into {where}"
        found = self.keys.find(taken.diff or b"")
        if found:  # a file held it before; the diff would be kept and shown
            return f"the change shows the value of {found}, which stood there: take it out first"
        return ""

    def _exchange(self, prompt: str, done: Completed) -> dict[str, Any]:
        given = {"argv": list(self.terms.argv), "prompt": prompt, "ending": done.ending.value}
        kept: dict[str, Any] = redact_all(given, self.keys.redact)
        said = {"stdout": self.keys.read(done.stdout), "stderr": self.keys.read(done.stderr)}
        numbers = {"exit_code": done.exit_code, "signal": done.signal, "seconds": done.wall_s}
        return {**kept, **said, **numbers}

    def _refuse(self, why: str, seconds: float, exchange: Mapping[str, Any] | None = None) -> Reply:
        kept = () if exchange is None else (exchange,)
        return Reply(usage=self._usage(seconds), refusal=self.keys.redact(why), exchange=kept)

    def _usage(self, seconds: float) -> Usage:
        return Usage(self.terms.label, cost_usd=self.terms.cost_usd, seconds=seconds)


def _note(said: str) -> str:
    """The end of what it said, as one line."""
    words = " ".join(said.split())  # some fill up their lines to the width of a terminal
    if len(words) > LONGEST_NOTE:
        words = f"... {words[-LONGEST_NOTE:].partition(' ')[2] or words[-LONGEST_NOTE:]}"
    return on_one_line(words, LONGEST_NOTE + 4)
