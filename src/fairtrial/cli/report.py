"""`fairtrial report`: test the hypotheses of a study and write the report."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import (
    PAGE_NAME,
    REPORT_NAME,
    count,
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
@path_option(
    "--markdown",
    metavar="FILE",
    help="Write a short summary for a pull request or an issue on GitHub.",
)
@path_option(
    "--figures",
    metavar="FOLDER",
    help="Write the figures as SVG and PDF files into this folder.",
)
@json_option
def command(
    folder: Path,
    out: Path | None,
    as_html: bool,
    markdown: Path | None,
    figures: Path | None,
    as_json: bool,
) -> None:
    """Test the hypotheses as the study's analysis plans declare, and write a report in Markdown.

    Prints the summary; the complete report, with methods and codebook, is written to a file.
    Hypotheses that were not tested are listed with the reason. With --html, writes a page for the
    browser with verdicts, charts, and the runs with their outputs. --markdown and --figures write
    a summary and pictures only.
    """
    if as_json and (markdown or figures):
        raise click.UsageError("--markdown and --figures write files and --json prints: choose one")
    if markdown is not None:
        report.write_pull_request_summary(folder, markdown)
        note(f"wrote the summary to {markdown}")
    if figures is not None:
        written = page.write_figures(folder, figures)
        note(f"wrote {count(len(written), 'file')} to {figures}")
    if (markdown or figures) and not as_html and out is None:
        return
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
