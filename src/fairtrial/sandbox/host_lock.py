"""A host-wide lock with two sides: many may work at once, or one may time and have the host alone.

Three files in a folder that all users share. `main` is held shared by those who work, exclusively
by the one who times. Nobody asks for `main` without the `gate`: who works lets it go at once, who
times keeps it, so that nobody new gets in from the moment it asks. The `bell` is a FIFO that has a
writer exactly as long as somebody keeps the gate: those outside sleep until it has none (they don't
disturb what is timed), those inside see that one is there. The kernel undoes all of it when a
process dies.
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

from fairtrial.core import Emit, HostWaitEnded, HostWaitStarted
from fairtrial.sandbox.shared_files import Handle, open_common_fifo, open_common_file

HOST_FOLDER = Path("/tmp")
"""Every user may make files there, none may remove another's; TMPDIR isn't the same for all."""
GATE, MAIN, BELL = "fairtrial-host.gate", "fairtrial-host.main", "fairtrial-host.bell"
DRAIN_MAX_S = 30.0
SOON_S, LATER_S, SELDOM_S = 0.0005, 0.01, 1.0
"""When to look again: at first; while others work; while somebody times (the bell is quicker)."""
SAY_S, SAY_AGAIN_S = 3.0, 60.0
"""When somebody who waits is told for whom: after so long, and not again for so long."""
WAITING = "waiting: another fairtrial is timing (process {})"
NOTE_BYTES, PID_BYTES = 64, 16
MOST_ANCESTORS = 16


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to use this host, for as long as its block lasts.

    waited_s: how long it took to get it
    is_exclusive: whether nobody else has one
    """

    waited_s: float
    is_exclusive: bool
    _files: _Files = field(repr=False)

    def wanted_for_s(self) -> float | None:
        """How long somebody has been waiting for all holders to leave; None if nobody is."""
        wanted = self._look()
        return None if wanted is None else wanted[0]

    def is_overdue(self) -> bool:
        """Whether somebody has waited longer for us than they let us go on."""
        wanted = self._look()
        return wanted is not None and wanted[0] >= wanted[1]

    def _look(self) -> tuple[float, float] | None:
        """For how long somebody has waited, and up to when that is all right."""
        if self.is_exclusive or not _has_writer(self._files.bell):
            return None
        return _read_note(self._files.gate)


_held: ContextVar[tuple[tuple[int, Lease], ...]] = ContextVar("_held", default=())
"""The leases in whose blocks we are, each with its task: tasks that we start inherit this."""


class HostLock:
    """The lock of this host. Tests give a folder, to have one of their own.

    emit: takes an event now and then while we wait for another process that times
    """

    def __init__(self, folder: Path | None = None, emit: Emit | None = None) -> None:
        self._folder = HOST_FOLDER if folder is None else folder
        self._emit = emit
        self._said_s, self._has_said = -math.inf, False

    def who_times(self, ours: int | None = None) -> int | None:
        """The process of somebody else who has the host alone, or is about to; None if nobody.

        ours: the process that is not somebody else, nor are those it has started; by default this
        """
        with ExitStack() as opened:
            files = _Files(self._folder, opened)
            pid = _read_pid(files.gate) if _has_writer(files.bell) else None
        return None if pid is None or _is_below(pid, ours or os.getpid()) else pid

    def check(self) -> None:
        """Raise a `LabError` if its files can't be used here; takes nothing."""
        with ExitStack() as opened:
            _Files(self._folder, opened)

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[Lease]:
        """For all that uses CPU. Waits while somebody times, or waits to.

        A task that has a lease is let in at once: whoever waits for it to leave would else be
        waited for by it.
        """
        began_s = time.monotonic()
        with ExitStack() as held:
            outer = self._outer()
            if outer is None:
                files = await self._enter(held, fcntl.LOCK_SH)
                files.gate.unlock()
            else:
                files = _Files(self._folder, held)
                if not outer.is_exclusive:
                    files.main.lock(fcntl.LOCK_SH)
            is_alone = outer is not None and outer.is_exclusive
            lease = Lease(time.monotonic() - began_s, is_alone, files)
            with _holding(lease):
                yield lease

    @asynccontextmanager
    async def exclusive(self, *, drain_max_s: float = DRAIN_MAX_S) -> AsyncIterator[Lease]:
        """For timing: nothing else of ours is at work. Nobody new gets in while this waits.

        drain_max_s: how long those at work may go on; their leases tell them
        """
        if self._outer() is not None:
            raise RuntimeError("a lease must be given back before the exclusive one is asked for")
        began_s = time.monotonic()
        with ExitStack() as held:
            files = await self._enter(held, fcntl.LOCK_EX, drain_max_s)
            lease = Lease(time.monotonic() - began_s, True, files)
            with _holding(lease):
                yield lease

    def _outer(self) -> Lease | None:
        """A lease that this very task has already."""
        import anyio

        task = anyio.get_current_task().id
        for owner, lease in _held.get():
            if owner == task and lease._files.folder == self._folder and lease._files.are_open():
                return lease
        return None

    async def _enter(self, held: ExitStack, side: int, drain_max_s: float = math.inf) -> _Files:
        """Through the gate, which is still ours afterwards, and into `main`."""
        from anyio.lowlevel import checkpoint

        await checkpoint()  # a loop of short leases gives others their turn
        while True:
            # Nothing is lost when this is cancelled: what is open is closed, and so unlocked.
            with ExitStack() as opened:
                files = _Files(self._folder, opened)
                await _take(files.gate, fcntl.LOCK_EX, files.bell, self._tell)
                if self._emit is not None and self._has_said:
                    self._has_said = False
                    self._emit(HostWaitEnded())
                if side == fcntl.LOCK_EX:
                    _write_note(files.gate, drain_max_s)
                    opened.enter_context(open_common_fifo(self._folder / BELL, os.O_RDWR))
                await _take(files.main, side)
                if files.are_current():
                    held.enter_context(opened.pop_all())
                    return files

    def _tell(self) -> None:
        """Say whom we wait for, but not all the time."""
        now_s = time.monotonic()
        if self._emit is not None and now_s - self._said_s >= SAY_AGAIN_S:
            pid = self.who_times()
            if pid is not None:
                self._said_s, self._has_said = now_s, True
                self._emit(HostWaitStarted(pid))


class _Files:
    """The three files, open as long as a lease is waited for and held."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.bell = opened.enter_context(open_common_fifo(folder / BELL, os.O_RDONLY))
        self.gate = opened.enter_context(open_common_file(folder / GATE))
        self.main = opened.enter_context(open_common_file(folder / MAIN))

    def are_open(self) -> bool:
        return self.main.fd >= 0

    def are_current(self) -> bool:
        """Whether nobody has cleaned them away meanwhile, so that others lock other ones."""
        return all(file.is_current() for file in (self.bell, self.gate, self.main))


@contextmanager
def _holding(lease: Lease) -> Iterator[None]:
    import anyio

    before = _held.get()
    _held.set((*before, (anyio.get_current_task().id, lease)))
    try:
        yield
    finally:
        _held.set(before)


async def _take(
    handle: Handle,
    how: int,
    bell: Handle | None = None,
    tell: Callable[[], None] | None = None,
) -> None:
    """Wait for a lock; `tell` is called again and again once that takes long."""
    import anyio

    pause_s = SOON_S
    began_s = time.monotonic()
    while not handle.lock(how):
        if tell is not None and time.monotonic() - began_s >= SAY_S:
            tell()
        if bell is not None and _has_writer(bell):
            with anyio.move_on_after(SELDOM_S):
                await anyio.wait_readable(bell.fd)
            pause_s = SOON_S
        else:
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, LATER_S)


def _has_writer(bell: Handle) -> bool:
    try:
        return bool(os.read(bell.fd, 4096))  # nobody writes; without a writer it ends at once
    except BlockingIOError:
        return True


def _write_note(gate: Handle, drain_max_s: float) -> None:
    note = f"{time.monotonic():.6f} {drain_max_s:.6f}".ljust(NOTE_BYTES - 1) + "\n"
    note += f"{os.getpid()}".ljust(PID_BYTES - 1) + "\n"
    with suppress(OSError):  # a full disk: holders see that they are waited for, not since when
        os.pwrite(gate.fd, note.encode(), 0)


def _read_note(gate: Handle) -> tuple[float, float]:
    """Waiting time and patience; nobody is hurried by a note that says neither."""
    try:
        since_s, drain_max_s = map(float, os.pread(gate.fd, NOTE_BYTES, 0).split())
    except ValueError:
        return 0.0, math.inf
    return max(0.0, time.monotonic() - since_s), drain_max_s


def _read_pid(gate: Handle) -> int | None:
    try:
        return int(os.pread(gate.fd, PID_BYTES, NOTE_BYTES))
    except ValueError:
        return None  # an older fairtrial, which doesn't say


def _is_below(pid: int, ours: int) -> bool:
    """Whether a process is a certain one, or was started by it, as its workers are."""
    for _ in range(MOST_ANCESTORS):
        if pid == ours:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
            pid = int(stat.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False
