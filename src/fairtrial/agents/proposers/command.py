"""Candidates from any command-line agent: `claude -p`, `codex exec`, `aider`, a script.

Each request gets a folder of its own with the project's files, and the agent edits them there. The
candidate is what the files have become, compared with the base: commits, stashes and branches make
no difference. The folder is removed afterwards and never used again.

The agent runs in the sandbox that candidates run in, but with what its options name: variables, a
network, a home folder. **Code that it runs there can see its key**, and all else that it was
given: that is how such agents work. Use a key that can do no more than it has to, with a limit. A
candidate that holds the key's value is refused, and it is removed from all that is kept; what lies
in `home` is not looked for.

What the agent changes beside the editable files is left out of the candidate, and named in its
note: agents leave logs and caches, and tests that they added prove nothing here. The rest is judged
without it.

It holds the shared side of the host's lock for as long as it runs: nothing is timed meanwhile.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fairtrial.agents.proposers.command_keys import Keys
from fairtrial.agents.proposers.command_prompt import write_prompt
from fairtrial.agents.proposers.command_slot import TooLargeError
from fairtrial.agents.proposers.command_workshop import AgentSlot, Taken
from fairtrial.arena.proposals.folders import LARGEST_MB
from fairtrial.arena.snapshots.snapshot import Snapshot
from fairtrial.errors import LabError, Mistake, StudyError, on_one_line
from fairtrial.model.candidates import Candidate
from fairtrial.model.commands import Command, Completed, Ending, Limits
from fairtrial.model.proposals import Brief, Kind, Reply, Request, Usage
from fairtrial.model.record import Record
from fairtrial.protocols import Proposer, Sandbox
from fairtrial.sandbox.quiet import HostLock
from fairtrial.sandbox.system import system_mounts

if TYPE_CHECKING:
    import anyio

LONGEST_ARGUMENT_BYTES = 120_000
"""Linux takes no argument of 128 KiB or more."""
LONGEST_TAIL, LONGEST_NOTE, MOST_NAMED = 1_500, 500, 5
PROMPT_FILE = "prompt.md"
PROMPT, PYTHON = "{prompt}", "{python}"
_OURS = ("HOME", "TMPDIR", "TMP", "TEMP", "PWD")
_NOT_FOUND = 127


class Workshop(Protocol):
    """What a proposer may use beyond brief and request: see `command_workshop.ArenaWorkshop`.

    A proposer that needs it has a method ``async def prepared(self, workshop) -> Proposer``; what
    that returns is used in its place while the arena is open.
    """

    @property
    def folder(self) -> Path:
        """Where relative paths in options start."""
        ...

    @property
    def sandbox(self) -> Sandbox: ...

    @property
    def lock(self) -> HostLock: ...

    @property
    def snapshot(self) -> Snapshot: ...

    def slot(
        self, *, about: str = "", git: bool = True, home: Path | None = None
    ) -> AbstractAsyncContextManager[AgentSlot]:
        """A new private folder with the base's files, and `about` applied; removed afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class CommandProposer(Record):
    """A command-line agent that edits files in a folder of its own.

    Code that it runs there can see its key: the values of `variables`, and what lies in `home`.

    argv: the program and its arguments. `{prompt}` stands for the prompt, or its file; `{python}`
        for the problem's Python. It starts in the project's folder
    prompt: how it is told what to do: on `stdin`, as an `argument`, or in a `file` whose path it
        gets; by default as an argument if `{prompt}` stands in `argv`, else on stdin
    variables: the names of environment variables that are passed on, and nothing else is. A value
        of 8 characters or more counts as a secret: a candidate that holds it is refused
    network: whether it can use the network
    home: a folder whose contents its home starts with, a fresh copy each time: settings,
        credentials. Not your own home: all of that would be copied
    readable: folders that it may read beside the system's: where it is installed, if that is in
        your home
    git: whether the project's folder is a repository, of one commit
    timeout_s: how long it may take
    most_at_once: how many of them may run at the same time
    limits: what each may use of the machine
    cost_usd: what one request costs, as you know it (0 for a script); a ceiling needs it
    """

    argv: tuple[str, ...]
    prompt: Literal["stdin", "argument", "file"] | None = None
    variables: tuple[str, ...] = ()
    network: bool = False
    home: Path | None = None
    readable: tuple[Path, ...] = ()
    git: bool = True
    timeout_s: float = 1_800.0
    most_at_once: int = 1
    limits: Limits = field(default_factory=lambda: Limits(memory_mb=4_096, processes=512))
    cost_usd: float | None = None

    name = "command"
    can_batch = False

    def _mistakes(self) -> Iterator[Mistake]:
        yield from _argv_mistakes(self.argv, self.prompt)
        yield from _variable_mistakes(self.variables)
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            yield Mistake(("timeout_s",), f"must be more than 0 seconds, got {self.timeout_s:g}")
        if self.most_at_once < 1:
            yield Mistake(("most_at_once",), f"must be 1 or more, got {self.most_at_once}")
        if self.limits.network:
            yield Mistake(("limits", "network"), "has an option of its own", "network: true")
        if self.cost_usd is not None and not (self.cost_usd >= 0 and math.isfinite(self.cost_usd)):
            yield Mistake(("cost_usd",), f"must be 0 or more, got {self.cost_usd:g}")

    @property
    def program(self) -> str:
        """What it is called."""
        return Path(self.argv[0]).name

    @property
    def way(self) -> Literal["stdin", "argument", "file"]:
        """How it is told what to do."""
        has_place = any(PROMPT in word for word in self.argv)
        return self.prompt or ("argument" if has_place else "stdin")

    def can(self, kind: Kind) -> bool:
        """It takes whatever comes."""
        return True

    def check_ceiling(self, max_cost: float | None) -> None:
        """Refuse to start under a ceiling that nobody could keep: raises `StudyError`."""
        if max_cost is not None and self.cost_usd is None:
            raise StudyError(
                Mistake(
                    ("cost_usd",),
                    f"nobody knows what {self.program} costs, so that a ceiling of "
                    f"${max_cost:g} can't be kept",
                    "say what one request costs at most (0 for a script), or leave out the ceiling",
                )
            )

    def check_ready(self, folder: Path = Path()) -> None:
        """Whether variables, program and folders are there: raises `StudyError`.

        folder: where relative paths start
        """
        Keys.of(self.variables)
        _find_program(self.argv[0])
        for place, each in enumerate(self.readable):
            _existing(each, folder, ("readable", place))
        self._seed(folder)

    def _seed(self, folder: Path) -> Path | None:
        if self.home is None:
            return None
        home = _existing(self.home, folder, ("home",))
        if not home.is_dir():
            raise StudyError(Mistake(("home",), f"{home} is not a folder"))
        if Path.home().resolve().is_relative_to(home):
            hint = "name a folder with what the agent needs, such as a copy of its settings"
            raise StudyError(Mistake(("home",), "your own home would be copied each time", hint))
        return home

    async def prepared(self, workshop: Workshop) -> Proposer:
        """The same with a place to work; raises `StudyError` where something is missing."""
        import anyio

        self.check_ready(workshop.folder)
        program = _find_program(self.argv[0])
        readable = [
            _existing(each, workshop.folder, ("readable", place))
            for place, each in enumerate(self.readable)
        ]
        if program is not None and not _is_shown(program, readable):
            readable.append(program)
        return ReadyCommand(
            self,
            workshop,
            Keys.of(self.variables),
            self._seed(workshop.folder),
            program,
            tuple(readable),
            anyio.Semaphore(self.most_at_once),
        )

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Not without a place to work."""
        raise LabError("a command-line agent needs a workshop: await prepared(workshop) first")


@dataclass(frozen=True, slots=True)
class ReadyCommand:
    """A command-line agent with a place to work.

    options: what the study says of it
    workshop: where it works
    keys: the values of its variables
    seed: what its home starts with
    program: where it is installed; None if it is the problem's Python, or comes with the project
    readable: what it may read
    seats: for as many as may run at once
    """

    options: CommandProposer
    workshop: Workshop
    keys: Keys
    seed: Path | None
    program: Path | None
    readable: tuple[Path, ...]
    seats: anyio.Semaphore

    name = "command"
    can_batch = False

    @property
    def most_at_once(self) -> int:
        """How many may run at the same time."""
        return self.options.most_at_once

    def can(self, kind: Kind) -> bool:
        """It takes whatever comes."""
        return self.options.can(kind)

    def check_ceiling(self, max_cost: float | None) -> None:
        """Refuse to start under a ceiling that nobody could keep: raises `StudyError`."""
        self.options.check_ceiling(max_cost)

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Let it work; what it leaves is the candidate."""
        prompt = write_prompt(brief, request)
        if self.options.way == "argument" and len(prompt.encode()) > LONGEST_ARGUMENT_BYTES:
            why = f"the prompt has {len(prompt.encode()):,} bytes, too many for an argument"
            return self._refuse(f"{why}: set `prompt: stdin` or `prompt: file`", 0.0)
        about = request.about[0].diff if request.about else ""
        async with self.seats, self.workshop.lock.shared():
            began_s = time.monotonic()
            try:
                reply = await self._work(request, prompt, about)
            except StudyError as error:
                return self._refuse(str(error), time.monotonic() - began_s)
        return reply

    async def _work(self, request: Request, prompt: str, about: str) -> Reply:
        git = self.options.git
        async with self.workshop.slot(about=about, git=git, home=self.seed) as slot:
            done = await self.workshop.sandbox.run(self._command(slot, prompt))
            exchange = self._exchange(prompt, done)
            why = self._failure(done)
            if why:
                return self._refuse(f"{why}{self._tail(done)}", done.wall_s, exchange)
            try:
                taken = await slot.take()
            except TooLargeError:
                why = f"{self.options.program} left more than {LARGEST_MB} MB"
                return self._refuse(why, done.wall_s, exchange)
        dropped = self._spell_dropped(taken)
        exchange["dropped"] = [self.keys.redact(path) for path in taken.dropped]
        why = self._find_key(taken)
        if not why and (taken.is_as_given or not taken.diff):
            why = f"{self.options.program} changed nothing{dropped}{self._tail(done)}"
        if why:
            return self._refuse(why, done.wall_s, exchange)
        said = on_one_line(self.keys.read(done.stdout).strip()[-LONGEST_NOTE:], LONGEST_NOTE)
        candidate = Candidate(
            f"{self.options.program}-{request.line}.{request.step}",
            diff=taken.diff,
            parent=request.about[0].digest if request.about else None,
            origin=f"command: {self.options.program}",
            note="; ".join(part for part in (dropped.removeprefix(": "), said) if part),
        )
        return Reply((candidate,), self._usage(done.wall_s), exchange=(exchange,))

    # -- the command --

    def _command(self, slot: AgentSlot, prompt: str) -> Command:
        options, stdin, told = self.options, b"", prompt
        if options.way == "stdin":
            stdin = prompt.encode()
        elif options.way == "file":
            (slot.home / PROMPT_FILE).write_text(prompt, "utf-8")
            told = str(slot.home_seen / PROMPT_FILE)
        words = [word.replace(PYTHON, slot.python) for word in options.argv]
        if self.program is not None:
            words[0] = str(self.program)
        words = [word.replace(PROMPT, told) for word in words]
        return Command(
            # Sandboxes set HOME themselves, last of all.
            argv=("env", f"HOME={slot.home_seen}", *words),
            cwd=slot.cwd,
            env={**self._with_path(slot.variables()), **self.keys.values},
            view=slot.view(self.readable),
            limits=_with_network(options.limits, options.network),
            timeout_s=options.timeout_s,
            stdin=stdin,
        )

    def _with_path(self, variables: Mapping[str, str]) -> dict[str, str]:
        """What lies beside the program is often what it is run by."""
        own = [] if self.program is None else [str(self.program.parent)]
        path = os.pathsep.join([variables["PATH"], *own])
        return {**variables, "PATH": path}

    # -- what came of it --

    def _failure(self, done: Completed) -> str:
        """Why what it left is not used, whatever it is."""
        name = self.options.program
        if done.ending == Ending.TIMEOUT:
            return f"{name} took longer than {self.options.timeout_s:g} s"
        if done.ending in (Ending.MEMORY, Ending.PROCESSES):
            return f"{name} used too much: {done.ending.value} (see `limits`)"
        if done.ending == Ending.SIGNALLED:
            return f"{name} died of signal {done.signal}"
        if done.exit_code == _NOT_FOUND:
            return f"{name} can't be run (name the folders that it needs in `readable`)"
        return f"{name} ended with status {done.exit_code}" if done.exit_code else ""

    def _tail(self, done: Completed) -> str:
        """The end of what it printed, on errors or else at all, without keys."""
        said = self.keys.read(done.stderr).strip() or self.keys.read(done.stdout).strip()
        return f"; it said: {said[-LONGEST_TAIL:]}" if said else ""

    def _spell_dropped(self, taken: Taken) -> str:
        if not taken.dropped:
            return ""
        named = ", ".join(on_one_line(path, 200) for path in taken.dropped[:MOST_NAMED])
        more = len(taken.dropped) - MOST_NAMED
        return self.keys.redact(
            f": left out, as they are not editable: {named}"
            + (f" and {more} more" if more > 0 else "")
        )

    def _find_key(self, taken: Taken) -> str:
        """A value that a file holds now and did not before, in its content or in its name."""
        for path, state in taken.files.items():
            before = taken.before.get(path)
            for content, old in (
                (state.content if state else b"", before.content if before else b""),
                (os.fsencode(path), os.fsencode(path) if before else b""),
            ):
                found = self.keys.find(content)
                if found and not self.keys.find(old):
                    where = self.keys.redact(on_one_line(path, 200))
                    return f"{self.options.program} put the value of {found} into {where}"
        return ""

    def _exchange(self, prompt: str, done: Completed) -> dict[str, Any]:
        kept: dict[str, Any] = self.keys.redact_all(
            {"argv": list(self.options.argv), "prompt": prompt, "ending": done.ending.value}
        )
        said = {"stdout": self.keys.read(done.stdout), "stderr": self.keys.read(done.stderr)}
        numbers = {"exit_code": done.exit_code, "signal": done.signal, "seconds": done.wall_s}
        return {**kept, **said, **numbers}

    def _refuse(self, why: str, seconds: float, exchange: Mapping[str, Any] | None = None) -> Reply:
        kept = () if exchange is None else (exchange,)
        return Reply(usage=self._usage(seconds), refusal=self.keys.redact(why), exchange=kept)

    def _usage(self, seconds: float) -> Usage:
        return Usage(self.options.program, cost_usd=self.options.cost_usd, seconds=seconds)


def _with_network(limits: Limits, network: bool) -> Limits:
    return Limits(limits.memory_mb, limits.processes, limits.file_mb, network)


# -- options --


def _argv_mistakes(argv: tuple[str, ...], prompt: str | None) -> Iterator[Mistake]:
    if not argv or not argv[0].strip():
        yield Mistake(("argv",), "must name a program", 'for example ["claude", "-p"]')
        return
    if any("\0" in word for word in argv):
        yield Mistake(("argv",), "holds a null character, which no argument can")
    if "=" in argv[0] or (len(argv[0].split()) > 1 and "/" not in argv[0]):
        hint = "write each word on its own; variables are set by a first word `env`"
        yield Mistake(("argv", 0), f"expected a program, got '{argv[0]}'", hint)
    has_place = any(PROMPT in word for word in argv)
    if prompt == "stdin" and has_place:
        yield Mistake(("prompt",), "is on stdin, but `{prompt}` stands in `argv`")
    if prompt in ("argument", "file") and not has_place:
        yield Mistake(("argv",), "must say where the prompt goes", "put `{prompt}` there")


def _variable_mistakes(names: tuple[str, ...]) -> Iterator[Mistake]:
    for place, name in enumerate(names):
        # What is no name may be the key itself: it is not repeated.
        if not (name.isascii() and name.isidentifier()):
            message = "must be the name of an environment variable, such as ANTHROPIC_API_KEY"
            yield Mistake(("variables", place), message, "the key itself goes into that variable")
        elif name in _OURS or name.startswith("FAIRTRIAL_"):
            yield Mistake(("variables", place), f"{name} is set by the sandbox")


def _find_program(word: str) -> Path | None:
    """Where a program is on this machine; None for one that comes with the project."""
    if word.startswith(PYTHON):
        return None
    if "/" in word:
        path = Path(word).expanduser()
        if not path.is_absolute():
            return None
        found: str | None = str(path) if path.exists() else None
    else:
        found = shutil.which(word)
    if found is None:
        hint = "install it, or write its whole path"
        raise StudyError(Mistake(("argv", 0), f"there is no program '{word}' on the path", hint))
    return Path(found).absolute()


def _existing(path: Path, folder: Path, place: tuple[str | int, ...]) -> Path:
    found = (folder / path.expanduser()).resolve()
    if not found.exists():
        raise StudyError(Mistake(place, f"there is no {found}"))
    return found


def _is_shown(program: Path, readable: list[Path]) -> bool:
    """Whether it can be seen without being shown by itself."""
    shown = [*readable, *(Path(target) for _, target in system_mounts(False))]
    return any(program.is_relative_to(folder) for folder in shown)
