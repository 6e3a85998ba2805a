"""Calibration: time the base alone, then choose calls per sample and rounds per session."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.timings import Arm
from fairtrial.arena.timing.session import ArmError, Schedule, TurnChannel
from fairtrial.arena.timing.worker_channel import ChannelError, WorkerReply
from fairtrial.sandbox import wire

SAMPLE_S = 0.002
"""How long a sample should take."""
MOST_CALLS = 4096
MOST_PREPARING = 12.0
"""How many times as long as a sample its preparation may take, before samples get shorter."""
MOST_BYTES = 24 * 2**20
"""How large the inputs of a session may be."""
FEWEST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 3, 11, 60
REPLY_S = 600.0
SESSIONS = 6
"""How many sessions a budget must allow: as many as the first interim look needs."""
TRIES = 3
"""How often the base is timed before it is refused for taking too long."""
MOST_NOISE = 4.0
"""From this multiple of its budget on, noise can't explain the time that a benchmark needs."""


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

    def with_start(self, start_s: float) -> Pace:
        """Return this pace with another `start_s`."""
        return replace(self, start_s=start_s)

    def round_s(self, calls: int) -> float:
        """Return how long one round of both versions takes."""
        return 2 * (self.empty_s + calls * (self.call_s + self.turn_s))

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
    empty_s = median(_turn(channel, ())[0] for _ in range(5))
    inputs = more(2)[:1]
    most = max(1, min(MOST_CALLS, MOST_BYTES // len(inputs[0])))
    while True:
        wall_s, around_s = _turn(channel, inputs)
        lasted_s += wall_s + around_s
        calls = len(inputs)
        # Empty turns that took longer than half of this one were disturbed by other programs.
        call_s = max((wall_s - min(empty_s, wall_s / 2)) / calls, 1e-9)
        turn_s = around_s / calls
        is_long = wall_s >= SAMPLE_S / 2 or around_s > 10 * MOST_PREPARING * SAMPLE_S
        if is_long or calls >= most:
            break
        inputs = more(min(most, max(2 * calls, int(calls * SAMPLE_S / wall_s / 2))))
    size = sum(map(len, inputs)) / len(inputs)
    files = tuple(map(str, report["files"]))
    return Pace(call_s, turn_s, empty_s, loaded.wall_s, size, outcome, files, lasted_s)


def _turn(channel: TurnChannel, inputs: Sequence[bytes]) -> tuple[float, float]:
    """Return the time of the calls, and the time of the rest of the turn."""
    ready = _ask(channel, b"I", wire.join_inputs(inputs))
    called = _ask(channel, b"G")
    closed = _ask(channel, b"C")
    return called.wall_s, ready.wall_s + closed.wall_s


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

    There are more rounds where a start is expensive: they don't reduce the variation between
    sessions, but make better use of each start.
    """
    calls = max(1, min(MOST_CALLS, math.ceil(SAMPLE_S / pace.call_s)))
    if calls > 1 and pace.turn_s > MOST_PREPARING * pace.call_s:
        longest_s = MOST_PREPARING * SAMPLE_S
        calls = max(1, min(calls, int(longest_s / pace.turn_s)))
    rounds = USUAL_ROUNDS
    start_s = pace.starting_s
    rounds = max(rounds, min(MOST_ROUNDS, int(1.5 * math.sqrt(start_s / pace.round_s(calls)))))
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
    return Schedule(job, calls, rounds, timeout_s=timeout_s)
