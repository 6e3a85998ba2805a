"""The complete report of a study in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fairtrial.core import atomic_write, dump_record
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.codebook import codebook_text
from fairtrial.study.report.deviations import deviation_lines
from fairtrial.study.report.flaky_problems import flaky_text
from fairtrial.study.report.flow import trace_study
from fairtrial.study.report.hypothesis_sections import render_tests
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_table
from fairtrial.study.report.looks_section import looks_facts, looks_text
from fairtrial.study.report.markdown_text import escape_markdown, format_list
from fairtrial.study.report.methods_section import methods_text, setting_lines
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.report.sensitivity import compare_analyses
from fairtrial.study.report.sensitivity_section import render_sensitivity
from fairtrial.study.report.summary_section import choose_outcomes, summary_text

VERDICT_GUIDE = (
    f"How to read the verdicts. *Supported*: the claimed effect was found (p below {ALPHA:g}, "
    "after the plan's adjustment for several tests and looks). *Supported if losses are harmless*: "
    "found in the runs that have a value, but lost runs (failed, broken or without a value) differ "
    "between the groups or could turn the verdict. *Supported, or an alias is*: found, but the "
    "runs can't tell it from another effect, which is named. *Contradicted*: the opposite was "
    "found. *Not supported*: a difference as large as the smallest of interest is ruled out by "
    "the 95% interval. *Inconclusive*: the data are compatible with both, which does not show that "
    "there is no effect. *Exploratory*: tested without a plan, or claim or data were changed after "
    "the first result; decides nothing. The first test of a plan decides; the others are beside it."
)


def full_report(
    study: Study,
    conditions: Sequence[Condition],
    run_results: Iterable[RunResult],
    *,
    left_out: int = 0,
    codebook: bool = True,
) -> str:
    """Return the report: verdicts, runs and conditions, tests, methods and the codebook.

    run_results: read once, one by one
    left_out: number of results that were left out because their runs are no longer in the plan
    codebook: whether to include the codebook
    """
    data = collect_run_table(study, conditions, run_results)
    return report_text(data, judge_table(data), left_out=left_out, codebook=codebook)


def report_text(
    data: RunTable, tests: Sequence[HypothesisTest], *, left_out: int = 0, codebook: bool = True
) -> str:
    """Return the report on a run table and its tests; see `full_report`."""
    study, conditions = data.study, data.conditions
    parts = [f"# {escape_markdown(study.title)}", summary_text(data, tests)]
    if tests:
        parts += ["## Tests", VERDICT_GUIDE, render_tests(tests)]
    if sensitivity := render_sensitivity(compare_analyses(data, tests)):
        parts.append(sensitivity)
    if flaky := flaky_text(data):
        parts += ["## Flaky problems", flaky]
    if agreement := data.agreement.text():
        parts += ["## Judges and people", agreement]
    if looks := looks_text(data):
        parts += ["## Interim looks", looks]
    parts += [methods_text(study, conditions)]
    setting = [*setting_lines(data)]
    if setting:
        parts += ["### As it was run", format_list(setting)]
    deviations = list(deviation_lines(data, tests, left_out))
    text = (
        format_list(deviations)
        if deviations
        else "There are none: the planned looks ended the study."
        if data.decided_early
        else "There are none: every planned run and test was made."
    )
    parts += ["### Deviations from the plan", text]
    if codebook:
        parts.append(codebook_text(study, conditions, data.totals.metrics))
    return "\n\n".join(parts) + "\n"


def report_facts(
    study: Study,
    conditions: Sequence[Condition],
    run_results: Iterable[RunResult],
    *,
    left_out: int = 0,
) -> dict[str, Any]:
    """Return counts, costs, deviations from the plan, and all tests as plain data.

    run_results: read once, one by one
    left_out: number of results that were left out because their runs are no longer in the plan
    """
    data = collect_run_table(study, conditions, run_results)
    return table_facts(data, judge_table(data), left_out=left_out)


def table_facts(
    data: RunTable, tests: Sequence[HypothesisTest], *, left_out: int = 0
) -> dict[str, Any]:
    """Return the content of a report on a run table and its tests; see `report_facts`."""
    study = data.study
    lock = None if data.history is None else data.history.lock
    order = data.order_check
    return {
        "study_id": study.study_id,
        "planned": data.totals.planned,
        "pending": data.pending,
        "statuses": dict(data.totals.statuses),
        "left_out": left_out + data.totals.without_condition,
        **(data.spent or data.totals.spent).to_dict(),
        "flow": [flow.to_dict() for flow in trace_study(data, choose_outcomes(data))],
        "order": order and dump_record(order),
        "deviations": list(deviation_lines(data, tests, left_out)),
        "claims": data.record.to_dict(study),
        "lock": None if lock is None else lock.to_dict(),
        "tests": [test.to_dict() for test in tests],
        "sensitivity": [table.to_dict() for table in compare_analyses(data, tests)],
        "looks": looks_facts(data),
    }


def write_markdown_report(output_dir: str | Path, filename: str, content: str) -> Path:
    """Write a report into the folder `artifacts` of an output directory; return its path."""
    path = Path(output_dir) / "artifacts" / filename
    with atomic_write(path) as file:
        file.write(content)
    return path
