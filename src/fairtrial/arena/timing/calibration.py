"""How long the base takes, and so how many calls make a sample and how many rounds a session."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.timings import Arm
from fairtrial.arena.timing.session import ArmError, Schedule, Talk
from fairtrial.arena.timing.worker_channel import LineError, Reply

SAMPLE_S = 0.002
"""How long a sample should take."""
MOST_CALLS = 4096
MOST_PREPARING = 12.0
"""How many times as long as a sample getting ready for it may take, before samples get shorter."""
MOST_BYTES = 24 * 2**20
"""How much the inputs of a session may take."""
FEWEST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 3, 11, 60
REPLY_S = 600.0
SESSIONS = 6
"""A budget has to hold as many sessions as the first look needs."""
TRIES = 3
"""How often the base is timed before it is refused for taking too long."""
MOST_NOISE = 4.0
"""How many times its budget a benchmark may seem to need before no moment's noise explains it."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the base takes.

    call_s: for one call
    turn_s: for all of a turn beside the calls, per call: inputs are read, results written down
    empty_s: for a turn without calls
    load_s: until it can be called, once its interpreter runs
    input_bytes: how large an input is
    outcome: what one call gave
    files: what was imported for it
    lasted_s: how long finding out took
    start_s: how long it takes until a worker is there
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
        """The same, with how long it takes until a worker is there."""
        return replace(self, start_s=start_s)

    def round_s(self, calls: int) -> float:
        """How long both take for one round."""
        return 2 * (self.empty_s + calls * (self.call_s + self.turn_s))

    def session_s(self, schedule: Schedule) -> float:
        """How long a session takes: two start, one after the other on one core, then all rounds."""
        return self.starting_s + schedule.rounds * self.round_s(schedule.calls)

    def least_s(self) -> float:
        """What a budget must hold."""
        return SESSIONS * (self.starting_s + FEWEST_ROUNDS * self.round_s(1))

    @property
    def starting_s(self) -> float:
        """What of a session passes before its rounds: two workers start, import and call once."""
        return 2 * (self.start_s + self.load_s)


async def find_pace(measure: Callable[[], Awaitable[Pace]], budget_s: float) -> Pace:
    """The base's pace; measured again if it doesn't fit, since that may be a moment's noise."""
    best = await measure()
    for _ in range(TRIES - 1):
        if not budget_s < best.least_s() <= MOST_NOISE * budget_s:
            break
        best = min(best, await measure(), key=Pace.least_s)
    return best


def tell_misfit(pace: Pace, budget_s: float) -> tuple[str, str]:
    """What takes the time of a benchmark that doesn't fit, and what to do about that."""
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


def tell_endless(timeout_s: float, budget_s: float) -> tuple[str, str]:
    """The same of one whose first calls took so long that they were stopped."""
    calls = SESSIONS * 2 * FEWEST_ROUNDS
    message = (
        f"on the base, its first calls were not done after {timeout_s:g} s, and {SESSIONS} "
        f"sessions, the fewest that can decide anything, make {calls} of them within budget_s "
        f"({budget_s:g})"
    )
    return message, "smaller inputs, or a larger budget_s"


def spell_above(value: float, bound: float) -> str:
    """A number that is above a bound, with so many digits that one can see it."""
    texts = (f"{value:.{digits}f}" for digits in range(value < 10, 18))
    return next((text for text in texts if float(text) > bound), f"{value!r}")


def calibrate(
    talks: Mapping[Arm, Talk],
    *,
    job: bytes,
    first: Sequence[bytes],
    more: Callable[[int], Sequence[bytes]],
) -> Pace:
    """Call the base's function more and more often, until a sample is long enough."""
    talk = talks["base"]
    loaded = _ask(talk, b"L", job)
    told = read_line(loaded.payload)
    if "files" not in told:
        raise ArmError("base", f"it can't be loaded: {_spell(told)}")
    lasted_s = loaded.wall_s
    _turn(talk, first)  # the first call of all is not like others
    empty_s = median(_turn(talk, ())[0] for _ in range(5))
    inputs = more(2)[:1]
    most = max(1, min(MOST_CALLS, MOST_BYTES // len(inputs[0])))
    while True:
        wall_s, around_s, outcome = _turn(talk, inputs)
        lasted_s += wall_s + around_s
        calls = len(inputs)
        # Empty turns that took longer than half of this one did so for others' sake.
        call_s = max((wall_s - min(empty_s, wall_s / 2)) / calls, 1e-9)
        turn_s = around_s / calls
        is_long = wall_s >= SAMPLE_S / 2 or around_s > 10 * MOST_PREPARING * SAMPLE_S
        if is_long or calls >= most:
            break
        inputs = more(min(most, max(2 * calls, int(calls * SAMPLE_S / wall_s / 2))))
    size = sum(map(len, inputs)) / len(inputs)
    files = tuple(map(str, told["files"]))
    return Pace(call_s, turn_s, empty_s, loaded.wall_s, size, outcome, files, lasted_s)


def _turn(talk: Talk, inputs: Sequence[bytes]) -> tuple[float, float, Mapping[str, Any]]:
    """How long the calls took, how long all around them, and what the first gave."""
    ready = _ask(talk, b"I", b"\n".join(inputs))
    gone = _ask(talk, b"G")
    told = _ask(talk, b"C")
    return gone.wall_s, ready.wall_s + told.wall_s, read_line(told.payload.split(b"\n")[0])


def _ask(talk: Talk, letter: bytes, payload: bytes = b"") -> Reply:
    try:
        return talk.ask(letter, payload, timeout_s=REPLY_S)
    except LineError as error:
        raise ArmError("base", str(error), error) from None


def _spell(told: Mapping[str, Any]) -> str:
    failed, trace = told.get("failed"), told.get("traceback")
    if isinstance(trace, str) and trace:
        return " | ".join(part.strip() for part in trace.splitlines() if part.strip())
    return str(failed)


def choose_schedule(pace: Pace, job: bytes, budget_s: float) -> Schedule | None:
    """Calls and rounds of a session; None if the budget can't hold enough sessions.

    More rounds where starting costs much: what is between sessions no number of rounds removes, but
    a session that is paid for should be used.
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
