"""Control groups: limits for a whole process tree that the kernel enforces.

Groups are made below this process's own group (version 1 of the kernel's interface), or beside it
(version 2, where a group with processes can't have limited groups below it). This process itself is
never moved.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.sandbox.commands import Ending, Limits
from fairtrial.sandbox.hierarchy import GroupParent, find_group_parents

__all__ = ["remove_finished_groups", "remove_orphaned_groups"]
PREFIX = "fairtrial"
MB = 1024 * 1024
THREADS_PER_PROCESS, EXTRA_THREADS = 16, 512
"""The kernel counts threads, not processes: its limit allows this many threads per process, and
this many more in all. It only stops bursts, such as fork bombs; polling enforces the exact limit.
"""
LIMIT_MARGIN_MB = 4
"""How far below the limit memory can be refused: a huge page, and each core's reserve."""
JOIN_SCRIPT = 'for file in "$@"; do echo 0 > "$file" || exit 1; done'
_USAGE_FILES = ("cpuacct.usage", "cpu.stat")
TRIES, RETRY_S = 40, 0.005
ORPHAN_GRACE_S = 5.0
"""How long the init of a command whose owner is gone may take to end and clean up before its group
is killed, which would leave temporary files behind."""
_numbers = itertools.count()
_guard = threading.RLock()
_usable: tuple[tuple[GroupParent, ...], str] | None = None
_busy: set[Path] = set()
"""Groups that still had a process when their command ended; removed as soon as possible."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The control group of one command.

    joins: files into which the command's first process writes "0" to join the group
    limits: the group's limits
    """

    joins: tuple[Path, ...]
    limits: Limits = field(default_factory=Limits)

    def exceeded(self) -> Ending | None:
        """Return which limit the kernel has enforced; None if none."""
        folders = [join.parent for join in self.joins]
        if any(_read_counts(folder / "pids.events").get("max") for folder in folders):
            return Ending.PROCESSES  # first: too many processes may also use up the memory
        return Ending.MEMORY if any(map(_ran_out_of_memory, folders)) else None

    @property
    def usage(self) -> Path | None:
        """The file in which the group counts CPU time; None if it doesn't."""
        files = (join.with_name(name) for join in self.joins for name in _USAGE_FILES)
        return next((file for file in files if file.exists()), None)

    def cpu_s(self) -> float | None:
        """Return the CPU time of all processes that were ever in the group; None if not counted.

        Unlike a parent's sums it includes processes that nobody has waited for.
        """
        for folder in (join.parent for join in self.joins):
            if nanoseconds := _read_text(folder / "cpuacct.usage"):
                return int(nanoseconds) / 1e9
            if microseconds := _read_counts(folder / "cpu.stat").get("usage_usec"):
                return microseconds / 1e6
        return None

    def peak_rss_mb(self) -> float:
        """Return the peak memory if the limit was enforced; 0 otherwise."""
        # The kernel's peaks include the page cache, which grows with each file that is read. Only
        # if the limit was enforced was the cache dropped before.
        return float(self.limits.memory_mb) if self.exceeded() is Ending.MEMORY else 0.0


@contextmanager
def limited_group(limits: Limits) -> Iterator[ControlGroup | None]:
    """Make a group with these limits, and remove it afterwards; None if groups can't be made."""
    parents, _ = find_usable_parents()
    _remove_busy()
    folders = _make_group(parents, limits) if parents else []
    if not folders:
        yield None
        return
    try:
        yield ControlGroup(tuple(folder / "cgroup.procs" for folder in folders), limits)
    finally:
        for folder in folders:
            _remove(folder)


def find_usable_parents() -> tuple[tuple[GroupParent, ...], str]:
    """Return the parents below which groups were made in a trial, and why others can't be used.

    The trial runs once per process.
    """
    global _usable
    with _guard:
        if _usable is None:
            parents, reason = find_group_parents()
            trials = [(parent, _try_parent(parent)) for parent in parents]
            reasons = dict.fromkeys([reason, *(failure for _, failure in trials)])
            _usable = (
                tuple(parent for parent, failure in trials if not failure),
                "; ".join(filter(None, reasons)),
            )
        return _usable


def remove_finished_groups() -> None:
    """Remove this process's groups that still had a process when their command ended."""
    for _ in range(TRIES):
        _remove_busy()
        if not _busy:
            return
        time.sleep(RETRY_S)


def remove_orphaned_groups() -> int:
    """Remove groups whose owners are gone, with all processes in them; returns how many."""
    orphaned: list[Path] = []
    for mount in {parent.mount for parent in find_group_parents()[0]}:
        for folder, names, _ in os.walk(mount):
            orphaned += [Path(folder) / name for name in names if _is_orphaned(name)]
            names[:] = [name for name in names if not name.startswith(f"{PREFIX}-")]
    kill_at = time.monotonic() + ORPHAN_GRACE_S
    return sum(_remove_with_processes(folder, kill_at) for folder in orphaned)


def _try_parent(parent: GroupParent) -> str:
    """Return why no group can be made below a parent, or be joined; empty if both work."""
    folders = _make_group((parent,), Limits())
    if not folders:
        return f"{parent.folder} can't be written to"
    try:
        joins = [str(folder / "cgroup.procs") for folder in folders]
        result = subprocess.run(
            ["/bin/sh", "-c", JOIN_SCRIPT, "sh", *joins], capture_output=True, check=False
        )
    finally:
        for folder in folders:
            _remove(folder)
    return f"processes can't be moved to groups below {parent.folder}" if result.returncode else ""


def _make_group(parents: tuple[GroupParent, ...], limits: Limits) -> list[Path]:
    """Make the folders of a group, one below each parent; none if any of them fails."""
    name = f"{PREFIX}-{_format_owner(os.getpid())}-{next(_numbers)}"
    folders: list[Path] = []
    try:
        for parent in parents:
            folder = parent.folder / name
            folder.mkdir()
            folders.append(folder)
            _set_limits(folder, parent, limits)
    except OSError:
        for folder in folders:
            _remove(folder)
        return []
    return folders


def count_tasks(processes: int) -> int:
    """Return the kernel's limit of tasks, which include threads, for a limit of processes."""
    cores = os.cpu_count() or 1
    return min(
        processes * max(THREADS_PER_PROCESS, cores), processes + max(EXTRA_THREADS, 8 * cores)
    )


def _set_limits(folder: Path, parent: GroupParent, limits: Limits) -> None:
    if "memory" in parent.controllers:
        limit = str(limits.memory_mb * MB)
        _write(folder / ("memory.limit_in_bytes" if parent.version == 1 else "memory.max"), limit)
        with suppress(FileNotFoundError):  # exists only if the kernel accounts for swap
            if parent.version == 1:  # memory and swap together
                _write(folder / "memory.memsw.limit_in_bytes", limit)
            else:
                _write(folder / "memory.swap.max", "0")
    if "pids" in parent.controllers:
        _write(folder / "pids.max", str(count_tasks(limits.processes)))


def _write(file: Path, text: str) -> None:
    """Write to an existing file; unlike `write_text`, never creates it."""
    handle = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        with _guard:
            _busy.add(folder)


@atexit.register
def _remove_busy() -> None:
    with _guard:
        folders = [folder for folder in _busy if _is_own(folder.name)]
        _busy.clear()
    for folder in folders:
        _remove(folder)


def _remove_with_processes(folder: Path, kill_at: float) -> bool:
    tries = 0
    while tries < TRIES:
        with suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            return True
        if time.monotonic() >= kill_at:
            _kill_all(folder)
            tries += 1
        time.sleep(RETRY_S)
    return False


def _kill_all(folder: Path) -> None:
    try:
        _write(folder / "cgroup.kill", "1")
    except OSError:  # version 1, or an older kernel
        for pid in _read_text(folder / "cgroup.procs").split():
            with suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def _ran_out_of_memory(folder: Path) -> bool:
    # A kill alone could also mean that an outer group, or the whole host, was out of memory.
    events = _read_counts(folder / "memory.events")
    if events:
        return events.get("oom", 0) > 0 and events.get("oom_kill", 0) > 0
    if not _read_counts(folder / "memory.oom_control").get("oom_kill"):
        return False
    # Not failcnt: newer kernels don't count there if swap is accounted for.
    peak, limit = (
        int(_read_text(folder / f"memory.{name}_in_bytes") or 0) for name in ("max_usage", "limit")
    )
    return limit - peak < LIMIT_MARGIN_MB * MB


def _read_counts(file: Path) -> dict[str, int]:
    lines = (line.split() for line in _read_text(file).splitlines())
    return {name: int(number) for name, number in lines}


def _read_text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _format_owner(pid: int) -> str:
    """Return a text that identifies a process until the next reboot, for the names of groups."""
    space = Path("/proc/self/ns/pid").stat().st_ino
    stat = Path(f"/proc/{pid}/stat").read_text()
    return f"{space}-{pid}-{stat.rpartition(')')[2].split()[19]}"


def _is_own(name: str) -> bool:
    return name.startswith(f"{PREFIX}-{_format_owner(os.getpid())}-")


def _is_orphaned(name: str) -> bool:
    """Return whether a folder is a group of fairtrial's whose owner is gone.

    False for groups of other pid namespaces, whose owners can't be checked.
    """
    prefix, *parts = name.split("-")
    if prefix != PREFIX or len(parts) != 4 or not all(part.isdecimal() for part in parts):
        return False
    space, pid, _, _ = parts
    if int(space) != Path("/proc/self/ns/pid").stat().st_ino:
        return False
    try:
        return not name.startswith(f"{PREFIX}-{_format_owner(int(pid))}-")
    except OSError:
        return True
