"""Checks that call a function of the base and of the candidate with the same arguments.

Three processes take part, none of which trusts another: an input generator (on the base, with the
problem's `inputs`) makes the arguments; a worker on the base gives the expected outcomes; a worker
on the candidate gets the arguments and nothing else. The comparison takes place in this process.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from fairtrial.arena.checks.acceptance import Acceptor, accept_lines, with_result
from fairtrial.arena.checks.comparison_rules import SPARE_BYTES
from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.checks.function_base_runs import (
    merge_recorded,
    read_base,
    refuse_unimportable,
    refuse_varying,
    settle_order,
)
from fairtrial.arena.checks.function_judging import Expectation, judge_calls, judge_changes
from fairtrial.arena.checks.judge_process import count_differing, judge_bounded
from fairtrial.arena.checks.prepared_check import CheckRun, PreparedCheck, Stages
from fairtrial.arena.checks.recorded_calls import Call, read_calls
from fairtrial.arena.checks.result_use import UseExpectation, choose_calls
from fairtrial.arena.checks.use_runs import prepare_use, run_use
from fairtrial.arena.checks.worker_reports import CallOutcome, WorkerReport, read_line, read_report
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.core import Mistake, StudyError, run_all
from fairtrial.sandbox import Command, Completed, Ending, wire

CHANNEL_BYTES = 64 * 2**20
"""Limit of the size of all inputs, and of the base's results."""
OUTPUT_BYTES = 2**20
"""Limit of the output of one call."""
"""Marks the note with the seed of the inputs, which is of interest only to reproduce them."""
_OTHER_HASHES = {"PYTHONHASHSEED": "1"}


@dataclass(frozen=True, slots=True)
class PreparedFunctionCheck:
    """A function check with its inputs and the expected outcomes.

    expectation: the inputs and the expected outcomes
    notes: remarks for the user about the runs on the base
    loaded: files that the runs on the base imported
    seed: the seed of the inputs; None if they were recorded
    base_s: the wall time of a run on the base
    acceptor: judges results that differ from the base's, if the problem has an accept function
    use: calls that are repeated in a second process, where their results are used
    input_note: the note that says how the inputs were made; empty if they were recorded
    changes: settings of its process that the base changes
    """

    expectation: Expectation
    notes: tuple[str, ...]
    loaded: frozenset[str]
    seed: str | None = None
    basis: Basis = Basis.COMPARED
    base_s: float = 0.0
    acceptor: Acceptor | None = None
    use: UseExpectation | None = None
    input_note: str = ""
    changes: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The check's path in the problem."""
        return self.expectation.label

    def calls(self, function: str) -> bool:
        """Return whether it calls this function."""
        return self.expectation.check.function == function

    async def run(self, stage: Stage) -> CheckRun:
        """Call the function of a candidate, and compare the outcomes with the expected ones."""
        expectation = self.expectation
        run = await self._run_calls(stage)
        if run.rejection is not None or self.use is None:
            return run
        used = await run_use(stage, expectation, self.use, self.acceptor)
        return CheckRun(
            used.rejection,
            run.loaded | used.loaded,
            run.wall_s + used.wall_s,
            run.cpu_s + used.cpu_s,
            max(run.peak_rss_mb, used.peak_rss_mb),
        )

    async def _run_calls(self, stage: Stage) -> CheckRun:
        """Make all calls in one process."""
        from anyio import to_thread

        expectation = self.expectation
        # Wrong results may be longer than the expected ones, but not without limit.
        max_bytes = 2 * sum(map(len, expectation.lines)) + SPARE_BYTES
        command = call_command(stage, expectation.check, expectation.job, max_bytes)
        done = await stage.run(command)

        report = await to_thread.run_sync(read_report, done.channel, len(expectation.lines))
        refused: dict[int, str] = {}
        if self.acceptor is not None and report.lines != expectation.lines:
            lines, refused = await accept_lines(
                self.acceptor, expectation.read_cases(), expectation.lines, report.lines
            )
            report = replace(report, lines=lines)
        size = count_differing(report.lines, expectation.lines)
        rejection = await judge_bounded(
            self.label, size, judge_calls, expectation, report, done, command, refused
        )
        rejection = rejection or judge_changes(expectation, report, self.changes)
        return CheckRun(rejection, report.files, done.wall_s, done.cpu_s, done.peak_rss_mb)


def call_command(
    stage: Stage, check: Check, job: bytes, max_bytes: int, env: Mapping[str, str] | None = None
) -> Command:
    """Return the command that calls the function in a slot.

    job: the worker's input, in JSON
    max_bytes: limit of the worker's report
    """
    return stage.command(
        ["{python}", str(HARNESS / "call_worker.py")],
        timeout_s=check.timeout_s,
        stdin=job,
        channel_bytes=max_bytes,
        env=env,
    )


async def prepare_calls(
    label: str,
    check: Check,
    stages: Stages,
    *,
    seed: str | None = None,
    accept_stage: Stage | None = None,
) -> PreparedFunctionCheck:
    """Make or read the inputs, call the base's function with them, and return the prepared check.

    Raises `StudyError` if the function's results vary, can't be compared, or differ from recorded
    ones.

    seed: the seed of generated inputs; a secret one by default
    accept_stage: where an accept function runs, if the check has one
    """
    from anyio import to_thread

    seed = None if check.calls else seed or secrets.token_hex(16)
    if seed is None:
        calls = await _read_recorded(label, check, stages)
    else:
        calls = await make_inputs(label, check, stages, seed)
    job = write_job(check, calls)
    # With one hash seed, results that depend on the order of a set would not vary.
    runs = [partial(_run_base, check, stages, job, env) for env in ({}, _OTHER_HASHES)]
    ran = await run_all(runs)
    # Results may be large.
    reports, outcomes = await to_thread.run_sync(_read_outcomes, label, check, calls, ran)
    acceptor = Acceptor(label, check, accept_stage) if check.accept and accept_stage else None
    if acceptor is not None:
        for part in outcomes:
            await acceptor.require_accepted(part, [call.case for call in calls])

    def build() -> tuple[Expectation, list[str]]:
        first, second = outcomes
        if acceptor is not None:  # right results may vary
            second = [with_result(*pair) for pair in zip(second, first, strict=True)]
        settled = settle_order(check, calls, first, second)
        refuse_varying(label, settled, calls, first, second)
        expected = merge_recorded(label, settled, calls, first)
        lines = tuple(wire.dump_encoded(outcome).encode("ascii") for outcome in expected)
        return Expectation(label, settled, job, lines), _write_notes(check, settled, expected)

    expectation, notes = await to_thread.run_sync(build)
    chosen = choose_calls(outcomes[0], seed or secrets.token_hex(16))
    use_job = write_job(check, [calls[number] for number in chosen], uses_results=True)
    async with stages() as stage:
        use, use_notes = await prepare_use(stage, expectation, chosen, use_job)
    input_note = "" if seed is None else _describe_inputs(label, check, len(calls), seed)
    further = (f"{label}: {note}" for note in (*notes, *use_notes))
    return PreparedFunctionCheck(
        expectation,
        (*((input_note,) if input_note else ()), *further),
        reports[0].files | reports[1].files,
        seed,
        base_s=min(done.wall_s for done, _, _ in ran),
        acceptor=acceptor,
        use=use,
        input_note=input_note,
        changes=reports[0].changes | reports[1].changes,
    )


async def _run_base(
    check: Check, stages: Stages, job: bytes, env: Mapping[str, str]
) -> tuple[Completed, Command, Stage]:
    async with stages() as stage:
        variables = {name: value for name, value in env.items() if name not in stage.problem.env}
        command = call_command(stage, check, job, CHANNEL_BYTES, variables)
        return await stage.run(command), command, stage


def _read_outcomes(
    label: str, check: Check, calls: Sequence[Call], ran: Sequence[tuple[Completed, Command, Stage]]
) -> tuple[list[WorkerReport], list[list[CallOutcome]]]:
    """Return the reports of the runs on the base, and the outcomes of their calls."""
    reports = [read_report(done.channel, len(calls)) for done, _, _ in ran]
    for report, (_, _, stage) in zip(reports, ran, strict=True):
        refuse_unimportable(label, check, report, stage)
    outcomes = [
        read_base(label, check, calls, (done, command, report))
        for (done, command, _), report in zip(ran, reports, strict=True)
    ]
    return reports, outcomes


def write_job(
    check: Check, calls: Sequence[Call], *, uses_results: bool = False, clocked: bool = False
) -> bytes:
    """Return the input of a worker that makes calls, and reports their times if `clocked`."""
    job: dict[str, object] = {
        "function": check.function,
        "view": check.view,
        "prepare": check.prepare,
        "clocked": clocked,
        "caps": list(wire.Caps()),
    }
    if uses_results:
        job["uses"] = check.aliasing == "strict"
    cases = [call.case for call in calls]
    return wire.dump_encoded({**job, "output_bytes": OUTPUT_BYTES, "cases": cases}).encode("ascii")


def list_input_notes(checks: Iterable[PreparedCheck]) -> set[str]:
    """Return the notes of checks that only say how their inputs were made."""
    return {check.input_note for check in checks if isinstance(check, PreparedFunctionCheck)}


def _describe_inputs(label: str, check: Check, count: int, seed: str) -> str:
    return f"{label}: {count} inputs of {check.function} were made with seed {seed}"


def _write_notes(check: Check, settled: Check, outcomes: Sequence[CallOutcome]) -> list[str]:
    """Return what people should know about the runs on the base."""
    notes = []
    if settled.dict_order != check.dict_order:
        notes.append(
            f"the order of dictionaries that {check.function} gives varies on the base from run to "
            "run, so it is not compared"
        )
    raised = {str(outcome["raised"]["type"]) for outcome in outcomes if "raised" in outcome}
    if all("raised" in outcome for outcome in outcomes):
        names = ", ".join(sorted(raised))
        notes.append(f"every call of {check.function} raises on the base ({names}): as intended?")
    return notes


async def _read_recorded(label: str, check: Check, stages: Stages) -> list[Call]:
    """Return the recorded calls of a file of the snapshot."""
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
    calls = read_calls(content, place, check.calls)
    if not check.accept:
        return calls
    # Recorded results are some of the right ones: the accept function judges others.
    return [Call(call.case) if "result" in call.expected else call for call in calls]


async def make_inputs(label: str, check: Check, stages: Stages, seed: str) -> list[Call]:
    """Generate the inputs of all cases, by the problem's own function in a process on the base.

    Raises `StudyError` if that fails.
    """
    file, _, function = check.inputs.rpartition(":")
    async with stages(trusted=True) as stage:
        job = {
            "file": str(stage.seen / PurePosixPath(file)),
            "function": function,
            "seed": seed,
            "cases": check.cases,
            "caps": list(wire.Caps()),
        }
        command = stage.command(
            ["{python}", str(HARNESS / "input_maker.py")],
            timeout_s=check.timeout_s,
            stdin=wire.dump_encoded(job).encode("ascii"),
            channel_bytes=CHANNEL_BYTES,
        )
        done = await stage.run(command)
    return _read_inputs(label, check, done, command)


def _read_inputs(label: str, check: Check, done: Completed, command: Command) -> list[Call]:
    *lines, closing = [read_line(line) for line in done.channel.splitlines()] or [{}]
    is_done = done.ending == Ending.EXITED and not done.channel_overflowed
    if is_done and closing.get("done") == check.cases == len(lines):
        parts = ("args", "kwargs", wire.PICKLED)
        return [Call({part: line[part] for part in parts if part in line}) for line in lines]
    if "mistake" in closing:
        message = f"input {len(lines) + 1}: {closing['mistake']}"
        trace = in_one_line(str(closing.get("traceback", "")))
        message += f" ({trace})" if trace else ""
    elif done.channel_overflowed:
        message = f"the inputs of all cases take more than {CHANNEL_BYTES // 2**20} MB"
    else:
        message = f"the process that makes inputs {tell_ending(done, command)}"
        output = in_one_line(tail_of(done))
        message += f": {output}" if output else ""
    hint = "it is called as make(rng), with a random.Random, and returns (args, kwargs)"
    raise StudyError(Mistake((label, "inputs"), f"{check.inputs}: {message}", hint))
