"""Opening an arena: snapshot, slots, prepared checks, warm start and canary, in this order."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from fairtrial.arena.arena import Arena
from fairtrial.arena.base_runs import BaseRuns, find_base_runs
from fairtrial.arena.build import run_build
from fairtrial.arena.canary import make_canaries, make_canary_error
from fairtrial.arena.candidates.editable_match import no_match_error, require_editable_files
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.candidates.resolution import editable_files
from fairtrial.arena.checks.acceptance import open_accept_stage
from fairtrial.arena.checks.command_check import prepare_command
from fairtrial.arena.checks.function_check import (
    PreparedFunctionCheck,
    list_input_notes,
    prepare_calls,
)
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck, prepare_tests
from fairtrial.arena.disk_guard import DiskGuard
from fairtrial.arena.import_roots import find_import_roots
from fairtrial.arena.interpreter import probe_interpreter
from fairtrial.arena.model.problem import Check, CodeProblem, resolve_paths
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.resources import ArenaResources, find_hidden
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.pool import WorktreePool, WorktreeSlot
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot.included_paths import find_included
from fairtrial.arena.snapshot.snapshot import find_top
from fairtrial.arena.stage import Stage
from fairtrial.arena.warm_imports import warm_starts
from fairtrial.core import events, run_all
from fairtrial.sandbox import HostLock, Mount, Plain, cgroup, find_sandbox


def count_cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@asynccontextmanager
async def open_arena(
    problem: CodeProblem, *, slots: int | None = None, settings: ArenaSettings | None = None
) -> AsyncIterator[Arena]:
    """Open an arena for one problem: copy the base, run its checks, prove which code they run.

    slots: how many candidates are checked at once; by default the number of cores

    Raises `StudyError` if the problem can't be used, e.g. because the base fails its checks.
    """
    import anyio

    settings = settings or ArenaSettings()
    await anyio.to_thread.run_sync(require_editable_files, problem)
    async with (
        open_resources(problem, slots=slots, settings=settings) as resources,
        prepare_arena(resources, settings) as arena,
    ):
        yield arena


@asynccontextmanager
async def open_resources(
    problem: CodeProblem, *, slots: int | None = None, settings: ArenaSettings
) -> AsyncIterator[ArenaResources]:
    """Copy the base of a problem, and make the slots in which its code is run.

    Raises `StudyError` if there is no repository, sandbox or Python for it.
    """
    import anyio

    top = await find_top(problem.project)
    problem = resolve_paths(problem, top)
    # Trying the kinds of sandbox takes a moment, and must not block the caller's event loop.
    find = partial(find_sandbox, problem.sandbox, unsandboxed=settings.unsandboxed)
    sandbox = await anyio.to_thread.run_sync(find)
    interpreter = await probe_interpreter(problem, top)
    included = await find_included(top, problem.include)
    cores = count_cores()
    settings.emit(events.PhaseStarted(events.Phase.SNAPSHOT))
    async with (
        _clearing_groups(),
        WorktreePool(
            top,
            slots or cores,
            included=() if sandbox.relocates else [entry.path for entry in included],
            hidden=find_hidden(problem, top),
            git=problem.git,
            python=interpreter.executable,
            largest_mb=problem.largest_mb,
            keep=settings.keep_slots,
            revision=problem.base,
            kept=problem.find_named_files(top),
        ) as pool,
    ):
        plain = Plain(pool.base.parent)  # removed with the pool, even after a kill
        yield ArenaResources(
            problem=problem,
            interpreter=interpreter,
            sandbox=sandbox if sandbox.relocates else plain,
            outside=plain,
            pool=pool,
            import_roots=find_roots(problem, pool.base),
            included=tuple(Mount(top / entry.path, top / entry.path) for entry in included),
            cores=anyio.Semaphore(max(cores, slots or 0)),
            lock=HostLock(settings.lock_folder, settings.emit),
            disk_guard=DiskGuard(pool.snapshot.repo.parent),
            shortfalls=sandbox.shortfalls,
        )


@asynccontextmanager
async def prepare_arena(resources: ArenaResources, settings: ArenaSettings) -> AsyncIterator[Arena]:
    """Run the checks of a problem on its base, and prove which code they run."""
    async with AsyncExitStack() as opened:
        accept_stage = await opened.enter_async_context(open_accept_stage(resources))
        settings.emit(events.PhaseStarted(events.Phase.BASE_CHECKS))
        runs = await _find_base_runs(resources, settings)
        checks = await prepare_checks(resources, accept_stage, runs)
        async with warm_starts(
            resources, checks, is_wanted=settings.warm, is_proven=runs.facts.get("warm", False)
        ) as (resources, warm_notes):
            rules = PathRules.from_problem(
                resources.problem,
                resources.import_roots,
                find_test_files(resources, checks),
                is_strict=settings.strict_paths,
            )
            settings.emit(events.PhaseStarted(events.Phase.CANARY))
            canary_notes = await run_canaries(
                resources, checks, rules, is_proven=runs.is_replayed and _are_recorded(checks)
            )
            if not warm_notes and not canary_notes:
                is_warm = resources.cold is not None
                await in_thread(_record, runs, resources, checks, is_warm)
            shortfalls = (f"not enforced: {text}" for text in resources.shortfalls)
            notes = [*resources.pool.notes, *shortfalls]
            for check in checks:
                notes.extend(check.notes)
            slots, cores = resources.pool.size, count_cores()
            if slots > cores:
                notes.append(
                    f"{slots} candidates are checked at once on {cores} cores: that helps checks "
                    "that wait, such as for a service; those that compute only take turns"
                )
            input_notes = list_input_notes(checks)
            yield Arena(resources, checks, rules, [*notes, *warm_notes, *canary_notes], input_notes)


@asynccontextmanager
async def _clearing_groups() -> AsyncIterator[None]:
    """Remove control groups of killed runs before, and those of this process afterwards."""
    import anyio

    await in_thread(cgroup.remove_orphaned_groups)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(cgroup.remove_finished_groups)


async def _find_base_runs(resources: ArenaResources, settings: ArenaSettings) -> BaseRuns:
    if not settings.cache:
        return BaseRuns()
    top = resources.pool.snapshot.source
    find = partial(
        find_base_runs,
        resources.problem,
        resources.interpreter,
        resources.sandbox,
        top=top,
        tree=resources.pool.snapshot.tree,
        included=resources.included,
        hidden=find_hidden(resources.problem, top),
        is_warm=settings.warm,
    )
    runs = await in_thread(find)
    resources.disturbed.update(runs.facts.get("disturbed", ()))
    return runs


def _are_recorded(checks: Sequence[PreparedCheck]) -> bool:
    """Return whether no check has new inputs each time."""
    return not any(isinstance(check, PreparedFunctionCheck) for check in checks)


def _record(
    runs: BaseRuns, resources: ArenaResources, checks: Sequence[PreparedCheck], is_warm: bool
) -> None:
    """Record the base's runs for later arenas, unless its tests come and go."""
    tests = [check.baseline for check in checks if isinstance(check, PreparedPytestCheck)]
    if any(baseline.unstable for baseline in tests):
        return
    runs.facts.update(disturbed=sorted(resources.disturbed), warm=is_warm)
    seen, base = str(resources.pool.snapshot.source), str(resources.pool.base)
    loaded = {file for check in checks for file in check.loaded}
    environment = tuple(f"{folder}/" for folder in resources.interpreter.folders)
    own = (f"{seen}/", f"{base}/")  # part of the tree, except an environment inside of it
    runs.save(file for file in loaded if file.startswith(environment) or not file.startswith(own))


def find_roots(problem: CodeProblem, base: Path) -> tuple[str, ...]:
    """Return the folders that imports start from: the problem's, else those found in the tree."""
    configured = problem.import_roots
    return configured if configured is not None else find_import_roots(base, problem.cwd)


def find_test_files(resources: ArenaResources, checks: Sequence[PreparedCheck]) -> frozenset[str]:
    """Return the files that hold the base's tests: they are protected, whatever their names."""
    named = [
        check.baseline.find_files() for check in checks if isinstance(check, PreparedPytestCheck)
    ]
    # pytest's names are relative to its configuration: in the project's folder, or one above.
    folders = (PurePosixPath(resources.problem.cwd), *PurePosixPath(resources.problem.cwd).parents)
    paths = {str(folder / file) for file in set().union(*named) for folder in folders}
    return frozenset(path for path in paths if (resources.pool.base / path).is_file())


async def prepare_checks(
    resources: ArenaResources, accept_stage: Stage | None = None, runs: BaseRuns | None = None
) -> list[PreparedCheck]:
    """Run each check on the base; return them prepared, in the problem's order.

    accept_stage: where accept functions run, if there are any
    runs: recorded runs of tests and commands; function checks have new inputs each time
    """
    recorded = replace(resources, base_runs=runs)

    def preparing(index: int, check: Check) -> Callable[[], Awaitable[PreparedCheck]]:
        label = f"check[{index}]"
        if check.function:
            return lambda: prepare_calls(label, check, resources, accept_stage=accept_stage)
        if check.is_pytest:
            return lambda: prepare_tests(label, check, recorded)
        return lambda: prepare_command(label, check, recorded)

    return await run_all(
        [preparing(index, check) for index, check in enumerate(resources.problem.check)]
    )


async def run_canaries(
    resources: ArenaResources,
    checks: Sequence[PreparedCheck],
    rules: PathRules,
    *,
    is_proven: bool = False,
) -> list[str]:
    """Raise `StudyError` if a check passes although no editable file can be used.

    is_proven: whether the same checks have rejected the canaries of the same base before

    Returns notes for people.
    """
    files = await editable_files(resources.pool.snapshot, rules)
    if not files:
        where = "that a candidate may change (see `unprotect`, and .gitignore)"
        raise no_match_error(rules.editable, where)
    canaries = make_canaries(files)
    if not canaries:
        return ["no editable file could be broken on purpose: which code runs was not proved"]
    if is_proven:
        return []
    # A command may do something else than run the code (a linter), if another check runs it.
    judges = [check for check in checks if check.basis != Basis.EXIT_STATUS] or list(checks)

    async def run_canary(way: str, slot: WorktreeSlot) -> None:
        await slot.write_candidate(canaries[way])
        stage = resources.stage(slot)
        rejection, _ = await run_build(stage, slot)
        if rejection is not None:
            return
        for check in judges:
            run = await check.run(stage)
            await slot.restage()
            if run.rejection is None:
                raise make_canary_error(check, stage, way, canaries[way].files)

    await run_all(
        [partial(resources.run_undisturbed, partial(run_canary, way)) for way in canaries]
    )
    return []
