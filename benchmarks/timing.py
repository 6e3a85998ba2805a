"""The clock on a live machine: equal code, known effects, peers, a race, the cost of a session.

    python benchmarks/timing.py --only aa|effects|peers|race|session|parts|record [--minutes M]

- aa: the built-in workloads against themselves, 102 comparisons: what is claimed, after how long
- effects: candidates that are 2, 3 and 5 % faster by construction, on three workloads: found after
  how long by sessions, and adopted after how long, with whole processes
- peers: the same pairs with pyperf and pytest-benchmark, by turns (`timing_peers.py`)
- race: the best of 16 candidates, against timing each with all its sessions (`timing_race.py`)
- session: what a session takes, in a sandbox and without, against starting two interpreters
- parts: where the time of a session goes (`timing_parts.py`)
- record: sessions of equal code one after the other, which `statistics.py` draws from

Results are appended to FOLDER/PART.jsonl as they come. A run that was interrupted goes on from
there when it is started again; `--fresh` begins anew; `--tell` only prints what there is. `--quick`
is a smoke run with files of its own: its figures mean nothing.

With sessions of 0.3 s expect 8 minutes for aa, 5 for effects, 55 for peers (pyperf takes half a
minute for each pair), 10 for race, 3 for session; `--comparisons N` makes it fewer or more, and
`--minutes M` stops each part after about so long, whatever is left.

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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

import timing_parts
import timing_peers
import timing_race
from fairtrial.arena import Measurement, self_test
from fairtrial.arena.timing.bench import choose_cores
from fairtrial.arena.timing.decision import measure
from fairtrial.arena.timing.stats.autocorrelation import serial_correlation
from fairtrial.arena.timing.stats.detectable_effect import spread
from fairtrial.arena.timing.stats.session_ratio import timed_share
from timing_kit import (
    BASE_PIECES,
    PIECES,
    QUICK_S,
    WORKLOADS,
    Given,
    Ledger,
    Pairs,
    checked,
    load,
    open_builtin,
    open_pairs,
    tell_load,
    tell_progress,
    tell_rate,
    tell_table,
    values_of,
)

EFFECTS = {"2 %": (0.80, 6.0), "3 %": (0.95, 3.0), "5 %": (0.95, 1.5)}
"""Goals: the share found faster, and the median of seconds until sessions have decided."""
SECONDS = ("median s until found; goal", "median s with whole processes")


# -- equal code --


async def run_aa(given: Given) -> None:
    """Workloads take turns, a few comparisons at a time; a chunk that is interrupted is lost."""
    wanted, chunk = given.count(34, 1), 1 if given.quick else 4
    while left := [each for each in given.workloads if given.ledger.count(workload=each) < wanted]:
        for workload in left:
            missing = wanted - given.ledger.count(workload=workload)
            before = load()
            with self_test.builtin_problem(workload) as problem:
                if given.quick:
                    problem = replace(problem, budget_s=QUICK_S)
                found = await self_test.check_clock(problem, comparisons=min(chunk, missing))
            for each in found.measurements:
                given.ledger.add(row_of(each, workload=workload, load_before=before))
            if given.is_late:
                return
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
        "timed_share": [timing.timed_share for timing in measured.timings],
        "rounds": [timing.rounds for timing in measured.timings],
        "sample_s": [timing.sample_s for timing in measured.timings],
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
                f"{statistics.median(row['seconds'] for row in rows):.1f}",
                f"{statistics.fmean(s for row in rows for s in row['session_s']):.2f}",
                f"{statistics.fmean(s for row in rows for s in row['timed_share']):.0%}",
                tell_load(rows),
            )
        )
    head = ["workload", "wrong claims (goal: 5 %)", "claims", "spread of sessions (goal: 1.5 %)"]
    head += ("mean sessions, all", "of those found equivalent", "median s (goal: 6)")
    head += ("s per session", "in samples (goal: 50 %)", "load before / after")
    tell_table("Equal code", head, body)


# -- known effects --


async def run_effects(given: Given) -> None:
    wanted, chunk = given.count(10, 1), 5
    for _ in range(math.ceil(wanted / chunk)):
        for workload in given.workloads:
            ledger = given.ledger
            left = {each: wanted - ledger.count(workload=workload, effect=each) for each in EFFECTS}
            if max(left.values()) <= 0:
                continue
            pieces = [PIECES[each] for each in EFFECTS]
            async with open_pairs(workload, pieces, quick=given.quick) as pairs:
                for turn, effect in itertools.product(range(chunk), EFFECTS):
                    if turn < left[effect] and not given.is_late:
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
    for effect, (power, seconds) in EFFECTS.items():
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
                    f"{statistics.fmean(len(r['values']) for r in rows):.1f}",
                    f"{spread_about(rows):.2%}",
                    f"{statistics.fmean(s for row in rows for s in row['session_s']):.2f}",
                    f"{statistics.median(sum(row['session_s']) for row in rows):.1f}; {seconds:g}",
                    f"{statistics.median(row['seconds'] for row in rows):.1f}",
                    tell_load(rows),
                )
            )
    head = ["true ratio", "workload", "found faster; goal", "adopt", "interval holds; goal"]
    head += ("mean estimate", "mean sessions", "spread of sessions", "s per session")
    tell_table("Known effects", (*head, *SECONDS, "load before / after"), body)


def spread_about(rows: list[dict[str, Any]]) -> float:
    """The spread of sessions about the mean of their own comparison."""
    groups = [row["values"] for row in rows if len(row["values"]) > 1]
    squares = sum(statistics.variance(group) * (len(group) - 1) for group in groups)
    return math.sqrt(squares / max(sum(len(group) - 1 for group in groups), 1))


def covers_truth(interval: list[float], truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


# -- a session --


async def run_session(given: Given) -> None:
    """Sandboxed, plain and the floor take turns."""
    wanted = given.count(40, 2)
    for workload in given.workloads:
        if given.ledger.count(workload=workload) >= wanted:
            continue
        async with AsyncExitStack() as opened:
            benches = {}
            for name, plain in (("sandboxed", False), ("plain", True)):
                entered = opened.enter_async_context(open_builtin(workload, plain=plain))
                benches[name] = await entered
            for number in range(given.ledger.count(workload=workload), wanted):
                if given.is_late:
                    break
                row = {"workload": workload, "load_before": load(), "floor": start_two()}
                for name, bench in benches.items():
                    label = f"{name}/{time.monotonic_ns()}"
                    batch = await bench.run(None, label, number, 1, math.inf)
                    row[name] = batch.replicates[0][0].seconds
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
    head = ["workload", "sessions of each", "sandboxed (to start from: 0.15 to 0.5 s)"]
    head += ("plain (0.1 s)", "floor: two bare interpreters", "load before / after")
    tell_table("Seconds per session (medians)", head, body)


# -- sessions as they come --


async def run_record(given: Given) -> None:
    """Sessions of equal code one after the other, for `simulated_clocks.py` to draw from."""
    wanted = given.count(60, 6)
    for workload in given.workloads:
        before, label = load(), f"record/{time.monotonic_ns()}"
        async with open_builtin(workload, plain=False) as bench:
            batch = await bench.run(None, label, 0, wanted, given.left_s / 3)
        sessions = [session for (session,) in batch.replicates]
        row = {"workload": workload, "load_before": before, "values": values_of(sessions)}
        row["session_s"] = [round(session.seconds, 4) for session in sessions]
        row["values"] = [round(value, 6) for value in row["values"]]
        row["timed_share"] = timed_share(sessions)
        given.ledger.add(row)
        tell_progress(f"{workload}: {len(sessions)} sessions")


def tell_record(ledger: Ledger) -> None:
    body = [
        (
            row["workload"],
            len(row["values"]),
            f"{spread(row['values']):.2%}",
            f"{serial_correlation(row['values']) or 0.0:+.2f}",
            f"{statistics.fmean(row['session_s']):.2f}",
            f"{row['timed_share']:.0%}",
            tell_load([row]),
        )
        for row in ledger.rows()
    ]
    head = ("workload", "sessions", "spread (goal: 1.5 %)", "autocorrelation", "s per session")
    tell_table(
        "Sessions of equal code", (*head, "in samples (goal: 50 %)", "load before / after"), body
    )


Run = Callable[[Given], Awaitable[None]]
PARTS: dict[str, tuple[Run, Callable[[Ledger], None]]] = {
    "aa": (run_aa, tell_aa),
    "effects": (run_effects, tell_effects),
    "peers": (timing_peers.run, timing_peers.tell),
    "race": (timing_race.run, timing_race.tell),
    "session": (run_session, tell_session),
    "parts": (timing_parts.run, timing_parts.tell),
    "record": (run_record, tell_record),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--comparisons", type=int, metavar="N", help="so many of each kind")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="M", help="for each part"
    )
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
                ends_at = time.monotonic() + 60 * asked.minutes
                given = Given(ledger, asked.quick, asked.comparisons, asked.peer, ends_at)
                anyio.run(run, given)
        except KeyboardInterrupt:
            sys.exit(f"interrupted: {ledger.count()} results are in {ledger.path}; run it again")
        finally:
            if ledger.count():
                tell(ledger)


if __name__ == "__main__":
    main()
