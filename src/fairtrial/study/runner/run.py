"""The straight line: from a study to its results.

`prepare` finds every mistake and binds every name; `lay_plan` brings plan and ledger together; the
`Loop` hands assignments to an executor and writes down what comes of them; then the tables are
written, and what was done is given back as `Results`.
"""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import Any, Literal

from fairtrial.core import Emit, LedgerError, ignore_event, keep_out_of_git, plugins
from fairtrial.study.ledger.journal import Journals
from fairtrial.study.ledger.lock import OwnerLock
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.ledger.writer import Ledger, open_ledger
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.problems.hooks import ProblemHooks
from fairtrial.study.protocols import Executor
from fairtrial.study.runner.bindings import Bindings
from fairtrial.study.runner.control import ControlFile
from fairtrial.study.runner.feed import Feed
from fairtrial.study.runner.ledger_setup import attempt_counter, choose_turns, lay_plan
from fairtrial.study.runner.loop import Loop, Stop
from fairtrial.study.runner.payments import Books
from fairtrial.study.runner.preparation import Prepared, prepare
from fairtrial.study.runner.progress import Progress, Tally
from fairtrial.study.runner.run_attempt import StudyWork
from fairtrial.study.runner.seeding import preserved_rng
from fairtrial.study.runner.settings import EARLY_RESULTS, RunSettings
from fairtrial.study.tables.export import check_target, export_tables
from fairtrial.study.tables.provenance import gather
from fairtrial.study.tables.results import Results


def run_study(
    study: Study,
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
    on_result: Callable[[RunResult], None] | None = None,
    on_event: Emit = ignore_event,
) -> Sequence[RunResult]:
    """Run a study; returns what came of it, in plan order, read lazily from its ledger.

    Every finished run is safe once it is counted. What else the arguments mean stands at
    `fairtrial.study.runner.settings.RunSettings`. A dry run only looks for mistakes. Ctrl-C ends the
    study in good order and is then raised as usual.
    """
    settings = RunSettings(
        conditions=conditions,
        agent_bindings=agent_bindings or {},
        problem_registry=problem_registry or {},
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
        sqlite=include_sqlite,
        parquet=include_parquet,
        progress=_progress_mode(show_progress),
        on_result=on_result,
        on_event=on_event,
    )
    if dry_run:
        prepare(study, settings)
        return []
    results = conduct(study, settings)
    if results.stopped == "interrupted":
        raise KeyboardInterrupt(f"stopped; {results.folder} is resumed by run_study(resume=True)")
    return results


def resume_study(study: Study, **settings: Any) -> Sequence[RunResult]:
    """Go on with a study: `run_study` with ``resume=True``; starts it if there is nothing yet."""
    return run_study(study, **{**settings, "resume": True})


def conduct(study: Study, settings: RunSettings) -> Results:
    """Run a study as the settings say, and write its tables."""
    prepared = prepare(study, settings)
    folder = Path(prepared.study.output_dir or ".").absolute()
    check_target(folder, parquet=settings.parquet)
    with ExitStack() as stack:
        stack.enter_context(preserved_rng())
        stack.enter_context(chdir("."))  # an agent may go elsewhere; the caller didn't ask for it
        stack.enter_context(plugins.importable(prepared.study.folder))
        stack.enter_context(_own(folder, prepared.bindings))
        control = ControlFile(folder)  # from now on somebody may ask for something
        ledger = _open(folder, settings)
        closing = stack.enter_context(ExitStack())
        closing.callback(ledger.close)
        if ledger.notice is not None:
            settings.tell(ledger.notice)
        order = lay_plan(ledger, prepared.plan, settings, _fingerprints(prepared.bindings))
        reader = LedgerReader(ledger.connection, ledger.path).knowing(prepared.plan)
        journals = Journals(ledger)
        feed = Feed(
            prepared.plan,
            order,
            choose_turns(ledger, prepared.plan, order, settings),
            timeout_s=prepared.study.run_budget.timeout_s,
            agents=prepared.study.agents,
            next_attempt=attempt_counter(ledger),
            journal_of=journals.of,
        )
        stop = _loop(prepared, settings, ledger, Books(journals), feed, control, folder)
        if settings.tables:
            export_tables(reader, folder, sqlite=settings.sqlite, parquet=settings.parquet)
        if not settings.checkpoint:
            closing.pop_all()  # the ledger lives as long as the results do
            return Results(reader, stopped=stop)
    return Results(LedgerReader.open(folder).knowing(prepared.plan), stopped=stop)


def _own(folder: Path, bindings: Bindings) -> OwnerLock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        needs_own = any(problem.needs_own_folder for problem in _hooked(bindings).values())
        if needs_own and not keep_out_of_git(folder):
            raise LedgerError(
                f"{folder} holds something else: results of code problems need a folder of their "
                "own, or they would count as a part of the code; choose another --output"
            )
    except OSError as error:
        raise LedgerError(
            f"{folder} can't be made: {error.strerror}; choose another --output"
        ) from error
    return OwnerLock(folder)


def _hooked(bindings: Bindings) -> dict[str, ProblemHooks]:
    """Return the problems that have hooks, by name."""
    return {
        name: problem
        for name, problem in bindings.problems.items()
        if isinstance(problem, ProblemHooks)
    }


def _fingerprints(bindings: Bindings) -> dict[str, Mapping[str, Any]]:
    """Return what results depend on beyond the study file, by problem."""
    known = {name: problem.fingerprint() for name, problem in _hooked(bindings).items()}
    return {name: fingerprint for name, fingerprint in known.items() if fingerprint is not None}


def _progress_remark(bindings: Bindings) -> Callable[[], str]:
    """Return a function that says why the machine can't go on; of the first problem that can."""
    remarks = [problem.progress_remark() for problem in _hooked(bindings).values()]
    return next((remark for remark in remarks if remark is not None), str)


def _open(folder: Path, settings: RunSettings) -> Ledger:
    if not settings.checkpoint and (folder / LEDGER_NAME).exists():
        raise LedgerError(
            f"{folder} holds a ledger, and the tables of a study without one would not belong to "
            "it; choose another output directory, or go on with checkpoint=True, resume=True"
        )
    return open_ledger(folder if settings.checkpoint else None)


def _loop(
    prepared: Prepared,
    settings: RunSettings,
    ledger: Ledger,
    books: Books,
    feed: Feed,
    control: ControlFile,
    folder: Path,
) -> Stop | None:
    study, executor = prepared.study, prepared.executor
    reader = LedgerReader(ledger.connection, ledger.path).knowing(prepared.plan)
    work = StudyWork(
        prepared.bindings,
        outcomes=study.outcomes,
        seed_globals=executor.is_reproducible,
        workspaces=folder / "workspaces",
        emit_progress=settings.on_event,
    )
    tally = _tally(reader, settings, ledger.again)
    tally.under_way = lambda: [began for _, began in list(feed.in_flight.values())]
    tally.remark = _progress_remark(prepared.bindings)
    with _session(ledger, prepared) as session:
        progress = Progress(settings.progress, tally)  # from here on a bar may be shown
        loop = Loop(
            ledger=ledger,
            books=books,
            feed=feed,
            work=work,
            tally=tally,
            control=control,
            budget=study.run_budget,
            retry_wait_s=settings.retry_wait_s,
            deliver=_deliverer(reader, settings, progress),
            progress=progress,
        )
        session.ended_how = loop.run(executor, prepared.slots) or "done"
    return loop.stop


class _Session:
    ended_how = ""


@contextmanager
def _session(ledger: Ledger, prepared: Prepared) -> Iterator[_Session]:
    """Who runs the study, from when to when, and how it ended."""
    ledger.begin_session(
        {
            "started_at": _now(),
            "executor": prepared.executor.name,
            "slots": prepared.slots,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "provenance": dumps(gather(prepared.study)),
        }
    )
    session = _Session()
    try:
        yield session
    except BaseException as error:
        how = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        with suppress(LedgerError):  # it may be the ledger that is in trouble
            ledger.end_session(_now(), how)
        raise
    ledger.end_session(_now(), session.ended_how)


def _tally(reader: LedgerReader, settings: RunSettings, again: Mapping[int, str]) -> Tally:
    summary = reader.summary()
    return Tally(
        total=summary.planned,
        success=summary.counts.get("success", 0),
        failed=summary.counts.get("failed", 0),
        broken=summary.counts.get("broken", 0),
        cost_usd=summary.cost_usd,
        tokens=summary.tokens,
        again=Counter(again.values()),
        is_part=settings.only is not None or settings.limit is not None,
        is_only_again=settings.only_again,
    )


def _deliverer(
    reader: LedgerReader, settings: RunSettings, progress: Progress
) -> Callable[[int], None] | None:
    on_result, look_early = settings.on_result, settings.look_early
    if on_result is None and look_early is None:
        return None
    early: list[RunResult] = []

    def deliver(turn: int) -> None:
        is_early = look_early is not None and len(early) < EARLY_RESULTS
        if on_result is None and not is_early:
            return  # nobody wants it, so it isn't read
        result = reader.result(reader.order[turn])
        assert result is not None
        if on_result is not None:
            on_result(result)
        if is_early and result.status is RunStatus.SUCCESS:
            early.append(result)
            if len(early) == EARLY_RESULTS and look_early is not None:
                told = look_early(early)
                if told:
                    with progress.aside():
                        for text in told:
                            settings.tell(text)

    return deliver


def _progress_mode(shown: bool | None) -> Literal["bar", "lines", "none"]:
    is_terminal = sys.stderr.isatty()
    if shown is None:
        return "bar" if is_terminal else "none"
    return ("bar" if is_terminal else "lines") if shown else "none"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
