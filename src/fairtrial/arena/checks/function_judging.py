"""A candidate's calls, held against what is expected of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.arena.checks.exit_text import stop_reason, tail_of, tell_ending
from fairtrial.arena.checks.value_text import render_call
from fairtrial.arena.checks.worker_reports import Report, compare_outcomes, read_line, spell_failed
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.sandbox import Command, Completed

MOST_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a function is called with, and what must come of it.

    label: the check's place in the problem
    check: the check
    job: what a worker reads, the inputs among it
    lines: what a worker should report, call by call
    """

    label: str
    check: Check
    job: bytes = field(repr=False)
    lines: tuple[bytes, ...] = field(repr=False)

    def read_cases(self) -> Sequence[Mapping[str, Any]]:
        """The inputs; kept as text, since they are needed only when something is wrong."""
        cases: Sequence[Mapping[str, Any]] = json.loads(self.job)["cases"]
        return cases


def judge_calls(
    wanted: Expectation, report: Report, done: Completed, command: Command
) -> Rejection | None:
    """Why a candidate is out; None if every call gives what it should, and nothing is missing."""
    is_done = stop_reason(done) is None and done.exit_code == 0 and not done.channel_overflowed
    if is_done and report.is_complete and report.lines == wanted.lines:
        return None  # to the letter
    cases = wanted.read_cases()
    failures = _find_failures(wanted, report, cases)
    function, total = wanted.check.function, len(cases)
    if not is_done or not report.is_complete:
        stopped = _tell_stop(wanted, report, done, command, cases)
        return _reject(stopped[0], stopped[1].message.splitlines()[0], [stopped[1], *failures])
    if not failures:
        return None
    first = failures[0]
    place = first.differences[0]
    return _reject(
        Reason.DIFFERENT,
        f"{len(failures)} of {total} calls of {function} differ from the base; {first.what}: "
        f"{place.where} should be {place.expected}, is {place.actual}",
        failures,
    )


def _reject(reason: Reason, message: str, failures: Sequence[Failure]) -> Rejection:
    more = max(0, len(failures) - MOST_FAILURES)
    return Rejection(reason, message, tuple(failures[:MOST_FAILURES]), more)


def _find_failures(
    wanted: Expectation, report: Report, cases: Sequence[Mapping[str, Any]]
) -> list[Failure]:
    failures = []
    for number, (line, expected) in enumerate(zip(report.lines, wanted.lines, strict=False)):
        if line == expected:
            continue
        case, actual = cases[number], read_line(line)
        differences = compare_outcomes(read_line(expected), actual, case, wanted.check)
        if differences.count:
            message = f"called as {render_call(wanted.check.function, case)}"
            if differences.count > len(differences.first):
                message += f"; {differences.count:,} differences in all"
            trace = actual.get("traceback")
            message += f"\n{trace}" if trace and isinstance(trace, str) else ""
            failures.append(
                Failure(wanted.label, name_case(wanted.check, number), message, differences.first)
            )
    return failures


def name_case(check: Check, number: int) -> str:
    """``toposort:sort, case 7``; people count from 1."""
    return f"{check.function}, case {number + 1}"


def _tell_stop(
    wanted: Expectation,
    report: Report,
    done: Completed,
    command: Command,
    cases: Sequence[Mapping[str, Any]],
) -> tuple[Reason, Failure]:
    """Why there is no complete report, and in which call it came to that."""
    check, at = wanted.check, len(report.lines)
    reason = stop_reason(done)
    if reason is None and report.failed:
        message = f"{check.function} can't be used: {spell_failed(report.failed)}"
        return Reason.CRASH, Failure(wanted.label, check.function, message)
    if reason is None and (done.channel_overflowed or report.stray):
        kind = "more than the results could take" if done.channel_overflowed else "something else"
        message = f"{kind} was reported in the place of results"
        return Reason.MISSING, Failure(wanted.label, name_case(check, at), message)
    is_inside = at < len(cases)
    what = name_case(check, at) if is_inside else check.function
    message = f"{what}: the process {tell_ending(done, command)}"
    message += " before it was done" if reason is None else ""
    if is_inside:
        message += f"\ncalled as {render_call(check.function, cases[at])}"
    said = tail_of(done)
    message += f"\n{said}" if said else ""
    return reason or Reason.CRASH, Failure(wanted.label, what, message)
