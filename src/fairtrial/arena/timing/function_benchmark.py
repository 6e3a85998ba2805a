"""Benchmarks that call a function: sessions of two workers that take turns."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.exit_text import in_one_line, stop_reason, tail_of, tell_ending
from fairtrial.arena.checks.import_errors import tell_roots
from fairtrial.arena.checks.value_text import render_call
from fairtrial.arena.checks.worker_reports import compare_outcomes, read_line
from fairtrial.arena.model.problem import Benchmark, Check
from fairtrial.arena.model.timings import Arm, Pair, Session
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.timing.calibration import (
    Pace,
    calibrate,
    choose_schedule,
    find_pace,
    tell_endless,
    tell_misfit,
)
from fairtrial.arena.timing.hidden_work import count_hidden
from fairtrial.arena.timing.inputs import Supplier
from fairtrial.arena.timing.prepared_benchmark import Duel
from fairtrial.arena.timing.session import Schedule, Turns, take_turns
from fairtrial.arena.timing.worker_channel import Line
from fairtrial.arena.timing.workers import Talked, is_late, talk_with
from fairtrial.core import LabError, MisfitError, Mistake, StudyError
from fairtrial.sandbox import Caps, Command, Ending, dump

SLOWEST = 100.0
"""How many times as long as the base a candidate may take before it is given up."""
LEAST_TIMEOUT_S = 10.0
CALIBRATION = "calibration"


@dataclass(frozen=True, slots=True)
class CallMeter:
    """A function's benchmark that is ready.

    benchmark: what is timed
    check: how results are compared, and seen
    supplier: makes the inputs
    schedule: how many calls and rounds a session has
    pace: how long the base takes
    compares: whether results are plain data and can be compared
    notes: what people should know
    """

    benchmark: Benchmark
    check: Check
    supplier: Supplier
    schedule: Schedule
    pace: Pace
    compares: bool
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The benchmark's."""
        return self.benchmark.name

    @property
    def session_s(self) -> float:
        """How long a session takes, about."""
        return self.pace.session_s(self.schedule)

    async def run(self, duel: Duel, number: int) -> Session:
        """One session of base and candidate, each in a fresh process."""
        began = time.monotonic()
        rng = random.Random(f"{duel.seed}/{self.name}/{number}")
        count = 1 + self.schedule.calls * self.schedule.rounds
        inputs = await self.supplier.make(f"{duel.seed}/{self.name}/{number}", count)
        make = partial(_worker, hash_seed=rng.randrange(1, 2**32), duel=duel, meter=self)
        differ = partial(self._differs, inputs)

        def work(lines: Mapping[Arm, Line]) -> Turns:
            return take_turns(lines, self.schedule, inputs, rng, differ)

        stages: dict[Arm, Stage] = {"base": duel.base, "candidate": duel.candidate}
        talked = await talk_with(stages, make, work, away_from=duel.cores)
        rejection = self._reject(talked, inputs)
        turns, done = talked.result, talked.done
        peaks = [done[arm].peak_rss_mb if arm in done else 0.0 for arm in stages]
        return Session(
            benchmark=self.name,
            number=number,
            samples=turns.samples if turns else (),
            seconds=time.monotonic() - began,
            startup_s=turns.startup_s if turns else None,
            outside_s=count_hidden(turns, done, self.benchmark.cores) if turns else None,
            stalled_s=turns.stalled_s if turns else None,
            materialising=turns.going_through if turns else None,
            peak_rss_mb=Pair(*peaks) if all(peaks) else None,
            rejection=rejection,
            loaded=frozenset(turns.files["candidate"]) if turns else frozenset(),
        )

    def _differs(self, inputs: Sequence[bytes], place: int, base: bytes, candidate: bytes) -> bool:
        if not self.compares:
            return False
        outcomes = read_line(base), read_line(candidate)
        case = read_line(inputs[place])
        return compare_outcomes(*outcomes, case, self.check).count > 0

    def _reject(self, talked: Talked[Turns], inputs: Sequence[bytes]) -> Rejection | None:
        """What the candidate did wrong; raises if the base did."""
        failure = talked.failure
        if failure is not None and failure.arm == "base":
            ended = talked.done.get("base")
            how = f" ({tell_ending(ended, talked.commands['base'])})" if ended else ""
            raise LabError(f"{self.name}: the base failed while it was timed: {failure.why}{how}")
        if failure is not None:
            return self._tell_failure(talked)
        if talked.result is not None and talked.result.differing is not None:
            place, base, candidate = talked.result.differing
            case = read_line(inputs[place])
            found = compare_outcomes(read_line(base), read_line(candidate), case, self.check)
            first = found.first[0]
            message = (
                f"{self.name}: while it was timed, {self.benchmark.call} gave something else than "
                f"the base: {first.where} should be {first.expected}, is {first.actual}"
            )
            called = f"called as {render_call(self.benchmark.call, case)}"
            failed = Failure(f"bench[{self.name}]", self.benchmark.call, called, found.first)
            return Rejection(Reason.DIFFERENT, message, (failed,))
        return None

    def _tell_failure(self, talked: Talked[Turns]) -> Rejection:
        assert talked.failure is not None
        done, command = talked.done.get("candidate"), talked.commands["candidate"]
        reason = Reason.TIMEOUT if is_late(talked.failure) else Reason.CRASH
        what = talked.failure.why
        said = ""
        if done is not None and not is_late(talked.failure):
            reason = stop_reason(done) or Reason.CRASH
            what, said = f"{what}; the process {tell_ending(done, command)}", tail_of(done)
        message = f"{self.name}: while it was timed, {what}"
        failed = Failure(f"bench[{self.name}]", self.benchmark.call, said or what)
        return Rejection(reason, message, (failed,))


def _worker(stage: Stage, line: int, *, hash_seed: int, duel: Duel, meter: CallMeter) -> Command:
    lasts_s = SLOWEST * meter.session_s + LEAST_TIMEOUT_S
    return worker_command(stage, line, duel.cores, hash_seed, lasts_s)


def worker_command(
    stage: Stage, line: int, cores: tuple[int, ...], hash_seed: int, timeout_s: float
) -> Command:
    """A fresh worker on a slot."""
    own = stage.problem.env
    env = {} if "PYTHONHASHSEED" in own else {"PYTHONHASHSEED": str(hash_seed)}
    return stage.command(
        ["{python}", str(HARNESS / "timed_worker.py")],
        timeout_s=timeout_s,
        env=env,
        line=line,
        cores=cores,
    )


async def prepare_calls(
    benchmark: Benchmark, supplier: Supplier, duel: Duel, *, budget_s: float
) -> CallMeter:
    """Time the base alone: how many calls make a sample, how many rounds a session."""
    check = find_check(duel.base, benchmark)
    job = dump({"function": benchmark.call, "view": check.view, "caps": list(Caps())})
    measure = partial(_measure_base, benchmark, supplier, duel, job.encode("ascii"), budget_s)
    pace = await find_pace(measure, budget_s)
    schedule = choose_schedule(pace, job.encode("ascii"), budget_s)
    if schedule is None:
        raise MisfitError(Mistake(("bench", benchmark.name), *tell_misfit(pace, budget_s)))
    unplain = find_unplain(pace.outcome.get("result"))
    notes = () if unplain is None else (_tell_unplain(benchmark),)
    return CallMeter(benchmark, check, supplier, schedule, pace, unplain is None, notes)


async def _measure_base(
    benchmark: Benchmark, supplier: Supplier, duel: Duel, job: bytes, budget_s: float
) -> Pace:
    """How long the base takes, in a fresh process of its own."""
    began = time.monotonic()
    seed = f"{duel.seed}/{benchmark.name}/{CALIBRATION}"
    inputs = await supplier.make(seed, 1)
    make = partial(
        worker_command, cores=duel.cores, hash_seed=1, timeout_s=max(budget_s, LEAST_TIMEOUT_S)
    )
    work = partial(calibrate, job=job, first=inputs, more=_Asking(supplier, seed).more)
    stages: dict[Arm, Stage] = {"base": duel.base}
    talked = await talk_with(stages, make, work, away_from=duel.cores)
    if talked.result is None:
        raise _refuse_base(benchmark, talked, duel.base, budget_s)
    pace = talked.result
    _refuse_bystander(benchmark, duel.base, pace.files)
    return pace.with_start(max(0.0, time.monotonic() - began - pace.lasted_s))


@dataclass(frozen=True, slots=True)
class _Asking:
    """More inputs, for the thread that calibrates."""

    supplier: Supplier
    seed: str

    def more(self, count: int) -> list[bytes]:
        from anyio import from_thread

        return from_thread.run(self.supplier.make, f"{self.seed}/{count}", count)


def find_check(stage: Stage, benchmark: Benchmark) -> Check:
    """The check of the same function, which says how results are seen and compared."""
    for check in stage.problem.check:
        if check.function == benchmark.call:
            return check
    return Check(function=benchmark.call, inputs=benchmark.inputs)


def _refuse_base(
    benchmark: Benchmark, talked: Talked[Pace], stage: Stage, budget_s: float
) -> StudyError:
    assert talked.failure is not None
    done = talked.done.get("base")
    if done is not None and done.ending == Ending.TIMEOUT:
        told = tell_endless(talked.commands["base"].timeout_s, budget_s)
        return MisfitError(Mistake(("bench", benchmark.name), *told))
    message = f"{benchmark.call} can't be timed on the base: {talked.failure.why}"
    if done is not None and done.exit_code != 0:
        said = in_one_line(tail_of(done))
        message += f"; the process {tell_ending(done, talked.commands['base'])}"
        message += f": {said}" if said else ""
    hint = f"{tell_roots(benchmark.call, stage)}, and it must return"
    return StudyError(Mistake(("bench", benchmark.name, "call"), message, hint))


def _refuse_bystander(benchmark: Benchmark, stage: Stage, files: Sequence[str]) -> None:
    """Timing code that no candidate can change says nothing of any."""
    if not any(Path(file).is_relative_to(stage.seen) for file in files):
        message = f"{benchmark.call} imports nothing of the project: no candidate could change it"
        hint = "see import_roots, and whether an installed copy is found first"
        raise StudyError(Mistake(("bench", benchmark.name, "call"), message, hint))


def _tell_unplain(benchmark: Benchmark) -> str:
    return (
        f"{benchmark.name}: what {benchmark.call} gives is not plain data, so results were not "
        "compared while it was timed; a check of this function with a view: makes that possible"
    )
