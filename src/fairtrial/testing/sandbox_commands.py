"""Commands for the tests of sandboxes: small Python programs, and a folder that is theirs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.sandbox import (
    Command,
    Completed,
    Limits,
    Mount,
    Sandbox,
    View,
    own_python,
    own_python_mounts,
)

PREAMBLE = """
import fcntl, os, sys, time

def burn(seconds):
    while time.process_time() < seconds:
        sum(range(1000))

def daemon(work):
    "A grandchild in a session of its own; returns when it has begun to work."
    ready, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
            os.write(told, b"!")
            time.sleep(1000)
        os._exit(0)
    os.wait()
    os.close(told)
    os.read(ready, 1)
    os.close(ready)

def hold(path):
    "Lock a file for as long as this process lives."
    fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)

def tried(deed, *arguments):
    "Whether it could be done."
    try:
        deed(*arguments)
    except OSError:
        return False
    return True
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A sandbox and a folder that its commands may change."""

    sandbox: Sandbox
    folder: Path

    def command(
        self,
        program: str,
        *,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        view: View = View(),  # noqa: B008
        **options: Any,
    ) -> Command:
        """A Python program in the folder, which also sees what `view` adds."""
        python = tuple(Mount(Path(source), Path(target)) for source, target in own_python_mounts())
        shown = View(
            (*python, *view.readable), (Mount(self.folder, self.folder), *view.writable), view.over
        )
        return Command(
            (own_python(), "-I", "-S", "-c", PREAMBLE + program),
            options.pop("cwd", self.folder),
            {"PATH": os.defpath, **(env or {})},
            shown,
            limits or Limits(),
            **{"timeout_s": 60.0, **options},
        )

    def run(self, program: str, **options: Any) -> Completed:
        """Run it to its end."""
        import anyio

        return anyio.run(self.sandbox.run, self.command(program, **options))

    def run_all(self, programs: list[str], **options: Any) -> list[Completed]:
        """Run them all at once."""
        import anyio

        done: dict[int, Completed] = {}

        async def run(number: int) -> None:
            done[number] = await self.sandbox.run(self.command(programs[number], **options))

        async def run_all() -> None:
            async with anyio.create_task_group() as tasks:
                for number in range(len(programs)):
                    tasks.start_soon(run, number)

        anyio.run(run_all)
        return [done[number] for number in range(len(programs))]

    def told(self, program: str, **options: Any) -> str:
        """What it prints; it has to end well."""
        done = self.run(program, **options)
        assert done.exit_code == 0, (done.ending, done.signal, done.stderr.text)
        return done.stdout.text

    def is_held(self, name: str) -> bool:
        """Whether a process that has locked this file is still there."""
        with (self.folder / name).open("rb+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False
