"""Deviations of a study, as it was run and as it is claimed, from its original plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.study.ledger.claim_changes import Departure
from fairtrial.study.ledger.data_changes import has_planned_looks, list_names
from fairtrial.study.ledger.earlier_folders import LOST_LEDGER, EarlierFolder
from fairtrial.study.ledger.interim_looks import InterimLook
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import escape_markdown, format_code, format_count
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.report.verdicts import TestVerdict

MAX_CHANGES = 20
ENDINGS = {
    "cancelled": "it was cancelled",
    "interrupted": "it was interrupted",
    "budget": "a budget ended it",
    "failure": "the first failure ended it",
    "error": "an error ended it",
}
NOT_ADJUSTED = "p values don't allow for that"
UNKNOWN_STANDING = "whether the claims were laid down before the first result is not known"


def deviation_lines(
    data: RunTable, tests: Sequence[HypothesisTest], left_out: int = 0
) -> Iterator[str]:
    """Yield a line for each deviation of the study as it was run from its plan.

    left_out: number of results that were left out because their runs are no longer in the plan
    """
    yield from amendment_lines(data)
    yield from _verdict_lines(tests)
    totals = data.totals
    if pending := data.pending:
        ending = ENDINGS.get(data.history.ended_how or "") if data.history else None
        not_done = f"{format_count(pending, 'planned run')} not done"
        yield (
            f"{not_done}{f' ({ending})' if ending else ''}: this is an interim look at an "
            "unfinished study, and its p values don't hold for a later look"
        )
    if failed := totals.statuses[str(RunStatus.FAILED)]:
        yield f"{format_count(failed, 'run')} failed, and have no outcome"
    if data.skipped:
        skipped = format_count(data.skipped, "run")
        yield f"{skipped} left out evenly over the conditions, by max_runs"
    if broken := totals.statuses[str(RunStatus.BROKEN)]:
        yield f"{format_count(broken, 'run')} broken through no fault of the agent, and left out"
    for outcome in dict.fromkeys(test.outcome for test in tests):
        if outcome in data.readers and (missing := data.count_missing(outcome)):
            runs = format_count(missing, "successful run")
            yield f"{runs} without a value of {format_code(outcome)}"
    if data.order_check is not None and not data.order_check.is_kept:
        yield f"{data.order_check.text}; carry-over between treatments is not balanced"
    left_out = left_out or (data.history.left_out if data.history else 0)
    if removed := left_out + totals.without_condition:
        yield f"{format_count(removed, 'result')} of runs that are no longer in the plan left out"
    for test in tests:
        if test.verdict is TestVerdict.NOT_TESTED and test.analysis_plan_id is not None:
            subject = f"{format_code(test.hypothesis_id)} on {format_code(test.outcome)}"
            yield f"{format_code(test.test)} of {subject} not tested: {escape_markdown(test.why)}"


def _verdict_lines(tests: Sequence[HypothesisTest]) -> Iterator[str]:
    """Yield a line for each deciding verdict that rests on later changes."""
    for test in tests:
        if test.decides and test.without_changes:
            subject = f"{format_code(test.hypothesis_id)} on {format_code(test.outcome)}"
            yield f"{subject}: {escape_markdown(test.without_changes)}"


def amendment_lines(data: RunTable) -> Iterator[str]:
    """Yield a line for each change of plan, hypotheses or code after the first result."""
    for notes in data.notes:
        yield from notes.deviations()
    for change in data.amendments:
        verb = "raised" if change.after > change.before else "lowered"
        done = "1 run was" if change.runs_done == 1 else f"{change.runs_done:,} runs were"
        yield (
            f"replicates were {verb} from {change.before:,} to {change.after:,} after {done} done "
            f"({escape_markdown(change.at)}): {NOT_ADJUSTED}"
        )
    yield from _claim_lines(data)
    yield from _folder_lines(data.record.folders)
    yield from _history_lines(data)


def _claim_lines(data: RunTable) -> Iterator[str]:
    record = data.record
    if data.history is not None and data.study.hypotheses:
        if record.first is None or record.first.at is None:
            yield f"{UNKNOWN_STANDING}: it was not recorded when this ledger was started"
        elif record.first.runs_done:
            results = count_known(record.first.runs_done)
            since = f"{results} ({escape_markdown(record.first.at)})"
            yield f"{UNKNOWN_STANDING}: it is recorded only since {since}"
    for laid, lines in record.changes():
        when = "for this report" if laid.at is None else escape_markdown(laid.at)
        results = count_known(laid.runs_done)
        for line in _shorten(lines):
            yield f"claims were changed after {results} ({when}): {format_code(line)}"
        remark = ", and earlier results that are still in the plan count" if laid.runs_done else ""
        for line in _shorten(laid.accepted):
            yield f"the study was changed after {results} ({when}){remark}: {format_code(line)}"


def _folder_lines(folders: Sequence[EarlierFolder]) -> Iterator[str]:
    for folder in folders:
        started = f"started {escape_markdown(folder.started_at)}, {count_known(folder.results)}"
        path = format_code(folder.path)
        if folder.path == LOST_LEDGER:
            path = "this directory, whose ledger is gone"
        if folder.shared:
            verb = "was" if folder.shared == 1 else "were"
            yield (
                f"{format_count(folder.shared, 'run')} of this study {verb} made before with the "
                f"same seeds in {path} ({started}): a repetition is no independent evidence"
            )
        elif folder.study_id:
            problems = _describe_problems(folder) or " on some of the same problems"
            yield (
                f"{format_code(folder.study_id)}, a study of the same comparison with the same "
                f"agents{problems}, was run before in {path} ({started}): p values don't allow for "
                "a choice between several studies"
            )
        else:
            yield (
                f"the same study was run before with other seeds{_describe_problems(folder)} in "
                f"{path} ({started}): p values "
                "don't allow for a choice between several studies, and agents that ignore seeds "
                "give the same results again"
            )


def _describe_problems(folder: EarlierFolder) -> str:
    """Return that an earlier study had more problems; empty if it hadn't."""
    if not folder.dropped_problems:
        return ""
    return f" on the same problems and {list_names('problem', folder.dropped_problems)}"


def _shorten(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MAX_CHANGES
    return [*lines[:MAX_CHANGES], *([f"and {more:,} more changes"] if more > 0 else [])]


def count_known(results: int) -> str:
    """Return that so many results were known; without any, that the study was locked."""
    if not results:
        return "the study was locked, before its first result"
    return f"{format_count(results, 'result')} {'was' if results == 1 else 'were'} known"


def _history_lines(data: RunTable) -> Iterator[str]:
    history = data.history
    if history is None:
        return
    for change in history.code_changes:
        when = f"{count_known(change.runs_done)} ({escape_markdown(change.at)})"
        files = ", ".join(map(format_code, _shorten(change.changes)))
        is_locked = f"differs from the locked one: {files}" if files else "is the locked one again"
        yield f"after {when} the code {is_locked}"
    yield from _look_lines(data, history.looks)
    if repeated := sum(history.repeated.values()):
        passed = history.repeated.get(RunStatus.SUCCESS.value, 0)
        runs = (
            "1 run that had failed was"
            if repeated == 1
            else f"{repeated:,} runs that had failed were"
        )
        yield f"{runs} run again on request, of which {passed:,} succeeded then: {NOT_ADJUSTED}"
    for evaluator, number in history.rescored.items():
        name = "the problems' own evaluators" if evaluator == "own" else format_code(evaluator)
        yield (
            f"{format_count(number, 'run')} judged again by {name} after results were known; the "
            "first verdicts are in the ledger, and don't count"
        )
    if len(history.commits) > 1:
        commits = ", ".join(
            f"{format_code(name)} ({runs:,} runs)" for name, runs in history.commits.items()
        )
        yield f"runs were made at different commits, so that agents may have changed: {commits}"
    for name, versions in history.versions.items():
        listed = ", ".join(format_code(version) for version in versions)
        yield f"runs were made with different versions of {format_code(name)}: {listed}"


def _look_lines(data: RunTable, all_looks: Sequence[InterimLook]) -> Iterator[str]:
    """Yield a line about earlier interim looks that saw other results than this report.

    Looks that every analysis plan provides for are no deviation.
    """
    plans = data.study.analysis_plans
    if plans and all(map(has_planned_looks, plans)):
        return
    ended = (RunStatus.SUCCESS, RunStatus.FAILED)
    now = sum(data.totals.statuses[status.value] for status in ended) if data.pending else None
    if looks := [look for look in all_looks if look.results != now]:
        seen = ", ".join(f"{look.results:,} of {look.planned:,}" for look in looks[:MAX_CHANGES])
        times = "once" if len(looks) == 1 else f"{len(looks):,} times"
        yield (
            f"verdicts were looked at {times} before all runs were done, after {seen}: if what was "
            f"seen decided how the study went on, {NOT_ADJUSTED}"
        )


def why_late(departure: Departure, known: int) -> str:
    """Return why a claim differs from the one that was laid down.

    departure: what changed
    known: number of results that were known at the time of the change
    """
    results = count_known(known)
    if departure == "family":
        return f"other claims of its plan were changed after {results}, and share its p"
    return f"{departure} after {results}"


def standing_text(data: RunTable, tests: Sequence[HypothesisTest]) -> str:
    """Return which hypotheses are confirmatory, exploratory or unknown; empty without tests."""
    groups: dict[str, dict[str, None]] = {}
    for test in tests:
        groups.setdefault(test.standing, {})[test.hypothesis_id] = None
    named = {key: ", ".join(map(format_code, names)) for key, names in groups.items()}
    parts = []
    if "confirmatory" in named:
        parts.append(f"Confirmatory, laid down before the first result: {named['confirmatory']}.")
    if "exploratory" in named:
        parts.append(
            "Exploratory, without a plan, or claim or data not as laid down before: "
            f"{named['exploratory']}."
        )
    if "unknown" in named:
        why = "" if data.history is not None else " (these results come without a ledger)"
        parts.append(f"Not known to be laid down before the first result{why}: {named['unknown']}.")
    return " ".join(parts)
