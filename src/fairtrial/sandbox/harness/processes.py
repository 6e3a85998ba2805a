"""A tree of processes as the kernel tells of it: who is in it, and what they use together."""

from __future__ import annotations

import os
import time

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_NS_PER_S = 1e9
_MOST_STRETCHES = 250
"""Between looks, of which there are fifty in a second."""


class Look:
    """What a tree uses at one moment.

    pids: its living processes
    rss_bytes: their resident memory; shared pages count once for each
    cpu_s: CPU time of the living, and of the dead that the living have waited for
    """

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.rss_bytes = 0
        self.cpu_s = 0.0
        self.threads: dict[int, int] = {}


def look(pids: list[int]) -> Look:
    """Add up what these processes use; those that are gone by now don't count."""
    seen = Look()
    ticks = 0
    for pid in pids:
        fields = _stat(pid)
        if not fields:
            continue
        # A dead process that nobody has waited for yet holds nothing but its times.
        ticks += sum(map(int, fields[11:15]))
        if fields[0] not in (b"Z", b"X"):
            seen.pids.append(pid)
            seen.rss_bytes += int(fields[21]) * _PAGE_BYTES
            seen.threads[pid] = int(fields[17])
    seen.cpu_s = ticks / _TICKS_PER_S
    return seen


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # it has just died
        return b""
    finally:
        os.close(descriptor)


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/<pid>/stat from the third on: the second may hold anything."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except OSError:
        return []


def everyone_else(_main: int) -> list[int]:
    """All processes but this one: those of its own pid namespace."""
    own = os.getpid()
    return [pid for pid in _numbers("/proc") if pid != own]


def descendants(_main: int) -> list[int]:
    """Children, their children, ...; the dead that nobody has waited for, too."""
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return _descendants_by_parent()
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        pid = pending.pop()
        for thread in _numbers(f"/proc/{pid}/task"):
            children = _read(f"/proc/{pid}/task/{thread}/children").split()
            pending.extend(map(int, children))
            found.extend(map(int, children))
    return found


def _descendants_by_parent() -> list[int]:
    """The same by a look at every process, where the kernel doesn't list children."""
    children: dict[int, list[int]] = {}
    for pid in _numbers("/proc"):
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        below = children.get(pending.pop(), [])
        pending.extend(below)
        found.extend(below)
    return found


def proportional_bytes(pids: list[int]) -> int:
    """Their memory with shared pages divided among those who share them, where that is told."""
    total = 0
    for pid in pids:
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        sizes = [line.split()[1] for line in lines if line.startswith(b"Pss:")]
        if sizes:
            total += int(sizes[0]) * 1024
        else:  # it is just about to end, or doesn't want to be looked at
            total += look([pid]).rss_bytes
    return total


class Waiting:
    """How long a tree could have run but had no core, summed over the looks at it.

    Of each stretch between two looks, the time of the thread that waited most counts. The kernel
    tells of a wait when it is over: it may have begun before the last look.
    """

    def __init__(self) -> None:
        self.total_s = 0.0
        self._known: dict[int, float] = {}
        self._looked = time.monotonic()
        self._stretches: list[list[float]] = []
        """The last ones: how long each was, and how much of it counts."""

    def look(self, threads_of: dict[int, int]) -> None:
        now = time.monotonic()
        known = {}
        longest = 0.0
        for pid, count in threads_of.items():
            for thread in [pid] if count == 1 else _numbers(f"/proc/{pid}/task"):
                fields = _read(f"/proc/{pid}/task/{thread}/schedstat").split()
                if len(fields) < 2:
                    continue
                known[thread] = waited = int(fields[1]) / _NS_PER_S
                longest = max(longest, waited - self._known.get(thread, 0.0))
        self._stretches = [*self._stretches[-_MOST_STRETCHES:], [now - self._looked, 0.0]]
        for stretch in reversed(self._stretches):
            waited = min(longest, stretch[0])
            if waited > stretch[1]:
                self.total_s += waited - stretch[1]
                stretch[1] = waited
            longest -= waited
            if longest <= 0:
                break
        self._known, self._looked = known, now
