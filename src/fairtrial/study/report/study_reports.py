"""The report of the study in a folder, as a file or as plain data.

Reading a report of an unfinished study is an interim look, and is recorded as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.core import atomic_write
from fairtrial.study.ledger.interim_looks import record_interim_look
from fairtrial.study.ledger.ledger_summary import Summary
from fairtrial.study.model.study import Study
from fairtrial.study.report.exploration_record import Exploration
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_table
from fairtrial.study.report.known_verdicts import KnownVerdict, keep_verdicts, list_verdicts
from fairtrial.study.report.markdown_text import escape_markdown
from fairtrial.study.report.report_document import report_text, table_facts
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.summary_section import summary_text
from fairtrial.study.tables.results import Results, open_results


def write_report(folder: Path, target: Path) -> str:
    """Test the hypotheses of the study in a folder, and write the complete report to a file.

    Returns the summary in Markdown. Raises `LedgerError` if the folder has no results, and
    `StudyError` if the file can't be written.
    """
    with open_results(folder) as results:
        study = results.study
        data, tests, summary = _test(results)
        with atomic_write(target) as file:
            file.write(report_text(data, tests, left_out=summary.left_out))
        _record(folder, study, summary, tests)
        return f"# {escape_markdown(study.title)}\n\n{summary_text(data, tests)}\n"


def read_report_facts(folder: Path) -> dict[str, Any]:
    """Test the hypotheses of the study in a folder; returns the report's content as plain data.

    Raises `LedgerError` if the folder has no results.
    """
    with open_results(folder) as results:
        data, tests, summary = _test(results)
        _record(folder, results.study, summary, tests)
        return table_facts(data, tests, left_out=summary.left_out)


def judge_study(folder: Path) -> tuple[KnownVerdict, ...]:
    """Test the hypotheses of the study in a folder; returns their verdicts, which are kept.

    Raises `LedgerError` if the folder has no results.
    """
    with open_results(folder) as results:
        _, tests, summary = _test(results)
        _record(folder, results.study, summary, tests)
    return list_verdicts(tests)


def _test(results: Results) -> tuple[RunTable, list[HypothesisTest], Summary]:
    """Test the hypotheses of a study."""
    summary = results.reader.summary()
    data = collect_run_table(results.study, results.conditions, results)
    return data, judge_table(data), summary


def _record(folder: Path, study: Study, summary: Summary, tests: Sequence[HypothesisTest]) -> None:
    """Keep the verdicts that are shown, and record an interim look if they are preliminary."""
    record_interim_look(folder, study, summary)
    if study.hypotheses:
        keep_verdicts(folder, summary.done, list_verdicts(tests))


def compare_levels(
    folder: Path, variables: Sequence[str], *, outcomes: Sequence[str] = (), by: str | None = None
) -> Exploration:
    """Compare the levels of variables of the study in a folder, as `Results.compare` does.

    Raises `LedgerError` if the folder has no results, and `StudyError` if a name is unknown.
    """
    with open_results(folder) as results:
        exploration = results.compare(*variables, outcomes=outcomes, by=by)
        record_interim_look(folder, results.study, results.reader.summary())
        return exploration
