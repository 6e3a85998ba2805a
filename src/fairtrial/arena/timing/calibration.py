"""Calibration: time the base alone, then choose calls per sample and rounds per session."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, quantiles
from typing import Any

from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.timings import Arm
from fairtrial.arena.timing.session import ArmError, Schedule, TurnChannel
from fairtrial.arena.timing.worker_channel import ChannelError, WorkerReply
from fairtrial.sandbox import wire

SAMPLE_S = 0.00025
"""How long a sample should take, if no length was found to be better."""
TRIED_S = (0.0001, 0.00025, 0.0006, 0.0015)
"""The lengths of samples that are tried on the base."""
TRIED_TURNS = 24
"""How often each length is tried."""
FEWEST_TURNS = 8
"""The fewest pairs of turns that say how noisy a length is."""
LEAST_NOISE, USUAL_NOISE = 0.002, 0.05
"""The smallest noise of a round that is believed, and the one assumed where none was measured."""
SESSION_SPREAD = 0.006
"""What sessions differ by however many rounds they have, as measured on equal code."""
MEDIAN_COST = 1.57
"""How many times the variance of a mean that of a median is, for normal values."""
REQUESTS = 3
"""The number of requests of a turn."""
SHORT_TURNS, MOST_REPEATED_S = 5, 0.02
"""How often a number of calls is tried, and from which time on a turn isn't repeated."""
MOST_TRYING_S = 0.25
"""How long trying one length may take."""
MOST_AROUND_S = 0.24
"""How long reading and closing of a turn may take while calls are counted."""
LONG_ENOUGH_S = 0.001
"""How long the calls of a turn must take to tell how long one takes."""
MOST_CALLS = 4096
MOST_PREPARING = 12.0
"""How many times as long as a sample its preparation may take, before samples get shorter."""
MOST_BYTES = 24 * 2**20
"""How large the inputs of a session may be."""
FEWEST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 3, 11, 400
REPLY_S = 600.0
SESSIONS = 6
"""How many sessions a budget must allow: as many as the first interim look needs."""
TRIES = 3
"""How often the base is timed before it is refused for taking too long."""
MOST_NOISE = 4.0
"""From this multiple of its budget on, noise can't explain the time that a benchmark needs."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the base, while it is timed alone.

    wall_s: wall time of its calls, with the request and the reply
    around_s: time of the rest, reading inputs and closing the turn; CPU time where it is known
    lasted_s: wall time of all of it
    """

    wall_s: float
    around_s: float
    lasted_s: float


@dataclass(frozen=True, slots=True)
class SampleChoice:
    """The length of a sample that was found to be best.

    seconds: how long its calls take
    noise: what the logarithms of two successive ones differ by: a standard deviation
    turn_s: how long a turn with it takes
    """

    seconds: float
    noise: float
    turn_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the base takes.

    call_s: for one call
    turn_s: for the rest of a turn, per call: reading inputs, writing results
    empty_s: for a turn without calls
    load_s: for importing the function, once the interpreter runs
    input_bytes: size of an input
    outcome: the result of one call
    files: the files that were imported
    lasted_s: how long the calibration took
    start_s: how long it takes until a worker has started
    sample: the length of samples that was found to be best; None if none was tried
    most_calls: how many calls a turn may have
    """

    call_s: float
    turn_s: float
    empty_s: float
    load_s: float
    input_bytes: float
    outcome: Mapping[str, Any] = field(repr=False)
    files: tuple[str, ...] = field(default=(), repr=False)
    lasted_s: float = 0.0
    start_s: float = 0.0
    sample: SampleChoice | None = None
    most_calls: int = MOST_CALLS

    def with_start(self, start_s: float) -> Pace:
        """Return this pace with another `start_s`."""
        return replace(self, start_s=start_s)

    def round_s(self, calls: int) -> float:
        """Return how long one round of both versions takes."""
        return 2 * (REQUESTS * self.empty_s + calls * (self.call_s + self.turn_s))

    def session_s(self, schedule: Schedule) -> float:
        """Return how long a session takes: two starts, one after the other, then all rounds."""
        return self.starting_s + schedule.rounds * self.round_s(schedule.calls)

    def least_s(self) -> float:
        """Return the smallest sufficient budget."""
        return SESSIONS * (self.starting_s + FEWEST_ROUNDS * self.round_s(1))

    @property
    def starting_s(self) -> float:
        """Time of a session before its rounds: two workers start, import and call once."""
        return 2 * (self.start_s + self.load_s)


async def find_pace(measure: Callable[[], Awaitable[Pace]], budget_s: float) -> Pace:
    """Return the base's pace; measure again if it exceeds the budget, which may be noise."""
    best = await measure()
    for _ in range(TRIES - 1):
        if not budget_s < best.least_s() <= MOST_NOISE * budget_s:
            break
        best = min(best, await measure(), key=Pace.least_s)
    return best


def explain_misfit(pace: Pace, budget_s: float) -> tuple[str, str]:
    """Return message and hint for a benchmark that needs more than its budget."""
    need_s, calls_s = pace.least_s(), FEWEST_ROUNDS * pace.round_s(1)
    message = (
        f"{SESSIONS} sessions, the fewest that can decide anything, need "
        f"{spell_above(need_s, budget_s)} s, and budget_s is {budget_s:g}: in each of them, "
        f"starting two workers takes {pace.starting_s:.2g} s and {2 * FEWEST_ROUNDS} calls "
        f"{calls_s:.2g} s"
    )
    enough = f"budget_s: {math.ceil(2 * need_s)}"
    if calls_s > pace.starting_s:
        return message, f"smaller inputs, or {enough}"
    return message, (
        f"{enough}, or a machine with less to do (`fairtrial doctor`); smaller inputs don't help, "
        "since it is starting and importing that takes the time"
    )


def explain_timeout(timeout_s: float, budget_s: float) -> tuple[str, str]:
    """Return message and hint for a benchmark whose first calls had to be stopped."""
    calls = SESSIONS * 2 * FEWEST_ROUNDS
    message = (
        f"on the base, its first calls were not done after {timeout_s:g} s, and {SESSIONS} "
        f"sessions, the fewest that can decide anything, make {calls} of them within budget_s "
        f"({budget_s:g})"
    )
    return message, "smaller inputs, or a larger budget_s"


def spell_above(value: float, bound: float) -> str:
    """Format a number above a bound with enough digits to show that it is above."""
    texts = (f"{value:.{digits}f}" for digits in range(value < 10, 18))
    return next((text for text in texts if float(text) > bound), f"{value!r}")


def calibrate(
    channels: Mapping[Arm, TurnChannel],
    *,
    job: bytes,
    first: Sequence[bytes],
    more: Callable[[int], Sequence[bytes]],
) -> Pace:
    """Time the base's function with more and more calls, until a sample is long enough.

    job: what the worker loads
    first: one input, for the first call
    more: returns so many inputs

    Raises `ArmError` if the worker can't go on.
    """
    channel = channels["base"]
    loaded = _ask(channel, b"L", job)
    report = read_line(loaded.payload)
    if "files" not in report:
        raise ArmError("base", f"it can't be loaded: {_format_failure(report)}")
    lasted_s = loaded.wall_s
    _turn(channel, first)  # the first call is not representative
    outcome = read_line(_ask(channel, b"V").payload.split(b"\n")[0])
    empty_s = min(_turn(channel, ()).wall_s for _ in range(5))
    reported = report.get("most_calls")
    allowed = (
        min(reported, MOST_CALLS) if isinstance(reported, int) and reported > 0 else MOST_CALLS
    )
    calls, most = 1, allowed
    while True:
        turns: list[Turn] = []
        while len(turns) < SHORT_TURNS:
            inputs = more(calls)
            turns.append(_turn(channel, inputs))
            if turns[-1].lasted_s > MOST_REPEATED_S:
                break
        lasted_s += sum(turn.lasted_s for turn in turns)
        turn = min(turns, key=lambda turn: turn.wall_s)  # the one that others disturbed least
        # Empty turns that took longer than half of this one were disturbed by other programs.
        call_s = max((turn.wall_s - min(empty_s, turn.wall_s / 2)) / calls, 1e-9)
        turn_s = turn.around_s / calls
        most = max(1, min(allowed, MOST_BYTES * calls // sum(map(len, inputs))))
        is_long = calls * call_s >= LONG_ENOUGH_S / 2 or turn.around_s > MOST_AROUND_S
        if is_long or calls >= most:
            break
        calls = min(most, max(2 * calls, int(LONG_ENOUGH_S / call_s / 2)))
    size = sum(map(len, inputs)) / len(inputs)
    files = tuple(map(str, report["files"]))
    tried = _try_samples(channel, more, call_s, turn_s, size, allowed)
    lasted_s += sum(turn.lasted_s for turns in tried.values() for turn in turns)
    for calls, turns in tried.items():  # some of so many turns were not disturbed
        wall_s = median(sorted(turn.wall_s for turn in turns)[: len(turns) // 3])
        call_s = min(call_s, max((wall_s - min(empty_s, wall_s / 2)) / calls, 1e-9))
    sample = find_sample(tried, call_s)
    return Pace(
        call_s,
        turn_s,
        empty_s,
        loaded.wall_s,
        size,
        outcome,
        files,
        lasted_s,
        sample=sample,
        most_calls=allowed,
    )


def _try_samples(
    channel: TurnChannel,
    more: Callable[[int], Sequence[bytes]],
    call_s: float,
    turn_s: float,
    size: float,
    allowed: int,
) -> dict[int, list[Turn]]:
    """Take successive turns of each length; return them by their number of calls.

    Lengths that would take too long, or whose inputs are too large, are left out.
    """
    lengths = sorted({min(max(1, round(sample_s / call_s)), allowed) for sample_s in TRIED_S})
    tried: dict[int, list[Turn]] = {}
    for calls in lengths:
        count = TRIED_TURNS * calls
        if count * (call_s + turn_s) > MOST_TRYING_S or count * size > MOST_BYTES:
            break
        inputs = more(count)
        portions = (inputs[at : at + calls] for at in range(0, count, calls))
        tried[calls] = [_turn(channel, portion) for portion in portions]
    return tried


def _turn(channel: TurnChannel, inputs: Sequence[bytes]) -> Turn:
    ready = _ask(channel, b"I", wire.join_inputs(inputs))
    called = _ask(channel, b"G")
    closed = _ask(channel, b"C")
    around = [reply.wall_s if reply.cpu_s is None else reply.cpu_s for reply in (ready, closed)]
    lasted_s = ready.wall_s + called.wall_s + closed.wall_s
    return Turn(called.wall_s, sum(around), lasted_s)


def _ask(channel: TurnChannel, letter: bytes, payload: bytes = b"") -> WorkerReply:
    try:
        return channel.ask(letter, payload, timeout_s=REPLY_S)
    except ChannelError as error:
        raise ArmError("base", str(error), error) from None


def _format_failure(report: Mapping[str, Any]) -> str:
    failed, trace = report.get("failed"), report.get("traceback")
    if isinstance(trace, str) and trace:
        return " | ".join(part.strip() for part in trace.splitlines() if part.strip())
    return str(failed)


def choose_schedule(pace: Pace, job: bytes, budget_s: float) -> Schedule | None:
    """Choose calls and rounds of a session; None if the budget can't hold enough sessions.

    The choice makes the variance of a session's statistic times its duration small, since that is
    how long it takes to reach a given precision. Samples are as long as the best of those that were
    tried (`find_sample`). Rounds are as many as balance the noise within a session, which they
    average out, with what sessions differ by anyway, and with the cost of two starts.
    """
    sample_s = pace.sample.seconds if pace.sample else SAMPLE_S
    calls = max(1, min(pace.most_calls, round(sample_s / pace.call_s)))
    if calls > 1 and pace.turn_s > MOST_PREPARING * pace.call_s:
        longest_s = MOST_PREPARING * sample_s
        calls = max(1, min(calls, int(longest_s / pace.turn_s)))
    start_s = pace.starting_s
    busy_s = 2 * pace.sample.turn_s if pace.sample else 0.0
    rounds = choose_rounds(pace, start_s, max(pace.round_s(calls), busy_s))
    calls = max(1, min(calls, int(MOST_BYTES / (pace.input_bytes * rounds))))
    room_s = budget_s / (SESSIONS + 2) - start_s
    rounds = min(rounds, int(room_s / pace.round_s(calls)))
    if rounds < FEWEST_ROUNDS:
        rounds = FEWEST_ROUNDS
        while SESSIONS * (start_s + rounds * pace.round_s(calls)) > budget_s:
            if calls == 1:
                return None
            calls //= 2  # short samples are better than none
    sample_s = calls * pace.call_s
    timeout_s = max(10.0, 100 * (sample_s + calls * pace.turn_s + pace.load_s))
    return Schedule(job, calls, rounds, timeout_s=timeout_s, most_s=budget_s / (SESSIONS + 2))


def choose_rounds(pace: Pace, start_s: float, round_s: float) -> int:
    """Return the number of rounds for which variance times duration is smallest.

    The variance of a session is SESSION_SPREAD^2 + MEDIAN_COST * noise^2 / rounds, and its duration
    start_s + rounds * round_s; the minimum of the product is where both parts of both balance.
    """
    noise = pace.sample.noise if pace.sample else USUAL_NOISE
    best = math.sqrt(MEDIAN_COST * start_s / round_s) * noise / SESSION_SPREAD
    return max(USUAL_ROUNDS, min(MOST_ROUNDS, math.ceil(best)))


def find_sample(turns: Mapping[int, Sequence[Turn]], call_s: float) -> SampleChoice | None:
    """Return the length of a sample with the smallest variance times duration.

    turns: successive turns by their number of calls

    The noise of a round is what two successive samples differ by, as half the distance of the
    quartiles says: longer samples last longer, and don't vary less if the machine's speed changes
    slowly, or if they are more often interrupted by other programs.
    """
    choices = []
    for calls, taken in turns.items():
        logs = [math.log(taken[at + 1].wall_s / taken[at].wall_s) for at in range(len(taken) - 1)]
        if len(logs) < FEWEST_TURNS:
            continue
        low, _, high = quantiles(logs, n=4)
        noise = max((high - low) / 1.349, LEAST_NOISE)
        turn_s = fmean(turn.lasted_s for turn in taken)
        choices.append((noise * noise * turn_s, SampleChoice(calls * call_s, noise, turn_s)))
    return min(choices, key=lambda choice: choice[0])[1] if choices else None
