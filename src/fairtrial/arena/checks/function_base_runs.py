"""What the base itself must do before anybody is held to it; a StudyError if it doesn't."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending, tell_raising
from fairtrial.arena.checks.function_judging import name_case
from fairtrial.arena.checks.import_errors import tell_roots
from fairtrial.arena.checks.recorded_calls import Call
from fairtrial.arena.checks.value_text import render, render_call
from fairtrial.arena.checks.worker_reports import (
    Outcome,
    Report,
    compare_outcomes,
    read_line,
    spell_failed,
)
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference
from fairtrial.arena.stage import Stage
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import TAG, Command, Completed, Ending

_PLAIN_HINT = "give view: `module:function` that makes plain data of the result"
_WHERE = {"result": "its result", "raised": "the exception that it raises"}
_WHERE |= {"output": "its output", "after": "its arguments, after the call"}


def refuse_unimportable(label: str, check: Check, report: Report, stage: Stage) -> None:
    """Refuse a function that isn't there, and say where it was looked for."""
    if report.failed:
        message = f"can't be used in the base: {in_one_line(spell_failed(report.failed))}"
        hint = tell_roots(check.function, stage)
        raise StudyError(Mistake((label, "function"), f"{check.function} {message}", hint))


def read_base(
    label: str, check: Check, calls: Sequence[Call], ran: tuple[Completed, Command, Report]
) -> list[Outcome]:
    """The base's outcomes, one for each case, all of them such as can be compared."""
    done, command, report = ran
    if done.channel_overflowed:
        size = f"{command.channel_bytes // 2**20} MB"
        message = f"the base's results of all cases together take more than {size}"
        hint = "take fewer cases or smaller inputs, or give a view that makes them smaller"
        raise StudyError(Mistake((label, "function"), message, hint))
    if not report.is_complete or done.ending != Ending.EXITED:
        raise _refuse_ending(label, check, calls, ran)
    outcomes = [read_line(line) for line in report.lines]
    for number, outcome in enumerate(outcomes):
        _refuse_unplain(label, check, number, outcome)
    return outcomes


def _refuse_ending(
    label: str, check: Check, calls: Sequence[Call], ran: tuple[Completed, Command, Report]
) -> StudyError:
    done, command, report = ran
    at = len(report.lines)
    call = f" in {render_call(check.function, calls[at].case)}" if at < len(calls) else ""
    message = f"on the unchanged base, {check.function} {tell_ending(done, command)}{call}"
    said = in_one_line(tail_of(done))
    hint = "it must return or raise on the unchanged base; try it in your tree"
    if done.ending != Ending.EXITED:
        hint = tell_raising(label, done.ending)
    return StudyError(Mistake((label, "function"), f"{message}: {said}" if said else message, hint))


def _refuse_unplain(label: str, check: Check, number: int, outcome: Outcome) -> None:
    what = name_case(check, number)
    if "unusable" in outcome:
        message = f"{what}: its arguments can't be used: {outcome['unusable']}"
        raise StudyError(Mistake((label,), message))
    for part, name in _WHERE.items():
        found = find_unplain(outcome.get(part))
        if found is None:
            continue
        if found.get(TAG) == "opaque":
            message = f"{what}: {name} holds {render(found)}, which is not plain data"
        else:
            message = f"{what}: {name} is too large or can't be read: {found.get('why')}"
        hint = _PLAIN_HINT if part == "result" else "choose inputs for which it doesn't"
        raise StudyError(
            Mistake((label, "view" if part == "result" else "function"), message, hint)
        )


def refuse_varying(
    label: str,
    check: Check,
    calls: Sequence[Call],
    first: Sequence[Outcome],
    second: Sequence[Outcome],
) -> None:
    """Refuse a function whose results aren't the same every time."""
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        found = compare_outcomes(one, other, calls[number].case, check)
        if found.count:
            place = found.first[0]
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


def agree(
    label: str, check: Check, calls: Sequence[Call], outcomes: Sequence[Outcome]
) -> list[Outcome]:
    """What was recorded, completed by what the base does; refuses a base that does otherwise."""
    agreed: list[Outcome] = []
    for number, (call, outcome) in enumerate(zip(calls, outcomes, strict=True)):
        if not call.expected:
            agreed.append(outcome)
            continue
        ends = {part: call.expected[part] for part in ("result", "raised") if part in call.expected}
        rest = {part: outcome[part] for part in ("output", "after")}  # if they weren't recorded
        wanted: Outcome = {"case": number, **ends, **rest, **call.expected}
        found = compare_outcomes(wanted, outcome, call.case, check)
        if found.count:
            raise _refuse_disagreeing(label, check, number, call, found.first[0])
        agreed.append(wanted)
    return agreed


def _refuse_disagreeing(
    label: str, check: Check, number: int, call: Call, place: Difference
) -> StudyError:
    message = (
        f"{check.calls}, call {number + 1}, {render_call(check.function, call.case)}: "
        f"{place.where} is recorded as {place.expected}, but the base gives {place.actual}"
    )
    return StudyError(Mistake((label, "calls"), message, "record it again, or mend the base"))
