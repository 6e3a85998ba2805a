"""The whole report of a study, in Markdown that reads well in a terminal too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fairtrial.core import replacing
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.codebook import codebook_text
from fairtrial.study.report.deviations import deviation_lines
from fairtrial.study.report.findings import render_tests
from fairtrial.study.report.hypotheses import judge_table
from fairtrial.study.report.methods import methods_text, setting_lines
from fairtrial.study.report.summary import summary_text
from fairtrial.study.report.text import bullets, plain_text
from fairtrial.study.report.values import collect

READING = (
    f"How to read the verdicts. *Supported*: what is claimed was found (p below {ALPHA:g}, after "
    "the plan's policy for several tests). *Contradicted*: the opposite was found. *Not "
    "supported*: a difference as large as the smallest of interest is ruled out by the 95% "
    "interval. *Inconclusive*: the data can't tell, which is no sign that there is nothing. "
    "*Exploratory*: looked at without a plan, or claimed or changed after results were there; "
    "decides nothing. Of the tests of a plan the first "
    "decides; the others stand beside it."
)


def full_report(
    study: Study,
    conditions: Sequence[Condition],
    run_results: Iterable[RunResult],
    *,
    left_out: int = 0,
    codebook: bool = True,
) -> str:
    """Verdicts first, then runs and conditions, tests, methods and the codebook.

    run_results: read once, one by one
    left_out: how many results were left out because their runs are no longer in the plan
    """
    data = collect(study, conditions, run_results)
    tests = judge_table(data)
    parts = [f"# {plain_text(study.title)}", summary_text(data, tests)]
    if tests:
        parts += ["## Tests", READING, render_tests(tests)]
    parts += [methods_text(study, conditions)]
    setting = [*setting_lines(data)]
    if setting:
        parts += ["### As it was run", bullets(setting)]
    deviations = list(deviation_lines(data, tests, left_out))
    told = (
        bullets(deviations)
        if deviations
        else "There are none: every planned run and test was made."
    )
    parts += ["### Deviations from the plan", told]
    if codebook:
        parts.append(codebook_text(study, conditions, data.tally.metrics))
    return "\n\n".join(parts) + "\n"


def write_markdown_report(output_dir: str | Path, filename: str, content: str) -> Path:
    """Write a report into the folder `artifacts` of an output directory; returns its path."""
    path = Path(output_dir) / "artifacts" / filename
    with replacing(path) as file:
        file.write(content)
    return path
