"""The best of 16 candidates: a race, against timing each of them with all its sessions.

Part of `timing.py`. All candidates do the same with fewer or more pieces, so that it is known which
one is the best. A race is compared with sessions that were really run; where only some of the
candidates were (a smoke run), the time is scaled, and the table says so.
"""

from __future__ import annotations

import math
import statistics

from fairtrial.arena import Measurement
from fairtrial.arena.timing.decision import race
from fairtrial.arena.timing.stats.autocorrelation import session_look
from fairtrial.arena.timing.stats.sequential import LOOKS, next_look
from fairtrial.core.sequential import alpha_share
from timing_kit import (
    BASE_PIECES,
    Given,
    Ledger,
    Pairs,
    Watched,
    load,
    open_pairs,
    tell_load,
    tell_progress,
    tell_table,
    values_of,
)

RATIOS = (
    *(0.90, 0.915, 0.93, 0.945, 0.96, 0.975, 0.99, 1.01),
    *(1.025, 1.04, 1.055, 1.07, 1.085, 1.10, 1.12, 1.15),
)
"""Of the 16 candidates of a race, about; the best is 2.7 % ahead of the next."""
RACED = "words"


async def run(given: Given) -> None:
    """In full: half of the sessions before the race and half after it, so that both see the same
    machine."""
    ratios = RATIOS[::5] if given.quick else RATIOS
    pieces = [round(BASE_PIECES / ratio) for ratio in ratios]
    timed = pieces[1:] if given.quick else pieces
    halves = [range(2), range(2, 4)] if given.quick else [range(23), range(23, LOOKS[-1])]
    while given.ledger.count() < given.count(2, 1) and not given.is_late:
        before = load()
        async with open_pairs(RACED, pieces, quick=given.quick) as pairs:
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


def tell(ledger: Ledger) -> None:
    rows, body = ledger.rows(), []
    for row in rows:
        timed = row["full_values"]
        session_s = row["full_s"] / row["full_sessions"]
        sessions = row["candidates"] * LOOKS[-1]
        full_s = session_s * sessions
        is_whole = row["full_sessions"] == sessions
        best = min(timed, key=lambda name: statistics.fmean(timed[name]))
        raced_s, both_s = row["race_s"], row["race_s"] + row["final_s"]
        alpha = alpha_share(0.05, row["candidates"])
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
                "; ".join(map(tell_ratio, (row["winner"], best, min(map(int, timed))))),
                told,
                f"{each_s * row['candidates']:.0f} s",
                f"{session_s:.2f}",
                tell_load([row]),
            )
        )
    head = ["race", "confirmed, too", "each in full", "share of time: race; confirmed, too"]
    head += ("winner: raced; in full; true", "what is said of it", "each, stopped when decided")
    tell_table(
        f"The best of {rows[0]['candidates']} candidates ({RACED}, true ratios 0.90 to 1.15)",
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
        if session_look(values[:done], alpha=alpha, min_effect=0.02).is_decided:
            break
    return done or len(values)
