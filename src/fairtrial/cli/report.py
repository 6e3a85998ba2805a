"""`fairtrial report`: the hypotheses, tested, and what else is to be said of a study."""

from __future__ import annotations

from pathlib import Path

import click

from fairtrial.cli.output import REPORT_NAME, json_option, note, print_json, print_markdown
from fairtrial.files import replacing
from fairtrial.report.hypotheses import judge_hypotheses
from fairtrial.report.markdown import full_report
from fairtrial.report.summary import render_markdown_summary
from fairtrial.tables.results import open_results


@click.command(
    name="report",
    epilog="Example: fairtrial report artifacts/my-study --out report.md",
    short_help="Test the hypotheses, and write what came of it.",
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the whole report goes; by default DIR/report.md.",
)
@json_option
def command(folder: Path, out: Path | None, as_json: bool) -> None:
    """Test the hypotheses as the study's analysis plans declare, and write a report in Markdown.

    Prints the summary; the whole report, with methods and codebook, goes to a file. Says what was
    not tested, and why.
    """
    with open_results(folder) as results:
        study, conditions = results.study, results.conditions
        if as_json:
            tests = judge_hypotheses(study, conditions, results)
            print_json({"study_id": study.study_id, "tests": [test.to_dict() for test in tests]})
            return
        left_out = results.reader.summary().left_out
        text = full_report(study, conditions, results, left_out=left_out)
        target = out or folder / REPORT_NAME
        with replacing(target) as file:
            file.write(text)
        print_markdown(render_markdown_summary(study, results, conditions).rstrip())
    note(f"\nwrote the whole report to {target}")
