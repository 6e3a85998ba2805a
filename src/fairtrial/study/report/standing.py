"""The standing of tests: which are exploratory, and what they would say without later changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from fairtrial.core import sequential
from fairtrial.study.ledger.claim_history import ClaimStanding
from fairtrial.study.ledger.data_changes import DataChange, list_names
from fairtrial.study.ledger.earlier_folders import LOST_LEDGER, EarlierFolder
from fairtrial.study.report.decision_intervals import scale_interval
from fairtrial.study.report.deviations import count_known, why_late
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import format_count
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.verdicts import TestVerdict

NOT_KEPT = "the first conditions were not kept"
WIDENED = (
    "replicates were added after results were known: the interval is wider, so that it holds "
    "however often that was done (a confidence sequence)"
)
MADE_OTHERWISE = "runs that were made before and after it are mixed"


def apply_standings(
    table: RunTable,
    tests: Sequence[HypothesisTest],
    judge: Callable[[RunTable], list[HypothesisTest]],
) -> list[HypothesisTest]:
    """Return tests with their standing.

    Claims that were made or changed after results were known, or whose data were changed then, are
    exploratory.

    judge: tests the hypotheses of a run table, for the verdicts without later changes
    """
    standings = table.record.standings(table.study)
    original = table.original
    originals: list[HypothesisTest] = []
    if original is not None and any(
        standing.why is not None or standing.data or standing.folders
        for standing in standings.values()
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
    reasons = list(_find_reasons(test, standing))
    if not reasons or test.verdict in (TestVerdict.EXPLORATORY, TestVerdict.NOT_TESTED):
        return test
    verdict_without, comparison = _compare_verdicts(test.verdict, standing, original, never_made)
    if any(change.kind == "replicates" for change in standing.data):
        test = _widen_intervals(test)
    return replace(
        test,
        verdict=TestVerdict.EXPLORATORY,
        why="; ".join(filter(None, [*reasons, comparison, test.why])),
        verdict_with=test.verdict,
        verdict_without=verdict_without,
        without_changes=comparison,
    )


def _widen_intervals(test: HypothesisTest) -> HypothesisTest:
    """Return a test with intervals that hold however often replicates were added.

    They are those of a confidence sequence.
    """
    from scipy import special

    if test.estimate is None or test.look is not None:
        return test
    runs = sum(group.n for group in test.groups)
    is_t = test.statistic_name in ("t", "F") and bool(test.df)
    df = max(1.0, test.df[-1] if is_t else float(runs - 2))
    count, alpha = math.floor(df) + 1, 1 - test.confidence
    reach = sequential.half_width(count, alpha) * math.sqrt(count)
    two_sided, one_sided = (
        float(reach / -special.stdtrit(df, tail)) for tail in (alpha / 2, alpha)
    )
    bound = test.bound
    if bound is not None:
        bound = test.estimate + one_sided * (bound - test.estimate)
    return replace(
        test,
        interval=scale_interval(test.interval, test.estimate, two_sided),
        bounds=scale_interval(test.bounds, test.estimate, two_sided),
        bound=bound if bound is None or math.isfinite(bound) else None,
        notes=(*test.notes, WIDENED) if test.interval else test.notes,
    )


def _find_reasons(test: HypothesisTest, standing: ClaimStanding) -> Iterator[str]:
    """Yield why a test of a claim with a plan is exploratory."""
    if standing.why is not None:
        yield why_late(standing.why, standing.known)
    if standing.data:
        known = [change.known for change in standing.data if change.known is not None]
        results = count_known(min(known)) if known else "results were known"
        yield f"its data were changed after {results}"
    for folder in standing.folders:
        yield _describe_folder(folder, (test.hypothesis_id, test.analysis_plan_id))


def _describe_folder(folder: EarlierFolder, claim: tuple[str, str | None]) -> str:
    known = count_known(folder.results)
    if not folder.shared:
        problems = list_names("problem", folder.dropped_problems)
        return f"without {problems} of an earlier study ({folder.path}), of which {known}"
    if claim in folder.same_claims:
        return (
            f"a repetition of runs with the same seeds ({folder.path}), which is no independent "
            "evidence"
        )
    path = "a ledger that is gone" if folder.path == LOST_LEDGER else folder.path
    return f"laid down after {known} of the same runs ({path})"


def _compare_verdicts(
    verdict: TestVerdict, standing: ClaimStanding, original: HypothesisTest | None, never_made: int
) -> tuple[TestVerdict | None, str]:
    """Return the verdict without later changes, and both verdicts, or why there is none, in words.

    verdict: the verdict with the changes
    """
    phrases = [change.what for change in standing.data]
    is_plural = len(phrases) > 1 or any(change.is_plural for change in standing.data)
    dropped = [
        name
        for folder in standing.folders
        for name in (() if folder.shared else folder.dropped_problems)
    ]
    if dropped and not phrases:
        names = list_names("problem", list(dict.fromkeys(dropped)))
        return None, f"the verdict with {names} can't be computed: this study left out their runs"
    if any(folder.shared for folder in standing.folders):
        phrases.append("the runs that were made before")
        is_plural = True
    if not phrases and (original is None or standing.why == "added"):
        return None, ""
    if not phrases and original is not None:
        both = f"as laid down: {original.verdict}; as changed: {verdict}, exploratory"
        return original.verdict, both
    what = phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    obstacle = _find_obstacle(standing.data, original, never_made)
    if original is None or obstacle:
        return None, f"the verdict without {what} can't be computed: {obstacle}"
    with_changes = f"with {'them' if is_plural else 'it'}: {verdict}, exploratory"
    return original.verdict, f"without {what}: {original.verdict}; {with_changes}"


def _find_obstacle(
    changes: Sequence[DataChange], original: HypothesisTest | None, never_made: int
) -> str:
    """Return why there is no verdict without changes of data; empty if there is one."""
    if any(change.kind == "made otherwise" for change in changes):
        return MADE_OTHERWISE
    if not all(change.can_undo for change in changes):
        return NOT_KEPT
    if never_made:
        verb = "was" if never_made == 1 else "were"
        return f"{format_count(never_made, 'run')} of the first plan {verb} not made"
    return "" if original is not None else "the first plan has no such test"
