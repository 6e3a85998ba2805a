"""The resources of an arena, and leases of a core, a slot and the host lock for each check."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from fairtrial.arena.build import build_base
from fairtrial.arena.disk_guard import DiskGuard
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.slots.pool import WorktreePool, WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.core import single_cause
from fairtrial.sandbox import HostLock, Lease, Mount, Sandbox

if TYPE_CHECKING:
    from anyio import CancelScope, Semaphore

POLL_S = 0.1
"""How often a running check looks whether timing waits for it, and whether the disk is full."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArenaResources:
    """What all checks, benchmarks and agents of one arena share.

    problem: the code problem, with paths relative to the repository's top
    interpreter: the Python that its commands run with
    sandbox: runs candidates' commands
    outside: runs the base's commands without isolation
    pool: the slots
    import_roots: the folders that imports start from, relative to the top
    included: files of the user's tree that are mounted read-only into each slot
    cores: limits concurrent checks to the number of cores
    lock: the host lock: shared by checks, exclusive for timing
    disk_guard: watches the disk that the slots are on
    disturbed: files that the base's own checks change while they run
    cold: runs commands that must not start warm; None if `sandbox` doesn't start warm
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
    disk_guard: DiskGuard
    disturbed: set[str] = field(default_factory=set)
    cold: Sandbox | None = None

    @asynccontextmanager
    async def lease(self, *, trusted: bool = False) -> AsyncIterator[tuple[WorktreeSlot, Lease]]:
        """Lease a core, a slot and the shared side of the host lock, always in this order."""
        async with (
            self.cores,
            self.pool.acquire(trusted=trusted) as slot,
            self.lock.shared() as lease,
        ):
            yield slot, lease

    async def run_undisturbed(self, work: Callable[[WorktreeSlot], Awaitable[T]]) -> T:
        """Run `work` on a leased slot and return its result; repeat it if timing interrupted it."""
        import anyio

        while True:
            async with self.lease() as (slot, lease):
                with anyio.CancelScope() as scope:
                    try:
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(_yield_to_timing, lease, scope, self.disk_guard)
                            result = await work(slot)
                            tasks.cancel_scope.cancel()
                    except BaseExceptionGroup as group:
                        raise single_cause(group) from None
                    return result

    def stage(
        self, slot: WorktreeSlot, *, sandboxed: bool = True, may_be_warm: bool = True
    ) -> Stage:
        """Return a stage on a slot: how commands run there, and which files they see."""
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
        """Lease a slot with the built base; record in `disturbed` which files are changed there.

        This makes an `ArenaResources` the `Stages` that checks are prepared with.
        """
        async with self.lease(trusted=trusted) as (slot, _):
            stage = self.stage(slot, sandboxed=sandboxed)
            self.disturbed.update(await build_base(stage, slot))
            yield stage
            self.disturbed.update(await slot.restage())


async def _yield_to_timing(lease: Lease, scope: CancelScope, disk_guard: DiskGuard) -> None:
    """Cancel a check when timing has waited for it long enough; watch the disk meanwhile."""
    import anyio

    while not lease.is_overdue():
        disk_guard.check()
        await anyio.sleep(POLL_S)
    scope.cancel()


def find_hidden(problem: CodeProblem) -> tuple[str, ...]:
    """Return the files that candidates must not see: input makers, recorded calls, acceptors."""
    makers = [check.inputs.partition(":")[0] for check in problem.check]
    makers += [check.accept.partition(":")[0] for check in problem.check]
    makers += [benchmark.inputs.partition(":")[0] for benchmark in problem.bench]
    files = {*makers, *(check.calls for check in problem.check)}
    return tuple(sorted(files - {""}))
