"""`fairtrial run`, `resume` and `retry`: run a study, or the rest of it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from fairtrial.cli.output import (
    Command,
    json_option,
    note,
    path_option,
    print_json,
    shown_path,
    study_argument,
    warn,
)
from fairtrial.cli.resume_command import executor_options
from fairtrial.cli.run_summary import print_outcome
from fairtrial.core import StudyError, events, plugins
from fairtrial.study import LookFinished, Study, executors, files, ledger, report, runner


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options that `run`, `resume` and `retry` share, named like the command-line options."""

    parallel: int | None
    executor: str | None
    address: str | None
    shared_files: bool
    requirements: Path | None
    sqlite: bool
    parquet: bool
    progress: bool | None
    only: str | None
    limit: int | None
    allow_failures: bool
    keep_going: bool
    as_json: bool

    def settings(self) -> runner.RunSettings:
        """Return the settings of a session with these options."""
        return runner.RunSettings(
            parallelism=self.parallel,
            executor=self._choose_executor(),
            include_sqlite=self.sqlite,
            include_parquet=self.parquet,
            only=self.only,
            limit=self.limit,
            keep_going=self.keep_going,
            progress=self._progress_mode(),
            notify=lambda notice: warn([notice]),
            on_event=print_look,
        )

    def _choose_executor(self) -> str | executors.Executor | None:
        options = {
            "address": self.address,
            "shared_files": self.shared_files,
            "requirements": None if self.requirements is None else str(self.requirements),
        }
        given = {name: value for name, value in options.items() if value not in (None, False)}
        if not given:
            return self.executor
        if self.executor not in (None, "ray"):
            option = f"--{next(iter(given)).replace('_', '-')}"
            raise click.UsageError(f"{option} goes with --executor ray")
        executor: executors.Executor = plugins.load("executors", "ray")(**given)
        return executor

    def _progress_mode(self) -> Literal["bar", "lines", "none"]:
        if self.progress is False:
            return "none"
        return "bar" if sys.stderr.isatty() else "lines"


def print_look(event: events.Event) -> None:
    """Print a line for each planned look, and for what is sent to nodes; ignore other events."""
    if isinstance(event, (LookFinished, executors.FilesPacked)):
        note(str(event))


_SHARED = [
    click.option(
        "--parallel", type=int, metavar="N", help="Number of runs at once; default: the study's."
    ),
    click.option(
        "--executor",
        metavar="NAME",
        help="How to execute runs: serial, processes, threads, async, ray.",
    ),
    click.option("--address", metavar="ADDRESS", help="Ray cluster to run on: auto, or HOST:PORT."),
    click.option("--shared-files", is_flag=True, help="Ray nodes see these files: copy nothing."),
    path_option("--requirements", metavar="FILE", help="What pip installs for Ray workers."),
    click.option("--sqlite", is_flag=True, help="Also write study.sqlite."),
    click.option("--parquet", is_flag=True, help="Also write Parquet files."),
    click.option("--progress/--no-progress", default=None, help="Show progress; default: yes."),
    click.option(
        "--only",
        metavar="EXPR",
        help="Run only the runs that match now: \"style == 'plain' and replicate == 1\".",
    ),
    click.option("--limit", type=int, metavar="N", help="Run at most N runs now."),
    click.option("--allow-failures", is_flag=True, help="Exit with 0 even if runs failed."),
    click.option(
        "--keep-going",
        is_flag=True,
        help="Go on although the first 10 runs of an agent all fail in the same way, or an "
        "endpoint refuses the key.",
    ),
    json_option,
]


def _shared(command: Command) -> Command:
    for option in reversed(_SHARED):
        command = option(command)
    return command


_set = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a value of the study: run_budget.replicates=3.",
)


@click.command(
    epilog="Example: fairtrial run study.yaml --parallel 4 --set run_budget.replicates=10",
    short_help="Run a study.",
)
@study_argument
@path_option("--output", metavar="DIR", help="Output directory.")
@click.option("--resume", "go_on", is_flag=True, help="Resume from existing results, if any.")
@click.option("--accept-changes", is_flag=True, help="Resume even if the study has changed.")
@click.option("--dry-run", is_flag=True, help="Find every mistake and run nothing.")
@_set
@_shared
def run(
    study: Path,
    output: Path | None,
    go_on: bool,
    accept_changes: bool,
    dry_run: bool,
    assignments: tuple[str, ...],
    **options: Any,
) -> int:
    """Run a study.

    The result of each run is stored as soon as it ends: however the study is stopped, `fairtrial
    resume` continues it. Use --only or --limit for a pilot, and --resume to add the other runs.
    """
    run_options = RunOptions(**options)
    settings = replace(
        run_options.settings(), output_dir=output, resume=go_on, accept_changes=accept_changes
    )
    loaded = _read(study)
    mended = _resume_file(study, output, assignments)
    try:
        return _run(
            _override(loaded, assignments), settings, run_options, dry_run=dry_run, mended=mended
        )
    except StudyError as error:
        raise (error if assignments else loaded.locate(error)) from None


@click.command(
    epilog="Example: fairtrial resume artifacts/my-study --set run_budget.max_cost_usd=20",
    short_help="Resume a study that was stopped.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="STUDY|DIR")
@path_option("--output", metavar="DIR", help="The study's output directory.")
@click.option("--accept-changes", is_flag=True, help="Resume even if the study has changed.")
@_set
@_shared
def resume(
    target: Path,
    output: Path | None,
    accept_changes: bool,
    assignments: tuple[str, ...],
    **options: Any,
) -> int:
    """Resume a study, given by its file or by its output directory.

    Runs what has no result yet and what broke. A study file is read again, a directory continues
    the study as it is stored there. A paused study continues in its own process.
    """
    run_options, mended = RunOptions(**options), ""
    if target.is_dir():
        if output is not None:
            raise click.UsageError(f"--output goes with a study file; {target} is a directory")
        if _lift_pause(target, as_json=run_options.as_json):
            return 0
        study, settings = _read_stored(target, run_options, assignments)
    else:
        study = _override(_read(target), assignments)
        settings = replace(run_options.settings(), output_dir=output)
        mended = _resume_file(target, output, assignments)
    settings = replace(settings, resume=True, accept_changes=accept_changes)
    return _run(study, settings, run_options, mended=mended)


@click.command(
    epilog="Example: fairtrial retry artifacts/my-study --failed",
    short_help="Repeat runs that broke or failed.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--failed", is_flag=True, help="Repeat failed runs, too, not only broken ones.")
@_set
@_shared
def retry(target: Path, failed: bool, assignments: tuple[str, ...], **options: Any) -> int:
    """Repeat runs that broke and, with --failed, runs that failed, and no others.

    The study is the one that DIR stores; `fairtrial resume STUDY` reads a changed study file. A run
    keeps its result until there is a new one; earlier attempts stay in the ledger. After
    failed runs are repeated, claims about them are exploratory: whoever repeats runs has seen how
    they ended.
    """
    run_options = RunOptions(**options)
    study, settings = _read_stored(target, run_options, assignments)
    if failed and study.hypotheses:
        warn(["claims about failed runs that are repeated become exploratory"])
    settings = replace(
        settings, resume=True, retry="failed" if failed else "broken", only_reruns=True
    )
    return _run(study, settings, run_options)


def _read(path: Path) -> files.LoadedStudy:
    loaded = files.read_study(path)
    warn(loaded.warning_lines())
    return loaded


def _override(loaded: files.LoadedStudy, assignments: tuple[str, ...]) -> Study:
    return files.override(loaded.study, assignments) if assignments else loaded.study


def _resume_file(path: Path, output: Path | None, assignments: tuple[str, ...]) -> str:
    """Return the command that resumes the study of a file."""
    words = ["fairtrial", "resume", shown_path(path)]
    words += ["--output", shown_path(output)] if output is not None else []
    return shlex.join([*words, *(word for item in assignments for word in ("--set", item))])


def _read_stored(
    folder: Path, run_options: RunOptions, assignments: tuple[str, ...] = ()
) -> tuple[Study, runner.RunSettings]:
    """Return the study as its ledger stores it: its file may no longer exist."""
    reader = ledger.LedgerReader.open(folder)
    try:
        study = files.override(reader.study, assignments) if assignments else reader.study
        # A budget doesn't change the conditions, and files that the design reads may be gone.
        is_same = all(path.startswith("run_budget.") for path in assignments)
        conditions = reader.conditions if is_same else None
        return study, replace(run_options.settings(), output_dir=folder, conditions=conditions)
    finally:
        reader.close()


def _lift_pause(folder: Path, *, as_json: bool) -> bool:
    """End the pause of a running study; returns whether there was one."""
    if not runner.control_study(folder, "resume"):
        return False
    if as_json:
        print_json({"ok": True, "asked": "resume", "output_dir": str(folder)})
    else:
        note(f"{folder} continues, in the process that was paused")
    return True


def _run(
    study: Study,
    settings: runner.RunSettings,
    run_options: RunOptions,
    *,
    dry_run: bool = False,
    mended: str = "",
) -> int:
    if dry_run:
        return _dry_run(study, settings, run_options)
    if settings.resume:
        settings = _restore_settings(study, settings)
    monitor = report.OutcomeMonitor(study)
    results = runner.execute_study(
        study, replace(settings, check_early_results=monitor.check_early_results)
    )
    warn(monitor.check_all_results(results))
    return print_outcome(
        results,
        as_json=run_options.as_json,
        allow_failures=run_options.allow_failures,
        is_pilot=run_options.only is not None or run_options.limit is not None,
        settings=settings,
        mended=mended,
    )


def _restore_settings(study: Study, settings: runner.RunSettings) -> runner.RunSettings:
    """Return settings with executor and parallelism of the last session, and print them."""
    restored = runner.restore_settings(study, settings)
    given = executor_options(settings)
    added = [option for option in executor_options(restored) if option not in given]
    if added:
        note(f"resuming with {' '.join(added)}, as last time")
    return restored


def _dry_run(study: Study, settings: runner.RunSettings, run_options: RunOptions) -> int:
    prepared = runner.prepare(study, settings)
    facts = {
        "ok": True,
        "study_id": study.study_id,
        "planned_runs": prepared.plan.runnable,
        "executor": prepared.executor.name,
        "parallel": prepared.slots,
        "output_dir": str(prepared.study.output_dir),
    }
    if run_options.as_json:
        print_json(facts)
    else:
        click.echo(
            f"{study.study_id}: {prepared.plan.runnable:,} runs would go to "
            f"{prepared.study.output_dir} ({prepared.executor.name}, {prepared.slots} at once); "
            "nothing was run"
        )
    return 0
