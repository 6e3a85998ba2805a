"""Valgrind, which counts the instructions of a process: finding it, and reading its logs."""

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
from fairtrial.sandbox import Command, Mount, install_hint, system, wire

TOOL = (
    # The fastest tool that reports a total: it makes a process about 25 times as slow.
    "--tool=cachegrind",
    "--cache-sim=no",
    "--branch-sim=no",
    "--cachegrind-out-file=/dev/null",
    "--vgdb=no",
)
MEMORY_TIMES, MEMORY_MORE_MB = 2, 512
"""Factor and addition to a process's memory limit, for valgrind's own data."""
LOG_BYTES = 256 * 1024
"""The largest log of one process."""
MOST_LOGS, ALL_LOGS_BYTES = 4_096, 16 * 2**20
"""The largest number of logs of one command, and their largest total size."""
LOG_TOO_LARGE = "valgrind's log is too large"
UNKNOWN = b"unhandled instruction"
"""What the log of a process contains if valgrind doesn't support one of its instructions."""
NO_COUNT = "valgrind gave no count"
FORKS = "it forks, and a fork's instructions can't be separated from its parent's"
MACOS = "valgrind doesn't run on macOS: instructions can only be counted on Linux"
_ON_CHANNEL = f'exec "$0" --log-fd="${wire.CHANNEL_VARIABLE}" "$@"'
_NAMED, _FIRST = "%p.%n", re.compile(r"\d+\.1")
"""Names of logs: process id and number; a program's log has number 1, a fork's a higher one."""
_PARTS = ("libexec/valgrind", "lib/valgrind")
_TOTAL = re.compile(rb"^==(\d+)== I +refs: +(\d[\d,]{0,30})$", re.MULTILINE)


class CountError(Exception):
    """There is no instruction count; the message says why."""


@dataclass(frozen=True, slots=True)
class Valgrind:
    """An installed valgrind.

    program: the path of the program
    parts: its files that a sandbox must mount in addition
    """

    program: Path
    parts: tuple[Path, ...] = ()

    def wrap(self, command: Command, timeout_s: float) -> Command:
        """Return the command under valgrind, which writes its log to the command's channel.

        Even if the command closes that descriptor, valgrind's own copy of it remains. The log of a
        forked process goes there, too, which shows that there is one.
        """
        counted = self._wrap(command, [], timeout_s)
        argv = ("/bin/sh", "-c", _ON_CHANNEL, *counted.argv)
        return replace(counted, argv=argv, channel_bytes=LOG_BYTES)

    def wrap_with_children(self, command: Command, timeout_s: float, logs: Path) -> Command:
        """Return the command under valgrind, with all programs that it starts.

        logs: the folder for a log of each
        """
        options = ["--trace-children=yes", f"--log-file={logs}/{_NAMED}"]
        counted = self._wrap(command, options, timeout_s)
        view = counted.view
        return replace(counted, view=replace(view, writable=(*view.writable, Mount(logs, logs))))

    def _wrap(self, command: Command, options: Sequence[str], timeout_s: float) -> Command:
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
    """Return the valgrind on the PATH; raise `StudyError` with an install hint if there is none."""
    if sys.platform == "darwin":
        raise StudyError(Mistake((), f"--instructions can't be used: {MACOS}"))
    path = shutil.which("valgrind")
    if path is None:
        how = install_hint("valgrind").replace("\n", " or ").replace("$ ", "")
        message = "--instructions needs valgrind, and there is none on the PATH"
        raise StudyError(Mistake((), message, f"install it: {how}"))
    program = Path(path).absolute()
    shown = [Path(target) for _, target in system.system_mounts(False)]
    if any(program.is_relative_to(folder) for folder in shown):
        return Valgrind(program)
    home = program.parent.parent
    inner = [home / part for part in _PARTS if (home / part).is_dir()]
    return Valgrind(program, (program, *inner))


def read_total(log: bytes) -> int:
    """Return the number of instructions of a process from its log.

    Raises `CountError` if there is none, or the process has forked.
    """
    totals = _TOTAL.findall(log)
    if not totals:
        raise CountError(NO_COUNT)
    if len(totals) > 1:  # a fork starts with the count of its parent
        raise CountError(FORKS)
    return int(totals[0][1].replace(b",", b""))


def read_totals(logs: Mapping[str, bytes]) -> int:
    """Return the number of instructions of all programs of a command.

    logs: by the name of the log
    """
    firsts = [log for name, log in logs.items() if _FIRST.fullmatch(name)]
    forks = [log for name, log in logs.items() if not _FIRST.fullmatch(name)]
    if any(_TOTAL.search(log) for log in forks):  # one that became a program has its own log
        raise CountError(FORKS)
    if not firsts:
        raise CountError(NO_COUNT)
    return sum(map(read_total, firsts))


def read_logs(folder: Path) -> dict[str, bytes]:
    """Read valgrind's logs, by name.

    A candidate can put any number of files into the folder, so all sizes are limited.
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
            raise CountError(LOG_TOO_LARGE)
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
        raise CountError(LOG_TOO_LARGE)
    return content
