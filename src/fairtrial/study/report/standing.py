"""The standing of tests: which are exploratory, and what they would say without later changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fairtrial.study.ledger.claim_history import ClaimStanding
from fairtrial.study.ledger.data_changes import DataChange
from fairtrial.study.ledger.earlier_folders import EarlierFolder
from fairtrial.study.report.deviations import count_known, why_late
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.test_verdicts import TestVerdict

NOT_KEPT = "the first conditions were not kept"
MADE_OTHERWISE = "runs that were made before and after it are mixed"


def apply_standings(
    table: RunTable,
    tests: Sequence[HypothesisTest],
    judge: Callable[[RunTable], list[HypothesisTest]],
) -> list[HypothesisTest]:
    """Return tests with their standing; claims made, changed or fed after results are exploratory.

    judge: tests the hypotheses of a run table, for the verdicts without later changes
    """
    standings = table.record.standings(table.study)
    originals: list[HypothesisTest] = []
    if table.original is not None and any(
        standing.why is not None or standing.data for standing in standings.values()
    ):
        originals = judge(table.original)
    return [
        _apply_standing(
            test,
            standings[test.hypothesis_id, test.analysis_plan_id],
            _find_original(test, originals),
        )
        for test in tests
    ]


def _find_original(
    test: HypothesisTest, originals: Iterable[HypothesisTest]
) -> HypothesisTest | None:
    """Return the test of the first plan in place of a test: the same one, or the deciding one."""
    candidates = [
        original
        for original in originals
        if (original.hypothesis_id, original.analysis_plan_id, original.outcome)
        == (test.hypothesis_id, test.analysis_plan_id, test.outcome)
        and original.decides == test.decides
    ]
    for original in candidates:
        if (original.test, original.variables) == (test.test, test.variables):
            return original
    return candidates[0] if test.decides and len(candidates) == 1 else None


def _apply_standing(
    test: HypothesisTest, standing: ClaimStanding, original: HypothesisTest | None
) -> HypothesisTest:
    test = replace(test, standing=standing.standing)
    if test.verdict in (TestVerdict.EXPLORATORY, TestVerdict.NOT_TESTED):
        return test
    reasons, without = [], ""
    if standing.why is not None:
        reasons.append(why_late(standing.why, standing.known))
    if standing.data:
        reasons.append(_describe_data(standing.data))
        without = _compare_verdicts(test, standing.data, original)
    elif standing.why is not None and original is not None and standing.why != "added":
        without = f"{original.verdict} as laid down; {test.verdict}, exploratory as changed"
    key = (test.hypothesis_id, test.analysis_plan_id)
    reasons += [describe_folder(folder, key) for folder in standing.folders]
    if not reasons:
        return test
    why = "; ".join(filter(None, [*reasons, without, test.why]))
    return replace(
        test,
        verdict=TestVerdict.EXPLORATORY,
        why=why,
        verdict_with=test.verdict,
        verdict_without=original.verdict if without and original is not None else None,
        without_changes=without,
    )


def _describe_data(changes: Sequence[DataChange]) -> str:
    known = [change.known for change in changes if change.known is not None]
    return f"its data were changed after {count_known(min(known)) if known else 'results were known'}"


def _compare_verdicts(
    test: HypothesisTest, changes: Sequence[DataChange], original: HypothesisTest | None
) -> str:
    """Return the verdicts without and with changes of data, or why there is none without them."""
    phrases = [change.what for change in changes]
    what = phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    if not all(change.can_undo for change in changes):
        is_mixed = any(change.kind == "made otherwise" for change in changes)
        reason = MADE_OTHERWISE if is_mixed else NOT_KEPT
        return f"the verdict without {what} can't be computed: {reason}"
    if original is None:
        return f"the verdict without {what} can't be computed: the first plan has no such test"
    pronoun = "them" if len(changes) > 1 or changes[0].is_plural else "it"
    return f"{original.verdict} without {what}; {test.verdict}, exploratory with {pronoun}"


def describe_folder(folder: EarlierFolder, claim: tuple[str, str | None]) -> str:
    """Return what earlier results of the same runs mean for a claim."""
    if claim in folder.same_claims:
        return (
            f"a repetition of runs with the same seeds ({folder.path}), which is no independent "
            "evidence"
        )
    known = count_known(folder.results)
    return f"laid down after {known} of the same runs ({folder.path})"
