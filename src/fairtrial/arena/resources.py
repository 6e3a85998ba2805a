"""What all checks of one arena share, and how each gets a core, a slot and a quiet conscience."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fairtrial.arena.build import build_base
from fairtrial.arena.disk_guard import Room
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.slots.pool import WorktreePool, WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.arena.task_groups import single_cause
from fairtrial.sandbox import HostLock, Lease, Mount, Sandbox

if TYPE_CHECKING:
    from anyio import CancelScope, Semaphore

LOOK_AGAIN_S = 0.1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ground:
    """What all checks of one arena share.

    problem: whose checks they are
    interpreter: the Python they run with
    sandbox: where candidates' commands run
    outside: where the base's commands run when nothing shall be in their way
    pool: the slots
    import_roots: the folders that imports start from, relative to the top
    included: what of the user's tree lies in each slot read-only
    cores: as many checks at once as there are cores
    lock: the host's: shared by checks, exclusive for timing
    room: what is left of the disk that the slots are on
    disturbed: files that the base's own checks change while they run
    cold: where commands run that must not start warm; None if none starts so
    """

    problem: CodeProblem
    interpreter: Interpreter
    sandbox: Sandbox
    outside: Sandbox
    pool: WorktreePool
    import_roots: tuple[str, ...]
    included: tuple[Mount, ...]
    cores: Semaphore
    lock: HostLock
    room: Room
    disturbed: set[str] = field(default_factory=set)
    cold: Sandbox | None = None

    @asynccontextmanager
    async def lease(self, *, trusted: bool = False) -> AsyncIterator[tuple[WorktreeSlot, Lease]]:
        """A core, a slot and the shared side of the host's lock, always in this order."""
        async with (
            self.cores,
            self.pool.acquire(trusted=trusted) as slot,
            self.lock.shared() as lease,
        ):
            yield slot, lease

    async def undisturbed(self, work: Callable[[WorktreeSlot], Awaitable[T]]) -> T:
        """What `work` gives on a slot of its own; done again if timing had to stop it."""
        import anyio

        while True:
            async with self.lease() as (slot, lease):
                with anyio.CancelScope() as scope:
                    try:
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(_give_way, lease, scope, self.room)
                            result = await work(slot)
                            tasks.cancel_scope.cancel()
                    except BaseExceptionGroup as group:
                        raise single_cause(group) from None
                    return result

    def stage(
        self, slot: WorktreeSlot, *, sandboxed: bool = True, may_be_warm: bool = True
    ) -> Stage:
        """A slot as checks use it; every path is the slot's own."""
        inside = self.sandbox if may_be_warm else self.cold or self.sandbox
        sandbox = inside if sandboxed else self.outside
        seen = self.pool.snapshot.source if sandbox.relocates else slot.path
        return Stage(
            problem=self.problem,
            interpreter=self.interpreter,
            sandbox=sandbox,
            slot=slot.path,
            seen=seen,
            import_roots=self.import_roots,
            included=self.included if sandbox.relocates else (),
        )

    @asynccontextmanager
    async def __call__(
        self, *, sandboxed: bool = True, trusted: bool = False
    ) -> AsyncIterator[Stage]:
        """A slot with the base in it (`trial.Stages`); what its checks change there is noted."""
        async with self.lease(trusted=trusted) as (slot, _):
            stage = self.stage(slot, sandboxed=sandboxed)
            self.disturbed.update(await build_base(stage, slot))
            yield stage
            self.disturbed.update(await slot.restage())


async def _give_way(lease: Lease, scope: CancelScope, room: Room) -> None:
    """Stop a check when timing has waited for it long enough; see meanwhile if the disk is full."""
    import anyio

    while not lease.is_overdue():
        room.look()
        await anyio.sleep(LOOK_AGAIN_S)
    scope.cancel()
