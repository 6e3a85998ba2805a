"""Where the time of a session goes. Part of `timing.py`.

The steps of sessions of equal code are timed by wrapping the functions that do them, in this
process: what workers do is seen as the time that their replies are waited for. Shares of a session
say something on a busy machine, too; its seconds don't.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fairtrial.arena.timing import function_benchmark, session
from fairtrial.arena.timing.worker_channel import WorkerChannel
from timing_kit import Given, Ledger, load, open_builtin, tell_load, tell_progress, tell_table

SAMPLES, ENDING = "samples", "ending workers, all else"
STEPS: tuple[tuple[Any, str, str], ...] = (
    (WorkerChannel, "wait_for_start", "starting two workers"),
    (session._ArmState, "load", "importing the function"),
    (session._ArmState, "take_empty_turn", "empty turns"),
    (session._ArmState, "take_turn", "turns"),
    (session, "_compare", "comparing results in full"),
    (function_benchmark, "take_turns", "taking turns"),
)


@contextmanager
def timed_steps() -> Iterator[Counter[str]]:
    """Count the seconds of each step while the block runs."""
    spent: Counter[str] = Counter()

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **named)
            finally:
                spent[name] += time.perf_counter() - began

        return call

    before = [(owner, name, getattr(owner, name)) for owner, name, _ in STEPS]
    for owner, name, step in STEPS:
        setattr(owner, name, timed(step, getattr(owner, name)))
    try:
        yield spent
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


async def run(given: Given) -> None:
    """Sessions of equal code of each workload, one after the other."""
    wanted = given.count(30, 3)
    for workload in given.workloads:
        if given.is_late:
            return
        before = load()
        async with open_builtin(workload, plain=False) as bench:
            with timed_steps() as spent:
                label = f"parts/{time.monotonic_ns()}"
                batch = await bench.run(None, label, 0, wanted, given.left_s / 3)
            rounds = bench.benchmarks[0].benchmark.schedule.rounds
        sessions = [one for (one,) in batch.replicates]
        if not sessions:
            continue
        shares = divide(spent, sessions)
        row = {"workload": workload, "load_before": before, "rounds": rounds, "shares": shares}
        given.ledger.add({**row, "sessions": len(sessions)})
        tell_progress(f"{workload}: {len(sessions)} sessions")


def divide(spent: Counter[str], sessions: list[Any]) -> dict[str, float]:
    """Return each step's share of the sessions' time."""
    total_s = math.fsum(one.seconds for one in sessions)
    timed = [sample.wall_s for one in sessions for sample in one.samples if sample.calls]
    samples_s = math.fsum(timed)
    steps = {
        "starting two workers": spent["starting two workers"],
        "importing the function": spent["importing the function"],
        "empty turns": spent["empty turns"],
        SAMPLES: samples_s,
        "sending inputs, closing turns": spent["turns"] - samples_s,
        "comparing results in full": spent["comparing results in full"],
    }
    steps["the driver between turns"] = (
        spent["taking turns"] - math.fsum(steps.values()) + spent["starting two workers"]
    )
    steps[ENDING] = total_s - math.fsum(steps.values())
    return {name: round(seconds / total_s, 4) for name, seconds in steps.items()}


def tell(ledger: Ledger) -> None:
    """Print the shares of each workload."""
    rows = ledger.rows()
    steps = list(rows[0]["shares"])
    body = [
        (
            row["workload"],
            row["sessions"],
            row["rounds"],
            *(f"{row['shares'][step]:.0%}" for step in steps),
            tell_load([row]),
        )
        for row in rows
    ]
    head = ["workload", "sessions", "rounds", *steps, "load before / after"]
    tell_table("Shares of a session", head, body)
