"""`fairtrial export`: write the tables of a study from its ledger."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import count, folder_argument, json_option, note, path_option, print_json
from fairtrial.core import Mistake, StudyError
from fairtrial.study import ledger, open_results, tables


@click.command(
    name="export",
    epilog="Example: fairtrial export artifacts/my-study --complete-cases --parquet",
    short_help="Write tables again, or for other tools.",
)
@folder_argument
@path_option("--out", metavar="DIR", help="Output directory; default: DIR.")
@click.option(
    "--complete-cases", is_flag=True, help="Also write tables without failed runs, to a subfolder."
)
@click.option("--sqlite", is_flag=True, help="Also write study.sqlite.")
@click.option("--parquet", is_flag=True, help="Also write Parquet files.")
@path_option(
    "--otel", metavar="FILE", help="Write runs as OpenTelemetry spans: lines of OTLP/JSON."
)
@path_option("--inspect", metavar="FOLDER", help="Write runs as log files of Inspect.")
@click.option("--mlflow", metavar="URI|FOLDER", help="Add runs to MLflow (extra: mlflow).")
@json_option
def command(
    folder: Path,
    out: Path | None,
    complete_cases: bool,
    sqlite: bool,
    parquet: bool,
    otel: Path | None,
    inspect: Path | None,
    mlflow: str | None,
    as_json: bool,
) -> None:
    """Write the tables again from the ledger; also possible while the study runs.

    With --otel, --inspect or --mlflow: the runs that are done, in the formats of other tools, and
    no tables.
    """
    if otel is not None or inspect is not None or mlflow is not None:
        _export_runs(folder, otel, inspect, mlflow, as_json)
        return
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


def _export_runs(
    folder: Path, otel: Path | None, inspect: Path | None, mlflow: str | None, as_json: bool
) -> None:
    """Write the runs of a study in the formats of other tools."""
    written: dict[str, str | int | list[str]] = {}
    lines = []
    if otel is not None and otel.is_dir():
        raise StudyError(Mistake(("--otel",), f"{otel} is a folder", "name a file"))
    if inspect is not None and inspect.exists() and not inspect.is_dir():
        raise StudyError(Mistake(("--inspect",), f"{inspect} is a file", "name a folder"))
    with open_results(folder) as results:
        if otel is not None:
            number = tables.export_otel(results, otel)
            written["otel"] = str(otel)
            lines.append(f"wrote the spans of {count(number, 'run')} to {otel}")
        if inspect is not None:
            paths = tables.export_inspect(results, inspect)
            written["inspect"] = [str(path) for path in paths]
            lines.append(f"wrote {count(len(paths), 'log')} to {inspect}: `inspect view --log-dir`")
        if mlflow is not None:
            added, uri = tables.export_mlflow(results, mlflow)
            written |= {"mlflow": uri, "mlflow_added": added}
            lines.append(f"added {count(added, 'run')} to {uri}: `mlflow ui --backend-store-uri`")
        runs = len(results)
    if as_json:
        print_json({"ok": True, "written": written, "runs": runs})
        return
    for line in lines:
        click.echo(line)
