"""The resources of an arena, and leases of a core, a slot and the host lock for each check."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairtrial.arena.base_runs import BaseRuns, RecordedSandbox
from fairtrial.arena.build import build_base
from fairtrial.arena.disk_guard import DiskGuard
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.slots.pool import WorktreePool, WorktreeSlot
from fairtrial.arena.stage import Stage
from fairtrial.core import single_cause
from fairtrial.sandbox import Command, Completed, HostLock, Lease, Mount, Sandbox, View

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
    cores: limits concurrent checks to the number of cores, or of slots if there are more
    lock: the host lock: shared by checks, exclusive for timing
    disk_guard: watches the disk that the slots are on
    disturbed: files that the base's own checks change while they run
    cold: runs commands that must not start warm; None if `sandbox` doesn't start warm
    shortfalls: what the sandbox can't enforce
    base_runs: recorded runs that stand for those of commands on the base, while it is prepared
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
    shortfalls: tuple[str, ...] = ()
    base_runs: BaseRuns | None = None

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
        return self._make_stage(slot.path, inside if sandboxed else self.outside)

    def _make_stage(self, folder: Path, sandbox: Sandbox) -> Stage:
        return Stage(
            problem=self.problem,
            interpreter=self.interpreter,
            sandbox=sandbox,
            slot=folder,
            seen=self.pool.snapshot.source if sandbox.relocates else folder,
            import_roots=self.import_roots,
            included=self.included if sandbox.relocates else (),
        )

    @asynccontextmanager
    async def __call__(
        self, *, sandboxed: bool = True, trusted: bool = False
    ) -> AsyncIterator[Stage]:
        """Lease a slot with the built base; record in `disturbed` which files are changed there.

        This makes an `ArenaResources` the `Stages` that checks are prepared with. If the runs of an
        earlier arena stand for new ones, a slot is leased only for commands that were not recorded.
        """
        if self.base_runs is not None and self.base_runs.is_replayed and sandboxed and not trusted:
            stage = self._make_stage(self.pool.base, self.sandbox)
            on_demand = _OnDemandSandbox(replace(self, base_runs=None), self.pool.base)
            yield replace(stage, sandbox=RecordedSandbox(on_demand, self.base_runs))
            return
        async with self.lease(trusted=trusted) as (slot, _):
            stage = self.stage(slot, sandboxed=sandboxed)
            self.disturbed.update(await build_base(stage, slot))
            if self.base_runs is not None:
                stage = replace(stage, sandbox=RecordedSandbox(stage.sandbox, self.base_runs))
            yield stage
            self.disturbed.update(await slot.restage())


@dataclass(frozen=True, slots=True)
class _OnDemandSandbox:
    """A full sandbox that leases a slot with the base for each command.

    resources: what slots are leased from
    folder: the folder that commands name in place of the slot
    """

    resources: ArenaResources
    folder: Path

    relocates = True

    @property
    def name(self) -> str:
        """The name of the sandbox."""
        return self.resources.sandbox.name

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the sandbox can't enforce."""
        return self.resources.sandbox.shortfalls

    async def run(self, command: Command) -> Completed:
        """Run a command on a slot."""
        async with self.resources() as stage:

            def place(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
                return tuple(
                    replace(mount, source=stage.slot) if mount.source == self.folder else mount
                    for mount in mounts
                )

            view = command.view
            placed = View(place(view.readable), place(view.writable), place(view.over))
            return await stage.run(replace(command, view=placed))


async def _yield_to_timing(lease: Lease, scope: CancelScope, disk_guard: DiskGuard) -> None:
    """Cancel a check when timing has waited for it long enough; watch the disk meanwhile."""
    import anyio

    while not lease.is_overdue():
        disk_guard.check()
        await anyio.sleep(POLL_S)
    scope.cancel()


def find_hidden(problem: CodeProblem, top: Path) -> tuple[str, ...]:
    """Return the files that candidates must not see: input makers, recorded calls, acceptors.

    Those beside the problem file are copied into the base, and may also belong to the tree.

    top: the top of the user's tree
    """
    makers = [check.inputs.partition(":")[0] for check in problem.check]
    makers += [check.accept.partition(":")[0] for check in problem.check]
    makers += [benchmark.inputs.partition(":")[0] for benchmark in problem.bench]
    files = {*makers, *(check.calls for check in problem.check)} - {""}
    places = problem.find_named_files(top)
    real_top = top.resolve()
    for place in [places[file].resolve() for file in files]:
        if place.is_relative_to(real_top):
            files.add(place.relative_to(real_top).as_posix())
    return tuple(sorted(files))
