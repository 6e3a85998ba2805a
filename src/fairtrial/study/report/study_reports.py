"""The report of the study in a folder, as a file or as plain data.

Reading a report of an unfinished study is an interim look, and is recorded as one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial.core import atomic_write
from fairtrial.study.ledger.interim_looks import record_interim_look
from fairtrial.study.report.report_document import full_report, report_facts
from fairtrial.study.report.summary_section import render_markdown_summary
from fairtrial.study.tables.results import open_results


def write_report(folder: Path, target: Path) -> str:
    """Test the hypotheses of the study in a folder, and write the complete report to a file.

    Returns the summary in Markdown. Raises `LedgerError` if the folder has no results, and
    `StudyError` if the file can't be written.
    """
    with open_results(folder) as results:
        study, conditions = results.study, results.conditions
        summary = results.reader.summary()
        text = full_report(study, conditions, results, left_out=summary.left_out)
        with atomic_write(target) as file:
            file.write(text)
        record_interim_look(folder, study, summary)
        return render_markdown_summary(study, results, conditions)


def read_report_facts(folder: Path) -> dict[str, Any]:
    """Test the hypotheses of the study in a folder; returns the report's content as plain data.

    Raises `LedgerError` if the folder has no results.
    """
    with open_results(folder) as results:
        study, summary = results.study, results.reader.summary()
        facts = report_facts(study, results.conditions, results, left_out=summary.left_out)
        record_interim_look(folder, study, summary)
        return facts
