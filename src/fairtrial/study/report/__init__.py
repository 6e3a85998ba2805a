"""Studies, explained: tests of the hypotheses, and Markdown for people.

General layout::

    outcomes.py     one number per run for each outcome
    values.py       results as columns, read in one pass
    copies.py       replicates that proposed the same
    questions.py    what each hypothesis asks, as the plan read it
    samples.py      the numbers behind a question
    pairing.py      what runs have in common
    answer(s).py    the test that a plan's word means; models.py, details.py: its parts
    verdicts.py     from figures to a word
    hypotheses.py   all of this for a study: `judge_hypotheses`
    text.py         Markdown that nothing breaks
    history.py      how the runs came about: run again, judged again, by which code
    deviations.py   what differs from what was laid down
    findings.py, summary.py, methods.py, codebook.py, markdown.py: the report, part by part
"""

from fairtrial.study.report.codebook import render_codebook
from fairtrial.study.report.findings import render_significance_brief
from fairtrial.study.report.hypotheses import judge_hypotheses
from fairtrial.study.report.hypothesis import HypothesisTest
from fairtrial.study.report.markdown import full_report, write_markdown_report
from fairtrial.study.report.methods import render_methods_scaffold
from fairtrial.study.report.summary import render_markdown_summary
from fairtrial.study.report.verdicts import Verdict

__all__ = [
    "HypothesisTest",
    "Verdict",
    "full_report",
    "judge_hypotheses",
    "render_codebook",
    "render_markdown_summary",
    "render_methods_scaffold",
    "render_significance_brief",
    "write_markdown_report",
]
