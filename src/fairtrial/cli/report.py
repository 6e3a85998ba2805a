"""`fairtrial report`: test the hypotheses of a study and write the report."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import (
    PAGE_NAME,
    REPORT_NAME,
    folder_argument,
    json_option,
    note,
    path_option,
    print_json,
    print_markdown,
)
from fairtrial.study import page, report


@click.command(
    name="report",
    epilog="Example: fairtrial report artifacts/my-study --out report.md",
    short_help="Test the hypotheses and write the report.",
)
@folder_argument
@path_option(
    "--out",
    metavar="FILE",
    help="File for the report; default: DIR/report.md, or DIR/report.html with --html.",
)
@click.option(
    "--html",
    "as_html",
    is_flag=True,
    help="Write a page with charts instead: one file that needs no network.",
)
@json_option
def command(folder: Path, out: Path | None, as_html: bool, as_json: bool) -> None:
    """Test the hypotheses as the study's analysis plans declare, and write a report in Markdown.

    Prints the summary; the complete report, with methods and codebook, is written to a file.
    Hypotheses that were not tested are listed with the reason. With --html, writes a page for the
    browser with verdicts, charts, and the runs with their outputs.
    """
    if as_html:
        if as_json:
            raise click.UsageError("--html writes a file and --json prints: choose one")
        target = out or folder / PAGE_NAME
        page.write_page(folder, target)
        note(f"wrote the page to {target}; a double click opens it")
        return
    if as_json:
        print_json(report.read_report_facts(folder))
        return
    target = out or folder / REPORT_NAME
    print_markdown(report.write_report(folder, target).rstrip())
    note(f"\nwrote the complete report to {target}")
