"""The worktree pool: a base that is never changed, and slots that are leased to candidates."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.slots.base import Base, prepare_base
from fairtrial.arena.slots.copying import Origin, TargetTree
from fairtrial.arena.slots.placement import overlay, refuse_misplaced
from fairtrial.arena.slots.pool_folders import PoolFolder, create_pool_folder, remove_orphaned_pools
from fairtrial.arena.slots.staging import Staging
from fairtrial.arena.slots.threads import NoRoomError, as_lab_error, in_thread
from fairtrial.arena.slots.tree import shows_mapped_writes
from fairtrial.arena.slots.writing import read_changes
from fairtrial.arena.snapshot.snapshot import Snapshot, find_top, take_snapshot
from fairtrial.core import LabError, Mistake, StudyError, describe_value

if TYPE_CHECKING:
    from anyio import Event


class WorktreeSlot:
    """A leased slot: a working copy of the base for one candidate.

    All methods raise `LabError` after the slot was released.

    number: the slot's number in the pool, from 1
    """

    def __init__(self, number: int, staging: Staging, base: Base, snapshot: Snapshot) -> None:
        self.number = number
        self._staging: Staging | None = staging
        self._base, self._snapshot = base, snapshot

    @property
    def path(self) -> Path:
        """The slot's folder."""
        return self._get_staging().folder

    async def reset(self, *, trusted: bool = False) -> None:
        """Bring the slot back to the base, with hidden files only if it is `trusted`."""
        staging, base = self._get_staging(), self._base
        await in_thread(_reset, staging, base.complete if trusted else base.visible)

    async def write_candidate(
        self, candidate: Changes | Candidate | str | Path, code: str | bytes | None = None
    ) -> None:
        """Write a candidate's files: ``write_candidate("src/a.py", code)``, or a diff.

        Raises `StudyError` if a path leads out of the tree, a diff doesn't apply to the base or
        changes nothing, or the candidate is something else.

        candidate: the path of a file, relative to the slot's folder; or a diff of the base, a
            `Candidate`, or resolved `Changes`
        code: the new content of the file; None if no file is named
        """
        staging = self._get_staging()
        changes = await read_changes(self._snapshot, candidate, code)

        def write() -> None:
            refuse_misplaced(changes.files, staging.target)
            staging.stage(overlay(staging.target, changes.files, staging.store_original))

        await in_thread(write)

    async def keep(self) -> tuple[str, ...]:
        """Accept the slot's current contents, such as a build's results, as its target.

        `restage` restores them from now on. Returns files that were rewritten or removed.
        """
        return tuple(await in_thread(self._get_staging().keep))

    async def restage(self) -> tuple[str, ...]:
        """Restore the base, the candidate and what was kept; return changed or missing files.

        Files that were added are removed without being reported.
        """
        return tuple(sorted(await in_thread(self._get_staging().restore)))

    async def fingerprint(self, *, has_empty: bool = True) -> str:
        """Return a hash of all paths, modes and contents.

        has_empty: whether empty folders count; sandboxes make some, as mount points
        """
        return await in_thread(partial(self._get_staging().fingerprint, has_empty=has_empty))

    def release(self) -> None:
        """End the lease: the folder may hold another candidate from now on."""
        self._staging = None

    def _get_staging(self) -> Staging:
        if self._staging is None:
            raise LabError(f"slot {self.number} was released")
        return self._staging


class WorktreePool:
    """A pool of slots for candidates: ``async with WorktreePool(repo, 4) as pool``.

    Without `async with`: `initialize` first, and `cleanup` at the end. A slot is leased by
    ``async with pool.acquire() as slot``, or by ``slot = await pool.acquire()`` until
    ``await pool.release(slot)``.
    """

    def __init__(
        self,
        repo: Path | str,
        size: int,
        *,
        included: Sequence[str] = (),
        git: bool = False,
        largest_mb: int = 100,
        hidden: Sequence[str] = (),
        python: Path | str | None = None,
        keep: bool = False,
        revision: str = "",
        kept: Mapping[str, Path] | None = None,
    ) -> None:
        """Describe a pool; it is created on disk by `async with`, or `initialize`.

        Raises `StudyError` if the size is below 1.

        repo: the user's tree, or a folder in it
        size: the number of slots
        included: ignored paths that are copied into every slot
        git: whether slots are git repositories of one commit
        largest_mb: limit of the total size of untracked files
        hidden: paths that only trusted slots hold
        python: compiles the base's bytecode, if given
        keep: whether the pool's folder stays on disk afterwards
        revision: a git revision whose files are the base, instead of those on disk
        kept: files on disk that are taken along nevertheless, by their path in the tree
        """
        if not isinstance(size, int) or isinstance(size, bool):
            raise StudyError(Mistake(("size",), f"expected a number, got {describe_value(size)}"))
        if not isinstance(repo, (str, Path)):
            raise StudyError(Mistake(("repo",), f"expected a path, got {describe_value(repo)}"))
        if size < 1:
            raise StudyError(f"a pool needs 1 slot or more, got {size}")
        repo = Path(repo)
        python = None if python is None else Path(python)
        self._repo, self._requested_size, self._keep = repo, size, keep
        self._take_snapshot = partial(
            take_snapshot, repo, largest_mb=largest_mb, revision=revision, kept=kept
        )
        self._prepare = partial(
            prepare_base, included=included, hidden=hidden, has_git=git, python=python
        )
        self._notes: list[str] = []
        self._home: PoolFolder | None = None
        self._kept: Path | None = None
        self._snapshot: Snapshot | None = None
        self._base: Base | None = None
        self._digests: dict[Origin, bytes] = {}
        self._trusts_times = False
        self._stagings: dict[int, Staging] = {}
        self._free: deque[int] = deque()
        self._leased: dict[int, WorktreeSlot] = {}
        self._waiters: list[Event] = []
        self._renewals = 0
        self._was_open = False

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the base was checked out from."""
        if self._snapshot is None:
            raise LabError("the pool is not open")
        return self._snapshot

    @property
    def base(self) -> Path:
        """The folder of the base's own tree; must not be changed."""
        return self._get_base().top

    @property
    def size(self) -> int:
        """The number of slots."""
        return len(self._stagings)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user: about the snapshot, the base and slots that couldn't be made."""
        return tuple(self._notes)

    @property
    def kept(self) -> Path | None:
        """The folder that stays on disk when the pool is closed, or None if it is removed."""
        return self._kept

    async def __aenter__(self) -> WorktreePool:
        await self.initialize()
        return self

    async def initialize(self) -> None:
        """Create the pool on disk; does nothing if it is open."""
        if self._base is not None:
            return
        self._was_open = True
        try:
            await self._open()
        except BaseException:
            self._keep, self._kept = False, None
            await self.close()
            raise

    async def cleanup(self) -> None:
        """Remove the pool from disk, as `close`."""
        await self.close()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> None:
        tree = await find_top(self._repo)
        await in_thread(self._create_home, tree)
        assert self._home is not None
        home = self._home.path
        self._snapshot = await self._take_snapshot(home)
        self._notes.extend(self._snapshot.notes)
        try:
            self._base = await self._prepare(self._snapshot, home)
        except OSError as error:
            raise as_lab_error(error) from error
        self._notes.extend(self._base.notes)
        await self._make_slots()

    def _create_home(self, tree: Path) -> None:
        _, failures = remove_orphaned_pools()
        for failure in failures:
            self._notes.append(f"left by an earlier run, can't be removed: {failure}")
        self._home = create_pool_folder(tree)
        self._kept = self._home.path if self._keep else None
        self._trusts_times = shows_mapped_writes(self._home.path / "probe")

    async def _make_slots(self) -> None:
        failures = await self._add_slots(range(1, self._requested_size + 1))
        if not self._stagings:
            raise failures[min(failures)]
        for number in sorted(failures):
            self._notes.append(f"slot {number} couldn't be made: {failures[number]}")

    async def grow(self, count: int) -> None:
        """Add slots; raise `LabError` if one of them can't be made."""
        last = max(self._stagings)
        failures = await self._add_slots(range(last + 1, last + 1 + count))
        for number in sorted(failures):
            raise failures[number]

    async def _add_slots(self, numbers: Sequence[int]) -> dict[int, LabError]:
        """Create slots with these numbers, and return the errors of those that failed."""
        import anyio

        failures: dict[int, LabError] = {}

        async def make(number: int) -> None:
            try:
                self._stagings[number] = await self._stage(str(number))
            except LabError as error:
                failures[number] = error

        async with anyio.create_task_group() as tasks:
            for number in numbers:
                tasks.start_soon(make, number)
        self._free.extend(sorted(number for number in numbers if number in self._stagings))
        self._wake()
        return failures

    async def _stage(self, name: str) -> Staging:
        """Create the folder of a slot, and copy the base into it."""
        assert self._home is not None
        folder = self._home.path / name
        staging = Staging(
            folder,
            folder.with_suffix(".store"),
            self._digests,
            trusts_times=self._trusts_times,
        )
        await in_thread(_reset, staging, self._get_base().visible)
        return staging

    def acquire(self, *, trusted: bool = False) -> SlotLease:
        """Lease a slot that holds the base, exclusively; wait until one is free.

        The result is a context manager; awaited, it is the slot, until `release`.
        """
        return SlotLease(self, trusted)

    async def release(self, slot: WorktreeSlot) -> None:
        """End the lease of a slot that was acquired without a context manager.

        Raises `LabError` if it isn't leased from this pool.
        """
        if self._leased.get(slot.number) is not slot:
            raise LabError(f"slot {slot.number} is not leased, or from another pool")
        self._give_back(slot)

    async def _acquire(self, trusted: bool) -> WorktreeSlot:
        number = await self._take()
        try:
            slot = await self._lease(number, trusted)
        except BaseException:
            self._free.append(number)
            self._wake()
            raise
        self._leased[number] = slot
        return slot

    def _give_back(self, slot: WorktreeSlot) -> None:
        """End a lease; nothing is awaited, so that a cancellation can't interrupt it."""
        if self._leased.pop(slot.number, None) is slot:
            slot.release()
            self._free.append(slot.number)
            self._wake()

    async def _take(self) -> int:
        import anyio

        self._get_base()
        while not self._free:
            event = anyio.Event()
            self._waiters.append(event)
            try:
                await event.wait()
            finally:
                self._waiters.remove(event)
            self._get_base()
        return self._free.popleft()

    def _wake(self) -> None:
        """Wake all waiters: a slot that only one was woken for is lost if that one is cancelled."""
        for event in self._waiters:
            event.set()

    async def _lease(self, number: int, trusted: bool) -> WorktreeSlot:
        try:
            slot = self._make_slot(number)
            await slot.reset(trusted=trusted)
        except LabError:
            # Something in the folder can't be removed: leave it, and use another folder.
            self._renewals += 1
            self._stagings[number] = await self._stage(f"{number}-{self._renewals}")
            slot = self._make_slot(number)
            await slot.reset(trusted=trusted)
        return slot

    def _make_slot(self, number: int) -> WorktreeSlot:
        return WorktreeSlot(number, self._stagings[number], self._get_base(), self.snapshot)

    async def close(self) -> None:
        """Remove the pool from disk; what can't be removed is reported in `notes`."""
        import anyio

        self._base = None
        self._wake()
        home, self._home = self._home, None
        if home is None:
            return
        with anyio.CancelScope(shield=True):
            if self._keep:
                await in_thread(home.leave, self.snapshot.source)
            else:
                self._notes.extend(await in_thread(home.remove))

    def _get_base(self) -> Base:
        if self._base is None:
            how = "is closed" if self._was_open else "is not open: await pool.initialize()"
            raise LabError(f"the pool {how}")
        return self._base


class SlotLease:
    """The lease of a slot: a context manager, or awaited for the slot itself."""

    def __init__(self, pool: WorktreePool, trusted: bool) -> None:
        self._pool, self._trusted = pool, trusted
        self._slot: WorktreeSlot | None = None

    def __await__(self) -> Generator[Any, Any, WorktreeSlot]:
        return self._pool._acquire(self._trusted).__await__()

    async def __aenter__(self) -> WorktreeSlot:
        self._slot = await self._pool._acquire(self._trusted)
        return self._slot

    async def __aexit__(self, *_: object) -> None:
        if self._slot is not None:
            self._pool._give_back(self._slot)


def _reset(staging: Staging, target: TargetTree) -> None:
    try:
        staging.stage(target)
    except OSError as error:
        if not isinstance(as_lab_error(error), NoRoomError):
            raise
        staging.stage({"": {}})  # folders that come later may hold the files that fill the disk
        staging.stage(target)
    staging.clear_store()
