"""Checks that run a command of the project's: its exit status, or its output as well."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from fairtrial.arena.checks.exit_text import (
    in_one_line,
    stop_reason,
    tail_of,
    tell_ending,
    tell_raising,
)
from fairtrial.arena.checks.prepared_check import CheckRun, Stages
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Basis, Difference, Failure, Reason, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.task_groups import run_all
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Command, Completed, Ending

BASE_RUNS = 3
COMPARED_BYTES = 8 * 1024 * 1024
LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class CommandTrial:
    """A check that a command still does what it does on the base.

    label: its place in the problem
    check: the check
    expected: the base's output; None if only the exit status counts
    """

    label: str
    check: Check
    expected: bytes | None
    notes: tuple[str, ...] = ()
    loaded: frozenset[str] = frozenset()

    @property
    def basis(self) -> Basis:
        """Output is compared by us; an exit status is the command's own word."""
        return Basis.EXIT_STATUS if self.expected is None else Basis.COMPARED

    async def run(self, stage: Stage) -> CheckRun:
        """Hold a candidate to what the base does."""
        command = plain_command(stage, self.check)
        done = await stage.run(command)
        rejection = judge_ending(self.label, done, command)
        if rejection is None and self.expected is not None:
            rejection = judge_output(self.label, self.expected, done)
        return CheckRun(
            rejection, wall_s=done.wall_s, cpu_s=done.cpu_s, peak_rss_mb=done.peak_rss_mb
        )


def plain_command(stage: Stage, check: Check) -> Command:
    """The check's command, with as much of its output kept as is compared."""
    if check.compare == "output":
        return stage.command(check.command, timeout_s=check.timeout_s, output_bytes=COMPARED_BYTES)
    return stage.command(check.command, timeout_s=check.timeout_s)


async def prepare_command(label: str, check: Check, stages: Stages) -> CommandTrial:
    """Run the base several times; refuse a command that fails there or says something new."""

    async def run_once() -> tuple[Completed, Command]:
        async with stages() as stage:
            command = plain_command(stage, check)
            return await stage.run(command), command

    runs = await run_all([run_once] * BASE_RUNS)
    for done, command in runs:
        _refuse_failing(label, done, command)
    if check.compare != "output":
        return CommandTrial(label, check, None)
    expected, *others = (done for done, _ in runs)
    if expected.stdout.dropped:
        raise StudyError(
            Mistake(
                (label,),
                f"the base's output is larger than {COMPARED_BYTES // 2**20} MB",
                "let the command print less (a digest of it), or use compare: exit",
            )
        )
    for other in others:
        difference = find_difference(_bytes_of(expected), _bytes_of(other))
        if difference is not None:
            raise _refuse_varying(label, difference)
    return CommandTrial(label, check, _bytes_of(expected))


def _refuse_failing(label: str, done: Completed, command: Command) -> None:
    if done.ending == Ending.EXITED and done.exit_code == 0:
        return
    message = f"on the unchanged base, the command {tell_ending(done, command)}"
    said = in_one_line(tail_of(done))
    message += f": {said}" if said else ""
    hint = tell_raising(label, done.ending)
    if done.ending == Ending.EXITED:
        hint = "it must exit with 0 there; it runs in a copy of your tree, with a clean environment"
    raise StudyError(Mistake((label,), message, hint))


def _refuse_varying(label: str, difference: Difference) -> StudyError:
    return StudyError(
        Mistake(
            (label,),
            f"the base's output differs from run to run, in {difference.where}: "
            f"{difference.expected!r}, then {difference.actual!r}",
            "let it print nothing that varies (times, addresses, paths), or use compare: exit",
        )
    )


def judge_ending(label: str, done: Completed, command: Command) -> Rejection | None:
    """Whether it came to its end by itself, and well."""
    reason = stop_reason(done)
    if reason is None and done.exit_code == 0:
        return None
    ending = f"the command {tell_ending(done, command)}"
    said = tail_of(done)
    failure = Failure(label, "command", f"{ending}\n{said}" if said else ending)
    return Rejection(reason or Reason.DIFFERENT, ending, (failure,))


def judge_output(label: str, expected: bytes, done: Completed) -> Rejection | None:
    """Whether it printed the same, byte by byte."""
    if done.stdout.dropped:
        message = f"the output is larger than {COMPARED_BYTES // 2**20} MB"
        return Rejection(Reason.DIFFERENT, message, (Failure(label, "command", message),))
    difference = find_difference(expected, _bytes_of(done))
    if difference is None:
        return None
    message = f"the output is not the base's, from {difference.where} on"
    failure = Failure(label, "command", message, (difference,))
    return Rejection(Reason.DIFFERENT, message, (failure,))


def find_difference(expected: bytes, actual: bytes) -> Difference | None:
    """The first line in which two outputs differ; None if they are the same."""
    if expected == actual:
        return None
    lines = zip_longest(expected.splitlines(keepends=True), actual.splitlines(keepends=True))
    for number, (left, right) in enumerate(lines, start=1):
        if left != right:
            same = _count_same(left or b"", right or b"")
            return Difference(f"line {number} of the output", _show(left, same), _show(right, same))
    return None


def _count_same(left: bytes, right: bytes) -> int:
    """How many bytes two lines have in common at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))


def _show(line: bytes | None, same: int) -> str:
    """A line, or of a long one what is around the first byte that differs."""
    if line is None:
        return "(the output ends here)"
    if len(line) <= LONGEST_LINE:
        return line.decode("utf-8", "backslashreplace")
    start = max(same - LONGEST_LINE // 2, 0)
    shown = line[start : start + LONGEST_LINE].decode("utf-8", "backslashreplace")
    return f"... {shown} ..." if start else f"{shown} ..."


def _bytes_of(done: Completed) -> bytes:
    return done.stdout.head + done.stdout.tail
