"""Warm starts: checks are forked from a process that has imported third-party packages already."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtrial.arena.build import build_base
from fairtrial.arena.checks.base_expectations import keep_all_that_base_passes
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import common_variables
from fairtrial.core import run_all, single_cause
from fairtrial.sandbox import Command, Completed, Sandbox, warm_start

if TYPE_CHECKING:
    from anyio import Event


@asynccontextmanager
async def warm_starts(
    resources: ArenaResources,
    checks: Sequence[PreparedCheck],
    *,
    is_wanted: bool,
    is_proven: bool = False,
) -> AsyncIterator[tuple[ArenaResources, list[str]]]:
    """Yield resources whose commands start warm, where that is possible, and notes for people.

    If the base doesn't pass its checks with a warm start, all checks start cold.

    is_proven: whether the same base has passed its checks with a warm start before; then packages
        are imported in the background, and the first command waits for them
    """
    import anyio
    from anyio import to_thread

    files = find_third_party(resources, checks)
    if not (
        is_wanted
        and files
        and await to_thread.run_sync(warm_start.supports_warm_start, resources.sandbox)
    ):
        yield resources, []
        return
    variables = common_variables(resources.problem, resources.interpreter)
    starting = warm_start.WarmServer.starting(
        resources.interpreter.executable,
        files=files,
        folders=resources.interpreter.folders,
        never=find_own_names(resources),
        env=variables,
        scratch_parent=resources.pool.base.parent,  # removed with the pool, even after a kill
    )
    if is_proven:
        soon_warm = SoonWarmSandbox(resources.sandbox, variables, anyio.Event())
        warmed = replace(resources, sandbox=soon_warm, cold=resources.sandbox)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(soon_warm.hold, starting)
                yield warmed, []
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise single_cause(group) from None
        return
    async with starting as server:
        if server is None:
            yield (
                resources,
                ["checks start cold: the packages they import can't be imported before"],
            )
            return
        warm = warm_start.WarmSandbox(resources.sandbox, server, variables)
        warmed = replace(resources, sandbox=warm, cold=resources.sandbox)
        failing = await find_failing(warmed, checks)
        if failing:
            yield resources, [await _explain_failure(resources, checks, failing[0])]
        else:
            yield warmed, []


@dataclass(slots=True)
class SoonWarmSandbox:
    """A sandbox whose commands start warm as soon as a warm server has imported its modules.

    cold: the sandbox for commands that can't start warm
    env: the environment that the server is started with
    is_ready: set when the server is ready, or there is none
    """

    cold: Sandbox
    env: Mapping[str, str]
    is_ready: Event
    _warm: warm_start.WarmSandbox | None = None

    relocates = True

    @property
    def name(self) -> str:
        """The name of the cold sandbox, which enforces the same."""
        return self.cold.name

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the cold sandbox can't enforce."""
        return self.cold.shortfalls

    async def hold(
        self, starting: AbstractAsyncContextManager[warm_start.WarmServer | None]
    ) -> None:
        """Start the server, and keep it until cancelled."""
        import anyio

        async with starting as server:
            if server is not None:
                self._warm = warm_start.WarmSandbox(self.cold, server, self.env)
            self.is_ready.set()
            await anyio.sleep_forever()

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended."""
        await self.is_ready.wait()
        return await (self._warm or self.cold).run(command)


async def _explain_failure(
    resources: ArenaResources, checks: Sequence[PreparedCheck], failing: str
) -> str:
    """Say whether the base fails a check because of the warm start, or the check is flaky."""
    cold = await find_failing(resources, checks)
    if not cold:
        return f"checks start cold: forked from a warm process, the base fails {failing}"
    return (
        f"checks come and go: the unchanged base passed them at first, and then failed {cold[0]}; "
        "a candidate may be rejected for that, so leave out what isn't stable"
    )


def find_third_party(resources: ArenaResources, checks: Sequence[PreparedCheck]) -> list[str]:
    """Return the files that the base's checks imported from the interpreter's own folders."""
    folders = tuple(f"{folder}/" for folder in resources.interpreter.folders)
    loaded = {file for check in checks for file in check.loaded}
    return sorted(file for file in loaded if file.startswith(folders))


def find_own_names(resources: ArenaResources) -> list[str]:
    """Return the project's own top-level names, which are never imported in advance."""
    folders = [resources.pool.base / root for root in resources.import_roots]
    entries = [entry for folder in folders if folder.is_dir() for entry in folder.iterdir()]
    return sorted({entry.name.partition(".")[0] for entry in entries} - {""})


async def find_failing(resources: ArenaResources, checks: Sequence[PreparedCheck]) -> list[str]:
    """Return the checks that the unchanged base fails with these resources, and why."""

    def running(check: PreparedCheck) -> Callable[[], Awaitable[str]]:
        async def work(slot: WorktreeSlot) -> str:
            stage = resources.stage(slot)
            await build_base(stage, slot)
            run = await check.run(stage)
            return f"{check.label} ({run.rejection.message})" if run.rejection else ""

        return lambda: resources.run_undisturbed(work)

    kept = keep_all_that_base_passes(checks)
    return [text for text in await run_all([running(check) for check in kept]) if text]
