"""Validate a function check's runs on the base: importable, complete, comparable, reproducible.

All functions raise `StudyError` if the base doesn't meet the requirement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairtrial.arena.checks.encoded_values import TAG, find_unplain
from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending, tell_raising
from fairtrial.arena.checks.function_judging import name_case
from fairtrial.arena.checks.import_errors import tell_roots
from fairtrial.arena.checks.recorded_calls import Call
from fairtrial.arena.checks.value_text import render, render_call
from fairtrial.arena.checks.worker_reports import (
    CallOutcome,
    WorkerReport,
    compare_outcomes,
    describe_import_failure,
    is_same_text,
    make_rules,
    read_line,
)
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference
from fairtrial.arena.stage import Stage
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Command, Completed, Ending

_PLAIN_HINT = "give view: `module:function` that converts the result to plain data"
_PART_NAMES = {"result": "its result", "raised": "the exception that it raises"}
_PART_NAMES |= {"output": "its output", "after": "its arguments, after the call"}


def refuse_unimportable(label: str, check: Check, report: WorkerReport, stage: Stage) -> None:
    """Raise if the function can't be imported, with a hint at the import roots."""
    if report.failed:
        message = (
            f"can't be used in the base: {in_one_line(describe_import_failure(report.failed))}"
        )
        hint = tell_roots(check.function, stage)
        raise StudyError(Mistake((label, "function"), f"{check.function} {message}", hint))


def read_base(
    label: str, check: Check, calls: Sequence[Call], ran: tuple[Completed, Command, WorkerReport]
) -> list[CallOutcome]:
    """Return the base's outcome of each case; raise if one is missing or can't be compared."""
    done, command, report = ran
    if done.channel_overflowed:
        size = f"{command.channel_bytes // 2**20} MB"
        message = f"the base's results of all cases together take more than {size}"
        hint = "take fewer cases or smaller inputs, or give a view that makes them smaller"
        raise StudyError(Mistake((label, "function"), message, hint))
    if not report.is_complete or done.ending != Ending.EXITED:
        raise _ending_error(label, check, calls, ran)
    outcomes = [read_line(line) for line in report.lines]
    for number, outcome in enumerate(outcomes):
        _refuse_unplain(label, check, number, outcome)
    return outcomes


def _ending_error(
    label: str, check: Check, calls: Sequence[Call], ran: tuple[Completed, Command, WorkerReport]
) -> StudyError:
    done, command, report = ran
    at = len(report.lines)
    call = f" in {render_call(check.function, calls[at].case)}" if at < len(calls) else ""
    message = f"on the unchanged base, {check.function} {tell_ending(done, command)}{call}"
    output = in_one_line(tail_of(done))
    hint = "it must return or raise on the unchanged base; try it in your tree"
    if done.ending != Ending.EXITED:
        hint = tell_raising(label, done.ending)
    return StudyError(
        Mistake((label, "function"), f"{message}: {output}" if output else message, hint)
    )


def _refuse_unplain(label: str, check: Check, number: int, outcome: CallOutcome) -> None:
    what = name_case(check, number)
    if "unusable" in outcome:
        message = f"{what}: its arguments can't be made in a worker: {outcome['unusable']}"
        raise StudyError(Mistake((label,), message))
    for part, name in _PART_NAMES.items():
        unplain = find_unplain(outcome.get(part))
        if unplain is None:
            continue
        if unplain.get(TAG) == "opaque":
            message = f"{what}: {name} holds {render(unplain)}, whose content can't be read"
        else:
            message = f"{what}: {name} is too large or can't be read: {unplain.get('why')}"
        hint = _PLAIN_HINT if part == "result" else "choose inputs for which it doesn't"
        raise StudyError(
            Mistake((label, "view" if part == "result" else "function"), message, hint)
        )


def settle_order(
    check: Check,
    calls: Sequence[Call],
    first: Sequence[CallOutcome],
    second: Sequence[CallOutcome],
) -> Check:
    """Return the check, without `dict_order` if that alone differs between two runs on the base."""
    if check.dict_order == "any":
        return check
    loose = replace(check, dict_order="any")
    for call, one, other in zip(calls, first, second, strict=True):
        if is_same_text(one, other):
            continue
        if compare_outcomes(one, other, call.case, make_rules(check)).count:
            is_order = compare_outcomes(one, other, call.case, make_rules(loose)).count == 0
            return loose if is_order else check
    return check


def refuse_varying(
    label: str,
    check: Check,
    calls: Sequence[Call],
    first: Sequence[CallOutcome],
    second: Sequence[CallOutcome],
) -> None:
    """Raise if two runs on the base have different outcomes."""
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if is_same_text(one, other):
            continue
        differences = compare_outcomes(one, other, calls[number].case, make_rules(check))
        if differences.count:
            place = differences.first[0]
            raise StudyError(
                Mistake(
                    (label, "function"),
                    f"{name_case(check, number)} isn't the same every time on the base: "
                    f"{place.where} is {place.expected}, then {place.actual}",
                    "it must depend on its arguments alone (a seed may be one of them), not on the "
                    "time, addresses, or the order of a set; a view: can leave out what varies "
                    "(builtins:sorted)",
                )
            )


def merge_recorded(
    label: str, check: Check, calls: Sequence[Call], outcomes: Sequence[CallOutcome]
) -> list[CallOutcome]:
    """Return recorded outcomes, completed by the base's; raise if the base's differ from them."""
    merged: list[CallOutcome] = []
    for number, (call, outcome) in enumerate(zip(calls, outcomes, strict=True)):
        if not call.expected:
            merged.append(outcome)
            continue
        ends = {part: call.expected[part] for part in ("result", "raised") if part in call.expected}
        rest = {
            part: outcome[part] for part in ("output", "after")
        }  # used if they weren't recorded
        expected: CallOutcome = {"case": number, **ends, **rest, **call.expected}
        differences = compare_outcomes(expected, outcome, call.case, make_rules(check))
        if differences.count:
            raise _disagreement_error(label, check, number, call, differences.first[0])
        merged.append(expected)
    return merged


def _disagreement_error(
    label: str, check: Check, number: int, call: Call, place: Difference
) -> StudyError:
    message = (
        f"{check.calls}, call {number + 1}, {render_call(check.function, call.case)}: "
        f"{place.where} is recorded as {place.expected}, but the base gives {place.actual}"
    )
    return StudyError(Mistake((label, "calls"), message, "record it again, or fix the base"))
