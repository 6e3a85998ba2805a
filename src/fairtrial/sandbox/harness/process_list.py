"""The functions of `processes` for systems without /proc, by means of `ps`.

How long processes wait for a core is unknown there: `CoreWait` stays at 0 without thread counts.
"""

from __future__ import annotations

import os
import subprocess

from .processes import CoreWait as CoreWait, TreeUsage

_FIELDS = "pid=,ppid=,pgid=,state=,rss=,time="
_seen_pids = set()  # type: set[int]
"""All processes that were ever seen in the tree: the parent of orphans is not in the tree."""


def _list_rows() -> list[list[str]]:
    output = subprocess.run(["ps", "-axo", _FIELDS], stdout=subprocess.PIPE, check=False).stdout
    return [line.split() for line in output.decode("utf-8", "replace").splitlines()]


def _parse_seconds(text: str) -> float:
    """Parse ``[[days-]hours:]minutes:seconds``."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + 86_400 * int(days or 0)


def list_descendants(main: int) -> list[int]:
    """Return the command, its process group, and all descendants of either that were seen."""
    rows = [row for row in _list_rows() if int(row[0]) != os.getpid()]
    _seen_pids.intersection_update(int(row[0]) for row in rows)
    _seen_pids.add(main)
    size = 0
    while size < len(_seen_pids):
        size = len(_seen_pids)
        _seen_pids.update(int(row[0]) for row in rows if _seen_pids & {int(row[1]), int(row[2])})
    return [int(row[0]) for row in rows if int(row[0]) in _seen_pids]


list_others = list_descendants


def measure_usage(pids: list[int]) -> TreeUsage:
    """Add up what these processes use, except those that have ended meanwhile."""
    rows = [row for row in _list_rows() if int(row[0]) in set(pids)]
    living = [row for row in rows if not row[3].startswith("Z")]
    usage = TreeUsage()
    usage.pids = [int(row[0]) for row in living]
    usage.rss_bytes = sum(int(row[4]) for row in living) * 1024
    usage.cpu_s = sum(_parse_seconds(row[5]) for row in living)
    return usage


def measure_proportional_bytes(pids: list[int]) -> int:
    """Return the resident memory of processes, since `ps` doesn't say which pages are shared."""
    return measure_usage(pids).rss_bytes
