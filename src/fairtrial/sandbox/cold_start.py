"""Our init as a process of its own, started from scratch for one command."""

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
from fairtrial.sandbox.init_process import Handed, Start
from fairtrial.sandbox.system import HARNESS, own_python

_MEND = (
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_DFL); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""The program that puts a sandbox around another."""


def start_init(guest: Path, orders: int) -> list[str]:
    """The program that is our init, told where its orders are."""
    return [own_python(), "-I", "-S", str(guest / "launch.py"), str(orders)]


def _mend_signals() -> list[str]:
    """What has to come first if we ignore our children: programs inherit that."""
    if signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN:
        return []
    return [own_python(), "-I", "-S", "-c", _MEND]


def starting(who: str, *, wrap: Wrap = lambda argv: argv, guest: Path = HARNESS) -> Start:
    """A way to start our init in a process of its own.

    who: the sandbox's name
    wrap: what is put around it
    guest: where it finds its own files
    """

    async def start(orders: dict[str, Any], handed: Handed) -> subprocess.Popen[bytes]:
        with Descriptors() as descriptors:
            joins = [descriptors.open(join, os.O_WRONLY) for join in handed.joins]
            passed = [handed.report, handed.life, *joins]
            env = dict(orders["env"])
            if handed.channel is not None:
                passed.append(handed.channel)
                env[CHANNEL_VARIABLE] = str(handed.channel)
            numbers = {"report": handed.report, "life": handed.life, "joins": joins}
            told = descriptors.holding(marshal.dumps({**orders, "env": env, **numbers}))
            try:
                return subprocess.Popen(
                    [*_mend_signals(), *wrap(start_init(guest, told))],
                    stdin=handed.stdin,
                    stdout=handed.stdout,
                    stderr=handed.stderr,
                    pass_fds=[told, *passed],
                    # What the command is told must not change how our init is loaded.
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise LabError(f"the {who} sandbox could not be started: {error}") from error

    return start
