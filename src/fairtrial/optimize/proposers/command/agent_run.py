"""One run of a command-line agent: a private folder, a prompt, a command, the changed files."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairtrial.arena import (
    AgentChanges,
    AgentSlot,
    Candidate,
    TooLargeError,
    Workshop,
)
from fairtrial.core import StudyError, on_one_line
from fairtrial.llm import redact_all
from fairtrial.optimize.proposals import Brief, Reply, Request, Usage
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.command.prompt import write_prompt
from fairtrial.optimize.proposers.command.secrets import AgentSecrets
from fairtrial.sandbox import Command, Completed, Ending, Limits

LONGEST_ARGUMENT_BYTES = 120_000
"""Linux accepts no argument of 128 KiB or more."""
LONGEST_TAIL, LONGEST_NOTE, LONGEST_PATH, MOST_NAMED, MOST_KEPT = 1_500, 500, 200, 5, 1_000
PROMPT_FILE = "fairtrial-prompt.md"
PROMPT, PYTHON = "{prompt}", "{python}"
NOT_FOUND = 127
_LINE_END = "\n"
PromptMode = Literal["stdin", "argument", "file"]
"""How an agent gets its prompt."""


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """The options of an agent, with all paths resolved.

    argv: the program and its arguments
    prompt_mode: how it gets its prompt
    timeout_s: how long it may take
    limits: what it may use of the machine
    git: whether the project's folder is a repository
    most_at_once: how many of them may run at the same time
    cost_usd: the cost of one request; None if that isn't known
    program: its path; None if it is the problem's Python, or part of the project
    readable: what it may read
    is_alone: whether the program is a script that is visible without the files beside it
    home: the folder whose contents its home starts with
    """

    argv: tuple[str, ...]
    prompt_mode: PromptMode
    timeout_s: float
    limits: Limits
    git: bool
    most_at_once: int
    cost_usd: float | None
    program: Path | None
    readable: tuple[Path, ...]
    is_alone: bool
    home: Path | None

    @property
    def label(self) -> str:
        """The agent's name."""
        return name_agent(self.argv)


def name_agent(argv: Sequence[str]) -> str:
    """Return an agent's name: its program, or the script that Python runs."""
    program, *rest = argv[find_program_word(argv) :]
    if program != PYTHON:
        return Path(program).name
    return next((Path(word).name for word in rest[:1] if word[:1] not in ("-", "{")), "python")


def find_program_word(argv: Sequence[str]) -> int:
    """Return the index of the program: 0, or the word after `env` and its variables."""
    if Path(argv[0]).name == "env":
        for place, word in enumerate(argv[1:], 1):
            if word.startswith("-"):
                break  # `env` with options of its own isn't parsed
            if "=" not in word:
                return place
    return 0


class OpenCommandProposer(Proposer):
    """A command-line agent with a workshop to run in."""

    name = "command"

    def __init__(
        self, settings: CommandSettings, workshop: Workshop, agent_secrets: AgentSecrets
    ) -> None:
        import anyio

        self.settings, self.workshop, self.secrets = settings, workshop, agent_secrets
        self._seats = anyio.Semaphore(settings.most_at_once)

    @property
    def most_at_once(self) -> int:
        """How many agents may run at the same time."""
        return self.settings.most_at_once

    def estimate(self, brief: Brief) -> Usage:
        """Return the cost of one request, if the options name it."""
        return Usage(self.settings.label, cost_usd=self.settings.cost_usd)

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Run the agent in a private folder; the files that it changes are the candidate."""
        prompt = write_prompt(brief, request)
        if (
            self.settings.prompt_mode == "argument"
            and len(prompt.encode()) > LONGEST_ARGUMENT_BYTES
        ):
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
        git, home = self.settings.git, self.settings.home
        async with self.workshop.slot(about=about, git=git, home=home) as slot:
            done = await self.workshop.sandbox.run(self._command(slot, prompt))
            exchange = self._exchange(prompt, done)
            why = self._failure(done)
            if why:
                return self._refuse(f"{why}{self._tail(exchange)}", done.wall_s, exchange)
            try:
                taken = await slot.read_changes()
            except TooLargeError as error:
                why = f"{self.settings.label} left {error}"
                return self._refuse(why, done.wall_s, exchange)
        dropped = self._spell_dropped(taken)
        exchange["dropped"] = [
            self.secrets.redact(on_one_line(path, LONGEST_PATH))
            for path in taken.dropped[:MOST_KEPT]
        ]
        why = self._find_leak(taken)
        if not why and (taken.is_as_given or not taken.diff):
            why = f"{self.settings.label} changed nothing{dropped}{self._tail(exchange)}"
        if why:
            return self._refuse(why, done.wall_s, exchange)
        candidate = Candidate(
            f"{self.settings.label}-{request.lineage}.{request.step}",
            diff=taken.diff,
            parent=request.about[0].digest if request.about else None,
            origin=f"command: {self.settings.label}",
            note="; ".join(filter(None, (dropped.removeprefix(": "), _note(exchange["stdout"])))),
        )
        return Reply((candidate,), self._usage(done.wall_s), exchange=(exchange,))

    # -- the command --

    def _command(self, slot: AgentSlot, prompt: str) -> Command:
        settings, stdin, argument = self.settings, b"", prompt
        if settings.prompt_mode == "stdin":
            stdin = prompt.encode()
        elif settings.prompt_mode == "file":
            (slot.home / PROMPT_FILE).unlink(missing_ok=True)  # a link would lead elsewhere
            (slot.home / PROMPT_FILE).write_text(prompt, "utf-8")
            argument = str(slot.home_seen / PROMPT_FILE)
        words = [word.replace(PYTHON, slot.python) for word in settings.argv]
        if self.settings.program is not None:
            words[find_program_word(words)] = str(self.settings.program)
        words = [word.replace(PROMPT, argument) for word in words]
        return Command(
            # Sandboxes set HOME themselves, last of all.
            argv=("/usr/bin/env", f"HOME={slot.home_seen}", *words),
            cwd=slot.cwd,
            env={**self._with_path(slot.variables()), **self.secrets.values},
            view=slot.view(self.settings.readable),
            limits=settings.limits,
            timeout_s=settings.timeout_s,
            stdin=stdin,
        )

    def _with_path(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Add the program's folder to PATH: its interpreter is often beside it."""
        own = [] if self.settings.program is None else [str(self.settings.program.parent)]
        path = os.pathsep.join([variables["PATH"], *own])
        return {**variables, "PATH": path}

    # -- the result --

    def _failure(self, done: Completed) -> str:
        """Return why the agent's changes can't be used; empty if they can."""
        name = self.settings.label
        if done.ending == Ending.TIMEOUT:
            # Many agents retry silently when they can't reach their endpoint.
            cut_off = "" if self.settings.limits.network else ", without a network"
            return f"{name} took longer than {self.settings.timeout_s:g} s{cut_off}"
        if done.ending in (Ending.MEMORY, Ending.PROCESSES):
            return f"{name} used too much: {done.ending.value} (see `limits`)"
        if done.ending == Ending.SIGNALLED:
            return f"{name} died of signal {done.signal}"
        if done.exit_code == NOT_FOUND:
            return f"{name} can't be run (name the folders that it needs in `readable`)"
        # Such a program prints misleading advice, such as to reinstall it.
        alone = " (only the program itself is shown to it: see `readable`)"
        hint = alone if self.settings.is_alone else ""
        return f"{name} ended with status {done.exit_code}{hint}" if done.exit_code else ""

    def _tail(self, exchange: Mapping[str, Any]) -> str:
        """Return the end of what it printed, on both streams, without secrets.

        Some agents print errors on one stream and always a warning on the other. Some repeat the
        prompt, which is left out.
        """
        prompt = str(exchange["prompt"]).strip()
        texts = [str(exchange[name]).replace(prompt, "[prompt]") for name in ("stdout", "stderr")]
        parts = [part.strip() for part in texts if part.strip()]
        ends = [part[-LONGEST_TAIL // len(parts) :].strip() for part in parts]
        return f"; it said: {_LINE_END.join(ends)}" if ends else ""

    def _spell_dropped(self, taken: AgentChanges) -> str:
        if not taken.dropped:
            return ""
        named = ", ".join(on_one_line(path, LONGEST_PATH) for path in taken.dropped[:MOST_NAMED])
        more = len(taken.dropped) - MOST_NAMED
        return self.secrets.redact(
            f": left out, as they are not editable: {named}"
            + (f" and {more} more" if more > 0 else "")
        )

    def _find_leak(self, taken: AgentChanges) -> str:
        """Return where a changed file, its name or the diff shows a secret; empty if none does."""
        for path, state in taken.files.items():
            before = taken.before.get(path)
            for content, old in (
                (state.content if state else b"", before.content if before else b""),
                (os.fsencode(path), os.fsencode(path) if before else b""),
            ):
                variable = self.secrets.find(content)
                if variable and not self.secrets.find(old):
                    where = self.secrets.redact(on_one_line(path, LONGEST_PATH))
                    return f"{self.settings.label} put the value of {variable} into {where}"
        variable = self.secrets.find(taken.diff or b"")
        if variable:  # a file held it before; the diff would be kept and shown
            return f"the change shows the value of {variable}, which stood there: take it out first"
        return ""

    def _exchange(self, prompt: str, done: Completed) -> dict[str, Any]:
        given = {"argv": list(self.settings.argv), "prompt": prompt, "ending": done.ending.value}
        kept: dict[str, Any] = redact_all(given, self.secrets.redact)
        output = {
            "stdout": self.secrets.redact_output(done.stdout),
            "stderr": self.secrets.redact_output(done.stderr),
        }
        numbers = {"exit_code": done.exit_code, "signal": done.signal, "seconds": done.wall_s}
        return {**kept, **output, **numbers}

    def _refuse(self, why: str, seconds: float, exchange: Mapping[str, Any] | None = None) -> Reply:
        kept = () if exchange is None else (exchange,)
        return Reply(usage=self._usage(seconds), refusal=self.secrets.redact(why), exchange=kept)

    def _usage(self, seconds: float) -> Usage:
        return Usage(self.settings.label, cost_usd=self.settings.cost_usd, seconds=seconds)


def _note(output: str) -> str:
    """Return the end of an agent's output as one line."""
    words = " ".join(output.split())  # some pad their lines to the width of a terminal
    if len(words) > LONGEST_NOTE:
        words = f"... {words[-LONGEST_NOTE:].partition(' ')[2] or words[-LONGEST_NOTE:]}"
    return on_one_line(words, LONGEST_NOTE + 4)
