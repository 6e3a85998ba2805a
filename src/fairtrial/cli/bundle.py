"""`fairtrial bundle`: pack a study's results into an archive, or verify such an archive."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.cli.output import REPORT_NAME, json_option, print_json, shown_path, warn
from fairtrial.core import FairtrialError, Mistake, StudyError
from fairtrial.study import (
    COMPLETE_CASES_FOLDER,
    MANIFEST_FILE,
    bundle_results,
    full_report,
    open_results,
    verify_bundle,
)


@click.command(
    name="bundle",
    epilog="Example: fairtrial bundle artifacts/my-study --out my-study.tar.gz",
    short_help="Pack a study's results, or verify a bundle.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="The archive to write."
)
@click.option("--verify", is_flag=True, help="Verify an archive instead of writing one.")
@click.option(
    "--with-ledger", is_flag=True, help="Include the ledger: attempts, tracebacks, output."
)
@click.option("--with-workspaces", is_flag=True, help="Include the working folders of runs.")
@json_option
def command(
    target: Path,
    out: Path | None,
    verify: bool,
    with_ledger: bool,
    with_workspaces: bool,
    as_json: bool,
) -> None:
    """Pack the results of a study, with checksums; the same content gives the same bytes."""
    if verify:
        errors = verify_bundle(target)
        if errors:
            raise StudyError([Mistake((), error) for error in errors], source=str(target))
        archive = target
    else:
        archive = bundle_results(
            target, out, with_ledger=with_ledger, with_workspaces=with_workspaces
        )
        warn(_find_stale(target))
    if as_json:
        print_json({"ok": True, "file": str(archive), "verified": verify})
    else:
        click.echo(
            f"{archive}: unchanged since it was packed"
            if verify
            else f"wrote {shown_path(archive)}"
        )


def _find_stale(folder: Path) -> list[str]:
    """Return warnings about files that were made from older tables than the archive has."""
    shown = shlex.quote(shown_path(folder))
    stale = []
    if _is_older(folder, REPORT_NAME) and not _is_same_report(folder):
        stale.append((REPORT_NAME, f"fairtrial report {shown}"))
    complete = f"{COMPLETE_CASES_FOLDER}/{MANIFEST_FILE}"
    if _is_older(folder, complete):  # every export writes both
        stale.append((COMPLETE_CASES_FOLDER, f"fairtrial export {shown} --complete-cases"))
    return [
        f"{name} is older than the tables; `{command}` makes it again" for name, command in stale
    ]


def _is_older(folder: Path, name: str) -> bool:
    """Return whether the tables were written later, maybe with the same content."""
    path = folder / name
    return path.exists() and path.stat().st_mtime_ns < (folder / MANIFEST_FILE).stat().st_mtime_ns


def _is_same_report(folder: Path) -> bool:
    """Return whether a report made now would be the same."""
    try:
        with open_results(folder) as results:
            left_out = results.reader.summary().left_out
            text = full_report(results.study, results.conditions, results, left_out=left_out)
        return (folder / REPORT_NAME).read_text("utf-8") == text
    except (FairtrialError, OSError, UnicodeDecodeError):
        return False
