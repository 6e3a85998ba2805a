"""The pool: a base that nobody touches, and slots that candidates take turns in."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.slots.base import Base, prepare_base
from fairtrial.arena.slots.copying import Origin, Wanted
from fairtrial.arena.slots.placement import lay_over, refuse_misplaced
from fairtrial.arena.slots.pool_folders import Home, open_home, remove_orphans
from fairtrial.arena.slots.staging import Staging
from fairtrial.arena.slots.threads import NoRoomError, explain, in_thread
from fairtrial.arena.slots.tree import shows_mapped_writes
from fairtrial.arena.snapshot.snapshot import Snapshot, find_top, take_snapshot
from fairtrial.core import LabError, StudyError

if TYPE_CHECKING:
    from anyio import Event


class WorktreeSlot:
    """A slot for as long as somebody holds it.

    number: which of the pool's slots it is, from 1
    """

    def __init__(self, number: int, staging: Staging, base: Base, source: Path) -> None:
        self.number = number
        self._staging: Staging | None = staging
        self._base, self._source = base, source

    @property
    def path(self) -> Path:
        """The folder."""
        return self._held().folder

    def mirror(self, path: str | Path) -> Path:
        """Where a path of the user's tree is in this slot; relative ones begin at the top."""
        place = Path(os.path.normpath(self._source / path))
        if not place.is_relative_to(self._source):
            raise StudyError(f"{path} is not in {self._source}")
        return self.path / place.relative_to(self._source)

    async def reset(self, *, trusted: bool = False) -> None:
        """Bring it back to the base; with what candidates must not see only if it is `trusted`."""
        staging, base = self._held(), self._base
        await in_thread(_reset, staging, base.everything if trusted else base.shown)

    async def write_candidate(self, changes: Changes) -> None:
        """Put a candidate's files in; `StudyError` if a path of it leads anywhere else."""
        staging = self._held()

        def write() -> None:
            refuse_misplaced(changes.files, staging.wanted)
            staging.become(lay_over(staging.wanted, changes.files, staging.store_original))

        await in_thread(write)

    async def keep(self) -> tuple[str, ...]:
        """Take what is there now for what belongs there; returns what was rewritten or removed."""
        return tuple(await in_thread(self._held().keep))

    async def restage(self) -> tuple[str, ...]:
        """Bring it back to what belongs there; returns the files that were changed or missing.

        That is base, candidate and what was kept since. Files that were added go without a word.
        """
        return tuple(sorted(await in_thread(self._held().mend)))

    async def fingerprint(self) -> str:
        """A hash of all its paths, modes and contents."""
        return await in_thread(self._held().fingerprint)

    def give_back(self) -> None:
        """From now on it is somebody else's: using it would judge the wrong candidate."""
        self._staging = None

    def _held(self) -> Staging:
        if self._staging is None:
            raise LabError(f"slot {self.number} was given back")
        return self._staging


class WorktreePool:
    """Slots for candidates: ``async with WorktreePool(repo, 4) as pool``."""

    def __init__(
        self,
        repo: Path,
        size: int,
        *,
        included: Sequence[str] = (),
        git: bool = False,
        largest_mb: int = 100,
        hidden: Sequence[str] = (),
        python: Path | None = None,
        keep: bool = False,
    ) -> None:
        """Nothing happens yet.

        repo: the user's tree, or a folder in it
        size: how many candidates can have a slot at the same time
        included: ignored paths that are copied into every slot
        git: whether slots are repositories of one commit
        largest_mb: how much untracked data is taken along
        hidden: paths that only trusted slots hold
        python: compiles the base's bytecode, if given
        keep: whether all stays on disk afterwards
        """
        if size < 1:
            raise StudyError(f"a pool needs 1 slot or more, got {size}")
        self._repo, self._wanted_size, self._keep = repo, size, keep
        self._largest_mb = largest_mb
        self._prepare = partial(
            prepare_base, included=included, hidden=hidden, has_git=git, python=python
        )
        self._notes: list[str] = []
        self._home: Home | None = None
        self._kept: Path | None = None
        self._snapshot: Snapshot | None = None
        self._base: Base | None = None
        self._digests: dict[Origin, bytes] = {}
        self._trusts_times = False
        self._stagings: dict[int, Staging] = {}
        self._free: deque[int] = deque()
        self._waiting: list[Event] = []
        self._renewals = 0

    @property
    def snapshot(self) -> Snapshot:
        """What the base is made from."""
        if self._snapshot is None:
            raise LabError("the pool is not open")
        return self._snapshot

    @property
    def base(self) -> Path:
        """The base's own tree; to be read only."""
        return self._opened().top

    @property
    def size(self) -> int:
        """How many slots there are."""
        return len(self._stagings)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know: of the snapshot, of slots that couldn't be made."""
        return tuple(self._notes)

    @property
    def kept(self) -> Path | None:
        """Where all of it stays when the pool is closed, if it does."""
        return self._kept

    async def __aenter__(self) -> WorktreePool:
        try:
            await self._open()
        except BaseException:
            self._keep, self._kept = False, None
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> None:
        tree = await find_top(self._repo)
        await in_thread(self._find_home, tree)
        assert self._home is not None
        home = self._home.path
        self._snapshot = await take_snapshot(self._repo, home, largest_mb=self._largest_mb)
        self._notes.extend(self._snapshot.notes)
        try:
            self._base = await self._prepare(self._snapshot, home)
        except OSError as error:
            raise explain(error) from error
        self._notes.extend(self._base.notes)
        await self._make_slots()

    def _find_home(self, tree: Path) -> None:
        _, failures = remove_orphans()
        self._notes.extend(f"left by an earlier run, can't be removed: {each}" for each in failures)
        self._home = open_home(tree)
        self._kept = self._home.path if self._keep else None
        self._trusts_times = shows_mapped_writes(self._home.path / "probe")

    async def _make_slots(self) -> None:
        failures = await self._add_slots(range(1, self._wanted_size + 1))
        if not self._stagings:
            raise failures[min(failures)]
        for number in sorted(failures):
            self._notes.append(f"slot {number} couldn't be made: {failures[number]}")

    async def grow(self, count: int) -> None:
        """So many slots more; `LabError` if one of them can't be made."""
        last = max(self._stagings)
        failures = await self._add_slots(range(last + 1, last + 1 + count))
        for number in sorted(failures):
            raise failures[number]

    async def _add_slots(self, numbers: Sequence[int]) -> dict[int, LabError]:
        """Slots with these numbers, and why some couldn't be made."""
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
        """A new slot with the base in it."""
        assert self._home is not None
        folder = self._home.path / name
        staging = Staging(
            folder,
            folder.with_suffix(".store"),
            self._digests,
            trusts_times=self._trusts_times,
        )
        await in_thread(_reset, staging, self._opened().shown)
        return staging

    @asynccontextmanager
    async def acquire(self, *, trusted: bool = False) -> AsyncIterator[WorktreeSlot]:
        """A slot with the base in it, for oneself alone; waits until one is free."""
        number = await self._take()
        slot = None
        try:
            slot = await self._lease(number, trusted)
            yield slot
        finally:
            # Nothing is awaited here, so that no cancellation can come between.
            if slot is not None:
                slot.give_back()
            self._free.append(number)
            self._wake()

    async def _take(self) -> int:
        import anyio

        self._opened()
        while not self._free:
            event = anyio.Event()
            self._waiting.append(event)
            try:
                await event.wait()
            finally:
                self._waiting.remove(event)
            self._opened()
        return self._free.popleft()

    def _wake(self) -> None:
        """All of them: a slot that only one is told of is lost if that one is cancelled."""
        for event in self._waiting:
            event.set()

    async def _lease(self, number: int, trusted: bool) -> WorktreeSlot:
        source = self.snapshot.source
        try:
            slot = WorktreeSlot(number, self._stagings[number], self._opened(), source)
            await slot.reset(trusted=trusted)
        except LabError:
            # Something in it can't be removed: leave it there, and begin in another folder.
            self._renewals += 1
            self._stagings[number] = await self._stage(f"{number}-{self._renewals}")
            slot = WorktreeSlot(number, self._stagings[number], self._opened(), source)
            await slot.reset(trusted=trusted)
        return slot

    async def close(self) -> None:
        """Remove everything from disk; what can't be removed is told in `notes`."""
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

    def _opened(self) -> Base:
        if self._base is None:
            raise LabError("the pool is closed")
        return self._base


def _reset(staging: Staging, wanted: Wanted) -> None:
    try:
        staging.become(wanted)
    except OSError as error:
        if not isinstance(explain(error), NoRoomError):
            raise
        staging.become({"": {}})  # what fills the disk may lie behind what is missing
        staging.become(wanted)
    staging.clear_store()
