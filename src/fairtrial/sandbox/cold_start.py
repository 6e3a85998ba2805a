"""Starting of the init process as a new process for one command."""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
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

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Adds a program that makes a sandbox in front of a command line."""


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
    sandbox_name: str, *, wrap: Wrap = lambda argv: argv, harness: Path = HARNESS
) -> StartInit:
    """Return a function that starts the init process as a child of this process.

    sandbox_name: the sandbox's name, for messages
    wrap: adds the sandbox's program in front of the command line
    harness: the harness's folder, as the init process sees it
    """

    async def start(orders: dict[str, Any], passed: InitDescriptors) -> subprocess.Popen[bytes]:
        with Descriptors() as descriptors:
            joins = [descriptors.open(join, os.O_WRONLY) for join in passed.joins]
            inherited = [passed.report, passed.life, *joins]
            env = dict(orders["env"])
            if passed.channel is not None:
                inherited.append(passed.channel)
                env[CHANNEL_VARIABLE] = str(passed.channel)
            numbers = {"report": passed.report, "life": passed.life, "joins": joins}
            order_file = descriptors.make_file(marshal.dumps({**orders, "env": env, **numbers}))
            try:
                return subprocess.Popen(
                    [*_make_signal_wrapper(), *wrap(make_init_command(harness, order_file))],
                    stdin=passed.stdin,
                    stdout=passed.stdout,
                    stderr=passed.stderr,
                    pass_fds=[order_file, *inherited],
                    # The command's environment must not change how the init process is loaded.
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                message = f"the {sandbox_name} sandbox could not be started: {error}"
                raise LabError(message) from error

    return start
