"""`fairtrial bundle`: pack a study's results into an archive, or verify such an archive."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fairtrial.cli.output import REPORT_NAME, json_option, path_option, print_json, shown_path, warn
from fairtrial.core import Mistake, StudyError
from fairtrial.study import bundle_results, report, tables


@click.command(
    name="bundle",
    epilog="Example: fairtrial bundle artifacts/my-study --out my-study.tar.gz",
    short_help="Pack a study's results, or verify a bundle.",
)
@click.argument("target", type=click.Path(path_type=Path), metavar="DIR|FILE")
@path_option("--out", metavar="FILE", help="The archive to write.")
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
        errors = tables.verify_bundle(target)
        if errors:
            raise StudyError([Mistake((), error) for error in errors], source=str(target))
        archive = target
    else:
        archive = bundle_results(
            target, out, with_ledger=with_ledger, with_workspaces=with_workspaces
        )
        warn(_stale_warnings(target))
    if as_json:
        print_json({"ok": True, "file": str(archive), "verified": verify})
    else:
        click.echo(
            f"{archive}: unchanged since it was packed"
            if verify
            else f"wrote {shown_path(archive)}"
        )


def _stale_warnings(folder: Path) -> list[str]:
    """Return warnings about files that were made from older tables than the archive has."""
    shown = shlex.quote(shown_path(folder))
    warnings = []
    for name in report.find_stale_files(folder, REPORT_NAME):
        command = f"report {shown}" if name == REPORT_NAME else f"export {shown} --complete-cases"
        warnings.append(f"{name} is older than the tables; `fairtrial {command}` makes it again")
    return warnings
