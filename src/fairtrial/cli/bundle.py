"""`fairtrial bundle`: a study's results in one archive, and whether such an archive is whole."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.cli.output import REPORT_NAME, json_option, print_json, shown_path, warn
from fairtrial.errors import Mistake, StudyError
from fairtrial.tables.bundle import bundle_results, verify_bundle
from fairtrial.tables.canonical import MANIFEST_FILE
from fairtrial.tables.export import COMPLETE_CASES_FOLDER


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
    """What was made of earlier tables than those in the archive."""
    shown = shlex.quote(shown_path(folder))
    remedies = {
        REPORT_NAME: f"fairtrial report {shown}",
        f"{COMPLETE_CASES_FOLDER}/{MANIFEST_FILE}": f"fairtrial export {shown} --complete-cases",
    }
    tables = (folder / MANIFEST_FILE).stat().st_mtime_ns
    return [
        f"{Path(name).parts[0]} is older than the tables; `{remedy}` makes it anew"
        for name, remedy in remedies.items()
        if (folder / name).exists() and (folder / name).stat().st_mtime_ns < tables
    ]
