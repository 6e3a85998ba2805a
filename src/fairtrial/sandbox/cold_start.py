"""Starting of the init process as a new process for one command."""

from __future__ import annotations

import json
import marshal
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.sandbox.commands import CHANNEL_VARIABLE
from fairtrial.sandbox.descriptors import Descriptors
from fairtrial.sandbox.init_process import InitDescriptors, StartInit
from fairtrial.sandbox.system import HARNESS, own_python

_RESTORE_SIGCHLD = (
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_DFL); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)

Wrap = Callable[[Sequence[str], Descriptors], Sequence[str]]
"""Adds a program that makes a sandbox in front of a command line.

It may open descriptors for that program, and gives their numbers in the command line."""


def make_init_command(harness: Path, orders: int) -> list[str]:
    """Return the command line of the init process.

    harness: the harness's folder, as the process sees it
    orders: the descriptor from which it reads its orders
    """
    return [own_python(), "-I", "-S", str(harness / "launch.py"), str(orders)]


def _make_signal_wrapper() -> list[str]:
    """Return a wrapper that resets SIGCHLD if this process ignores it, which programs inherit."""
    if signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN:
        return []
    return [own_python(), "-I", "-S", "-c", _RESTORE_SIGCHLD]


def make_cold_start(
    sandbox_name: str,
    *,
    wrap: Wrap | None = None,
    pid_option: str = "",
    harness: Path = HARNESS,
) -> StartInit:
    """Return a function that starts the init process as a child of this process.

    sandbox_name: the sandbox's name, for messages
    wrap: adds the sandbox's program in front of the command line
    pid_option: the option of that program for a descriptor on which it says the init process's pid,
        as JSON with the key "child-pid"; this process then has it join its control groups
    harness: the harness's folder, as the init process sees it
    """

    async def start(orders: dict[str, Any], passed: InitDescriptors) -> subprocess.Popen[bytes]:
        import anyio

        with Descriptors() as descriptors, Descriptors() as for_wrapper:
            joins = [descriptors.open(join, os.O_WRONLY) for join in passed.joins]
            usage = descriptors.open(passed.usage, os.O_RDONLY) if passed.usage else None
            inherited = [passed.report, passed.life, *([] if usage is None else [usage])]
            env = dict(orders["env"])
            if passed.channel is not None:
                inherited.append(passed.channel)
                env[CHANNEL_VARIABLE] = str(passed.channel)
            numbers: dict[str, Any] = {"report": passed.report, "life": passed.life, "usage": usage}
            options: list[str] = []
            if joins and pid_option:
                pid_reader, tell = descriptors.pipe()
                joined, join = descriptors.pipe()
                options = [pid_option, str(tell)]
                numbers |= {"joins": [], "joined": joined}
                inherited += [tell, joined]
            else:
                numbers |= {"joins": joins, "joined": None}
                inherited += joins
            order_file = descriptors.make_file(marshal.dumps({**orders, "env": env, **numbers}))
            command = make_init_command(harness, order_file)
            if wrap is not None:
                program, *words = wrap(command, for_wrapper)
                command = [program, *options, *words]
            try:
                process = subprocess.Popen(
                    [*_make_signal_wrapper(), *command],
                    stdin=passed.stdin,
                    stdout=passed.stdout,
                    stderr=passed.stderr,
                    pass_fds=[order_file, *inherited, *for_wrapper.numbers],
                    # The command's environment must not change how the init process is loaded.
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                message = f"the {sandbox_name} sandbox could not be started: {error}"
                raise LabError(message) from error
            if options:
                descriptors.close(tell, joined)
                await anyio.to_thread.run_sync(_move, pid_reader, joins, join)
            return process

    return start


def _move(pid_reader: int, joins: Sequence[int], join: int) -> None:
    """Move a process into control groups, and say so, unless that fails or it didn't start.

    pid_reader: where its pid is read
    joins: the groups' files cgroup.procs
    join: where a message is written that it was moved
    """
    text = b""
    while data := os.read(pid_reader, 4096):
        text += data
        with suppress(ValueError):
            pid = str(json.loads(text)["child-pid"]).encode()
            with suppress(OSError):  # the init process ends with a message if nothing comes
                for file in joins:
                    os.write(file, pid)
                os.write(join, b"1")
            return
