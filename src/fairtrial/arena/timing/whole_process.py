"""Whole processes: the second instrument, which a claimed saving must agree with.

A fresh worker gets all of its inputs and delivers all results, alone on the machine. It is driven
like a worker of a session, but no other version runs meanwhile, and everything counts: by our clock
from the first input to the last result, and by the CPU time of all processes that it ever started.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fairtrial.arena.checks.worker_reports import make_rules, read_line
from fairtrial.arena.model.timings import Arm, TotalCheck, TotalVerdict
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.calibration import MOST_BYTES, Pace
from fairtrial.arena.timing.function_benchmark import (
    LEAST_TIMEOUT_S,
    SLOWEST,
    FunctionBenchmark,
    worker_command,
)
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.arena.timing.session import ArmError, Schedule, TurnChannel
from fairtrial.arena.timing.stats.reconciliation import (
    CONFIDENCE,
    LOOKS,
    ProcessBlock,
    ProcessTotals,
    Reconciliation,
    SavingClaim,
    reconcile,
)
from fairtrial.arena.timing.worker_channel import ChannelError, WorkerChannel, WorkerReply
from fairtrial.arena.timing.workers import run_workers
from fairtrial.sandbox import wire

CALLS_S = 0.06
"""How long the calls of a short process should take on the base."""
MOST_RUN_S = 0.25
"""How long a short process should take at most, with reading inputs and writing results."""
TURN_S = 0.002
"""How long the calls of a turn should take on the base."""
MOST_DRAWN = 256
"""How many inputs are drawn to find those that differ, where inputs repeat."""
LEAST_UNSEEN_S = 5e-5
"""The smallest claimed saving of a process that is looked for with inputs that it hasn't seen."""
ORDERS: tuple[tuple[tuple[Arm, bool], ...], ...] = (
    (("base", False), ("candidate", False), ("candidate", True), ("base", True)),
    (("candidate", False), ("base", False), ("base", True), ("candidate", True)),
)
"""Orders of the processes of a block, used in turn: whose, and whether it is the long one."""


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """What a whole process did.

    wall_s, cpu_s: wall and CPU time of its worker from the first input to the last result
    in_calls_s, in_calls_cpu_s: the same while the function was called
    results: one JSON line per call
    """

    wall_s: float
    cpu_s: float | None
    in_calls_s: float
    in_calls_cpu_s: float | None
    results: tuple[bytes, ...]


def deliver_all(
    channels: Mapping[Arm, TurnChannel],
    *,
    schedule: Schedule,
    inputs: Sequence[bytes],
    has_warm_up: bool = True,
) -> ProcessRun:
    """Have one worker make all calls, in turns as in a session; return times and results.

    inputs: one JSON line per call
    has_warm_up: whether the first call is a warm-up, which isn't timed

    Raises `ArmError` if the worker can't go on.
    """
    ((arm, channel),) = channels.items()
    first = 1 if has_warm_up else 0

    def ask(letter: bytes, payload: bytes = b"") -> WorkerReply:
        try:
            return channel.ask(letter, payload, timeout_s=schedule.timeout_s)
        except ChannelError as error:
            raise ArmError(arm, str(error), error) from None

    def take_turn(portion: Sequence[bytes]) -> tuple[WorkerReply, list[bytes]]:
        ask(b"I", wire.join_inputs(portion))
        called = ask(b"G")
        ask(b"C")
        *lines, _ = ask(b"V").payload.split(b"\n")
        if len(lines) != len(portion):
            raise ArmError(arm, f"{len(lines)} results of {len(portion)} calls were reported")
        return called, lines

    report = read_line(ask(b"L", schedule.job).payload)
    if not isinstance(report.get("files"), list):
        raise ArmError(arm, f"it can't be loaded: {report.get('failed')!r}")
    results = take_turn(inputs[:first])[1] if first else []
    replies = []
    cpu_before, began = channel.cpu_s(), time.perf_counter()
    for start in range(first, len(inputs), schedule.calls):
        called, lines = take_turn(inputs[start : start + schedule.calls])
        replies.append(called)
        results += lines
    wall_s, cpu_after = time.perf_counter() - began, channel.cpu_s()
    used = [reply.cpu_s for reply in replies if reply.cpu_s is not None]
    return ProcessRun(
        wall_s=wall_s,
        cpu_s=None if cpu_before is None or cpu_after is None else cpu_after - cpu_before,
        in_calls_s=sum(reply.wall_s for reply in replies),
        in_calls_cpu_s=sum(used) if len(used) == len(replies) else None,
        results=tuple(results),
    )


def count_turns(pace: Pace, calls: int, blocks: Sequence[ProcessBlock] = ()) -> int:
    """Return the number of turns of a short process.

    blocks: earlier ones, which say how long the base takes; by default its calibration does
    """
    call_s, turn_s = pace.call_s, pace.empty_s + calls * (pace.call_s + pace.turn_s)
    if blocks:
        runs = [run for block in blocks for run in block.base]
        turns = sum(run.calls for run in runs) / calls
        # Other programs on the machine don't add to CPU time.
        used = [run.in_calls_cpu_s or run.in_calls_s for run in runs]
        call_s = max(sum(used) / (turns * calls), 1e-9)
        turn_s = min(turn_s, sum(run.wall_s for run in runs) / turns)
    wanted = math.ceil(CALLS_S / (calls * call_s))
    affordable = int(MOST_RUN_S / turn_s)
    fitting = int(MOST_BYTES / (2 * calls * pace.input_bytes))
    return max(1, min(wanted, affordable, fitting))


async def check_total(
    benchmark: FunctionBenchmark, setup: TimingSetup, claim: SavingClaim, limit_s: float
) -> TotalCheck | Rejection:
    """Compare a claimed saving with the total of whole processes, block by block.

    The caller holds the host lock exclusively.

    limit_s: about how long it may take; the first look is always taken

    Returns a rejection if the candidate fails or its results differ from the base's. Raises
    `LabError` if the base fails.
    """
    benchmark = _with_long_turns(benchmark)

    async def run_block(blocks: Sequence[ProcessBlock]) -> ProcessBlock | Rejection:
        turns = count_turns(benchmark.pace, benchmark.schedule.calls, blocks)
        short = 1 + benchmark.schedule.calls * turns
        seed = f"{setup.seed}/{benchmark.name}/whole/{len(blocks)}"
        # Processes can't pass on what they saw, so the short ones get the first inputs of the long.
        inputs = await benchmark.supplier.make(seed, 2 * short - 1)
        return await _run_block(benchmark, setup, len(blocks), inputs, short)

    return await _run_blocks(benchmark.name, claim, limit_s, run_block)


async def check_unseen(
    benchmark: FunctionBenchmark, setup: TimingSetup, claim: SavingClaim, limit_s: float
) -> TotalCheck | Rejection | None:
    """Compare a claimed saving with processes that get each input once, where inputs repeat.

    A candidate that only remembers results saves nothing there. The caller holds the host lock
    exclusively.

    Returns None if the calls of such a process are too short to tell; a rejection, and raises, as
    `check_total`.
    """
    seed = f"{setup.seed}/{benchmark.name}/unseen"
    drawn = [] if benchmark.benchmark.suite else await benchmark.supplier.make(seed, MOST_DRAWN)
    distinct = list(dict.fromkeys(drawn))
    # The first call of a suite's benchmark is the only one with arguments that are new.
    calls = len(distinct) - 1 if distinct else 1
    if calls < 1 or (1 - 1 / claim.ratio) * calls * benchmark.pace.call_s < LEAST_UNSEEN_S:
        return None

    async def run_block(blocks: Sequence[ProcessBlock]) -> ProcessBlock | Rejection:
        if not distinct:
            inputs = await benchmark.supplier.make(seed, 1)
            block = await _run_block(benchmark, setup, len(blocks), inputs, 1, has_warm_up=False)
        else:
            inputs = random.Random(f"{seed}/{len(blocks)}").sample(distinct, len(distinct))
            block = await _run_block(benchmark, setup, len(blocks), inputs, len(inputs))
        return _take_cpu_time(block) if isinstance(block, ProcessBlock) else block

    check = await _run_blocks(benchmark.name, claim, limit_s, run_block)
    return replace(check, is_unseen=True) if isinstance(check, TotalCheck) else check


def _take_cpu_time(block: ProcessBlock) -> ProcessBlock:
    """Return a block with the workers' CPU time for wall time, where it is known.

    `check_total` has counted everything already, and so few calls are lost in waiting.
    """
    runs = (*block.base, *block.candidate)
    if any(run.worker_cpu_s is None or run.in_calls_cpu_s is None for run in runs):
        return block
    short, long, other_short, other_long = (
        replace(
            run,
            wall_s=run.worker_cpu_s or 0.0,
            in_calls_s=min(run.in_calls_s, run.in_calls_cpu_s or 0.0),
            cpu_s=None,
        )
        for run in runs
    )
    return ProcessBlock((short, long), (other_short, other_long))


_RunBlock = Callable[[Sequence[ProcessBlock]], Awaitable[ProcessBlock | Rejection]]


async def _run_blocks(
    name: str, claim: SavingClaim, limit_s: float, run_block: _RunBlock
) -> TotalCheck | Rejection:
    """Run blocks until it is clear whether they show a claimed saving."""
    began = time.monotonic()
    blocks: list[ProcessBlock] = []
    while True:
        block = await run_block(blocks)
        if isinstance(block, Rejection):
            return block
        blocks.append(block)
        count, spent_s = len(blocks), time.monotonic() - began
        is_last = count >= LOOKS[-1] or spent_s * (count + 1) / count > limit_s
        if count < LOOKS[0] or (count not in LOOKS and not is_last):
            continue
        state = reconcile(blocks, claim, is_last=is_last)
        if is_last or state.verdict != TotalVerdict.UNCLEAR:
            return _summarize(name, blocks, claim, state, time.monotonic() - began)


def _with_long_turns(benchmark: FunctionBenchmark) -> FunctionBenchmark:
    """Return a benchmark with longer turns than those of sessions, for requests take time, too."""
    schedule, pace = benchmark.schedule, benchmark.pace
    calls = min(pace.most_calls, int(TURN_S / pace.call_s))
    return replace(benchmark, schedule=replace(schedule, calls=max(schedule.calls, calls)))


async def _run_block(
    benchmark: FunctionBenchmark,
    setup: TimingSetup,
    number: int,
    inputs: Sequence[bytes],
    short: int,
    *,
    has_warm_up: bool = True,
) -> ProcessBlock | Rejection:
    """Run a short and a long process of each version; return a rejection if results differ.

    inputs: those of the long one
    short: how many of them the short one gets
    has_warm_up: whether the first call of a process isn't timed
    """
    rng = random.Random(f"{setup.seed}/{benchmark.name}/whole/{number}")
    hash_seed = rng.randrange(1, 2**32)
    totals: dict[tuple[Arm, bool], ProcessTotals] = {}
    results: dict[tuple[Arm, bool], tuple[bytes, ...]] = {}
    for arm, is_long in ORDERS[number % len(ORDERS)]:
        portion = inputs if is_long else inputs[:short]
        outcome = await _run_process(
            benchmark, setup, arm, portion, hash_seed, has_warm_up=has_warm_up
        )
        if isinstance(outcome, Rejection):
            return outcome
        totals[arm, is_long], results[arm, is_long] = outcome
    unequal: dict[int, bytes] = {}
    differ = partial(benchmark.differs, inputs, unequal, make_rules(benchmark.check))
    for is_long in (False, True):
        pairs = zip(results["base", is_long], results["candidate", is_long], strict=True)
        for index, (base, candidate) in enumerate(pairs):
            if base != candidate and differ(index, base, candidate):
                return benchmark.reject_difference(index, base, candidate, inputs)
    if benchmark.acceptor is not None:
        rejection = await benchmark.judge_unequal(benchmark.acceptor, unequal, inputs, rng)
        if rejection is not None:
            return rejection
    return ProcessBlock(
        (totals["base", False], totals["base", True]),
        (totals["candidate", False], totals["candidate", True]),
    )


async def _run_process(
    benchmark: FunctionBenchmark,
    setup: TimingSetup,
    arm: Arm,
    inputs: Sequence[bytes],
    hash_seed: int,
    *,
    has_warm_up: bool,
) -> tuple[ProcessTotals, tuple[bytes, ...]] | Rejection:
    """Run one whole process to its end; return its figures and results."""
    schedule, calls = benchmark.schedule, len(inputs) - has_warm_up
    run_s = benchmark.pace.starting_s + calls * (benchmark.pace.call_s + benchmark.pace.turn_s)
    make = partial(
        worker_command,
        cores=setup.cores,
        hash_seed=hash_seed,
        timeout_s=SLOWEST * run_s + LEAST_TIMEOUT_S,
        path_tail=benchmark.path_tail,
    )

    def work(channels: Mapping[Arm, WorkerChannel]) -> ProcessRun:
        return deliver_all(channels, schedule=schedule, inputs=inputs, has_warm_up=has_warm_up)

    stages: dict[Arm, Stage] = {arm: setup.base if arm == "base" else setup.candidate}
    outcome = await run_workers(stages, make, work, away_from=setup.cores)
    rejection = benchmark.find_failure(outcome)
    if rejection is not None:
        return rejection
    run, done = outcome.result, outcome.done.get(arm)
    assert run is not None
    if schedule.counts_all:  # then claims are about whole turns, too
        run = replace(run, in_calls_s=run.wall_s, in_calls_cpu_s=run.cpu_s)
    in_calls_s = _count_in_calls(run, benchmark.pace.empty_s * calls / schedule.calls)
    if not has_warm_up:  # what comes with a first call can't be saved
        in_calls_s = min(in_calls_s, calls * benchmark.pace.call_s)
    totals = ProcessTotals(
        calls=calls,
        wall_s=run.wall_s,
        in_calls_s=in_calls_s,
        cpu_s=done.cpu_s if done is not None and done.counts_all_cpu else None,
        in_calls_cpu_s=run.in_calls_cpu_s,
        worker_cpu_s=run.cpu_s,
    )
    return totals, run.results


def _count_in_calls(run: ProcessRun, asking_s: float) -> float:
    """Return the part of the wall time that calls are responsible for.

    asking_s: what requests and replies take without any call, which sessions subtract, too
    """
    wall_s = run.in_calls_s - min(asking_s, run.in_calls_s / 2)
    if not run.cpu_s or run.in_calls_cpu_s is None:
        return wall_s
    # On a busy machine, the core is waited for mostly between calls, but because of the CPU time
    # that calls use. So they are responsible for their share of the waiting.
    return max(wall_s, run.wall_s * min(run.in_calls_cpu_s / run.cpu_s, 1.0))


def _summarize(
    name: str,
    blocks: Sequence[ProcessBlock],
    claim: SavingClaim,
    state: Reconciliation,
    seconds: float,
) -> TotalCheck:
    runs: dict[Arm, list[ProcessTotals]] = {
        "base": [run for block in blocks for run in block.base],
        "candidate": [run for block in blocks for run in block.candidate],
    }
    calls = sum(run.calls for run in runs["base"])
    in_calls_s = sum(run.in_calls_s for run in runs["base"])
    base_s, candidate_s = (sum(run.wall_s for run in runs[arm]) / calls for arm in runs)
    slopes = [_cpu_slope([getattr(block, arm) for block in blocks]) for arm in runs]
    return TotalCheck(
        benchmark=name,
        verdict=state.verdict,
        claimed_s=(1 - 1 / claim.ratio) * in_calls_s / calls,
        base_s=base_s,
        candidate_s=candidate_s,
        base_cpu_s=slopes[0],
        candidate_cpu_s=slopes[1],
        share=state.shown.share,
        low=state.shown.low,
        high=state.shown.high,
        confidence=CONFIDENCE,
        clock=state.shown.clock,
        blocks=len(blocks),
        calls=blocks[-1].base[0].calls,
        seconds=seconds,
    )


def _cpu_slope(pairs: Sequence[tuple[ProcessTotals, ProcessTotals]]) -> float | None:
    """Return the CPU time per call: what long processes use beyond short ones."""
    used = [run.cpu_s for pair in pairs for run in pair]
    if any(figure is None for figure in used):
        return None
    calls = sum(long.calls - short.calls for short, long in pairs)
    more_s = sum((long.cpu_s or 0.0) - (short.cpu_s or 0.0) for short, long in pairs)
    return more_s / calls if calls else None
