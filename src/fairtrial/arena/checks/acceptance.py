"""Accept functions: judge results by a function of the problem, in a trusted process on the base.

For problems with several right answers. What a function raises, prints or does to its arguments is
still compared with the base's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from fairtrial.arena.build import build_base
from fairtrial.arena.checks.encoded_values import Encoded
from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.checks.worker_reports import CallOutcome, read_line, read_outcome
from fairtrial.arena.model.problem import Check
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Completed, wire

CHANNEL_BYTES = 16 * 2**20
_HINT = "it is called as accept(args, kwargs, result), and returns True or the reason why not"


@dataclass(frozen=True, slots=True)
class ResultToJudge:
    """One result of a call.

    case: the arguments of the call, encoded
    result: the result, encoded
    """

    case: Mapping[str, Encoded]
    result: Encoded


@dataclass(frozen=True, slots=True)
class Acceptor:
    """Judges results by the accept function of a check.

    label: the check's path in the problem
    check: the check
    stage: a slot with the base and the files that candidates don't see
    """

    label: str
    check: Check
    stage: Stage = field(repr=False)

    async def judge(self, results: Sequence[ResultToJudge]) -> list[str]:
        """Return for each result why it is not accepted; an empty text if it is.

        Raises `StudyError` if the accept function fails: no candidate is to blame for that.
        """
        if not results:
            return []
        file, _, function = self.check.accept.rpartition(":")
        cases = [{**item.case, "result": item.result} for item in results]
        job = {"file": str(self.stage.seen / PurePosixPath(file)), "function": function}
        command = self.stage.command(
            ["{python}", str(HARNESS / "acceptor.py")],
            timeout_s=self.check.timeout_s,
            stdin=json.dumps({**job, "cases": cases}).encode("ascii"),
            channel_bytes=CHANNEL_BYTES,
        )
        done = await self.stage.run(command)
        answers = [read_line(line) for line in done.channel.splitlines()]
        if len(answers) == len(cases) and all("accepted" in answer for answer in answers):
            return [
                "" if answer["accepted"] is True else str(answer["accepted"]) for answer in answers
            ]
        raise self._make_error(answers, done, tell_ending(done, command))

    def _make_error(
        self, answers: Sequence[Mapping[str, Any]], done: Completed, ending: str
    ) -> StudyError:
        closing = answers[-1] if answers else {}
        if "mistake" in closing:
            trace = in_one_line(str(closing.get("traceback", "")))
            message = f"{closing['mistake']}" + (f" ({trace})" if trace else "")
        else:
            output = in_one_line(tail_of(done))
            message = f"the process that judges results {ending}" + (
                f": {output}" if output else ""
            )
        place = (self.label, "accept")
        return StudyError(Mistake(place, f"{self.check.accept}: {message}", _HINT))

    async def require_accepted(self, outcomes: Sequence[CallOutcome], cases: Sequence[Any]) -> None:
        """Raise `StudyError` if a result of the base is not accepted."""
        numbers = [number for number, outcome in enumerate(outcomes) if "result" in outcome]
        reasons = await self.judge(
            [ResultToJudge(cases[number], outcomes[number]["result"]) for number in numbers]
        )
        for number, reason in zip(numbers, reasons, strict=True):
            if reason:
                message = (
                    f"{self.check.accept} doesn't accept the base's own result of case "
                    f"{number + 1}: {reason}"
                )
                raise StudyError(Mistake((self.label, "accept"), message, "fix it, or the base"))


def with_result(outcome: CallOutcome, expected: CallOutcome) -> CallOutcome:
    """Return an outcome with the result of another one, if both have a result."""
    if "result" in outcome and "result" in expected:
        return {**outcome, "result": expected["result"]}
    return outcome


async def accept_lines(
    acceptor: Acceptor,
    cases: Sequence[Mapping[str, Any]],
    expected: Sequence[bytes],
    lines: Sequence[bytes],
) -> tuple[tuple[bytes, ...], dict[int, str]]:
    """Judge the results of a candidate that differ from the base's.

    expected: the lines of the base's report, one for each call
    lines: those of the candidate's, as many or fewer

    Returns the candidate's lines, with accepted results replaced by the base's, so that the rest of
    each outcome can be compared; and the reasons against the others, by the number of their call.
    """
    differing: dict[int, CallOutcome] = {}
    for number, (line, wanted) in enumerate(zip(lines, expected, strict=False)):
        if line != wanted:
            outcome = read_outcome(line, wanted)
            if "result" in outcome and "result" in read_line(wanted):
                differing[number] = outcome
    reasons = await acceptor.judge(
        [ResultToJudge(cases[number], outcome["result"]) for number, outcome in differing.items()]
    )
    changed, refused = list(lines), {}
    for (number, outcome), reason in zip(differing.items(), reasons, strict=True):
        if reason:
            refused[number] = reason
        else:
            same = with_result(outcome, read_line(expected[number]))
            changed[number] = wire.dump_encoded(same).encode("ascii")
    return tuple(changed), refused


@asynccontextmanager
async def open_accept_stage(resources: ArenaResources) -> AsyncIterator[Stage | None]:
    """Lease a slot for accept functions for the duration of the block; None if there are none.

    It is read-only, and several candidates' results may be judged on it at the same time.
    """
    if not any(check.accept for check in resources.problem.check):
        yield None
        return
    await resources.pool.grow(1)
    async with resources.pool.acquire(trusted=True) as slot:
        stage = resources.stage(slot, may_be_warm=False)
        async with resources.lock.shared():
            await build_base(stage, slot)
        yield replace(stage, is_writable=False)
