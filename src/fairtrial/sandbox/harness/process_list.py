"""What `processes` tells, where there is no /proc: from the system's own list of processes."""

from __future__ import annotations

import os
import subprocess

_FIELDS = "pid=,ppid=,pgid=,state=,rss=,time="
_known = set()  # type: set[int]
"""All that were ever seen in the tree: orphans are nobody's children here."""


class Look:
    """What a tree uses at one moment; see `processes.Look`."""

    def __init__(self, rows: list[list[str]]) -> None:
        living = [row for row in rows if not row[3].startswith("Z")]
        self.pids = [int(row[0]) for row in living]
        self.rss_bytes = sum(int(row[4]) for row in living) * 1024
        self.cpu_s = sum(_seconds(row[5]) for row in living)
        self.threads: dict[int, int] = {}


class Waiting:
    """How long a tree had no core: nobody tells, so it counts as none."""

    total_s = 0.0

    def look(self, threads_of: dict[int, int]) -> None:
        pass


def _rows() -> list[list[str]]:
    told = subprocess.run(["ps", "-axo", _FIELDS], stdout=subprocess.PIPE, check=False).stdout
    return [line.split() for line in told.decode("utf-8", "replace").splitlines()]


def _seconds(text: str) -> float:
    """``[[days-]hours:]minutes:seconds`` as a number."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + 86_400 * int(days or 0)


def descendants(main: int) -> list[int]:
    """The command, its process group, and whatever came of either as far as it was seen."""
    rows = [row for row in _rows() if int(row[0]) != os.getpid()]
    _known.intersection_update(int(row[0]) for row in rows)
    _known.add(main)
    size = 0
    while size < len(_known):
        size = len(_known)
        _known.update(int(row[0]) for row in rows if _known & {int(row[1]), int(row[2])})
    return [int(row[0]) for row in rows if int(row[0]) in _known]


everyone_else = descendants


def look(pids: list[int]) -> Look:
    """Add up what these processes use; those that are gone by now don't count."""
    return Look([row for row in _rows() if int(row[0]) in set(pids)])


def proportional_bytes(pids: list[int]) -> int:
    """Nobody tells which pages are shared."""
    return look(pids).rss_bytes
