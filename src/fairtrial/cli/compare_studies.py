"""`fairtrial compare-studies`: two studies on the runs that both made."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import json_option, note, path_option, print_json, print_markdown
from fairtrial.core import atomic_write
from fairtrial.study import report


@click.command(
    name="compare-studies",
    epilog="Example: fairtrial compare-studies artifacts/before artifacts/after --by problem",
    short_help="Compare two studies, and say what else differs.",
)
@click.argument("first", type=click.Path(path_type=Path), metavar="A")
@click.argument("second", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--outcome",
    "outcomes",
    metavar="NAME",
    multiple=True,
    help="An outcome, or the name of a metric or evaluation; default: the primary outcomes of "
    "both. May be repeated.",
)
@click.option(
    "--by",
    metavar="GROUPS",
    help="Also compare within each `problem`, `family` of problems, or level of a factor.",
)
@path_option("--out", metavar="FILE", help="Also write the comparison to this file.")
@json_option
def command(
    first: Path,
    second: Path,
    outcomes: tuple[str, ...],
    by: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare study B with study A (their folders) on the problems that both have: B minus A.

    Runs of the same problems are paired by problem; without problems in common they are compared
    unpaired. The comparison is exploratory: it lists what else differs between the studies.
    """
    comparison = report.compare_studies(first, second, outcomes=outcomes, by=by)
    if out is not None:
        with atomic_write(out) as file:
            file.write(comparison.to_markdown())
    if as_json:
        print_json(comparison.to_dict())
        return
    print_markdown(comparison.to_markdown().rstrip())
    if out is not None:
        note(f"\nwrote the comparison to {out}")
