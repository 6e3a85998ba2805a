"""Process trees on Linux, read from /proc: their members, and the resources that they use."""

from __future__ import annotations

import os
import time

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_NS_PER_S = 1e9
_MAX_INTERVALS = 250
"""How many intervals between measurements, of which there are fifty in a second, are kept."""


class TreeUsage:
    """The resources that a process tree uses at one moment.

    pids: its living processes
    rss_bytes: their resident memory; shared pages count once for each process
    cpu_s: CPU time of the processes, and of dead ones that they have waited for
    threads: the number of threads by pid
    """

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.rss_bytes = 0
        self.cpu_s = 0.0
        self.threads: dict[int, int] = {}


def measure_usage(pids: list[int]) -> TreeUsage:
    """Add up what these processes use, except those that have ended meanwhile."""
    usage = TreeUsage()
    ticks = 0
    for pid in pids:
        fields = _read_stat(pid)
        if not fields:
            continue
        # A zombie holds nothing but its times.
        ticks += sum(map(int, fields[11:15]))
        if fields[0] not in (b"Z", b"X"):
            usage.pids.append(pid)
            usage.rss_bytes += int(fields[21]) * _PAGE_BYTES
            usage.threads[pid] = int(fields[17])
    usage.cpu_s = ticks / _TICKS_PER_S
    return usage


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the process has just ended
        return b""
    finally:
        os.close(descriptor)


def _read_stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/<pid>/stat from the third on: the second may hold any text."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _list_numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except OSError:
        return []


def list_others(_main: int) -> list[int]:
    """Return all processes of this pid namespace except this one."""
    own_pid = os.getpid()
    return [pid for pid in _list_numbers("/proc") if pid != own_pid]


def list_descendants(_main: int) -> list[int]:
    """Return all descendants of this process, zombies included."""
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return _list_descendants_by_parent()
    descendants: list[int] = []
    pending = [os.getpid()]
    while pending:
        pid = pending.pop()
        for thread in _list_numbers(f"/proc/{pid}/task"):
            children = _read(f"/proc/{pid}/task/{thread}/children").split()
            pending.extend(map(int, children))
            descendants.extend(map(int, children))
    return descendants


def _list_descendants_by_parent() -> list[int]:
    """Return all descendants by checking every process, for kernels that don't list children."""
    children: dict[int, list[int]] = {}
    for pid in _list_numbers("/proc"):
        fields = _read_stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    descendants: list[int] = []
    pending = [os.getpid()]
    while pending:
        next_pids = children.get(pending.pop(), [])
        pending.extend(next_pids)
        descendants.extend(next_pids)
    return descendants


def measure_proportional_bytes(pids: list[int]) -> int:
    """Return the memory of processes, with shared pages divided among those that share them.

    Resident memory is taken for processes of which the kernel doesn't say.
    """
    total = 0
    for pid in pids:
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        sizes = [line.split()[1] for line in lines if line.startswith(b"Pss:")]
        if sizes:
            total += int(sizes[0]) * 1024
        else:  # it is ending, or forbids to be inspected
            total += measure_usage([pid]).rss_bytes
    return total


class CoreWait:
    """How long a process tree was runnable but had no core, summed over intervals of measurement.

    In each interval, the thread that waited longest counts. The kernel reports a wait when it is
    over, so it may have begun before the last measurement.

    total_s: the sum
    """

    def __init__(self) -> None:
        self.total_s = 0.0
        self._waits: dict[int, float] = {}
        self._measured = time.monotonic()
        self._intervals: list[list[float]] = []
        """The last intervals: the length of each, and how much of it counts as waiting."""

    def update(self, thread_counts: dict[int, int]) -> None:
        """Measure the waits since the last call.

        thread_counts: the number of threads by pid
        """
        now = time.monotonic()
        waits = {}
        longest = 0.0
        for pid, count in thread_counts.items():
            for thread in [pid] if count == 1 else _list_numbers(f"/proc/{pid}/task"):
                fields = _read(f"/proc/{pid}/task/{thread}/schedstat").split()
                if len(fields) < 2:
                    continue
                waits[thread] = waited = int(fields[1]) / _NS_PER_S
                longest = max(longest, waited - self._waits.get(thread, 0.0))
        self._intervals = [*self._intervals[-_MAX_INTERVALS:], [now - self._measured, 0.0]]
        for interval in reversed(self._intervals):
            waited = min(longest, interval[0])
            if waited > interval[1]:
                self.total_s += waited - interval[1]
                interval[1] = waited
            longest -= waited
            if longest <= 0:
                break
        self._waits, self._measured = waits, now
