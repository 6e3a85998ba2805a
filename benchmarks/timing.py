"""The clock on a live machine: equal code, known effects, peers, a race, the cost of a session.

    python benchmarks/timing.py --only aa|effects|peers|race|session [--quick] [--output FOLDER]

- aa: the built-in workloads against themselves, 102 comparisons: what is claimed, after how long
- effects: candidates that are 3 % and 5 % faster by construction, on three workloads
- peers: the same pairs with pyperf and pytest-benchmark, by turns (`timing_peers.py`)
- race: the best of 16 candidates, against timing each of them with all 46 sessions
- session: what a session takes, in a sandbox and without, against starting two interpreters

Results are appended to FOLDER/PART.jsonl as they come. A run that was interrupted goes on from
there when it is started again; `--fresh` begins anew; `--tell` only prints what there is. `--quick`
is a smoke run with files of its own: its figures mean nothing.

Beside each figure is the load of the machine (averaged over a minute): before the first
measurement, after the last. Our own sessions are part of it: a quiet machine shows about 1.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import timing_peers
from timing_kit import (
    BASE_PIECES,
    PIECES,
    WORKLOADS,
    Ledger,
    Pairs,
    Watched,
    checked,
    load,
    open_builtin,
    open_pairs,
    tell_load,
    tell_progress,
    tell_rate,
    tell_table,
    true_log,
    values_of,
)

from fairtrial.arena.bench.bench import choose_cores
from fairtrial.arena.bench.deciding import measure, race
from fairtrial.arena.duels import builtin_problem, check_clock
from fairtrial.model.timings import Measurement
from fairtrial.stats.sequential import LOOKS, look, next_look
from fairtrial.stats.spending import share
from fairtrial.stats.visibility import spread

EFFECTS = {"3 %": (0.95, 8.0), "5 %": (0.99, 6.5)}
"""Goals: the share found faster, and mean sessions."""
RATIOS = (
    *(0.90, 0.915, 0.93, 0.945, 0.96, 0.975, 0.99, 1.01),
    *(1.025, 1.04, 1.055, 1.07, 1.085, 1.10, 1.12, 1.15),
)
"""Of the 16 candidates of a race, about; the best is 2.7 % ahead of the next."""
RACED = "words"


@dataclass(frozen=True, slots=True)
class Given:
    """What was asked for on the command line.

    ledger: where results go
    quick: whether this is a smoke run
    comparisons: how many of each kind; None for as many as the part usually takes
    peer: a Python that has the peers; one is made if empty
    """

    ledger: Ledger
    quick: bool
    comparisons: int | None
    peer: str

    def count(self, usual: int, quick: int) -> int:
        return self.comparisons or (quick if self.quick else usual)


# -- equal code --


async def run_aa(given: Given) -> None:
    """Workloads take turns, a few comparisons at a time; a chunk that is interrupted is lost."""
    wanted, chunk = given.count(34, 1), 1 if given.quick else 4
    while left := [each for each in WORKLOADS if given.ledger.count(workload=each) < wanted]:
        for workload in left:
            missing = wanted - given.ledger.count(workload=workload)
            before = load()
            with builtin_problem(workload) as problem:
                found = await check_clock(problem, comparisons=min(chunk, missing))
            for each in found.measurements:
                given.ledger.add(row_of(each, workload=workload, load_before=before))
            tell_progress(f"{workload}: {given.ledger.count(workload=workload)} of {wanted}")


def row_of(measured: Measurement, **more: Any) -> dict[str, Any]:
    """A comparison as it is kept."""
    estimate = measured.estimate
    return {
        **more,
        "verdict": measured.verdict.value,
        "interval": [estimate.low, estimate.high] if estimate else None,
        "ratio": estimate.ratio if estimate else None,
        "adopt": measured.adopt,
        "seconds": measured.seconds,
        "values": values_of(measured.sessions),
        "session_s": [session.seconds for session in measured.sessions],
    }


def tell_aa(ledger: Ledger) -> None:
    body = []
    for workload in (*WORKLOADS, None):
        rows = ledger.rows(workload=workload) if workload else ledger.rows()
        if not rows:
            continue
        claims = Counter(row["verdict"] for row in rows)
        ended = [len(row["values"]) for row in rows if row["verdict"] == "equivalent"]
        values = [value for row in rows for value in row["values"]]
        body.append(
            (
                workload or "**all**",
                tell_rate(claims["faster"] + claims["slower"], len(rows)),
                ", ".join(f"{count} {claim}" for claim, count in claims.most_common()),
                f"{spread(values):.2%}",
                f"{statistics.fmean(len(row['values']) for row in rows):.1f}",
                f"{statistics.fmean(ended):.1f}" if ended else "-",
                f"{statistics.fmean(s for row in rows for s in row['session_s']):.2f}",
                tell_load(rows),
            )
        )
    head = ("workload", "wrong claims (goal: 5 %)", "claims", "spread of sessions")
    head += ("mean sessions, all (goal: at most 15)", "of those found equivalent")
    tell_table("Equal code", (*head, "s per session", "load before / after"), body)


# -- known effects --


async def run_effects(given: Given) -> None:
    wanted, chunk = given.count(20, 1), 5
    for _ in range(math.ceil(wanted / chunk)):
        for workload in WORKLOADS:
            ledger = given.ledger
            left = {each: wanted - ledger.count(workload=workload, effect=each) for each in EFFECTS}
            if max(left.values()) <= 0:
                continue
            async with open_pairs(workload, [PIECES[each] for each in EFFECTS]) as pairs:
                for turn, effect in itertools.product(range(chunk), EFFECTS):
                    if turn < left[effect]:
                        row = await compare_once(pairs, effect, workload)
                        ledger.add(row)
            tell_progress(f"{workload}: {ledger.count(workload=workload)} comparisons")


async def compare_once(pairs: Pairs, effect: str, workload: str) -> dict[str, Any]:
    pieces, before = PIECES[effect], load()
    # A label of its own: no two comparisons may share inputs, orders and hash seeds.
    label = f"effects/{time.monotonic_ns()}"
    found = await measure(pairs.bench, effect, pairs.entries[pieces], pairs.rules, label=label)
    kept = {"workload": workload, "effect": effect, "load_before": before}
    return row_of(checked(found), **kept, true_ratio=BASE_PIECES / pieces)


def tell_effects(ledger: Ledger) -> None:
    body = []
    for effect, (power, sessions) in EFFECTS.items():
        for workload in (*WORKLOADS, None):
            match = {"effect": effect, "workload": workload} if workload else {"effect": effect}
            rows = ledger.rows(**match)
            if not rows:
                continue
            truth, total = rows[0]["true_ratio"], len(rows)
            covers = sum(bool(r["interval"]) and covers_truth(r["interval"], truth) for r in rows)
            ratios = [row["ratio"] for row in rows if row["ratio"]]
            body.append(
                (
                    f"{truth:.4f}x",
                    workload or "**all**",
                    f"{tell_rate(sum(r['verdict'] == 'faster' for r in rows), total)}; {power:.0%}",
                    f"{sum(row['adopt'] for row in rows)}/{total}",
                    f"{tell_rate(covers, total)}; 95%",
                    f"{math.exp(statistics.fmean(map(math.log, ratios))):.4f}x" if ratios else "-",
                    f"{statistics.fmean(len(r['values']) for r in rows):.1f}; {sessions:g}",
                    f"{statistics.fmean(s for row in rows for s in row['session_s']):.2f}",
                    f"{statistics.fmean(row['seconds'] for row in rows):.1f}",
                    tell_load(rows),
                )
            )
    head = ("true ratio", "workload", "found faster; goal", "adopt", "interval holds; goal")
    head += ("mean estimate", "mean sessions; goal", "s per session", "s per comparison")
    tell_table("Known effects", (*head, "load before / after"), body)


def covers_truth(interval: list[float], truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


# -- a race --


async def run_race(given: Given) -> None:
    """In full: half of the sessions before the race and half after it, so that both see the same
    machine."""
    pieces = [round(BASE_PIECES / ratio) for ratio in RATIOS]
    timed = [pieces[0], pieces[7], pieces[-1]] if given.quick else pieces
    halves = [range(2), range(2, 4)] if given.quick else [range(23), range(23, LOOKS[-1])]
    while given.ledger.count() < given.count(2, 1):
        before = load()
        async with open_pairs(RACED, pieces) as pairs:
            entries = {f"{each}": changes for each, changes in pairs.entries.items() if changes}
            full, raced = Watched(pairs.bench), Watched(pairs.bench)
            values: dict[str, list[float]] = {f"{each}": [] for each in timed}
            await take_in_full(pairs, full, values, halves[0])
            results = await race(raced, entries, pairs.rules)
            await take_in_full(pairs, full, values, halves[1])
        confirmed = {
            name: each
            for name, each in results.items()
            if isinstance(each, Measurement) and each.is_confirmed
        }
        winner = next(iter(confirmed), None)
        estimate = confirmed[winner].estimate if winner else None
        given.ledger.add(
            {
                "load_before": before,
                "winner": winner and int(winner),
                "estimate": estimate and [estimate.ratio, estimate.low, estimate.high],
                "race_s": raced.seconds("race/"),
                "race_sessions": raced.sessions("race/"),
                "final_s": raced.seconds("final/"),
                "final_sessions": raced.sessions("final/"),
                "full_s": full.seconds(),
                "full_sessions": full.sessions(),
                "full_values": values,
                "candidates": len(entries),
            }
        )
        tell_progress(f"race {given.ledger.count()} of {given.count(2, 1)}")


async def take_in_full(
    pairs: Pairs, timer: Watched, values: dict[str, list[float]], numbers: range
) -> None:
    for name in values:
        changes = pairs.entries[int(name)]
        heat = await timer.run(changes, f"full/{name}", numbers[0], len(numbers), math.inf)
        if heat.rejection is not None:
            raise RuntimeError(heat.rejection.message)
        values[name] += values_of([session for (session,) in heat.replicates])


def tell_race(ledger: Ledger) -> None:
    body = []
    for row in ledger.rows():
        timed = row["full_values"]
        session_s = row["full_s"] / row["full_sessions"]
        sessions = row["candidates"] * LOOKS[-1]
        full_s = session_s * sessions
        is_whole = row["full_sessions"] == sessions
        best = min(timed, key=lambda name: statistics.fmean(timed[name]))
        raced_s, both_s = row["race_s"], row["race_s"] + row["final_s"]
        alpha = share(0.05, row["candidates"])
        each_s = statistics.fmean(stop_at(v, alpha) for v in timed.values()) * session_s
        how = "all run" if is_whole else f"{row['full_sessions']} of {sessions} run, scaled"
        estimate = row["estimate"]
        told = f"{estimate[0]:.3f} [{estimate[1]:.3f}, {estimate[2]:.3f}]" if estimate else "-"
        body.append(
            (
                f"{raced_s:.0f} s, {row['race_sessions']} sessions",
                f"{both_s:.0f} s, {row['race_sessions'] + row['final_sessions']} sessions",
                f"{full_s:.0f} s, {sessions} sessions ({how})",
                f"{raced_s / full_s:.2f}; **{both_s / full_s:.2f}** (goal: at most 0.33)",
                f"{tell_ratio(row['winner'])}; {tell_ratio(best)}; {tell_ratio(min(map(int, timed)))}",
                told,
                f"{each_s * row['candidates']:.0f} s",
                f"{session_s:.2f}",
                tell_load([row]),
            )
        )
    head = ("race", "confirmed, too", "each in full", "share of time: race; confirmed, too")
    head += ("winner: raced; in full; true", "what is said of it", "each, stopped when decided")
    tell_table(
        f"The best of {len(RATIOS)} candidates ({RACED}, true ratios 0.90 to 1.15)",
        (*head, "s per session, staging included", "load before / after"),
        body,
    )


def tell_ratio(pieces: int | str | None) -> str:
    return "none" if pieces is None else f"{BASE_PIECES / int(pieces):.3f}x"


def stop_at(values: list[float], alpha: float) -> int:
    """After how many of these sessions a measurement would have ended."""
    done = 0
    while (goal := next_look(done)) is not None and goal <= len(values):
        done = goal
        if look(values[:done], alpha=alpha, min_effect=0.02).is_decided:
            break
    return done or len(values)


# -- a session --


async def run_session(given: Given) -> None:
    """Sandboxed, plain and the floor take turns."""
    wanted = given.count(40, 2)
    for workload in WORKLOADS:
        if given.ledger.count(workload=workload) >= wanted:
            continue
        async with AsyncExitStack() as opened:
            benches = {}
            for name, plain in (("sandboxed", False), ("plain", True)):
                entered = opened.enter_async_context(open_builtin(workload, plain=plain))
                benches[name] = await entered
            for number in range(given.ledger.count(workload=workload), wanted):
                row = {"workload": workload, "load_before": load(), "floor": start_two()}
                for name, bench in benches.items():
                    label = f"{name}/{time.monotonic_ns()}"
                    heat = await bench.run(None, label, number, 1, math.inf)
                    row[name] = heat.replicates[0][0].seconds
                given.ledger.add(row)
        tell_progress(f"{workload}: {wanted} sessions of each kind")


def start_two() -> float:
    """Two bare interpreters on one core, one after the other."""
    cores = choose_cores(1)
    pin = partial(os.sched_setaffinity, 0, cores) if cores else None
    began = time.monotonic()
    for _ in range(2):
        subprocess.run([sys.executable, "-I", "-c", "pass"], check=True, preexec_fn=pin)
    return time.monotonic() - began


def tell_session(ledger: Ledger) -> None:
    body = []
    for workload in WORKLOADS:
        if not (rows := ledger.rows(workload=workload)):
            continue
        middle = {
            name: statistics.median(row[name] for row in rows)
            for name in ("sandboxed", "plain", "floor")
        }
        cells = [
            f"{middle[name]:.3f} s ({middle[name] / middle['floor']:.1f}x the floor)"
            for name in ("sandboxed", "plain")
        ]
        body.append((workload, len(rows), *cells, f"{middle['floor']:.3f} s", tell_load(rows)))
    head = ("workload", "sessions of each", "sandboxed (to start from: 0.15 to 0.5 s)")
    head += ("plain (0.1 s)", "floor: two bare interpreters", "load before / after")
    tell_table("Seconds per session (medians)", head, body)


Run = Callable[[Given], Awaitable[None]]
PARTS: dict[str, tuple[Run, Callable[[Ledger], None]]] = {
    "aa": (run_aa, tell_aa),
    "effects": (run_effects, tell_effects),
    "peers": (timing_peers.run, timing_peers.tell),
    "race": (run_race, tell_race),
    "session": (run_session, tell_session),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--comparisons", type=int, metavar="N", help="so many of each kind")
    parser.add_argument("--output", type=Path, default=Path("artifacts/timing"), metavar="FOLDER")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--tell", action="store_true", help="only print what there is")
    parser.add_argument("--peer", default="", metavar="PYTHON", help="has the peers installed")
    asked = parser.parse_args()
    if unknown := set(asked.only.split(",")) - set(PARTS):
        parser.error(f"--only {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    for name in asked.only.split(","):
        run, tell = PARTS[name]
        ledger = Ledger(asked.output / f"{name}{'-quick' * asked.quick}.jsonl")
        if asked.fresh and not asked.tell:
            ledger.path.unlink(missing_ok=True)
        try:
            if not asked.tell:
                anyio.run(run, Given(ledger, asked.quick, asked.comparisons, asked.peer))
        finally:
            if ledger.count():
                tell(ledger)


if __name__ == "__main__":
    main()
