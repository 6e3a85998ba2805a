"""Control groups: limits for a whole tree of processes that the kernel holds.

Groups are made below the group that we are in ourselves (version 1 of the kernel's interface), or
beside it (version 2, where a group that has processes can't have limited groups below it). We never
move ourselves.
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
from fairtrial.sandbox.hierarchy import Place, find_places

PREFIX = "fairtrial"
MB = 1024 * 1024
THREADS_EACH, MORE_THREADS = 16, 512
"""The kernel counts threads, not processes: so many tasks for each there may be, and so many more
in all. The bound is for bursts, those who poll are exact; a bomb of thousands outruns them."""
NEAR_MB = 4
"""How far from the limit memory can be refused: a huge page, and what each core has in stock."""
JOIN = 'for file in "$@"; do echo 0 > "$file" || exit 1; done'
TRIES, TRY_AGAIN_S = 40, 0.005
LEAVE_S = 5.0
"""How long our init may take to end and clear up a command whose owner is gone, before others do:
what they kill leaves its temporary files."""
_numbers = itertools.count()
_guard = threading.RLock()
_usable: tuple[tuple[Place, ...], str] | None = None
_busy: set[Path] = set()
"""Groups that still had a process when their command was over: removed as soon as possible."""


@dataclass(frozen=True, slots=True)
class Group:
    """One command's control group.

    joins: files into which the command's first process writes "0" before it does anything else
    limits: what the group is held to
    """

    joins: tuple[Path, ...]
    limits: Limits = field(default_factory=Limits)

    def exceeded(self) -> Ending | None:
        """Which limit the kernel had to enforce, if any."""
        folders = [join.parent for join in self.joins]
        if any(_read_counts(folder / "pids.events").get("max") for folder in folders):
            return Ending.PROCESSES  # even if there was no memory left for so many
        return Ending.MEMORY if any(map(_ran_out_of_memory, folders)) else None

    def peak_rss_mb(self) -> float:
        """The most memory that was held at once; 0 where the kernel doesn't tell."""
        # Its own peaks count the page cache, which grows with each file that is read, up to the
        # limit. Only where the limit was enforced has the cache been thrown out before.
        return float(self.limits.memory_mb) if self.exceeded() is Ending.MEMORY else 0.0


@contextmanager
def limiting(limits: Limits) -> Iterator[Group | None]:
    """A group with these limits for one command, removed afterwards; None where there can't be."""
    places, _ = usable_places()
    _remove_busy()
    folders = _make_group(places, limits) if places else []
    if not folders:
        yield None
        return
    try:
        yield Group(tuple(folder / "cgroup.procs" for folder in folders), limits)
    finally:
        for folder in folders:
            _remove(folder)


def usable_places() -> tuple[tuple[Place, ...], str]:
    """Where groups can be made, as a trial has shown, and why not where they can't."""
    global _usable
    with _guard:
        if _usable is None:
            places, reason = find_places()
            tried = [(place, _try(place)) for place in places]
            reasons = dict.fromkeys([reason, *(why for _, why in tried)])
            _usable = (
                tuple(place for place, why in tried if not why),
                "; ".join(filter(None, reasons)),
            )
        return _usable


def settle_groups() -> None:
    """Remove groups whose last process had not quite gone when their command was over."""
    for _ in range(TRIES):
        _remove_busy()
        if not _busy:
            return
        time.sleep(TRY_AGAIN_S)


def remove_orphaned_groups() -> int:
    """Remove groups whose owners were killed, with all that still runs in them; says how many."""
    orphaned: list[Path] = []
    for mount in {place.mount for place in find_places()[0]}:
        for folder, names, _ in os.walk(mount):
            orphaned += [Path(folder) / name for name in names if _is_orphaned(name)]
            names[:] = [name for name in names if not name.startswith(f"{PREFIX}-")]
    kill_at = time.monotonic() + LEAVE_S
    return sum(_remove_with_processes(folder, kill_at) for folder in orphaned)


def _try(place: Place) -> str:
    """Why no group can be made there, or be joined; empty if both work."""
    folders = _make_group((place,), Limits())
    if not folders:
        return f"{place.folder} can't be written to"
    try:
        joins = [str(folder / "cgroup.procs") for folder in folders]
        done = subprocess.run(
            ["/bin/sh", "-c", JOIN, "sh", *joins], capture_output=True, check=False
        )
    finally:
        for folder in folders:
            _remove(folder)
    return f"processes can't be moved to groups below {place.folder}" if done.returncode else ""


def _make_group(places: tuple[Place, ...], limits: Limits) -> list[Path]:
    """A folder at each place; none if something fails, since half a group is hard to tell of."""
    name = f"{PREFIX}-{_spell_owner(os.getpid())}-{next(_numbers)}"
    made: list[Path] = []
    try:
        for place in places:
            folder = place.folder / name
            folder.mkdir()
            made.append(folder)
            _set_limits(folder, place, limits)
    except OSError:
        for folder in made:
            _remove(folder)
        return []
    return made


def count_tasks(processes: int) -> int:
    """How many tasks there may be, threads included, where so many processes may be."""
    cores = os.cpu_count() or 1
    return min(processes * max(THREADS_EACH, cores), processes + max(MORE_THREADS, 8 * cores))


def _set_limits(folder: Path, place: Place, limits: Limits) -> None:
    if "memory" in place.controllers:
        most = str(limits.memory_mb * MB)
        _write(folder / ("memory.limit_in_bytes" if place.version == 1 else "memory.max"), most)
        with suppress(FileNotFoundError):  # there only if the kernel accounts for swap
            if place.version == 1:  # memory and swap together
                _write(folder / "memory.memsw.limit_in_bytes", most)
            else:
                _write(folder / "memory.swap.max", "0")
    if "pids" in place.controllers:
        most = str(count_tasks(limits.processes))
        _write(folder / "pids.max", most)


def _write(file: Path, text: str) -> None:
    """Like `write_text`, but never tries to make the file: what is missing is missing."""
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
        waiting = [folder for folder in _busy if _is_own(folder.name)]
        _busy.clear()
    for folder in waiting:
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
        time.sleep(TRY_AGAIN_S)
    return False


def _kill_all(folder: Path) -> None:
    try:
        _write(folder / "cgroup.kill", "1")
    except OSError:  # version 1, or an older kernel
        for pid in _read_text(folder / "cgroup.procs").split():
            with suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def _ran_out_of_memory(folder: Path) -> bool:
    # A kill alone could also mean that a group around ours, or the whole host, was at its end.
    events = _read_counts(folder / "memory.events")
    if events:
        return events.get("oom", 0) > 0 and events.get("oom_kill", 0) > 0
    if not _read_counts(folder / "memory.oom_control").get("oom_kill"):
        return False
    # Not failcnt: with swap accounted for, newer kernels don't count there.
    peak, limit = (
        int(_read_text(folder / f"memory.{name}_in_bytes") or 0) for name in ("max_usage", "limit")
    )
    return limit - peak < NEAR_MB * MB


def _read_counts(file: Path) -> dict[str, int]:
    lines = (line.split() for line in _read_text(file).splitlines())
    return {name: int(number) for name, number in lines}


def _read_text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def _spell_owner(pid: int) -> str:
    """A process as the names of its groups tell it: no other is spelled the same until a reboot."""
    space = Path("/proc/self/ns/pid").stat().st_ino
    stat = Path(f"/proc/{pid}/stat").read_text()
    return f"{space}-{pid}-{stat.rpartition(')')[2].split()[19]}"


def _is_own(name: str) -> bool:
    return name.startswith(f"{PREFIX}-{_spell_owner(os.getpid())}-")


def _is_orphaned(name: str) -> bool:
    """Whether it is a group of ours whose owner is gone; of other pid namespaces we can't tell."""
    prefix, *parts = name.split("-")
    if prefix != PREFIX or len(parts) != 4 or not all(part.isdecimal() for part in parts):
        return False
    space, pid, _, _ = parts
    if int(space) != Path("/proc/self/ns/pid").stat().st_ino:
        return False
    try:
        return not name.startswith(f"{PREFIX}-{_spell_owner(int(pid))}-")
    except OSError:
        return True
