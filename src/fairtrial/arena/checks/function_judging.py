"""Compare a candidate's calls with the expected outcomes, and describe the failures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fairtrial.arena.checks.exit_text import stop_reason, tail_of, tell_ending
from fairtrial.arena.checks.value_comparison import LAYOUT, NOTHING, ORDER, Differences
from fairtrial.arena.checks.value_text import render, render_call
from fairtrial.arena.checks.worker_reports import (
    WorkerReport,
    compare_outcomes,
    describe_import_failure,
    make_rules,
    read_line,
    read_outcome,
)
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference, Failure, Reason, Rejection
from fairtrial.sandbox import Command, Completed

MAX_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Expectation:
    """The inputs of a function check, and the expected outcomes.

    label: the check's path in the problem
    check: the check
    job: the input of a worker in JSON, with the inputs of all calls
    lines: the expected report of a worker, one line per call
    """

    label: str
    check: Check
    job: bytes = field(repr=False)
    lines: tuple[bytes, ...] = field(repr=False)

    def read_cases(self) -> Sequence[Mapping[str, Any]]:
        """Return the inputs, parsed from `job`: they are needed only to describe failures."""
        cases: Sequence[Mapping[str, Any]] = json.loads(self.job)["cases"]
        return cases


def judge_calls(
    expectation: Expectation,
    report: WorkerReport,
    done: Completed,
    command: Command,
    refused: Mapping[int, str] = MappingProxyType({}),
) -> Rejection | None:
    """Return why a candidate is rejected; None if all calls have the expected outcomes.

    refused: why results are not accepted, by the number of their call
    """
    is_done = has_ended_well(done)
    if is_done and report.is_complete and report.lines == expectation.lines:
        return None  # equal byte by byte
    cases = expectation.read_cases()
    failures = _find_failures(expectation, report, cases, refused)
    function, total = expectation.check.function, len(cases)
    if not is_done or not report.is_complete:
        reason, failure = describe_stop(expectation, report, done, command, cases)
        return reject(reason, failure.message.splitlines()[0], [failure, *failures])
    if not failures:
        return None
    first = failures[0]
    difference = first.differences[0]
    if refused:
        number = min(refused)
        message = (
            f"{len(refused)} of {total} results of {function} are not accepted by "
            f"{expectation.check.accept}; {name_case(expectation.check, number)}: "
            f"{refused[number]}"
        )
        return reject(Reason.DIFFERENT, message, failures)
    return reject(
        Reason.DIFFERENT,
        f"{len(failures)} of {total} calls of {function} differ from the base; {first.what}: "
        f"{describe_difference(difference)}",
        failures,
    )


def judge_changes(
    expectation: Expectation, report: WorkerReport, allowed: Set[str]
) -> Rejection | None:
    """Return a rejection if a candidate leaves settings of its process changed.

    allowed: settings that the base changes, too
    """
    changes = sorted(report.changes - allowed)[:MAX_FAILURES]
    if not changes or expectation.check.process_state == "any":
        return None
    check = expectation.check
    message = (
        f"{check.function} changes what all code of its process shares, and the base doesn't: "
        f"{', '.join(changes)}; `process_state: any` in this check allows it"
    )
    return reject(Reason.DIFFERENT, message, [Failure(expectation.label, check.function, message)])


def describe_difference(difference: Difference) -> str:
    """Return a difference in one sentence, with the setting that allows it, if there is one."""
    text = f"{difference.where} should be {difference.expected}, is {difference.actual}"
    hints = [hint for start, hint in _HINTS.items() if difference.where.startswith(start)]
    if difference.expected == NOTHING and _ENDS_IN_ATTRIBUTE.search(difference.where):
        hints.append("`attributes: any` in this check allows objects to have more")
    return "; ".join((text, *hints))


_ENDS_IN_ATTRIBUTE = re.compile(r"\.[^.\[\]]+$")
_HINTS = {
    ORDER: "`dict_order: any` in this check allows another order",
    LAYOUT: "`array_layout: any` in this check allows another layout",
}


def has_ended_well(done: Completed) -> bool:
    """Return whether a worker exited with 0, and didn't report too much."""
    return stop_reason(done) is None and done.exit_code == 0 and not done.channel_overflowed


def reject(reason: Reason, message: str, failures: Sequence[Failure]) -> Rejection:
    """Return a rejection with the first failures."""
    more = max(0, len(failures) - MAX_FAILURES)
    return Rejection(reason, message, tuple(failures[:MAX_FAILURES]), more)


def _find_failures(
    expectation: Expectation,
    report: WorkerReport,
    cases: Sequence[Mapping[str, Any]],
    refused: Mapping[int, str],
) -> list[Failure]:
    failures = []
    rules = make_rules(expectation.check)
    for number, (line, expected) in enumerate(zip(report.lines, expectation.lines, strict=False)):
        if line == expected:
            continue
        case, actual = cases[number], read_outcome(line, expected)
        differences = compare_outcomes(read_line(expected), actual, case, rules)
        if number in refused:
            differences = _refuse_result(actual, expectation.check, refused[number])
        if differences.count:
            message = f"called as {render_call(expectation.check.function, case)}"
            if differences.count > len(differences.first):
                message += f"; {differences.count:,} differences in all"
            trace = actual.get("traceback")
            message += f"\n{trace}" if trace and isinstance(trace, str) else ""
            failures.append(
                Failure(
                    expectation.label,
                    name_case(expectation.check, number),
                    message,
                    differences.first,
                )
            )
    return failures


def _refuse_result(outcome: Mapping[str, Any], check: Check, reason: str) -> Differences:
    wanted = f"one that {check.accept} accepts (it says: {reason})"
    return Differences((Difference("result", wanted, render(outcome["result"])),), 1)


def name_case(check: Check, number: int) -> str:
    """Return the name of a case in messages, counted from 1: ``toposort:sort, case 7``."""
    return f"{check.function}, case {number + 1}"


def describe_stop(
    expectation: Expectation,
    report: WorkerReport,
    done: Completed,
    command: Command,
    cases: Sequence[Mapping[str, Any]],
) -> tuple[Reason, Failure]:
    """Return why there is no complete report, and the failure with the call where it stopped."""
    check, at = expectation.check, len(report.lines)
    reason = stop_reason(done)
    if reason is None and report.failed:
        message = f"{check.function} can't be used: {describe_import_failure(report.failed)}"
        return Reason.CRASH, Failure(expectation.label, check.function, message)
    if reason is None and (done.channel_overflowed or report.stray):
        kind = "more than the results could take" if done.channel_overflowed else "something else"
        message = f"{kind} was reported instead of results"
        return Reason.MISSING, Failure(expectation.label, name_case(check, at), message)
    is_inside = at < len(cases)
    what = name_case(check, at) if is_inside else check.function
    message = f"{what}: the process {tell_ending(done, command)}"
    message += " before it had finished" if reason is None else ""
    if is_inside:
        message += f"\ncalled as {render_call(check.function, cases[at])}"
    output = tail_of(done)
    message += f"\n{output}" if output else ""
    return reason or Reason.CRASH, Failure(expectation.label, what, message)
