"""Valgrind, which counts the instructions that a process executes: where it is, what it says."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import CHANNEL_VARIABLE, Command, Mount, install, system_mounts

TOOL = (
    # The cheapest tool that has a total: some 25 times as slow as without it.
    "--tool=cachegrind",
    "--cache-sim=no",
    "--branch-sim=no",
    "--cachegrind-out-file=/dev/null",
    "--vgdb=no",
)
MEMORY_TIMES, MEMORY_MORE_MB = 2, 512
"""What a process may hold under valgrind, which holds its own notes there: times, and more."""
LOG_BYTES = 256 * 1024
"""How much valgrind may say of one process."""
MOST_LOGS, ALL_LOGS_BYTES = 4_096, 16 * 2**20
"""How many processes of a command it may speak of, and how much it may say of all of them."""
LOUD = "valgrind had too much to say"
UNKNOWN = b"unhandled instruction"
"""What a log says of a process that died since valgrind doesn't know an instruction of it."""
NO_COUNT = "valgrind gave no count"
FORKS = "it forks, and what a copy of a process does can't be told from what was done before"
MACOS = "valgrind doesn't run on macOS: instructions can only be counted on Linux"
_ON_CHANNEL = f'exec "$0" --log-fd="${CHANNEL_VARIABLE}" "$@"'
_NAMED, _FIRST = "%p.%n", re.compile(r"\d+\.1")
"""Logs by process and number: a program's is its process's first, that of a copy a later one."""
_PARTS = ("libexec/valgrind", "lib/valgrind")
_TOTAL = re.compile(rb"^==(\d+)== I +refs: +(\d[\d,]{0,30})$", re.MULTILINE)


class CountError(Exception):
    """There is no count, and why."""


@dataclass(frozen=True, slots=True)
class Valgrind:
    """The one that is installed here.

    program: what to run
    parts: what of it a sandbox doesn't show by itself
    """

    program: Path
    parts: tuple[Path, ...] = ()

    def around(self, command: Command, timeout_s: float) -> Command:
        """The same command, counted; what is said of it comes on its channel.

        The command can close that descriptor: valgrind makes a copy of it, out of reach of the
        descriptors that it lets the command use. A forked process speaks there, too, so that one
        can see that there is one.
        """
        counted = self._around(command, [], timeout_s)
        argv = ("/bin/sh", "-c", _ON_CHANNEL, *counted.argv)
        return replace(counted, argv=argv, channel_bytes=LOG_BYTES)

    def around_all(self, command: Command, timeout_s: float, logs: Path) -> Command:
        """The same for a command and all programs that it starts; a log of each in a folder."""
        options = ["--trace-children=yes", f"--log-file={logs}/{_NAMED}"]
        counted = self._around(command, options, timeout_s)
        view = counted.view
        return replace(counted, view=replace(view, writable=(*view.writable, Mount(logs, logs))))

    def _around(self, command: Command, options: Sequence[str], timeout_s: float) -> Command:
        limits, view = command.limits, command.view
        memory_mb = MEMORY_TIMES * limits.memory_mb + MEMORY_MORE_MB
        parts = tuple(Mount(part, part) for part in self.parts)
        return replace(
            command,
            argv=(str(self.program), *TOOL, *options, *command.argv),
            limits=replace(limits, memory_mb=memory_mb),
            view=replace(view, readable=(*view.readable, *parts)),
            timeout_s=timeout_s,
        )


def find_valgrind() -> Valgrind:
    """The one on the PATH; a `StudyError` that says what to install where there is none."""
    if sys.platform == "darwin":
        raise StudyError(Mistake((), f"--instructions can't be used: {MACOS}"))
    found = shutil.which("valgrind")
    if found is None:
        how = install("valgrind").replace("\n", " or ").replace("$ ", "")
        message = "--instructions needs valgrind, and there is none on the PATH"
        raise StudyError(Mistake((), message, f"install it: {how}"))
    program = Path(found).absolute()
    shown = [Path(target) for _, target in system_mounts(False)]
    if any(program.is_relative_to(folder) for folder in shown):
        return Valgrind(program)
    home = program.parent.parent
    inner = [home / part for part in _PARTS if (home / part).is_dir()]
    return Valgrind(program, (program, *inner))


def read_total(log: bytes) -> int:
    """How many instructions a process has executed, going by what valgrind said of it."""
    found = _TOTAL.findall(log)
    if not found:
        raise CountError(NO_COUNT)
    if len(found) > 1:  # a copy of a process begins with all that the process had counted
        raise CountError(FORKS)
    return int(found[0][1].replace(b",", b""))


def read_totals(logs: Mapping[str, bytes]) -> int:
    """The same for all programs that a command started; by the name of the log."""
    firsts = [log for name, log in logs.items() if _FIRST.fullmatch(name)]
    copies = [log for name, log in logs.items() if not _FIRST.fullmatch(name)]
    if any(_TOTAL.search(log) for log in copies):  # else it became a program, with a log of its own
        raise CountError(FORKS)
    if not firsts:
        raise CountError(NO_COUNT)
    return sum(map(read_total, firsts))


def read_logs(folder: Path) -> dict[str, bytes]:
    """What valgrind has written, by the name of the log.

    A candidate may have put anything beside it: not even the list of it is read to its end.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MOST_LOGS + 1))
    if len(names) > MOST_LOGS:
        raise CountError(f"more than {MOST_LOGS:,} programs were started")
    logs: dict[str, bytes] = {}
    total = 0
    for name in names:
        logs[name] = _read_log(folder / name)
        total += len(logs[name])
        if total > ALL_LOGS_BYTES:
            raise CountError(LOUD)
    return logs


def _read_log(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:  # `open` doesn't close what it refuses
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CountError("there is something else among the logs than logs")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(LOG_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > LOG_BYTES:
        raise CountError(LOUD)
    return content
