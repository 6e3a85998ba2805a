"""Benchmarks of functions: in each session two workers take turns with calls."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from fairtrial.arena.checks.acceptance import Acceptor, ResultToJudge, with_result
from fairtrial.arena.checks.comparison_rules import ComparisonRules
from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.exit_text import in_one_line, stop_reason, tail_of, tell_ending
from fairtrial.arena.checks.import_errors import tell_roots
from fairtrial.arena.checks.value_text import render, render_call
from fairtrial.arena.checks.worker_reports import (
    compare_outcomes,
    make_rules,
    read_line,
    read_outcome,
)
from fairtrial.arena.evaluator_failures import make_evaluator_rejection
from fairtrial.arena.model.problem import Benchmark, Check
from fairtrial.arena.model.timings import Arm, Pair, Session
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.timing.calibration import (
    Pace,
    calibrate,
    choose_schedule,
    explain_misfit,
    explain_timeout,
    find_pace,
)
from fairtrial.arena.timing.hidden_work import count_hidden, count_others
from fairtrial.arena.timing.inputs import SAME_INPUTS, InputSupplier, MakesInputs, read_input
from fairtrial.arena.timing.memory import PeakMeter, pair_peaks
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.arena.timing.session import Schedule, SessionTurns, take_turns
from fairtrial.arena.timing.slow_inputs import find_slow_inputs
from fairtrial.arena.timing.timed_output import OUTPUT_BYTES, reject_output
from fairtrial.arena.timing.worker_channel import WorkerChannel
from fairtrial.arena.timing.workers import WorkResult, is_late, run_workers
from fairtrial.core import LabError, MisfitError, Mistake, StudyError, single_cause
from fairtrial.sandbox import Command, Ending, wire

SLOWEST = 100.0
"""How many times as long as the base a candidate may take before it is stopped."""
LEAST_TIMEOUT_S = 10.0
CALIBRATION = "calibration"
CALIBRATION_SEED = 1
"""The hash seed of the process that is calibrated."""
T = TypeVar("T")
MOST_JUDGED = 1_000
"""How many results of a session an accept function judges, drawn by chance."""


@dataclass(frozen=True, slots=True)
class FunctionBenchmark:
    """A prepared benchmark of a function.

    benchmark: the benchmark of the problem
    check: how results are viewed and compared
    supplier: makes the inputs
    schedule: calls and rounds of a session
    pace: how long the base takes
    compares: whether results are plain data and can be compared
    notes: remarks for people
    acceptor: judges results that differ from the base's, if the problem has an accept function
    has_check: whether a check of this function has shown that its output doesn't vary
    same_inputs: why no candidate may be adopted if every call has the same arguments; else empty
    repeats: whether inputs repeat themselves, so that results can be remembered
    """

    benchmark: Benchmark
    check: Check
    supplier: MakesInputs
    schedule: Schedule
    pace: Pace
    compares: bool
    notes: tuple[str, ...] = ()
    acceptor: Acceptor | None = None
    has_check: bool = False
    same_inputs: str = ""
    repeats: bool = False

    @property
    def name(self) -> str:
        """The benchmark's name."""
        return self.benchmark.name

    @property
    def path_tail(self) -> tuple[Path, ...]:
        """Folders that its workers search last for imports."""
        return (HARNESS / "plugin",) if self.benchmark.suite else ()

    @property
    def session_s(self) -> float:
        """About how long a session takes."""
        return self.pace.session_s(self.schedule)

    async def run(self, setup: TimingSetup, number: int) -> Session:
        """Run one session of base and candidate, each in a fresh process."""
        import anyio

        began = time.monotonic()
        rng = random.Random(f"{setup.seed}/{self.name}/{number}")
        make = partial(_make_worker, hash_seed=rng.randrange(1, 2**32), setup=setup, benchmark=self)
        unequal: dict[int, bytes] = {}
        coming: Future[list[bytes]] = Future()
        meters: dict[Arm, PeakMeter] = {}

        def work(channels: Mapping[Arm, WorkerChannel]) -> SessionTurns:
            inputs = coming.result()
            differ = partial(self.differs, inputs, unequal, make_rules(self.check))
            if self.benchmark.measures_memory:
                meters.update({arm: PeakMeter(channels[arm].pid) for arm in channels})
            return take_turns(channels, self.schedule, inputs, rng, differ, meters)

        stages: dict[Arm, Stage] = {"base": setup.base, "candidate": setup.candidate}
        try:
            async with anyio.create_task_group() as tasks:  # made while the workers start
                tasks.start_soon(self._make_inputs, f"{setup.seed}/{self.name}/{number}", coming)
                outcome = await run_workers(stages, make, work, away_from=setup.cores)
        except BaseExceptionGroup as group:
            raise single_cause(group) from None
        inputs = coming.result()
        rejection = self._find_rejection(outcome, inputs)
        rejection = rejection or reject_output(
            self.benchmark, outcome.done, stages, is_stable=self.has_check
        )
        if rejection is None and self.acceptor is not None:
            rejection = await self.judge_unequal(self.acceptor, unequal, inputs, rng)
        turns, done = outcome.result, outcome.done
        peaks = [done[arm].peak_rss_mb if arm in done else 0.0 for arm in stages]
        return Session(
            benchmark=self.name,
            number=number,
            samples=turns.samples if turns else (),
            seconds=time.monotonic() - began,
            host=socket.gethostname(),
            startup_s=turns.startup_s if turns else None,
            outside_s=count_hidden(turns, done, self.benchmark.cores) if turns else None,
            stalled_s=turns.stalled_s if turns else None,
            others_s=count_others(turns, done, self.benchmark.cores) if turns else None,
            materializing=turns.going_through if turns else None,
            peak_rss_mb=Pair(*peaks) if all(peaks) else None,
            judged_mb=pair_peaks(meters),
            rejection=rejection,
            loaded=frozenset(turns.files["candidate"]) if turns else frozenset(),
            slow_inputs=(
                find_slow_inputs(turns.samples, inputs, number)
                if turns and not self.benchmark.suite  # whose calls are all alike
                else ()
            ),
        )

    async def _make_inputs(self, seed: str, coming: Future[list[bytes]]) -> None:
        """Have the inputs of a session made; a thread may wait for them."""
        wanted = 1 + self.schedule.calls * self.schedule.rounds
        try:
            coming.set_result(await self.supplier.make(seed, wanted))
        except BaseException as error:
            coming.set_exception(error)  # so that the thread ends, too
            raise

    def differs(
        self,
        inputs: Sequence[bytes],
        unequal: dict[int, bytes],
        rules: ComparisonRules,
        index: int,
        base: bytes,
        candidate: bytes,
    ) -> bool:
        """Return whether two outcomes differ; results for an accept function go to `unequal`.

        Whether a call raises counts even if results can't be compared.
        """
        expected, actual = read_line(base), read_outcome(candidate, base)
        if not self.compares:
            return ("raised" in expected) != ("raised" in actual)
        case = read_input(inputs[index])
        if self.acceptor is not None and "result" in expected and "result" in actual:
            unequal[index] = candidate
            actual = with_result(actual, expected)
        return compare_outcomes(expected, actual, case, rules).count > 0

    async def judge_unequal(
        self,
        acceptor: Acceptor,
        unequal: Mapping[int, bytes],
        inputs: Sequence[bytes],
        rng: random.Random,
    ) -> Rejection | None:
        """Have a sample of a session's results judged; return a rejection if one is wrong."""
        indexes = rng.sample(sorted(unequal), min(len(unequal), MOST_JUDGED))
        results = [
            ResultToJudge(read_input(inputs[index]), read_line(unequal[index])["result"])
            for index in indexes
        ]
        try:
            reasons = await acceptor.judge(results)
        except StudyError as error:  # about this candidate's results: others get their verdicts
            return make_evaluator_rejection(error)
        for reason, item in zip(reasons, results, strict=True):
            if reason:
                message = (
                    f"{self.name}: while it was timed, {self.benchmark.subject} gave "
                    f"{render(item.result)}, which {self.check.accept} doesn't accept: {reason}"
                )
                called = f"called as {render_call(self.benchmark.subject, item.case)}"
                failed = Failure(f"bench[{self.name}]", self.benchmark.subject, called)
                return Rejection(Reason.DIFFERENT, message, (failed,))
        return None

    def _find_rejection(
        self, outcome: WorkResult[SessionTurns], inputs: Sequence[bytes]
    ) -> Rejection | None:
        """Return a rejection if the candidate failed; raise `LabError` if the base did."""
        rejection = self.find_failure(outcome)
        if rejection is None and outcome.result is not None and outcome.result.differing:
            return self.reject_difference(*outcome.result.differing, inputs)
        return rejection

    def find_failure(self, outcome: WorkResult[T]) -> Rejection | None:
        """Return a rejection if the candidate's worker failed; raise `LabError` if the base's."""
        failure = outcome.failure
        if failure is None:
            return None
        if failure.arm == "base":
            ended = outcome.done.get("base")
            how = f" ({tell_ending(ended, outcome.commands['base'])})" if ended else ""
            raise LabError(f"{self.name}: the base failed while it was timed: {failure.why}{how}")
        return self._reject_failure(outcome)

    def reject_difference(
        self, index: int, base: bytes, candidate: bytes, inputs: Sequence[bytes]
    ) -> Rejection:
        """Return the rejection of a candidate whose result for an input differs."""
        case = read_input(inputs[index])
        outcomes = (read_line(base), read_outcome(candidate, base))
        differences = compare_outcomes(*outcomes, case, make_rules(self.check))
        first = differences.first[0]
        message = (
            f"{self.name}: while it was timed, {self.benchmark.subject} gave something else than "
            f"the base: {first.where} should be {first.expected}, is {first.actual}"
        )
        called = f"called as {render_call(self.benchmark.subject, case)}"
        failed = Failure(f"bench[{self.name}]", self.benchmark.subject, called, differences.first)
        return Rejection(Reason.DIFFERENT, message, (failed,))

    def _reject_failure(self, outcome: WorkResult[T]) -> Rejection:
        assert outcome.failure is not None
        done, command = outcome.done.get("candidate"), outcome.commands["candidate"]
        reason = Reason.TIMEOUT if is_late(outcome.failure) else Reason.CRASH
        what = outcome.failure.why
        output = ""
        if done is not None and not is_late(outcome.failure):
            reason = stop_reason(done) or Reason.CRASH
            what, output = f"{what}; the process {tell_ending(done, command)}", tail_of(done)
        message = f"{self.name}: while it was timed, {what}"
        failed = Failure(f"bench[{self.name}]", self.benchmark.subject, output or what)
        return Rejection(reason, message, (failed,))


def _make_worker(
    stage: Stage, channel: int, *, hash_seed: int, setup: TimingSetup, benchmark: FunctionBenchmark
) -> Command:
    timeout_s = SLOWEST * benchmark.session_s + LEAST_TIMEOUT_S
    return worker_command(
        stage, channel, setup.cores, hash_seed, timeout_s, path_tail=benchmark.path_tail
    )


def worker_command(
    stage: Stage,
    channel: int,
    cores: tuple[int, ...],
    hash_seed: int,
    timeout_s: float,
    path_tail: Sequence[Path] = (),
) -> Command:
    """Return the command of a fresh worker on a slot.

    channel: the descriptor of the worker's end of its channel
    path_tail: folders that are searched last for imports
    """
    own = stage.problem.env
    env = {} if "PYTHONHASHSEED" in own else {"PYTHONHASHSEED": str(hash_seed)}
    env["FAIRTRIAL_LAYOUT"] = f"{hash_seed:010}"  # of one length, as the stack begins below it
    return stage.command(
        ["{python}", str(HARNESS / "timed_worker.py")],
        timeout_s=timeout_s,
        env=env,
        path_tail=path_tail,
        line=channel,
        cores=cores,
        output_bytes=OUTPUT_BYTES,
    )


async def prepare_function_benchmark(
    benchmark: Benchmark, supplier: InputSupplier, setup: TimingSetup, *, budget_s: float
) -> FunctionBenchmark:
    """Time the base alone, and choose calls per sample and rounds per session.

    Raises `StudyError` if the base can't be called, `MisfitError` if the budget is too small.
    """
    check = find_check(setup.base, benchmark)
    job = wire.dump_encoded(benchmark_job(benchmark, check))
    measure = partial(measure_base, benchmark, supplier, setup, job.encode("ascii"), budget_s)
    pace = await find_pace(measure, budget_s)
    schedule = choose_schedule(pace, job.encode("ascii"), budget_s)
    if schedule is None:
        raise MisfitError(Mistake(("bench", benchmark.name), *explain_misfit(pace, budget_s)))
    schedule = replace(schedule, counts_all=benchmark.trust == "none")
    unplain = find_unplain(pace.outcome.get("result"))
    notes = [] if unplain is None else [_unplain_note(benchmark)]
    same_inputs, repeats = "", ""
    if not await supplier.varies(f"{setup.seed}/{benchmark.name}/variety"):
        same_inputs = f"{benchmark.name}: {benchmark.inputs} {SAME_INPUTS}"
        notes.append(same_inputs)
        (only,) = await supplier.make(f"{setup.seed}/{benchmark.name}/variety", 1)
        if not any(read_input(only).values()):  # a function without arguments can't have others
            same_inputs = ""
    else:
        repeats = await supplier.describe_repeats(f"{setup.seed}/{benchmark.name}")
        notes += [repeats] if repeats else []
    is_plain = unplain is None
    return FunctionBenchmark(
        benchmark,
        check,
        supplier,
        schedule,
        pace,
        compares=is_plain,
        notes=tuple(notes),
        same_inputs=same_inputs,
        repeats=bool(repeats),
    )


async def measure_base(
    benchmark: Benchmark,
    supplier: MakesInputs,
    setup: TimingSetup,
    job: bytes,
    budget_s: float,
    *,
    path_tail: Sequence[Path] = (),
) -> Pace:
    """Time the base in a fresh process.

    job: what its worker loads
    path_tail: folders that it searches last for imports
    """
    seed = f"{setup.seed}/{benchmark.name}/{CALIBRATION}"
    inputs = await supplier.make(seed, 1)
    began = time.monotonic()
    make = partial(
        worker_command,
        cores=setup.cores,
        hash_seed=CALIBRATION_SEED,
        timeout_s=max(budget_s, LEAST_TIMEOUT_S),
        path_tail=path_tail,
    )
    more = _InputRequest(supplier, seed).make

    def work(channels: Mapping[Arm, WorkerChannel]) -> Pace:
        started = time.monotonic()
        pace = calibrate(channels, job=job, first=inputs, more=more)
        return replace(pace, lasted_s=time.monotonic() - started)  # with making inputs

    stages: dict[Arm, Stage] = {"base": setup.base}
    outcome = await run_workers(stages, make, work, away_from=setup.cores)
    if outcome.result is None:
        raise _base_error(benchmark, outcome, setup.base, budget_s)
    pace = outcome.result
    _require_project_files(benchmark, setup.base, pace.files)
    return pace.with_start(max(0.0, time.monotonic() - began - pace.lasted_s))


@dataclass(frozen=True, slots=True)
class _InputRequest:
    """Requests more inputs, others each time, from the thread that calibrates.

    supplier: makes the inputs
    seed: seeds them
    """

    supplier: MakesInputs
    seed: str
    _numbers: Iterator[int] = field(default_factory=count)

    def make(self, wanted: int) -> list[bytes]:
        from anyio import from_thread

        seed = f"{self.seed}/{next(self._numbers)}"
        return from_thread.run(self.supplier.make, seed, wanted)


def benchmark_job(benchmark: Benchmark, check: Check) -> dict[str, object]:
    """Return what workers load to time a function."""
    job = {"function": benchmark.call, "view": check.view, "prepare": benchmark.prepare}
    return {**job, "caps": list(wire.Caps())}


def find_check(stage: Stage, benchmark: Benchmark) -> Check:
    """Return the check of the same function, which says how results are viewed and compared."""
    for check in stage.problem.check:
        if check.function == benchmark.call:
            return check
    return Check(function=benchmark.call, inputs=benchmark.inputs)


def _base_error(
    benchmark: Benchmark, outcome: WorkResult[Pace], stage: Stage, budget_s: float
) -> StudyError:
    assert outcome.failure is not None
    done = outcome.done.get("base")
    if done is not None and done.ending == Ending.TIMEOUT:
        explanation = explain_timeout(outcome.commands["base"].timeout_s, budget_s)
        return MisfitError(Mistake(("bench", benchmark.name), *explanation))
    message = f"{benchmark.subject} can't be timed on the base: {outcome.failure.why}"
    if done is not None and done.exit_code != 0:
        output = in_one_line(tail_of(done))
        message += f"; the process {tell_ending(done, outcome.commands['base'])}"
        message += f": {output}" if output else ""
    if benchmark.suite:
        hint = "leave it out, or run it in your tree with the same Python to see why"
        return StudyError(Mistake(("bench", benchmark.name, "suite"), message, hint))
    hint = f"{tell_roots(benchmark.call, stage)}, and it must return"
    return StudyError(Mistake(("bench", benchmark.name, "call"), message, hint))


def _require_project_files(benchmark: Benchmark, stage: Stage, files: Sequence[str]) -> None:
    """Raise `StudyError` if a function imports nothing that a candidate could change."""
    if not any(Path(file).is_relative_to(stage.seen) for file in files):
        message = (
            f"{benchmark.subject} imports nothing of the project: no candidate could change it"
        )
        hint = "see import_roots, and whether an installed copy is found first"
        raise StudyError(Mistake(("bench", benchmark.name, "call"), message, hint))


def _unplain_note(benchmark: Benchmark) -> str:
    return (
        f"{benchmark.name}: what {benchmark.call} gives is not plain data, so results were not "
        "compared while it was timed; a check of this function with a view: makes that possible"
    )
