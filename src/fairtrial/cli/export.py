"""`fairtrial export`: write the tables of a study from its ledger."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import count, folder_argument, json_option, note, path_option, print_json
from fairtrial.core import Mistake, StudyError
from fairtrial.study import ledger, tables


@click.command(
    name="export",
    epilog="Example: fairtrial export artifacts/my-study --complete-cases --parquet",
    short_help="Write the tables again from the ledger.",
)
@folder_argument
@path_option("--out", metavar="DIR", help="Output directory; default: DIR.")
@click.option(
    "--complete-cases", is_flag=True, help="Also write tables without failed runs, to a subfolder."
)
@click.option("--sqlite", is_flag=True, help="Also write study.sqlite.")
@click.option("--parquet", is_flag=True, help="Also write Parquet files.")
@json_option
def command(
    folder: Path, out: Path | None, complete_cases: bool, sqlite: bool, parquet: bool, as_json: bool
) -> None:
    """Write the tables again from the ledger; also possible while the study runs."""
    if out is not None and out.exists() and not out.is_dir():
        raise StudyError(Mistake(("--out",), f"{out} is a file", "name a directory"))
    reader = ledger.LedgerReader.open(folder)
    try:
        written = tables.export_tables(
            reader, out or folder, sqlite=sqlite, parquet=parquet, complete_cases=complete_cases
        )
        summary = reader.summary()
    finally:
        reader.close()
    incomplete = summary.done - summary.counts.get("success", 0) + summary.skipped
    if as_json:
        print_json(
            {
                "ok": True,
                "written": {name: str(path) for name, path in written.items()},
                "runs": summary.done,
                "pending": summary.pending,
                "not_complete": incomplete,
            }
        )
        return
    click.echo(f"wrote the tables of {count(summary.done, 'run')} to {out or folder}")
    if complete_cases:
        target = (out or folder) / tables.COMPLETE_CASES_FOLDER
        click.echo(f"wrote complete cases to {target}, {count(incomplete, 'run')} left out")
    if summary.pending:
        note(f"{count(summary.pending, 'run')} not done yet")
