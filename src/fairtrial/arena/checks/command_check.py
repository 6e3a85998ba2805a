"""Checks that run a command of the project, and compare its exit status and its output."""

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
from fairtrial.core import Mistake, StudyError, run_all
from fairtrial.sandbox import Command, Completed, Ending

BASE_RUNS = 3
COMPARED_BYTES = 8 * 1024 * 1024
MAX_LINE_BYTES = 500


@dataclass(frozen=True, slots=True)
class PreparedCommandCheck:
    """A command check with the base's output.

    label: its path in the problem
    check: the check
    expected: the base's output; None if only the exit status counts
    base_s: the wall time of a run on the base
    """

    label: str
    check: Check
    expected: bytes | None
    notes: tuple[str, ...] = ()
    loaded: frozenset[str] = frozenset()
    base_s: float = 0.0

    @property
    def basis(self) -> Basis:
        """Compared results if output is compared, else the exit status only."""
        return Basis.EXIT_STATUS if self.expected is None else Basis.COMPARED

    async def run(self, stage: Stage) -> CheckRun:
        """Run the command on a candidate, and compare the result with the base's."""
        command = plain_command(stage, self.check)
        done = await stage.run(command)
        rejection = judge_ending(self.label, done, command)
        if rejection is None and self.expected is not None:
            rejection = judge_output(self.label, self.expected, done)
        return CheckRun(
            rejection, wall_s=done.wall_s, cpu_s=done.cpu_s, peak_rss_mb=done.peak_rss_mb
        )


def plain_command(stage: Stage, check: Check) -> Command:
    """Return the check's command, with enough of its output captured for the comparison."""
    if check.compare == "output":
        return stage.command(check.command, timeout_s=check.timeout_s, output_bytes=COMPARED_BYTES)
    return stage.command(check.command, timeout_s=check.timeout_s)


async def prepare_command(label: str, check: Check, stages: Stages) -> PreparedCommandCheck:
    """Run the command on the base several times, and return the prepared check.

    Raises `StudyError` if the command fails there (or succeeds, with `fails_on_base`), or if its
    output varies.
    """

    async def run_once() -> tuple[Completed, Command]:
        async with stages() as stage:
            command = plain_command(stage, check)
            return await stage.run(command), command

    runs = await run_all([run_once] * BASE_RUNS)
    for done, command in runs:
        if check.fails_on_base:
            _refuse_passing(label, done, command)
        else:
            _refuse_failing(label, done, command)
    base_s = min(done.wall_s for done, _ in runs)
    if check.compare != "output":
        return PreparedCommandCheck(label, check, None, base_s=base_s)
    expected, *repeated = (done for done, _ in runs)
    if expected.stdout.dropped:
        raise StudyError(
            Mistake(
                (label,),
                f"the base's output is larger than {COMPARED_BYTES // 2**20} MB",
                "let the command print less (a digest of it), or use compare: exit",
            )
        )
    for again in repeated:
        difference = find_difference(_get_stdout(expected), _get_stdout(again))
        if difference is not None:
            raise _varying_error(label, difference)
    return PreparedCommandCheck(label, check, _get_stdout(expected), base_s=base_s)


def _refuse_failing(label: str, done: Completed, command: Command) -> None:
    if done.ending == Ending.EXITED and done.exit_code == 0:
        return
    message = f"on the unchanged base, the command {tell_ending(done, command)}"
    output = in_one_line(tail_of(done))
    message += f": {output}" if output else ""
    hint = tell_raising(label, done.ending)
    if done.ending == Ending.EXITED:
        hint = "it must exit with 0 there; it runs in a copy of your tree, with a clean environment"
    raise StudyError(Mistake((label,), message, hint))


def _refuse_passing(label: str, done: Completed, command: Command) -> None:
    """Raise `StudyError` unless a command that must fail on the base exits with another status."""
    if done.ending == Ending.EXITED and done.exit_code != 0:
        return
    message = f"on the unchanged base, the command {tell_ending(done, command)}"
    hint = "with fails_on_base it must exit with another status than 0 there"
    raise StudyError(Mistake((label, "fails_on_base"), message, hint))


def _varying_error(label: str, difference: Difference) -> StudyError:
    return StudyError(
        Mistake(
            (label,),
            f"the base's output differs from run to run, in {difference.where}: "
            f"{difference.expected!r}, then {difference.actual!r}",
            "let it print nothing that varies (times, addresses, paths), or use compare: exit",
        )
    )


def judge_ending(label: str, done: Completed, command: Command) -> Rejection | None:
    """Return a rejection if the command was stopped, crashed or failed; None if it succeeded."""
    reason = stop_reason(done)
    if reason is None and done.exit_code == 0:
        return None
    ending = f"the command {tell_ending(done, command)}"
    output = tail_of(done)
    failure = Failure(label, "command", f"{ending}\n{output}" if output else ending)
    return Rejection(reason or Reason.DIFFERENT, ending, (failure,))


def judge_output(label: str, expected: bytes, done: Completed) -> Rejection | None:
    """Return a rejection if the output differs from the expected bytes; None if it is equal."""
    if done.stdout.dropped:
        message = f"the output is larger than {COMPARED_BYTES // 2**20} MB"
        return Rejection(Reason.DIFFERENT, message, (Failure(label, "command", message),))
    difference = find_difference(expected, _get_stdout(done))
    if difference is None:
        return None
    message = f"the output is not the base's, from {difference.where} on"
    failure = Failure(label, "command", message, (difference,))
    return Rejection(Reason.DIFFERENT, message, (failure,))


def find_difference(expected: bytes, actual: bytes) -> Difference | None:
    """Return the first line that differs between two outputs; None if they are equal."""
    if expected == actual:
        return None
    lines = zip_longest(expected.splitlines(keepends=True), actual.splitlines(keepends=True))
    for number, (left, right) in enumerate(lines, start=1):
        if left != right:
            start = _count_common(left or b"", right or b"")
            shown = _show(left, start), _show(right, start)
            return Difference(f"line {number} of the output", *shown)
    return None


def _count_common(left: bytes, right: bytes) -> int:
    """Return the length of the common prefix of two lines."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def _show(line: bytes | None, common: int) -> str:
    """Return a line as text; of a long one, the part around the first byte that differs."""
    if line is None:
        return "(the output ends here)"
    if len(line) <= MAX_LINE_BYTES:
        return line.decode("utf-8", "backslashreplace")
    start = max(common - MAX_LINE_BYTES // 2, 0)
    shown = line[start : start + MAX_LINE_BYTES].decode("utf-8", "backslashreplace")
    return f"... {shown} ..." if start else f"{shown} ..."


def _get_stdout(done: Completed) -> bytes:
    return done.stdout.head + done.stdout.tail
