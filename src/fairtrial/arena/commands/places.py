"""Where commands run: on this machine as it is, or in copies of two revisions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from fairtrial.arena.import_roots import find_import_roots
from fairtrial.arena.interpreter import Interpreter, probe_interpreter
from fairtrial.arena.model.problem import Check, CodeProblem, resolve_paths
from fairtrial.arena.slots.pool import WorktreePool, WorktreeSlot
from fairtrial.arena.snapshot.revisions import THE_TREE
from fairtrial.arena.snapshot.snapshot import find_top
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import (
    Captured,
    Command,
    Completed,
    Ending,
    Limits,
    Plain,
    Sandbox,
    find_sandbox,
)

RUNNER = HARNESS / "command_runner.py"
LIMITS = Limits(memory_mb=1 << 20, processes=4096, file_mb=1 << 20)
"""The commands are the user's own: limits only keep a mistake from taking the machine down."""


class CommandPlace(Protocol):
    """Where one of two commands runs."""

    @property
    def name(self) -> str:
        """What it is, for people: a revision, or nothing."""
        ...

    def command(self, channel: int, timeout_s: float) -> Command:
        """Return the command that starts a runner there, with this end of its channel."""
        ...

    async def run(self, command: Command) -> Completed:
        """Run it; when this returns or is cancelled, all of its processes have ended."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """The present folder and environment, without isolation.

    name: empty
    """

    name: str = ""

    def command(self, channel: int, timeout_s: float) -> Command:
        """Return the command that starts a runner."""
        argv = (sys.executable, "-I", "-S", str(RUNNER))
        env = {**os.environ, "FAIRTRIAL_CHANNEL": str(channel)}
        return Command(argv, Path.cwd(), env, timeout_s=timeout_s, channel_fd=channel)

    async def run(self, command: Command) -> Completed:
        """Run a runner; it ends what it has started."""
        import anyio

        assert command.channel_fd is not None
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=command.cwd,
                env=command.env,
                start_new_session=True,
                pass_fds=(command.channel_fd,),
            )
        async with process:
            try:
                status = await process.wait()
            except BaseException:
                if process.returncode is None:
                    process.terminate()
                with anyio.CancelScope(shield=True):
                    await process.wait()
                raise
        nothing = Captured()
        return Completed(
            Ending.EXITED,
            status,
            None,
            nothing,
            nothing,
            b"",
            False,
            0.0,
            0.0,
            0.0,
        )


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a revision, in a sandbox.

    name: the revision
    stage: the slot with the copy
    """

    name: str
    stage: Stage

    def command(self, channel: int, timeout_s: float) -> Command:
        """Return the command that starts a runner."""
        argv = ["{python}", "-I", "-S", str(RUNNER)]
        return self.stage.command(argv, timeout_s=timeout_s, line=channel)

    async def run(self, command: Command) -> Completed:
        """Run a runner in the sandbox."""
        return await self.stage.run(command)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of two revisions.

    first, second: where commands run
    notes: remarks for people about the copies
    are_same: whether both hold the same files
    """

    first: Copy
    second: Copy
    notes: tuple[str, ...]
    are_same: bool


@asynccontextmanager
async def open_copies(
    folder: Path, revisions: Sequence[str], *, unsandboxed: bool = False
) -> AsyncIterator[Copies]:
    """Copy two revisions of a folder's repository, for the duration of the block.

    revisions: two names that git knows; `.` is the tree as it is
    unsandboxed: whether commands may run without a sandbox where there is none

    Raises `StudyError` if the folder lies in no repository, or there is no such revision.
    """
    import anyio

    top = await find_top(folder)
    problem = CodeProblem(
        "command", check=(Check(command=("true",)),), limits=LIMITS, folder=folder
    )
    problem = resolve_paths(problem, top)
    sandbox = await anyio.to_thread.run_sync(
        partial(find_sandbox, problem.sandbox, unsandboxed=unsandboxed)
    )
    interpreter = await probe_interpreter(problem, top)
    first, second = (
        WorktreePool(
            top,
            1,
            python=interpreter.executable,
            revision="" if revision == THE_TREE else revision,
        )
        for revision in revisions
    )
    async with first, second, first.acquire() as one, second.acquire() as two:
        copies = [
            Copy(name, _make_stage(name, problem, interpreter, sandbox, pool, slot))
            for name, pool, slot in zip(revisions, (first, second), (one, two), strict=True)
        ]
        notes = [*first.notes, *(f"not enforced: {text}" for text in sandbox.shortfalls)]
        are_same = first.snapshot.tree == second.snapshot.tree
        yield Copies(copies[0], copies[1], tuple(dict.fromkeys(notes)), are_same)


def _make_stage(
    name: str,
    problem: CodeProblem,
    interpreter: Interpreter,
    sandbox: Sandbox,
    pool: WorktreePool,
    slot: WorktreeSlot,
) -> Stage:
    """Return a stage on a slot; raise `StudyError` if the revision lacks the present folder."""
    if not (slot.path / problem.cwd).is_dir():
        message = f"{name} has no folder {problem.cwd}, where the command is to run"
        raise StudyError(Mistake((), message, "start it from a folder that both have"))
    own = replace(problem, base=name)
    return Stage(
        problem=own,
        interpreter=interpreter,
        sandbox=sandbox if sandbox.relocates else Plain(pool.base.parent),
        slot=slot.path,
        seen=pool.snapshot.source if sandbox.relocates else slot.path,
        import_roots=find_import_roots(pool.base, problem.cwd),
    )
