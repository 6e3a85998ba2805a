"""Checks that call a function: the base and the candidate get the same arguments.

Three processes, none of which trusts another: a maker (the base, with the problem's input makers)
makes the inputs; a worker on the base gives what is expected; a worker on the candidate gets the
inputs and nothing else. Inputs and expectations are held here.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.checks.function_base_runs import (
    agree,
    read_base,
    refuse_unimportable,
    refuse_varying,
)
from fairtrial.arena.checks.function_judging import Expectation, judge_calls
from fairtrial.arena.checks.prepared_check import CheckRun, Stages
from fairtrial.arena.checks.recorded_calls import Call, read_calls
from fairtrial.arena.checks.worker_reports import Outcome, Report, read_line, read_report
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Basis, Rejection
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.task_groups import run_all
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Caps, Command, Completed, Ending, dump

CHANNEL_BYTES = 64 * 2**20
"""How much the inputs of all cases may take, and the base's results."""
OUTPUT_BYTES = 2**20
"""How much one call may print."""
SEEDED = "were made with seed"
"""In a note on inputs that only matters to those who want to have them again."""
_SPARE_BYTES = 4 * 2**20
_OTHER_HASHES = {"PYTHONHASHSEED": "1"}


@dataclass(frozen=True, slots=True)
class FunctionTrial:
    """A check that a function still gives what it gives on the base.

    wanted: the inputs, and what must come of them
    notes: what people should know of the base's runs
    loaded: files that the base's runs imported
    seed: what the inputs were made with; None if they were recorded
    """

    wanted: Expectation
    notes: tuple[str, ...]
    loaded: frozenset[str]
    seed: str | None = None
    basis: Basis = Basis.COMPARED

    @property
    def label(self) -> str:
        """The check's place in the problem."""
        return self.wanted.label

    async def run(self, stage: Stage) -> CheckRun:
        """Hold a candidate to what is expected."""
        from anyio import to_thread

        wanted = self.wanted
        # A candidate may be wrong at length, but not without end.
        most = 2 * sum(map(len, wanted.lines)) + _SPARE_BYTES
        command = call_command(stage, wanted.check, wanted.job, most)
        done = await stage.run(command)

        def judge() -> tuple[Rejection | None, Report]:
            report = read_report(done.channel, len(wanted.lines))
            return judge_calls(wanted, report, done, command), report

        rejection, report = await to_thread.run_sync(judge)
        return CheckRun(rejection, report.files, done.wall_s, done.cpu_s, done.peak_rss_mb)


def call_command(
    stage: Stage, check: Check, job: bytes, most: int, env: Mapping[str, str] | None = None
) -> Command:
    """The worker, on what is in the slot."""
    return stage.command(
        ["{python}", str(HARNESS / "call_worker.py")],
        timeout_s=check.timeout_s,
        stdin=job,
        channel_bytes=most,
        env=env,
    )


async def prepare_calls(
    label: str, check: Check, stages: Stages, *, seed: str | None = None
) -> FunctionTrial:
    """Get the inputs and what the base gives for them.

    Refuses a function that isn't the same every time, that gives what can't be compared, or that
    doesn't give what was recorded.

    seed: what inputs are made with; a secret one if not given
    """
    from anyio import to_thread

    seed = None if check.calls else seed or secrets.token_hex(16)
    if seed is None:
        calls = await _read_recorded(label, check, stages)
    else:
        calls = await make_inputs(label, check, stages, seed)
    job = _write_job(check, calls)

    async def run_base(env: Mapping[str, str]) -> tuple[Completed, Command, Stage]:
        async with stages() as stage:
            given = {name: value for name, value in env.items() if name not in stage.problem.env}
            command = call_command(stage, check, job, CHANNEL_BYTES, given)
            return await stage.run(command), command, stage

    # What depends on the order of a set would otherwise look the same every time.
    ran = await run_all([lambda: run_base({}), lambda: run_base(_OTHER_HASHES)])

    def settle() -> FunctionTrial:
        reports = [read_report(done.channel, len(calls)) for done, _, _ in ran]
        for report, (_, _, stage) in zip(reports, ran, strict=True):
            refuse_unimportable(label, check, report, stage)
        outcomes = [
            read_base(label, check, calls, (done, command, report))
            for (done, command, _), report in zip(ran, reports, strict=True)
        ]
        refuse_varying(label, check, calls, *outcomes)
        expected = agree(label, check, calls, outcomes[0])
        lines = tuple(dump(outcome).encode("ascii") for outcome in expected)
        notes = tuple(f"{label}: {note}" for note in _tell_notes(check, expected, seed))
        loaded = reports[0].files | reports[1].files
        return FunctionTrial(Expectation(label, check, job, lines), notes, loaded, seed)

    return await to_thread.run_sync(settle)  # results may be large


def _write_job(check: Check, calls: Sequence[Call]) -> bytes:
    job = {"function": check.function, "view": check.view, "caps": list(Caps())}
    cases = [call.case for call in calls]
    return dump({**job, "output_bytes": OUTPUT_BYTES, "cases": cases}).encode("ascii")


def _tell_notes(check: Check, outcomes: Sequence[Outcome], seed: str | None) -> list[str]:
    notes = []
    if seed is not None:
        notes.append(f"{len(outcomes)} inputs of {check.function} {SEEDED} {seed}")
    raised = {str(outcome["raised"]["type"]) for outcome in outcomes if "raised" in outcome}
    if all("raised" in outcome for outcome in outcomes):
        names = ", ".join(sorted(raised))
        notes.append(f"every call of {check.function} raises on the base ({names}): as intended?")
    return notes


async def _read_recorded(label: str, check: Check, stages: Stages) -> list[Call]:
    """The calls of a file, as the snapshot has it."""
    place = (label, "calls")
    async with stages(trusted=True) as stage:
        path = stage.slot / check.calls
        if not path.resolve().is_relative_to(stage.slot.resolve()):
            raise StudyError(Mistake(place, f"{check.calls} leads out of the repository"))
        try:
            content = path.read_bytes()
        except OSError as error:
            message = f"can't read {check.calls} in the copy of your tree: {error.strerror}"
            hint = "it must be a file of the repository that git doesn't ignore"
            raise StudyError(Mistake(place, message, hint)) from None
    return read_calls(content, place, check.calls)


async def make_inputs(label: str, check: Check, stages: Stages, seed: str) -> list[Call]:
    """The inputs of all cases, made by the problem's own maker in a process with the base."""
    file, _, function = check.inputs.rpartition(":")
    async with stages(trusted=True) as stage:
        job = {
            "file": str(stage.seen / PurePosixPath(file)),
            "function": function,
            "seed": seed,
            "cases": check.cases,
            "caps": list(Caps()),
        }
        command = stage.command(
            ["{python}", str(HARNESS / "input_maker.py")],
            timeout_s=check.timeout_s,
            stdin=dump(job).encode("ascii"),
            channel_bytes=CHANNEL_BYTES,
        )
        done = await stage.run(command)
    return _read_inputs(label, check, done, command)


def _read_inputs(label: str, check: Check, done: Completed, command: Command) -> list[Call]:
    *lines, closing = [read_line(line) for line in done.channel.splitlines()] or [{}]
    is_done = done.ending == Ending.EXITED and not done.channel_overflowed
    if is_done and closing.get("done") == check.cases == len(lines):
        cases = [{"args": line["args"], "kwargs": line["kwargs"]} for line in lines]
        return [Call(case) for case in cases]
    if "mistake" in closing:
        message = f"input {len(lines) + 1}: {closing['mistake']}"
        trace = in_one_line(str(closing.get("traceback", "")))
        message += f" ({trace})" if trace else ""
    elif done.channel_overflowed:
        message = f"the inputs of all cases take more than {CHANNEL_BYTES // 2**20} MB"
    else:
        message = f"the process that makes inputs {tell_ending(done, command)}"
        said = in_one_line(tail_of(done))
        message += f": {said}" if said else ""
    hint = "a maker is called as make(rng), with a random.Random, and returns (args, kwargs)"
    raise StudyError(Mistake((label, "inputs"), f"{check.inputs}: {message}", hint))
