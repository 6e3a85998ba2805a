"""`fairtrial report`: the hypotheses, tested, and what else is to be said of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fairtrial.cli.output import (
    REPORT_NAME,
    folder_argument,
    json_option,
    note,
    print_json,
    print_markdown,
)
from fairtrial.core import replacing
from fairtrial.study import (
    RunStatus,
    RunTable,
    Study,
    Summary,
    collect,
    deviation_lines,
    full_report,
    judge_table,
    note_look,
    open_results,
    render_markdown_summary,
)

TOLD = (RunStatus.SUCCESS, RunStatus.FAILED)


@click.command(
    name="report",
    epilog="Example: fairtrial report artifacts/my-study --out report.md",
    short_help="Test the hypotheses, and write what came of it.",
)
@folder_argument
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
        summary = results.reader.summary()
        left_out = summary.left_out
        if as_json:
            told = _plain(collect(study, conditions, results), left_out)
            _note_look(folder, study, summary)
            print_json(told)
            return
        text = full_report(study, conditions, results, left_out=left_out)
        target = out or folder / REPORT_NAME
        with replacing(target) as file:
            file.write(text)
        _note_look(folder, study, summary)
        print_markdown(render_markdown_summary(study, results, conditions).rstrip())
    note(f"\nwrote the whole report to {target}")


def _note_look(folder: Path, study: Study, summary: Summary) -> None:
    """Write down that verdicts are shown, if that is before all runs are done."""
    seen = sum(summary.counts.get(status.value, 0) for status in TOLD)
    if study.hypotheses and seen and summary.pending:
        note_look(folder, seen, summary.planned)


def _plain(data: RunTable, left_out: int) -> dict[str, Any]:
    """The tests, and what else is to be known before they are believed."""
    tests = judge_table(data)
    return {
        "study_id": data.study.study_id,
        "planned": data.tally.planned,
        "pending": data.pending,
        "statuses": dict(data.tally.statuses),
        "left_out": left_out + data.tally.homeless,
        **(data.spent or data.tally.spent).to_dict(),
        "deviations": list(deviation_lines(data, tests, left_out)),
        "claims": data.record.to_dict(data.study),
        "tests": [test.to_dict() for test in tests],
    }
