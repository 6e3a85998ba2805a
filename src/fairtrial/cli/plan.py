"""`fairtrial plan`: show the conditions, runs, planned tests and power of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import (
    json_option,
    path_option,
    print_facts,
    print_json,
    print_wrapped,
    study_argument,
    style,
    warn,
)
from fairtrial.cli.output_paths import refuse_overwriting
from fairtrial.cli.table import print_table
from fairtrial.core import table_files
from fairtrial.study import files, report


@click.command(
    name="plan",
    epilog="Example: fairtrial plan study.yaml --out conditions.csv --runs runs.csv",
    short_help="Show a study's conditions, runs, tests and power.",
)
@study_argument
@path_option(
    "--out",
    metavar="FILE",
    help="Write the table of conditions to a .csv, .json or .jsonl.",
)
@path_option(
    "--runs",
    "runs_out",
    metavar="FILE",
    help="Write the planned runs, with ids and seeds, to a .csv, .json or .jsonl.",
)
@path_option(
    "--against",
    metavar="OLD",
    help="Show how many conditions and runs of another version of the study are kept.",
)
@click.option(
    "--power",
    "with_curves",
    is_flag=True,
    help="Draw the power against the number of problems and of replicates.",
)
@path_option(
    "--pilot",
    metavar="DIR",
    help="Take the variances for the power from the results of an earlier study.",
)
@json_option
def command(
    study: Path,
    out: Path | None,
    runs_out: Path | None,
    against: Path | None,
    with_curves: bool,
    pilot: Path | None,
    as_json: bool,
) -> None:
    """Show a study's conditions, runs, tests and power.

    Also shows balance and aliasing. Power, with its assumptions, is computed for hypotheses that
    state a minimum effect of interest, for the test that will be made.
    """
    for target in (out, runs_out):
        if target is not None:
            table_files.check_format(target)
    refuse_overwriting({"--out": out, "--runs": runs_out}, [study, against])
    loaded = files.read_study(study)
    plan = report.summarize_plan(loaded.study, pilot=pilot)
    old = None if against is None else report.summarize_plan(files.read_study(against).study)
    written = _write_tables(plan, out, runs_out)
    warnings = [*loaded.warning_lines(), *loaded.unbound_lines(), *plan.warnings]
    if as_json:
        changes = None if old is None else plan.compare_with(old)
        facts: dict[str, Any] = {"changes": changes, "written": written, "warnings": warnings}
        facts["pilot"] = [entry.to_dict() for entry in plan.pilot]
        if with_curves:
            facts["power_curves"] = [curve.to_dict() for curve in plan.power_curves]
        print_json({"ok": True, **plan.to_dict(), **facts})
        return
    warn(warnings)
    _print_plan(report.format_plan(plan, old=old, with_curves=with_curves), plan.facts)
    for path in written:
        click.echo(f"wrote {path}")


def _write_tables(plan: report.PlanSummary, out: Path | None, runs_out: Path | None) -> list[str]:
    if out is not None:
        plan.write_conditions(out)
    if runs_out is not None:
        plan.write_runs(runs_out)
    return [str(path) for path in (out, runs_out) if path is not None]


def _print_plan(text: report.PlanText, facts: Mapping[str, Any]) -> None:
    click.echo(style(text.title, bold=True))
    _print_lines(text.size)
    click.echo()
    print_table(
        text.columns,
        text.rows,
        total=text.total_rows,
        has_key=True,
        has_remark=text.has_remarks,
    )
    print_facts(facts)
    _print_lines(text.details)


def _print_lines(lines: Iterable[report.PlanLine]) -> None:
    for line in lines:
        print_wrapped(line.text, " " * line.indent, " " * line.hanging_indent)
