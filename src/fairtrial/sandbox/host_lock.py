"""The host lock: many processes work at once, or one process times and has the host to itself.

It consists of three files in a folder that all users share:

- `main` is locked shared by processes that work, and exclusively by the one that times.
- `gate` must be locked before `main`. Processes that work release it at once; one that times keeps
  it, so that no other process enters from the moment it asks.
- `bell` is a FIFO that has a writer exactly as long as a timing process keeps the gate. Processes
  that wait sleep until it has none, without disturbing what is timed; processes that work see by it
  that they are waited for.

The kernel releases everything when a process dies.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.core import LabError, events
from fairtrial.sandbox.shared_files import SharedFile, open_shared_fifo, open_shared_file

HOST_FOLDER = Path("/tmp")
"""Every user may make files there, and none may remove another's; TMPDIR may differ by user."""
GATE, MAIN, BELL = "fairtrial-host.gate", "fairtrial-host.main", "fairtrial-host.bell"
DRAIN_MAX_S = 30.0
"""How long processes at work may continue by default after a process has asked to time."""
FIRST_POLL_S, MAX_POLL_S, MAX_FIFO_WAIT_S = 0.0005, 0.01, 1.0
"""Intervals of polling a lock: at first, at most, and while a process times (a FIFO ends that)."""
NOTIFY_AFTER_S, NOTIFY_AGAIN_S = 3.0, 60.0
"""When a waiting caller is notified: after this time, and how long later again."""
NOTE_BYTES, PID_BYTES = 64, 16
MAX_ANCESTORS = 16


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to use this host, until its block ends.

    waited_s: how long the caller waited for it
    is_exclusive: whether no other process has one
    """

    waited_s: float
    is_exclusive: bool
    _files: _Files = field(repr=False)

    def is_overdue(self) -> bool:
        """Return whether a timing process has waited longer than its `drain_max_s`."""
        wait = self._read_wait()
        return wait is not None and wait[0] >= wait[1]

    def _read_wait(self) -> tuple[float, float] | None:
        """Return how long a timing process has waited, and its `drain_max_s`; None if none does."""
        if self.is_exclusive or not _has_writer(self._files.bell):
            return None
        return _read_note(self._files.gate)


_held: ContextVar[tuple[tuple[int, Lease], ...]] = ContextVar("_held", default=())
"""The leases whose blocks are active, each with its task; inherited by child tasks."""


class HostLock:
    """The lock of this host.

    folder: where its files are; tests use folders of their own
    emit: called with events while another process times, and when it has ended
    """

    def __init__(self, folder: Path | None = None, emit: events.Emit | None = None) -> None:
        self._folder = HOST_FOLDER if folder is None else folder
        self._emit = emit
        self._notified_s, self._is_notified = -math.inf, False

    def find_timing_process(self, own_pid: int | None = None) -> int | None:
        """Return the pid of another process that times, or waits to; None if there is none.

        own_pid: the process that doesn't count as another, nor do its descendants; by default the
            calling one
        """
        with ExitStack() as opened:
            files = _Files(self._folder, opened)
            pid = _read_pid(files.gate) if _has_writer(files.bell) else None
        return None if pid is None or _is_descendant(pid, own_pid or os.getpid()) else pid

    def describe_timing_process(self, own_pid: int | None = None) -> str:
        """Return a notice that another fairtrial is timing; empty if none is, or it is unknown.

        own_pid: as for `find_timing_process`
        """
        try:
            pid = self.find_timing_process(own_pid)
        except LabError:
            return ""  # reported by code that needs the lock
        return "" if pid is None else events.HostWaitStarted(pid).text

    def check(self) -> None:
        """Raise `LabError` if the lock's files can't be used on this host; takes no lock."""
        with ExitStack() as opened:
            _Files(self._folder, opened)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[Lease]:
        """Take a lease for work that uses CPU; waits while a process times or waits to.

        A task that has a lease already gets another one at once: otherwise it and the process that
        waits for its lease to end would wait for each other.
        """
        began_s = time.monotonic()
        with ExitStack() as held:
            outer = self._find_own_lease()
            if outer is None:
                files = await self._enter(held, fcntl.LOCK_SH)
                files.gate.unlock()
            else:
                files = _Files(self._folder, held)
                if not outer.is_exclusive:
                    files.main.lock(fcntl.LOCK_SH)
            is_alone = outer is not None and outer.is_exclusive
            lease = Lease(time.monotonic() - began_s, is_alone, files)
            with _registered(lease):
                yield lease

    @asynccontextmanager
    async def exclusive(self, *, drain_max_s: float = DRAIN_MAX_S) -> AsyncIterator[Lease]:
        """Take the lease for timing: admit no other process, and wait for shared leases to end.

        drain_max_s: how long holders of shared leases may continue; see `Lease.is_overdue`

        Raises `RuntimeError` if the task holds a lease.
        """
        if self._find_own_lease() is not None:
            raise RuntimeError("a lease must be given back before the exclusive one is asked for")
        began_s = time.monotonic()
        with ExitStack() as held:
            files = await self._enter(held, fcntl.LOCK_EX, drain_max_s)
            lease = Lease(time.monotonic() - began_s, True, files)
            with _registered(lease):
                yield lease

    def _find_own_lease(self) -> Lease | None:
        """Return a lease of this lock that the current task holds."""
        import anyio

        task = anyio.get_current_task().id
        for owner, lease in _held.get():
            if owner == task and lease._files.folder == self._folder and lease._files.are_open():
                return lease
        return None

    async def _enter(self, held: ExitStack, side: int, drain_max_s: float = math.inf) -> _Files:
        """Lock `gate` and then `main`; returns with both locked.

        side: `fcntl.LOCK_SH` or `LOCK_EX`, for `main`
        """
        from anyio.lowlevel import checkpoint

        await checkpoint()  # so that a loop of short leases lets other tasks run
        while True:
            # When this is cancelled, all files are closed and thereby unlocked.
            with ExitStack() as opened:
                files = _Files(self._folder, opened)
                await _wait_for_lock(files.gate, fcntl.LOCK_EX, files.bell, self._notify_waiting)
                if self._emit is not None and self._is_notified:
                    self._is_notified = False
                    self._emit(events.HostWaitEnded())
                if side == fcntl.LOCK_EX:
                    _write_note(files.gate, drain_max_s)
                    opened.enter_context(open_shared_fifo(self._folder / BELL, os.O_RDWR))
                await _wait_for_lock(files.main, side)
                if files.are_current():
                    held.enter_context(opened.pop_all())
                    return files

    def _notify_waiting(self) -> None:
        """Notify the caller which process is waited for, at most every `NOTIFY_AGAIN_S`."""
        now_s = time.monotonic()
        if self._emit is not None and now_s - self._notified_s >= NOTIFY_AGAIN_S:
            pid = self.find_timing_process()
            if pid is not None:
                self._notified_s, self._is_notified = now_s, True
                self._emit(events.HostWaitStarted(pid))


class _Files:
    """The lock's three files, open while a lease is waited for and held."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.bell = opened.enter_context(open_shared_fifo(folder / BELL, os.O_RDONLY))
        self.gate = opened.enter_context(open_shared_file(folder / GATE))
        self.main = opened.enter_context(open_shared_file(folder / MAIN))

    def are_open(self) -> bool:
        return self.main.fd >= 0

    def are_current(self) -> bool:
        """Return whether no file was replaced meanwhile, so that all processes lock the same."""
        return all(file.is_current() for file in (self.bell, self.gate, self.main))


@contextmanager
def _registered(lease: Lease) -> Iterator[None]:
    import anyio

    before = _held.get()
    _held.set((*before, (anyio.get_current_task().id, lease)))
    try:
        yield
    finally:
        _held.set(before)


async def _wait_for_lock(
    file: SharedFile,
    side: int,
    bell: SharedFile | None = None,
    notify: Callable[[], None] | None = None,
) -> None:
    """Wait for a file's lock; calls `notify` repeatedly after `NOTIFY_AFTER_S`.

    side: `fcntl.LOCK_SH` or `LOCK_EX`
    bell: the FIFO to sleep on while it has a writer
    """
    import anyio

    pause_s = FIRST_POLL_S
    began_s = time.monotonic()
    while not file.lock(side):
        if notify is not None and time.monotonic() - began_s >= NOTIFY_AFTER_S:
            notify()
        if bell is not None and _has_writer(bell):
            with anyio.move_on_after(MAX_FIFO_WAIT_S):
                await anyio.wait_readable(bell.fd)
            pause_s = FIRST_POLL_S
        else:
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_POLL_S)


def _has_writer(bell: SharedFile) -> bool:
    try:
        return bool(os.read(bell.fd, 4096))  # no data is ever written; EOF means no writer
    except BlockingIOError:
        return True


def _write_note(gate: SharedFile, drain_max_s: float) -> None:
    note = f"{time.monotonic():.6f} {drain_max_s:.6f}".ljust(NOTE_BYTES - 1) + "\n"
    note += f"{os.getpid()}".ljust(PID_BYTES - 1) + "\n"
    with suppress(OSError):  # disk full: holders see that a process waits, but not since when
        os.pwrite(gate.fd, note.encode(), 0)


def _read_note(gate: SharedFile) -> tuple[float, float]:
    """Return how long the timing process has waited, and its `drain_max_s`; infinite if unknown."""
    try:
        since_s, drain_max_s = map(float, os.pread(gate.fd, NOTE_BYTES, 0).split())
    except ValueError:
        return 0.0, math.inf
    return max(0.0, time.monotonic() - since_s), drain_max_s


def _read_pid(gate: SharedFile) -> int | None:
    try:
        return int(os.pread(gate.fd, PID_BYTES, NOTE_BYTES))
    except ValueError:
        return None  # written by an older version, without the pid


def _is_descendant(pid: int, ancestor: int) -> bool:
    """Return whether a process is `ancestor` or one of its descendants, such as its workers."""
    for _ in range(MAX_ANCESTORS):
        if pid == ancestor:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
            pid = int(stat.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False
