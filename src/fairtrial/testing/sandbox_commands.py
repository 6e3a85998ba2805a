"""Commands for tests of sandboxes: small Python programs, and a folder that they may change."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.sandbox import Command, Completed, Limits, Mount, Sandbox, View, system

PREAMBLE = """
import fcntl, os, sys, time

def burn(seconds):
    while time.process_time() < seconds:
        sum(range(1000))

def daemon(work):
    "Start a grandchild in a new session; returns when its work is done."
    ready, signal = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
            os.write(signal, b"!")
            time.sleep(1000)
        os._exit(0)
    os.wait()
    os.close(signal)
    os.read(ready, 1)
    os.close(ready)

def hold(path):
    "Lock a file until this process ends."
    fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)

def tried(action, *arguments):
    "Return whether a call succeeds."
    try:
        action(*arguments)
    except OSError:
        return False
    return True
"""


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs small Python programs in a sandbox.

    sandbox: the tested sandbox
    folder: a folder that the programs may change
    """

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
        """Return the command that runs a Python program in the folder.

        view: what the program sees besides the folder
        """
        python = tuple(
            Mount(Path(source), Path(target)) for source, target in system.own_python_mounts()
        )
        full_view = View(
            (*python, *view.readable), (Mount(self.folder, self.folder), *view.writable), view.over
        )
        return Command(
            (system.own_python(), "-I", "-S", "-c", PREAMBLE + program),
            options.pop("cwd", self.folder),
            {"PATH": os.defpath, **(env or {})},
            full_view,
            limits or Limits(),
            **{"timeout_s": 60.0, **options},
        )

    def run(self, program: str, **options: Any) -> Completed:
        """Run a program to its end."""
        import anyio

        return anyio.run(self.sandbox.run, self.command(program, **options))

    def run_all(self, programs: list[str], **options: Any) -> list[Completed]:
        """Run programs at once; returns their results in order."""
        import anyio

        results: dict[int, Completed] = {}

        async def run(number: int) -> None:
            results[number] = await self.sandbox.run(self.command(programs[number], **options))

        async def run_all() -> None:
            async with anyio.create_task_group() as tasks:
                for number in range(len(programs)):
                    tasks.start_soon(run, number)

        anyio.run(run_all)
        return [results[number] for number in range(len(programs))]

    def get_output(self, program: str, **options: Any) -> str:
        """Return what a program prints; it has to exit with 0."""
        result = self.run(program, **options)
        assert result.exit_code == 0, (result.ending, result.signal, result.stderr.text)
        return result.stdout.text

    def is_locked(self, name: str) -> bool:
        """Return whether a process that has locked this file still runs."""
        with (self.folder / name).open("rb+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False
