"""Runs of the second process of a function check, in which results are used like callers do."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairtrial.arena.checks.acceptance import Acceptor, accept_lines
from fairtrial.arena.checks.comparison_rules import SPARE_BYTES
from fairtrial.arena.checks.exit_text import tell_ending
from fairtrial.arena.checks.function_judging import (
    Expectation,
    describe_difference,
    describe_stop,
    has_ended_well,
    name_case,
    reject,
)
from fairtrial.arena.checks.judge_process import count_differing, judge_bounded
from fairtrial.arena.checks.prepared_check import CheckRun
from fairtrial.arena.checks.result_use import (
    HINT,
    UseExpectation,
    compare_use,
    count_steps,
    describe_base,
    group_steps,
)
from fairtrial.arena.checks.value_text import render_call
from fairtrial.arena.checks.worker_reports import (
    WorkerReport,
    compare_outcomes,
    make_rules,
    read_line,
    read_outcome,
    read_report,
)
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.sandbox import Command, Completed

_BASE_BYTES = 64 * 2**20


def _make_command(stage: Stage, check: Check, use: UseExpectation, max_bytes: int) -> Command:
    env = {"PYTHONHASHSEED": str(use.hash_seed)}
    return stage.command(
        ["{python}", str(HARNESS / "caller_worker.py")],
        timeout_s=check.timeout_s,
        stdin=use.job,
        channel_bytes=max_bytes,
        env={name: value for name, value in env.items() if name not in stage.problem.env},
    )


async def prepare_use(
    stage: Stage, expectation: Expectation, numbers: tuple[int, ...], job: bytes
) -> tuple[UseExpectation | None, list[str]]:
    """Have the base's results used; return the expected report, and notes.

    Without a complete report of the base nothing is expected of candidates.

    numbers: the numbers of the calls
    job: the worker's input, in JSON
    """
    from anyio import to_thread

    check = expectation.check
    use = UseExpectation(
        numbers, job, (), check.aliasing == "strict", 1 + secrets.randbelow(2**32 - 1)
    )
    command = _make_command(stage, check, use, _BASE_BYTES)
    done = await stage.run(command)
    report = await to_thread.run_sync(read_report, done.channel, count_steps(use))
    if not (has_ended_well(done) and report.is_complete):
        return None, [
            f"calls of {check.function} were not repeated in a second process, since the base "
            f"{tell_ending(done, command)} there"
        ]

    def describe() -> list[str]:
        cases = Expectation(expectation.label, check, job, ()).read_cases()
        reports = [read_line(line) for line in report.lines]
        return describe_base(check, use, reports, cases, make_rules(check))

    return replace(use, lines=report.lines), await to_thread.run_sync(describe)


async def run_use(
    stage: Stage, expectation: Expectation, use: UseExpectation, acceptor: Acceptor | None
) -> CheckRun:
    """Repeat calls of a candidate in a second process, use their results, and judge them."""
    from anyio import to_thread

    max_bytes = 2 * sum(map(len, use.lines)) + SPARE_BYTES
    command = _make_command(stage, expectation.check, use, max_bytes)
    done = await stage.run(command)
    report = await to_thread.run_sync(read_report, done.channel, count_steps(use))
    steps = Expectation(expectation.label, expectation.check, use.job, use.lines)
    refused: dict[int, str] = {}
    if acceptor is not None and report.lines != use.lines:
        cases = [*steps.read_cases(), *({} for _ in use.numbers), *steps.read_cases()[::-1]]
        lines, refused = await accept_lines(acceptor, cases, use.lines, report.lines)
        report = replace(report, lines=lines)
    size = count_differing(report.lines, use.lines)
    args = (steps, use, report, (done, command), refused)
    rejection = await judge_bounded(steps.label, size, _judge, *args)
    return CheckRun(rejection, report.files, done.wall_s, done.cpu_s, done.peak_rss_mb)


def _judge(
    steps: Expectation,
    use: UseExpectation,
    report: WorkerReport,
    ran: tuple[Completed, Command],
    refused: Mapping[int, str],
) -> Rejection | None:
    done, command = ran
    is_done = has_ended_well(done) and report.is_complete
    if is_done and report.lines == steps.lines:
        return None
    cases, check = steps.read_cases(), steps.check
    if not is_done:
        reason, failure = describe_stop(steps, report, done, command, cases)
        message = f"in a second process: {failure.message.splitlines()[0]}"
        return reject(reason, message, [failure])
    for number, why in refused.items():
        count = len(use.numbers)
        index = number if number < count else 3 * count - 1 - number
        name = name_case(check, use.numbers[index])
        message = (
            f"{name}, in a second process: the result is not accepted by {check.accept}: {why}"
        )
        called = f"called as {render_call(check.function, cases[index])}"
        return reject(Reason.DIFFERENT, message, [Failure(steps.label, name, called)])
    failures = _find_failures(steps, use, report, cases)
    if not failures:
        return None
    first = failures[0]
    return reject(Reason.DIFFERENT, first.message.splitlines()[0], failures)


def _find_failures(
    steps: Expectation,
    use: UseExpectation,
    report: WorkerReport,
    cases: Sequence[Mapping[str, Any]],
) -> list[Failure]:
    check, rules = steps.check, make_rules(steps.check)
    expected = group_steps(use, [read_line(line) for line in steps.lines])
    pairs = zip(report.lines, steps.lines, strict=True)
    actual = group_steps(use, [read_outcome(*pair) for pair in pairs])
    failures = []
    for number, case, base, other in zip(use.numbers, cases, expected, actual, strict=True):
        differences = compare_use(base, other, case, rules)
        if not differences.count:
            continue
        name, difference = name_case(check, number), differences.first[0]
        is_use = compare_outcomes(base.first, other.first, case, rules).count == 0
        how = "used like a caller does" if is_use else "in a second process"
        message = f"{name}, {how}: {describe_difference(difference)}"
        message += f"; {HINT}" if is_use else ""
        message += f"\ncalled as {render_call(check.function, case)}"
        failures.append(Failure(steps.label, name, message, differences.first))
    return failures
