"""`fairtrial run`, `resume` and `retry`: the three ways to let a study run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from fairtrial.cli.outcome_warnings import Measured
from fairtrial.cli.output import json_option, note, print_json, study_argument, warn
from fairtrial.cli.resume_command import as_before, options_of
from fairtrial.cli.run_summary import print_outcome
from fairtrial.core import StudyError
from fairtrial.study import (
    LEDGER_NAME,
    LedgerReader,
    LoadedStudy,
    ProgressMode,
    RunSettings,
    Study,
    conduct,
    override,
    owner_of,
    prepare,
    read_study,
    request,
    requested,
)

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class HowToRun:
    """The options that run, resume and retry share."""

    parallel: int | None
    executor: str | None
    sqlite: bool
    parquet: bool
    progress: bool | None
    only: str | None
    limit: int | None
    allow_failures: bool
    as_json: bool

    def settings(self) -> RunSettings:
        return RunSettings(
            parallelism=self.parallel,
            executor=self.executor,
            sqlite=self.sqlite,
            parquet=self.parquet,
            only=self.only,
            limit=self.limit,
            progress=self._mode(),
            tell=lambda notice: warn([notice]),
        )

    def _mode(self) -> ProgressMode:
        if self.progress is False:
            return "none"
        return "bar" if sys.stderr.isatty() else "lines"


_SHARED = [
    click.option(
        "--parallel", type=int, metavar="N", help="How many runs go on at once; else the study's."
    ),
    click.option(
        "--executor", metavar="NAME", help="Where runs happen: serial, processes, threads."
    ),
    click.option("--sqlite", is_flag=True, help="Write study.sqlite, too."),
    click.option("--parquet", is_flag=True, help="Write Parquet files, too."),
    click.option(
        "--progress/--no-progress", default=None, help="Tell how far it is; default: yes."
    ),
    click.option(
        "--only",
        metavar="EXPR",
        help="Do only some of the runs now: \"style == 'plain' and replicate == 1\".",
    ),
    click.option("--limit", type=int, metavar="N", help="Do at most so many runs now."),
    click.option("--allow-failures", is_flag=True, help="Exit with 0 though runs failed."),
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
    help="Set a value of the study: run_budget.replicates=3.",
)


@click.command(
    epilog="Example: fairtrial run study.yaml --parallel 4 --set run_budget.replicates=10",
    short_help="Run a study.",
)
@study_argument
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Where results go.")
@click.option("--resume", "go_on", is_flag=True, help="Go on with what is there, if anything.")
@click.option("--accept-changes", is_flag=True, help="Resume though the study has changed.")
@click.option("--dry-run", is_flag=True, help="Find every mistake; run nothing.")
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

    Every finished run is safe at once: stop it in any way, and `fairtrial resume` goes on. A pilot
    (--only, --limit) is continued by the full study with --resume.
    """
    how = HowToRun(**options)
    settings = replace(
        how.settings(), output_dir=output, resume=go_on, accept_changes=accept_changes
    )
    loaded = _read(study)
    try:
        return _run(_override(loaded, assignments), settings, how, dry_run=dry_run)
    except StudyError as error:
        raise (error if assignments else loaded.locate(error)) from None


@click.command(
    epilog="Example: fairtrial resume artifacts/my-study --set run_budget.max_cost_usd=20",
    short_help="Go on with a study that was stopped.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="STUDY|DIR")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="Where its results are."
)
@click.option("--accept-changes", is_flag=True, help="Go on though the study has changed.")
@_set
@_shared
def resume(
    target: Path,
    output: Path | None,
    accept_changes: bool,
    assignments: tuple[str, ...],
    **options: Any,
) -> int:
    """Go on with a study, by its file or by the directory that its results are in.

    Does what isn't done yet, and what broke. A study that is paused goes on where it runs.
    """
    how = HowToRun(**options)
    if _is_results(target):
        if output is not None:
            raise click.UsageError(f"--output goes with a study file; {target} is a directory")
        if _lift_pause(target, as_json=how.as_json):
            return 0
        study, settings = _stored(target, how, assignments)
    else:
        study = _override(_read(target), assignments)
        settings = replace(how.settings(), output_dir=output)
    settings = replace(settings, resume=True, accept_changes=accept_changes)
    return _run(study, settings, how)


@click.command(
    epilog="Example: fairtrial retry artifacts/my-study --failed",
    short_help="Run again what failed or broke.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--failed", is_flag=True, help="Also runs that failed, not only those that broke.")
@_set
@_shared
def retry(target: Path, failed: bool, assignments: tuple[str, ...], **options: Any) -> int:
    """Run again what broke and, with --failed, what failed, and nothing else.

    A run keeps its result until there is a new one; earlier attempts are kept.
    """
    how = HowToRun(**options)
    study, settings = _stored(target, how, assignments)
    settings = replace(
        settings, resume=True, retry="failed" if failed else "broken", only_again=True
    )
    return _run(study, settings, how)


def _read(path: Path) -> LoadedStudy:
    loaded = read_study(path)
    warn(loaded.warning_lines())
    return loaded


def _override(loaded: LoadedStudy, assignments: tuple[str, ...]) -> Study:
    return override(loaded.study, assignments) if assignments else loaded.study


def _is_results(target: Path) -> bool:
    return (target / LEDGER_NAME).exists() or target.is_dir()


def _stored(
    folder: Path, how: HowToRun, assignments: tuple[str, ...] = ()
) -> tuple[Study, RunSettings]:
    """The study as its ledger has it: the file it came from may be gone."""
    reader = LedgerReader.open(folder)
    try:
        study = override(reader.study, assignments) if assignments else reader.study
        # A budget makes no other conditions, and what the design was made of may be gone, too.
        is_same = all(path.startswith("run_budget.") for path in assignments)
        conditions = reader.conditions if is_same else None
        return study, replace(how.settings(), output_dir=folder, conditions=conditions)
    finally:
        reader.close()


def _lift_pause(folder: Path, *, as_json: bool) -> bool:
    if owner_of(folder) is None or requested(folder) != "pause":
        return False
    request(folder, None)
    if as_json:
        print_json({"ok": True, "asked": "resume", "output_dir": str(folder)})
    else:
        note(f"{folder} goes on, in the process that was paused")
    return True


def _run(study: Study, settings: RunSettings, how: HowToRun, *, dry_run: bool = False) -> int:
    if dry_run:
        return _tell_dry_run(study, settings, how)
    if settings.resume:
        settings = _as_before(study, settings)
    measured = Measured(study)
    results = conduct(study, replace(settings, look_early=measured.look_early))
    warn(measured.look_back(results))
    return print_outcome(
        results,
        as_json=how.as_json,
        allow_failures=how.allow_failures,
        is_pilot=how.only is not None or how.limit is not None,
        settings=settings,
    )


def _as_before(study: Study, settings: RunSettings) -> RunSettings:
    """With what the last session was told, where this one isn't, and a line that says so."""
    settled = as_before(study, settings)
    own = options_of(settings)
    taken = [option for option in options_of(settled) if option not in own]
    if taken:
        note(f"going on with {' '.join(taken)}, as last time")
    return settled


def _tell_dry_run(study: Study, settings: RunSettings, how: HowToRun) -> int:
    prepared = prepare(study, settings)
    facts = {
        "ok": True,
        "study_id": study.study_id,
        "planned_runs": prepared.plan.runnable,
        "executor": prepared.executor.name,
        "parallel": prepared.slots,
        "output_dir": str(prepared.study.output_dir),
    }
    if how.as_json:
        print_json(facts)
    else:
        click.echo(
            f"{study.study_id}: {prepared.plan.runnable:,} runs would go to "
            f"{prepared.study.output_dir} ({prepared.executor.name}, {prepared.slots} at once); "
            "nothing was run"
        )
    return 0
