"""The standing of tests: which are exploratory, and what they would say without later changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fairtrial.study.ledger.claim_history import ClaimStanding
from fairtrial.study.ledger.data_changes import DataChange
from fairtrial.study.ledger.earlier_folders import EarlierFolder
from fairtrial.study.report.deviations import count_known, why_late
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import format_count
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
    original = table.original
    originals: list[HypothesisTest] = []
    if original is not None and any(
        standing.why is not None or standing.data for standing in standings.values()
    ):
        originals = judge(original)
    never_made = 0
    if original is not None and original.pending > table.pending:
        never_made = original.pending
    return [
        _apply_standing(
            test,
            standings[test.hypothesis_id, test.analysis_plan_id],
            _find_original(test, originals),
            never_made,
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
    test: HypothesisTest,
    standing: ClaimStanding,
    original: HypothesisTest | None,
    never_made: int,
) -> HypothesisTest:
    """Return a test with its standing, reasons, and the verdict without later changes.

    never_made: number of runs of the first plan that have no result
    """
    test = replace(test, standing=standing.standing)
    if test.verdict in (TestVerdict.EXPLORATORY, TestVerdict.NOT_TESTED):
        return test
    reasons, without = [], ""
    if standing.why is not None:
        reasons.append(why_late(standing.why, standing.known))
    if standing.data:
        reasons.append(_describe_data(standing.data))
        obstacle = _find_obstacle(standing.data, original, never_made)
        if obstacle:
            original = None
            without = f"the verdict without {_list_changes(standing.data)} {obstacle}"
    if original is not None and standing.data:
        without = _compare_verdicts(test.verdict, original.verdict, standing.data)
    elif original is not None and standing.why in ("changed", "family"):
        without = f"{original.verdict} as laid down; {test.verdict}, exploratory as changed"
    key = (test.hypothesis_id, test.analysis_plan_id)
    reasons += [_describe_folder(folder, key) for folder in standing.folders]
    if not reasons:
        return test
    return replace(
        test,
        verdict=TestVerdict.EXPLORATORY,
        why="; ".join(filter(None, [*reasons, without, test.why])),
        verdict_with=test.verdict,
        verdict_without=original.verdict if without and original is not None else None,
        without_changes=without,
    )


def _describe_data(changes: Sequence[DataChange]) -> str:
    known = [change.known for change in changes if change.known is not None]
    return (
        f"its data were changed after {count_known(min(known)) if known else 'results were known'}"
    )


def _find_obstacle(
    changes: Sequence[DataChange], original: HypothesisTest | None, never_made: int
) -> str:
    """Return why the verdict without changes of data can't be computed; empty if it can."""
    if any(change.kind == "made otherwise" for change in changes):
        return f"can't be computed: {MADE_OTHERWISE}"
    if not all(change.can_undo for change in changes):
        return f"can't be computed: {NOT_KEPT}"
    if never_made:
        runs = format_count(never_made, "run")
        verb = "was" if never_made == 1 else "were"
        return f"can't be computed: {runs} of the first plan {verb} not made"
    return "" if original is not None else "can't be computed: the first plan has no such test"


def _compare_verdicts(
    verdict: TestVerdict, original: TestVerdict, changes: Sequence[DataChange]
) -> str:
    pronoun = "them" if len(changes) > 1 or changes[0].is_plural else "it"
    without = f"{original} without {_list_changes(changes)}"
    return f"{without}; {verdict}, exploratory with {pronoun}"


def _list_changes(changes: Sequence[DataChange]) -> str:
    phrases = [change.what for change in changes]
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _describe_folder(folder: EarlierFolder, claim: tuple[str, str | None]) -> str:
    """Return what earlier results of the same runs mean for a claim."""
    if claim in folder.same_claims:
        return (
            f"a repetition of runs with the same seeds ({folder.path}), which is no independent "
            "evidence"
        )
    known = count_known(folder.results)
    return f"laid down after {known} of the same runs ({folder.path})"
