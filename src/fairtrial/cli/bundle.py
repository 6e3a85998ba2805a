"""`fairtrial bundle`: a study's results in one archive, and whether such an archive is whole."""

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
    short_help="Pack a study's results, or verify such a pack.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="The archive.")
@click.option("--verify", is_flag=True, help="Check an archive instead of making one.")
@click.option("--with-ledger", is_flag=True, help="Also the ledger: attempts, tracebacks, output.")
@click.option("--with-workspaces", is_flag=True, help="Also the folders that runs worked in.")
@json_option
def command(
    target: Path,
    out: Path | None,
    verify: bool,
    with_ledger: bool,
    with_workspaces: bool,
    as_json: bool,
) -> None:
    """Pack the results of a study: the same content gives the same bytes, with checksums."""
    if verify:
        wrong = verify_bundle(target)
        if wrong:
            raise StudyError([Mistake((), each) for each in wrong], source=str(target))
        made = target
    else:
        made = bundle_results(target, out, with_ledger=with_ledger, with_workspaces=with_workspaces)
        warn(_stale(target))
    if as_json:
        print_json({"ok": True, "file": str(made), "verified": verify})
    else:
        click.echo(f"{made}: as it was packed" if verify else f"wrote {shown_path(made)}")


def _stale(folder: Path) -> list[str]:
    """What was made of other tables than those in the archive."""
    shown = shlex.quote(shown_path(folder))
    told = []
    if _is_older(folder, REPORT_NAME) and not _is_same_report(folder):
        told.append((REPORT_NAME, f"fairtrial report {shown}"))
    complete = f"{COMPLETE_CASES_FOLDER}/{MANIFEST_FILE}"
    if _is_older(folder, complete):  # every export writes both
        told.append((COMPLETE_CASES_FOLDER, f"fairtrial export {shown} --complete-cases"))
    return [f"{name} is older than the tables; `{remedy}` makes it anew" for name, remedy in told]


def _is_older(folder: Path, name: str) -> bool:
    """Whether tables were written later; they may be the same as before."""
    path = folder / name
    return path.exists() and path.stat().st_mtime_ns < (folder / MANIFEST_FILE).stat().st_mtime_ns


def _is_same_report(folder: Path) -> bool:
    """Whether a report that is made now would say the same."""
    try:
        with open_results(folder) as results:
            left_out = results.reader.summary().left_out
            text = full_report(results.study, results.conditions, results, left_out=left_out)
        return (folder / REPORT_NAME).read_text("utf-8") == text
    except (FairtrialError, OSError, UnicodeDecodeError):
        return False
