"""From a code problem to an arena that is ready: the straight line."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from fairtrial.arena.arena import Arena
from fairtrial.arena.build import run_build
from fairtrial.arena.canary import make_canaries, refuse_bystander
from fairtrial.arena.candidates.editable_match import no_match, refuse_matching_nothing
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.candidates.resolution import editable_files
from fairtrial.arena.checks.command_check import prepare_command
from fairtrial.arena.checks.function_check import prepare_calls
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.checks.pytest_check import SuiteTrial, prepare_tests
from fairtrial.arena.disk_guard import Room
from fairtrial.arena.import_roots import find_import_roots
from fairtrial.arena.interpreter import probe_interpreter
from fairtrial.arena.model.problem import Check, CodeProblem, resolve_paths
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.resources import Ground
from fairtrial.arena.settings import ArenaSettings
from fairtrial.arena.slots.pool import WorktreePool, WorktreeSlot
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot.included import find_included
from fairtrial.arena.snapshot.snapshot import find_top
from fairtrial.arena.task_groups import run_all
from fairtrial.arena.warm_imports import warming
from fairtrial.core import Phase, PhaseStarted
from fairtrial.sandbox import (
    HostLock,
    Mount,
    Plain,
    find_sandbox,
    remove_orphaned_groups,
    settle_groups,
)


def count_cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@asynccontextmanager
async def open_arena(
    problem: CodeProblem, *, slots: int | None = None, settings: ArenaSettings | None = None
) -> AsyncIterator[Arena]:
    """An arena for one problem: the base is copied, run and understood; candidates may come."""
    import anyio

    settings = settings or ArenaSettings()
    top = await find_top(problem.folder / problem.repo)
    await anyio.to_thread.run_sync(refuse_matching_nothing, problem)
    problem = resolve_paths(problem, top)
    # Sandboxes are tried, which takes a moment; the loop may be somebody else's.
    find = partial(find_sandbox, problem.sandbox, unsandboxed=settings.unsandboxed)
    sandbox = await anyio.to_thread.run_sync(find)
    interpreter = await probe_interpreter(problem, top)
    included = await find_included(top, problem.include)
    cores = count_cores()
    settings.emit(PhaseStarted(Phase.SNAPSHOT))
    async with (
        _clearing_groups(),
        WorktreePool(
            top,
            slots or cores,
            included=() if sandbox.relocates else [each.path for each in included],
            hidden=find_hidden(problem),
            git=problem.git,
            python=interpreter.executable,
            largest_mb=problem.largest_mb,
            keep=settings.keep_slots,
        ) as pool,
    ):
        plain = Plain(pool.base.parent)  # what is there goes with the pool, however we end
        ground = Ground(
            problem=problem,
            interpreter=interpreter,
            sandbox=sandbox if sandbox.relocates else plain,
            outside=plain,
            pool=pool,
            import_roots=find_roots(problem, pool.base),
            included=tuple(Mount(top / each.path, top / each.path) for each in included),
            cores=anyio.Semaphore(cores),
            lock=HostLock(settings.lock_folder, settings.emit),
            room=Room(pool.snapshot.repo.parent),
        )
        settings.emit(PhaseStarted(Phase.BASE_CHECKS))
        trials = await prepare_trials(ground)
        async with warming(ground, trials, is_wanted=settings.warm) as (ground, warm_notes):
            rules = PathRules.of(problem, ground.import_roots, find_test_files(ground, trials))
            settings.emit(PhaseStarted(Phase.CANARY))
            canary_notes = await fly_canary(ground, trials, rules)
            notes = [*pool.notes, *(f"not enforced: {text}" for text in sandbox.shortfalls)]
            for trial in trials:
                notes.extend(trial.notes)
            yield Arena(ground, trials, rules, [*notes, *warm_notes, *canary_notes])


@asynccontextmanager
async def _clearing_groups() -> AsyncIterator[None]:
    """Control groups of runs that were killed go first, and our own last."""
    import anyio

    await in_thread(remove_orphaned_groups)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(settle_groups)


def find_hidden(problem: CodeProblem) -> tuple[str, ...]:
    """Files that only the trusted side may see: input makers and recorded calls."""
    makers = [check.inputs.partition(":")[0] for check in problem.check]
    makers += [benchmark.inputs.partition(":")[0] for benchmark in problem.bench]
    files = {*makers, *(check.calls for check in problem.check)}
    return tuple(sorted(files - {""}))


def find_roots(problem: CodeProblem, base: Path) -> tuple[str, ...]:
    """Where imports start from, as the problem says or as the tree shows."""
    given = problem.import_roots
    return given if given is not None else find_import_roots(base, problem.cwd)


def find_test_files(ground: Ground, trials: Sequence[Trial]) -> frozenset[str]:
    """The files that hold the base's tests: protected, whatever they are called."""
    named = [trial.standard.find_files() for trial in trials if isinstance(trial, SuiteTrial)]
    # pytest names them from where its configuration is: the project's folder, or one above.
    places = (PurePosixPath(ground.problem.cwd), *PurePosixPath(ground.problem.cwd).parents)
    paths = {str(place / file) for file in set().union(*named) for place in places}
    return frozenset(path for path in paths if (ground.pool.base / path).is_file())


async def prepare_trials(ground: Ground) -> list[Trial]:
    """Each check, run on the base, in the problem's order."""

    def preparing(place: int, check: Check) -> Callable[[], Awaitable[Trial]]:
        label = f"check[{place}]"
        if check.function:
            return lambda: prepare_calls(label, check, ground)
        if check.is_pytest:
            return lambda: prepare_tests(label, check, ground)
        return lambda: prepare_command(label, check, ground)

    return await run_all([preparing(*each) for each in enumerate(ground.problem.check)])


async def fly_canary(ground: Ground, trials: Sequence[Trial], rules: PathRules) -> list[str]:
    """Refuse a problem whose checks hold although no editable file can be used."""
    files = await editable_files(ground.pool.snapshot, rules)
    if not files:
        where = "that a candidate may change (see `unprotect`, and .gitignore)"
        raise no_match(rules.editable, where)
    canaries = make_canaries(files)
    if not canaries:
        return ["no editable file could be broken on purpose: which code runs was not proved"]
    # A command may do other things than run the code (a linter); but somebody has to run it.
    judges = [trial for trial in trials if trial.basis != Basis.EXIT_STATUS] or list(trials)

    async def fly(way: str, slot: WorktreeSlot) -> None:
        await slot.write_candidate(canaries[way])
        stage = ground.stage(slot)
        rejection, _ = await run_build(stage, slot)
        if rejection is not None:
            return
        for trial in judges:
            run = await trial.run(stage)
            await slot.restage()
            if run.rejection is None:
                raise refuse_bystander(trial, stage, way, canaries[way].files)

    await run_all([partial(ground.undisturbed, partial(fly, way)) for way in canaries])
    return []
