"""Run a study: from the study to its results.

`prepare` finds all mistakes and binds all names; `store_plan` stores the plan in the ledger; the
`RunLoop` passes assignments to an executor and writes the results to the ledger; then the tables
are written, and everything is returned as `Results`.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any, Literal

from fairtrial.core import LedgerError, events, plugins
from fairtrial.study.files.reading import StudySource, as_study
from fairtrial.study.ledger.journal_store import JournalStore
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.ledger.writer import Ledger, open_ledger
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.problems.hooks import Parcel, ProblemHooks
from fairtrial.study.protocols import Executor
from fairtrial.study.runner.assignment_feed import AssignmentFeed, StartConditions
from fairtrial.study.runner.bindings import Bindings
from fairtrial.study.runner.control import ControlFile
from fairtrial.study.runner.ledger_setup import make_attempt_counter, select_runs, store_plan
from fairtrial.study.runner.look_gate import LookGate, open_gate
from fairtrial.study.runner.machine_room import (
    MachineRoom,
    find_needs,
    measure_machine,
    run_demand,
)
from fairtrial.study.runner.output_folder import lock_output_folder
from fairtrial.study.runner.payment_tracker import PaymentTracker
from fairtrial.study.runner.preparation import PreparedStudy, prepare
from fairtrial.study.runner.progress import Progress, ProgressCounts
from fairtrial.study.runner.purse import Amount, Purse, read_expenses
from fairtrial.study.runner.result_callback import make_result_callback
from fairtrial.study.runner.run_attempt import StudyWork
from fairtrial.study.runner.run_loop import RunLoop
from fairtrial.study.runner.run_settings import RunSettings
from fairtrial.study.runner.seeding import preserved_rng
from fairtrial.study.runner.session_settings import EXECUTOR_OPTIONS, given_options
from fairtrial.study.tables.export import check_target, export_tables
from fairtrial.study.tables.provenance import collect_provenance
from fairtrial.study.tables.results import Results

log = logging.getLogger(__name__)
GO_ON = (
    "Mend the cause, then continue with run_study(..., resume=True, retry='failed'), which repeats "
    "these runs; keep_going=True goes on all the same"
)


def run_study(
    study: StudySource,
    *,
    conditions: Sequence[Condition] | None = None,
    agent_bindings: Mapping[str, Any] | None = None,
    problem_registry: Mapping[str, Any] | None = None,
    condition_runner: Callable[..., Any] | None = None,
    parallelism: int | None = None,
    dry_run: bool = False,
    resume: bool = False,
    checkpoint: bool = True,
    include_sqlite: bool = False,
    show_progress: bool | None = None,
    executor: str | Executor | None = None,
    include_parquet: bool = False,
    retry: Literal["broken", "failed"] = "broken",
    accept_changes: bool = False,
    only: str | None = None,
    limit: int | None = None,
    retry_wait_s: float = 1.0,
    keep_going: bool = False,
    on_result: Callable[[RunResult], None] | None = None,
    on_event: events.Emit = events.ignore_event,
) -> Sequence[RunResult]:
    """Run a study and return its results in plan order, read lazily from its ledger.

    A finished run is on disk once it is counted. `fairtrial.study.runner.RunSettings` documents the
    other arguments. Ctrl-C ends the study cleanly and then raises KeyboardInterrupt as usual.
    Raises `StudyError` for mistakes in the study or the arguments, `LedgerError` if results can't
    be stored.

    study: the study, or the path of its file
    dry_run: whether to look for mistakes only
    show_progress: whether to show the progress; by default only on a terminal
    """
    study = as_study(study)
    settings = RunSettings(
        conditions=conditions,
        agent_bindings=agent_bindings,
        problem_registry=problem_registry,
        condition_runner=condition_runner,
        parallelism=parallelism,
        executor=executor,
        checkpoint=checkpoint,
        resume=resume,
        retry=retry,
        accept_changes=accept_changes,
        only=only,
        limit=limit,
        retry_wait_s=retry_wait_s,
        keep_going=keep_going,
        include_sqlite=include_sqlite,
        include_parquet=include_parquet,
        progress=_progress_mode(show_progress),
        on_result=on_result,
        on_event=on_event,
    )
    if dry_run:
        prepare(study, settings)
        return []
    results = execute_study(study, settings)
    if results.stopped == "interrupted":
        raise KeyboardInterrupt(f"stopped; {results.folder} is resumed by run_study(resume=True)")
    if results.stopped in ("repeated", "refused"):
        settings.notify(f"stopped: {results.stop_reason}. {GO_ON}")
    return results


def resume_study(study: StudySource, **settings: Any) -> Sequence[RunResult]:
    """Resume a study: `run_study` with ``resume=True``; starts it if there are no results yet."""
    return run_study(study, **{**settings, "resume": True})


def execute_study(study: Study, settings: RunSettings) -> Results:
    """Run a study with these settings, write its tables and return its results."""
    prepared = prepare(study, settings)
    folder = Path(prepared.study.output_dir or ".").absolute()
    check_target(folder, parquet=settings.include_parquet)
    with ExitStack() as stack:
        stack.enter_context(preserved_rng())
        stack.enter_context(chdir("."))  # an agent may change the directory
        stack.enter_context(plugins.importable(prepared.study.folder))
        stack.enter_context(lock_output_folder(folder, needs_own=_need_own(prepared.bindings)))
        control = ControlFile(folder)  # from now on other processes may send requests
        ledger = _open_ledger(folder, settings)
        ledger_stack = stack.enter_context(ExitStack())
        ledger_stack.callback(ledger.close)
        if ledger.notice is not None:
            settings.notify(ledger.notice)
        order = store_plan(
            ledger, prepared.plan, settings, _problem_fingerprints(prepared.bindings)
        )
        reader = LedgerReader(ledger.connection, ledger.path).with_plan(prepared.plan)
        journals = JournalStore(ledger)
        gate = open_gate(ledger, prepared.plan, order, is_pilot=settings.only is not None)
        selected = select_runs(ledger, prepared.plan, order, settings)
        purse = _open_purse(prepared.study, reader, PaymentTracker(journals))
        feed = AssignmentFeed(
            prepared.plan,
            order,
            selected if gate is None else gate.sort(selected),
            conditions=StartConditions(
                agents=prepared.study.agents,
                looks=gate,
                purse=purse,
                room=_find_room(prepared.executor),
                find_demand=partial(run_demand, prepared.study)
                if find_needs(study).demands
                else None,
            ),
            timeout_s=prepared.study.run_budget.timeout_s,
            next_attempt=make_attempt_counter(ledger),
            read_journal=journals.entries,
        )
        loop = _run_session(prepared, settings, ledger, purse, feed, control, folder, gate)
        if settings.tables:
            reader.own_session = ledger.session
            forms = {"sqlite": settings.include_sqlite, "parquet": settings.include_parquet}
            export_tables(reader, folder, **forms)
        if not settings.checkpoint:
            ledger_stack.pop_all()  # results in memory need the open ledger
            return Results(reader, stopped=loop.stop, stop_reason=loop.stop_reason)
    reader = LedgerReader.open(folder).with_plan(prepared.plan)
    return Results(reader, stopped=loop.stop, stop_reason=loop.stop_reason)


def _open_purse(study: Study, reader: LedgerReader, payments: PaymentTracker) -> Purse:
    """Return the purse of a session, with what earlier ones spent."""
    summary = reader.summary()
    spent = Amount(summary.cost_usd, summary.tokens)
    purse = Purse(study.run_budget, study.agents, payments, spent)
    if purse.has_ceiling:
        purse.learn(read_expenses(reader))
    return purse


def _find_room(executor: Executor) -> MachineRoom | None:
    """Return the room for runs on this machine; None if the executor looks for room itself."""
    return None if executor.is_distributed else MachineRoom(measure_machine())


def _problems_with_hooks(bindings: Bindings) -> dict[str, ProblemHooks]:
    """Return the problems that have hooks, by name."""
    return {
        name: problem
        for name, problem in bindings.single_problems.items()
        if isinstance(problem, ProblemHooks)
    }


def _need_own(bindings: Bindings) -> bool:
    """Return whether a problem needs an output directory that holds nothing else."""
    return any(problem.needs_own_folder for problem in _problems_with_hooks(bindings).values())


def _problem_fingerprints(bindings: Bindings) -> dict[str, Mapping[str, Any]]:
    """Return what results depend on beyond the study file, by problem."""
    fingerprints = {
        name: problem.fingerprint() for name, problem in _problems_with_hooks(bindings).items()
    }
    return {
        name: fingerprint for name, fingerprint in fingerprints.items() if fingerprint is not None
    }


def _packers(bindings: Bindings) -> tuple[Callable[[], Parcel | None], ...]:
    """Return functions that pack what problems need on other machines."""
    return tuple(problem.pack for problem in _problems_with_hooks(bindings).values())


def _progress_remark(bindings: Bindings) -> Callable[[], str]:
    """Return the progress remark of the first problem that has one; else an empty one."""
    remarks = [problem.progress_remark() for problem in _problems_with_hooks(bindings).values()]
    return next((remark for remark in remarks if remark is not None), str)


def _open_ledger(folder: Path, settings: RunSettings) -> Ledger:
    """Open the ledger of a folder, or one in memory without `checkpoint`."""
    if not settings.checkpoint and (folder / LEDGER_NAME).exists():
        raise LedgerError(
            f"{folder} holds a ledger, and the tables of a study without one would not belong to "
            "it; choose another output directory, or continue with checkpoint=True, resume=True"
        )
    return open_ledger(folder if settings.checkpoint else None)


def _run_session(
    prepared: PreparedStudy,
    settings: RunSettings,
    ledger: Ledger,
    purse: Purse,
    feed: AssignmentFeed,
    control: ControlFile,
    folder: Path,
    gate: LookGate | None,
) -> RunLoop:
    """Run one session; returns its loop, which knows why it ended early."""
    study, executor = prepared.study, prepared.executor
    reader = LedgerReader(ledger.connection, ledger.path).with_plan(prepared.plan)
    work = StudyWork(
        prepared.bindings,
        outcomes=study.outcomes,
        seed_globals=executor.is_reproducible,
        workspaces=folder / "workspaces",
        emit_progress=settings.on_event,
        needs=find_needs(study)._replace(packers=_packers(prepared.bindings)),
    )
    counts = _initial_counts(reader, settings, ledger.reruns)
    counts.under_way = lambda: [began for _, began in list(feed.in_flight.values())]
    counts.remark = _progress_remark(prepared.bindings)
    counts.place = lambda: work.place
    with _session(ledger, prepared) as session:
        progress = Progress(settings.progress, counts)  # may show a bar from here on
        loop = RunLoop(
            ledger=ledger,
            payments=purse.payments,
            purse=purse,
            feed=feed,
            work=work,
            counts=counts,
            control=control,
            budget=study.run_budget,
            retry_wait_s=settings.retry_wait_s,
            on_committed=make_result_callback(reader, settings, progress),
            gate=gate,
            on_event=settings.on_event,
            keep_going=settings.keep_going,
            progress=progress,
        )
        log.info(
            "study %s: %s of %s runs done; %s, %s at once, in %s",
            *(study.study_id, counts.done, counts.total, executor.name, prepared.slots, folder),
        )
        session.ended_how = loop.run(executor, prepared.slots) or "done"
        log.info("study %s: the session ended: %s", study.study_id, session.ended_how)
    return loop


class _Session:
    """A session under way; `ended_how` is recorded at its end."""

    ended_how = ""


@contextmanager
def _session(ledger: Ledger, prepared: PreparedStudy) -> Iterator[_Session]:
    """Record a session in the ledger: its process, its times and how it ended."""
    ledger.begin_session(
        {
            "started_at": _now(),
            "executor": prepared.executor.name,
            "slots": prepared.slots,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "provenance": dumps(_provenance(prepared)),
        }
    )
    session = _Session()
    try:
        yield session
    except BaseException as error:
        ended_how = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        with suppress(LedgerError):  # the error may come from the ledger itself
            ledger.end_session(_now(), ended_how)
        raise
    ledger.end_session(_now(), session.ended_how)


def _provenance(prepared: PreparedStudy) -> dict[str, Any]:
    """Return the provenance of a session, with the executor's options if some were given."""
    provenance = collect_provenance(prepared.study)
    options = given_options(prepared.executor)
    return {**provenance, EXECUTOR_OPTIONS: options} if options else provenance


def _initial_counts(
    reader: LedgerReader, settings: RunSettings, reruns: Mapping[int, str]
) -> ProgressCounts:
    summary = reader.summary()
    return ProgressCounts(
        total=summary.planned,
        success=summary.counts.get("success", 0),
        failed=summary.counts.get("failed", 0),
        broken=summary.counts.get("broken", 0),
        cost_usd=summary.cost_usd,
        tokens=summary.tokens,
        reruns=Counter(reruns.values()),
        is_part=settings.only is not None or settings.limit is not None,
        is_reruns_only=settings.only_reruns,
    )


def _progress_mode(shown: bool | None) -> Literal["bar", "lines", "none"]:
    is_terminal = sys.stderr.isatty()
    if shown is None:
        return "bar" if is_terminal else "none"
    return ("bar" if is_terminal else "lines") if shown else "none"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
