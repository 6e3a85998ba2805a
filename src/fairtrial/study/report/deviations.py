"""In what a study as it was run, and what it claims, differ from what was laid down at first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.study.ledger.amendments import Laid
from fairtrial.study.ledger.claim_changes import Departure
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.report.hypothesis import HypothesisTest
from fairtrial.study.report.text import code, count, plain_text
from fairtrial.study.report.values import RunTable
from fairtrial.study.report.verdicts import Verdict

MOST_CHANGES = 20
ENDED = {
    "cancelled": "it was cancelled",
    "interrupted": "it was interrupted",
    "budget": "a budget ended it",
    "failure": "the first failure ended it",
    "error": "an error ended it",
}
ALLOWED = "p values don't allow for that"
NOT_NOTED = "whether the claims were laid down before the first result is not known"


def deviation_lines(
    data: RunTable, tests: Sequence[HypothesisTest], left_out: int = 0
) -> Iterator[str]:
    """In what the study as it was run differs from the study as it was planned."""
    yield from amendment_lines(data)
    tally = data.tally
    if pending := data.pending:
        how = ENDED.get(data.history.ended_how or "") if data.history else None
        yield (
            f"{count(pending, 'planned run')} not done{f' ({how})' if how else ''}: this is a look "
            "at an unfinished study, and p values of a first look don't hold for a second one"
        )
    if failed := tally.statuses[str(RunStatus.FAILED)]:
        yield f"{count(failed, 'run')} failed, and have no outcome"
    if skipped := tally.statuses[str(RunStatus.SKIPPED)]:
        yield f"{count(skipped, 'run')} left out evenly over the conditions, by max_runs"
    if broken := tally.statuses[str(RunStatus.BROKEN)]:
        yield f"{count(broken, 'run')} broken through no fault of the agent, and left out"
    left_out = left_out or (data.history.left_out if data.history else 0)
    if gone := left_out + tally.homeless:
        yield f"{count(gone, 'result')} of runs that are no longer in the plan left out"
    for test in tests:
        if test.verdict is Verdict.NOT_TESTED and test.analysis_plan_id is not None:
            which = f"{code(test.test)} of {code(test.hypothesis_id)} on {code(test.outcome)}"
            yield f"{which} not tested: {plain_text(test.why)}"


def amendment_lines(data: RunTable) -> Iterator[str]:
    """How plan, claims, or the code that runs are about, were changed after results were there."""
    for notes in data.notes:
        yield from notes.deviations()
    for each in data.amendments:
        way = "raised" if each.after > each.before else "lowered"
        done = "1 run was" if each.runs_done == 1 else f"{each.runs_done:,} runs were"
        yield (
            f"replicates were {way} from {each.before:,} to {each.after:,} after {done} done "
            f"({plain_text(each.at)}): {ALLOWED}"
        )
    yield from _claim_lines(data)
    yield from _history_lines(data)


def _claim_lines(data: RunTable) -> Iterator[str]:
    record = data.record
    if data.history is not None and data.study.hypotheses:
        if record.first is None or record.first.at is None:
            yield f"{NOT_NOTED}: when this ledger was begun that was not noted"
        elif record.first.runs_done:
            known = _known(record.first)
            yield f"{NOT_NOTED}: it is noted only since {known} ({plain_text(record.first.at)})"
    for laid, lines in record.changes():
        when = "for this report" if laid.at is None else plain_text(laid.at)
        for line in _shorten(lines):
            yield f"claims were changed after {_known(laid)} ({when}): {code(line)}"
        for line in _shorten(laid.accepted):
            yield (
                f"the study was changed after {_known(laid)} ({when}), and earlier results that "
                f"are still in the plan count: {code(line)}"
            )


def _shorten(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_CHANGES
    return [*lines[:MOST_CHANGES], *([f"and {more:,} more changes"] if more > 0 else [])]


def _known(laid: Laid) -> str:
    return f"{count(laid.runs_done, 'result')} {'was' if laid.runs_done == 1 else 'were'} known"


def _history_lines(data: RunTable) -> Iterator[str]:
    history = data.history
    if history is None:
        return
    # Who looks now, and nothing has come since, sees what was seen.
    told = (RunStatus.SUCCESS, RunStatus.FAILED)
    now = sum(data.tally.statuses[status.value] for status in told) if data.pending else None
    if looks := [each for each in history.looks if each.results != now]:
        seen = ", ".join(f"{each.results:,} of {each.planned:,}" for each in looks[:MOST_CHANGES])
        times = "once" if len(looks) == 1 else f"{len(looks):,} times"
        yield (
            f"verdicts were looked at {times} before all runs were done, after {seen}: if what was "
            f"seen decided how the study went on, {ALLOWED}"
        )
    if again := sum(history.again.values()):
        passed = history.again.get(RunStatus.SUCCESS.value, 0)
        which = (
            "1 run that had failed was" if again == 1 else f"{again:,} runs that had failed were"
        )
        yield f"{which} run again on request, of which {passed:,} succeeded then: {ALLOWED}"
    for evaluator, number in history.rescored.items():
        who = "the problems' own evaluators" if evaluator == "own" else code(evaluator)
        yield (
            f"{count(number, 'run')} judged again by {who} after results were known; the first "
            "verdicts are in the ledger, and don't count"
        )
    if len(history.commits) > 1:
        shown = ", ".join(f"{code(name)} ({n:,} runs)" for name, n in history.commits.items())
        yield f"runs were made at different commits, so that agents may have changed: {shown}"
    for name, versions in history.versions.items():
        shown = ", ".join(code(version) for version in versions)
        yield f"runs were made with different versions of {code(name)}: {shown}"


def why_late(what: Departure, known: int) -> str:
    """Why a claim is no longer the one that was laid down, in a few words."""
    results = f"{count(known, 'result')} {'was' if known == 1 else 'were'} known"
    if what == "family":
        return f"other claims of its plan were changed after {results}, and share its p"
    return f"{what} after {results}"


def standing_text(data: RunTable, tests: Sequence[HypothesisTest]) -> str:
    """Which claims were laid down before results, in a sentence or two; empty if there are none."""
    groups: dict[str, dict[str, None]] = {}
    for test in tests:
        groups.setdefault(test.standing, {})[test.hypothesis_id] = None
    named = {key: ", ".join(map(code, names)) for key, names in groups.items()}
    parts = []
    if "confirmatory" in named:
        parts.append(f"Confirmatory, laid down before the first result: {named['confirmatory']}.")
    if "exploratory" in named:
        parts.append(
            f"Exploratory, without a plan or not laid down before: {named['exploratory']}."
        )
    if "unknown" in named:
        why = "" if data.history is not None else " (these results come without a ledger)"
        parts.append(f"Not known to be laid down before the first result{why}: {named['unknown']}.")
    return " ".join(parts)
