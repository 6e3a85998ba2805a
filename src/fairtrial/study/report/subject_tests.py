"""Comparisons by subject, for studies that sample both subjects and problems.

A claim about problems and subjects in general must hold by problem and by subject; the weaker of
the two results counts (Clark 1973, J. Verb. Learn. Verb. Behav. 12, 335-359).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.design.runs import SUBJECT
from fairtrial.study.report.comparison_results import TestResult
from fairtrial.study.report.pairing import replicate_is_subject
from fairtrial.study.report.problem_tests import contrast_test
from fairtrial.study.report.run_table import REPLICATE
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.by_problem import MIN_PROBLEMS
from fairtrial.study.stats.finding import UntestableError

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values


def require_subjects(
    sample: ComparisonSample, name: str, result: TestResult
) -> tuple[TestResult, list[str]]:
    """Return the weaker of a result by problem and that by subject, with a note about both.

    The result is unchanged in a study without subjects. More than two levels are compared by
    problem only, which a note says.
    """
    subject = _subject_codes(sample)
    if subject is None or sample.request.comparison.shape != "levels":
        return result, []
    if len(sample.names) != 2:
        return result, ["subjects are averaged over: the result holds for these subjects"]
    differences = _subject_differences(sample, subject)
    if len(differences) < MIN_PROBLEMS:
        return result, ["too few subjects to generalize from: the result holds for these subjects"]
    try:
        finding = contrast_test(sample, name, result.margin)(differences)
    except UntestableError:
        return result, []
    method = finding.method.replace(" problems", " subjects")
    quantity = finding.estimate_of.replace("problems", "subjects")
    both = f"by problem p = {result.finding.p:.2g}, by subject p = {finding.p:.2g}"
    note = f"problems and subjects are both samples, and the weaker result counts: {both}"
    if finding.p <= result.finding.p:
        return result, [note]
    finding = replace(finding, method=method, estimate_of=quantity)
    return replace(result, finding=finding, unit=f"{len(differences):,} subjects"), [note]


def _subject_codes(sample: ComparisonSample) -> Codes | None:
    """Return the subject of each run; None in a study without subjects."""
    table = sample.request.table
    if replicate_is_subject(table.study):
        return table.column(REPLICATE)[sample.rows]
    if not any(block.name == SUBJECT for block in table.study.blocks):
        return None
    return table.variable(SUBJECT)[1][sample.rows]


def _subject_differences(sample: ComparisonSample, subject: Codes) -> Values:
    """Return the difference of two levels' means for each subject that has both."""
    import numpy as np

    codes = np.unique(subject, return_inverse=True)[1].ravel()
    cells, size = codes * 2 + sample.group, 2 * (int(codes.max()) + 1)
    counts = np.bincount(cells, minlength=size).reshape(-1, 2)
    sums = np.bincount(cells, weights=sample.y, minlength=size).reshape(-1, 2)
    means = sums / np.maximum(counts, 1)
    differences: Values = (means[:, 0] - means[:, 1])[counts.min(axis=1) > 0]
    return differences
