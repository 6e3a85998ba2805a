"""`fairtrial lock`: record what a study plans, before it is run."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import (
    count,
    json_option,
    path_option,
    print_json,
    shown_path,
    study_argument,
    warn,
)
from fairtrial.core import StudyError
from fairtrial.study import files, ledger, lock_study


@click.command(
    name="lock",
    epilog="Example: fairtrial lock study.yaml --timestamp https://example.org/stamps/42",
    short_help="Lock a study before it is run.",
)
@study_argument
@path_option("--output", metavar="DIR", help="Output directory.")
@click.option(
    "--timestamp",
    default="",
    metavar="TEXT",
    help="A token or an address by which others can check the time.",
)
@click.option("--note", default="", metavar="TEXT", help="Any text to keep with the lock.")
@click.option(
    "--relock", is_flag=True, help="Replace the lock of a different study; only before any result."
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="PATH=VALUE",
    help="Override a value of the study, as for `fairtrial run`.",
)
@json_option
def command(
    study: Path,
    output: Path | None,
    timestamp: str,
    note: str,
    relock: bool,
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Lock a study: record a digest (SHA-256) of it, its design, seeds, code and analysis.

    It has the time, the git commit, and a timestamp if you have one, and is stored in the output
    directory. `fairtrial run` picks it up, and the report names what differs from it. The first run
    of a study that isn't locked locks it. A study that is locked already keeps its lock.
    """
    loaded = files.read_study(study)
    warn(loaded.warning_lines())
    planned = files.override(loaded.study, assignments) if assignments else loaded.study
    try:
        lock = lock_study(planned, output_dir=output, timestamp=timestamp, note=note, relock=relock)
    except StudyError as error:
        raise (error if assignments else loaded.locate(error)) from None
    folder = output or planned.output_dir or Path()
    if as_json:
        print_json({"ok": True, "output_dir": str(folder), **lock.to_dict()})
    else:
        _print(lock, folder, planned.study_id)


def _print(lock: ledger.StudyLock, folder: Path, study_id: str) -> None:
    for phrase in lock.describe():
        click.echo(phrase)
    click.echo(
        f"{study_id}: {count(lock.runs, 'run')} planned; the lock is in {shown_path(folder)}"
    )
