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
from fairtrial.core import atomic_write
from fairtrial.study import page, report


def _print_comparison(text: str, target: Path) -> None:
    """Print a comparison, and write it to a file."""
    with atomic_write(target) as file:
        file.write(text)
    print_markdown(text.rstrip())
    note(f"\nwrote the comparison to {target}")


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
@click.option(
    "--compare",
    "variables",
    metavar="FACTOR",
    multiple=True,
    help="Compare the levels of a factor, block or option, or agent_id, instead: exploratory. "
    "May be repeated.",
)
@click.option(
    "--outcome",
    "outcomes",
    metavar="NAME",
    multiple=True,
    help="With --compare: an outcome, or the name of a metric or evaluation; default: the primary "
    "outcomes. May be repeated.",
)
@click.option(
    "--by",
    metavar="GROUPS",
    help="With --compare: also within each `problem`, `family` of problems, or level of a factor.",
)
@json_option
def command(
    folder: Path,
    out: Path | None,
    as_html: bool,
    markdown: Path | None,
    figures: Path | None,
    variables: tuple[str, ...],
    outcomes: tuple[str, ...],
    by: str | None,
    as_json: bool,
) -> None:
    """Test the hypotheses as the study's analysis plans declare, and write a report in Markdown.

    Prints the summary; the complete report, with methods and codebook, is written to a file.
    Hypotheses that were not tested are listed with the reason. With --html, writes a page for the
    browser with verdicts, charts, and the runs with their outputs. --markdown and --figures write
    a summary and pictures only.

    With --compare, tests what no plan declared, with the same statistics; such results are marked
    exploratory, and written to DIR/compare-FACTOR.md.
    """
    if as_json and (markdown or figures):
        raise click.UsageError("--markdown and --figures write files and --json prints: choose one")
    if variables:
        if as_html or markdown or figures:
            message = "--compare writes text: leave out --html, --markdown and --figures"
            raise click.UsageError(message)
        comparison = report.compare_levels(folder, variables, outcomes=outcomes, by=by)
        if as_json:
            print_json(comparison.to_dict())
            return
        target = out or folder / f"compare-{'-'.join(comparison.variables)}.md".replace("/", "_")
        _print_comparison(comparison.to_markdown(), target)
        return
    if outcomes or by is not None:
        raise click.UsageError("--outcome and --by are for --compare FACTOR")
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
