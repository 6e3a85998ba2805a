"""`fairtrial report`: test the hypotheses of a study and write the report."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import (
    REPORT_NAME,
    folder_argument,
    json_option,
    note,
    path_option,
    print_json,
    print_markdown,
)
from fairtrial.core import atomic_write
from fairtrial.study import full_report, ledger, open_results, render_markdown_summary, report


@click.command(
    name="report",
    epilog="Example: fairtrial report artifacts/my-study --out report.md",
    short_help="Test the hypotheses and write the report.",
)
@folder_argument
@path_option(
    "--out",
    metavar="FILE",
    help="File for the complete report; default: DIR/report.md.",
)
@json_option
def command(folder: Path, out: Path | None, as_json: bool) -> None:
    """Test the hypotheses as the study's analysis plans declare, and write a report in Markdown.

    Prints the summary; the complete report, with methods and codebook, is written to a file.
    Hypotheses that were not tested are listed with the reason.
    """
    with open_results(folder) as results:
        study, conditions = results.study, results.conditions
        summary = results.reader.summary()
        left_out = summary.left_out
        if as_json:
            facts = report.report_facts(study, conditions, results, left_out=left_out)
            ledger.record_interim_look(folder, study, summary)
            print_json(facts)
            return
        text = full_report(study, conditions, results, left_out=left_out)
        target = out or folder / REPORT_NAME
        with atomic_write(target) as file:
            file.write(text)
        ledger.record_interim_look(folder, study, summary)
        print_markdown(render_markdown_summary(study, results, conditions).rstrip())
    note(f"\nwrote the complete report to {target}")
