"""The same pairs with pyperf and pytest-benchmark, at their defaults and by their own rules.

Part of `timing.py`. Pairs are of known ratio (`timing_kit.py`); each is compared once by every tool
before the next pair comes, the tools in an order that goes round. What each one says:

- fairtrial: its verdict, with its defaults (alpha 5 %, minimum effect 2 %)
- pyperf: `pyperf compare_to`, which calls a difference significant by Student's t test over all
  values at 95 %; 20 processes with 3 values of 0.1 s or more for each version
- pytest-benchmark: faster or slower if the medians are more than 5 % apart; that is
  `--benchmark-compare-fail=median:5%`, the example of its documentation, in both directions. The
  same with 2 % stands beside, from the same runs. It takes rounds for a second for each version.

Peers have one input for each pair, which changes from pair to pair; that is how they are used.
Seconds are from starting the tool until it has said what it says. Ours are in a sandbox, staging
included; what happens once for a problem (snapshot, checks of the base, calibration) is not in it
and is told apart.

Interval width. pyperf gives no interval of the ratio, so it is made of its values: half the width
of Welch's 95 % interval of log(mean/mean), once with all values taken as independent, as its own
test takes them, and once with one mean for each process, which is what is independent. Ours is half
the width of the interval that is reported, which holds at every look. Sessions of the same pair go
on, beyond what the verdict took, until a look (6, 10, ..., 46) finds it as narrow as pyperf's; the
seconds until then are compared with pyperf's. If 46 sessions are not enough, their seconds are
scaled by the square of the two widths, and the table says how often. A width is a claim, not
accuracy: the root mean square of the errors (estimate against the true ratio) stands beside.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairtrial.arena.timing.decision import measure
from fairtrial.arena.timing.stats.autocorrelation import session_look
from fairtrial.arena.timing.stats.sequential import LOOKS, next_look
from timing_kit import (
    PIECES,
    Given,
    Ledger,
    Pairs,
    Watched,
    checked,
    load,
    open_pairs,
    tell_load,
    tell_progress,
    tell_rate,
    tell_table,
    true_log,
    values_of,
)
from timing_tools import Peers, make_venv

TOOLS = ("fairtrial", "pyperf", "pytest-benchmark")
MARGINS = (0.05, 0.02)
CHUNK = 2


async def run(given: Given) -> None:
    """All pairs of a workload share an arena for a while; then comes the next workload."""
    wanted = given.count(8, 1)
    with tempfile.TemporaryDirectory(prefix="fairtrial-timing-") as folder:
        python = given.peer or make_venv(Path(folder) / "venv")
        for _ in range(math.ceil(wanted / CHUNK)):
            for workload in () if given.is_late else given.workloads:
                await _run_chunk(given, workload, wanted, python, Path(folder))


async def _run_chunk(given: Given, workload: str, wanted: int, python: str, folder: Path) -> None:
    have = {effect: given.ledger.count(workload=workload, effect=effect) for effect in PIECES}
    if min(have.values()) >= wanted:
        return
    began = time.monotonic()
    async with open_pairs(workload, list(PIECES.values()), quick=given.quick) as pairs:
        opened_s = time.monotonic() - began
        for turn in range(CHUNK):
            for effect in PIECES:
                number = have[effect] + turn
                if number >= wanted or given.is_late:
                    continue
                row = {"workload": workload, "effect": effect, "load_before": load()}
                peers = Peers(python, folder, workload, PIECES[effect], quick=given.quick)
                found = await compare(pairs, peers, PIECES[effect], number)
                given.ledger.add({**row, **found, "opened_s": opened_s})
                tell_progress(f"{workload}, {effect}: {number + 1} of {wanted}")


async def compare(pairs: Pairs, peers: Peers, pieces: int, number: int) -> dict[str, Any]:
    """One pair by every tool, the first of them another one each time."""
    label, name = f"peers/{time.monotonic_ns()}", "pair"
    timer = Watched(pairs.bench)
    changes = pairs.entries[pieces]
    told: dict[str, Any] = {}
    ours: list[Any] = []
    start = number % len(TOOLS)
    for tool in (*TOOLS[start:], *TOOLS[:start]):
        if tool == "pyperf":
            told[tool] = peers.ask_pyperf()
        elif tool == "pytest-benchmark":
            told[tool] = peers.ask_pytest()
        else:
            found = checked(await measure(timer, name, changes, pairs.rules, label=label))
            ours = list(found.sessions)
            told[tool] = {"claim": found.verdict.value, "seconds": timer.seconds()}
            told[tool]["log"] = statistics.fmean(values_of(ours))
            told[tool]["sessions"] = len(ours)
    goal = min(told["pyperf"]["half_values"], told["pyperf"]["half_processes"])
    while (end := next_look(len(ours))) is not None and not peers.quick:
        if half_width(values_of(ours)) <= goal:
            break
        more = await timer.run(changes, f"{label}/{name}", len(ours), end - len(ours), math.inf)
        if more.rejection is not None:
            raise RuntimeError(more.rejection.message)
        ours += [session for (session,) in more.replicates]
    told["fairtrial"] |= {
        "values": values_of(ours),
        "session_s": [session.seconds for session in ours],
        "all_s": timer.seconds(),
    }
    return told


def half_width(values: Sequence[float]) -> float:
    """Of our interval of log(candidate/base)."""
    found = session_look(values, alpha=0.05, min_effect=0.02)
    return (found.high - found.low) / 2


# -- what came of it --


def tell(ledger: Ledger) -> None:
    rows = ledger.rows()
    body = [_tell_tool(rows, "fairtrial", None), _tell_tool(rows, "pyperf", None)]
    body += [_tell_tool(rows, "pytest-benchmark", margin) for margin in MARGINS]
    head = ["tool", "false alarms", "misses at 3 %", "misses at 5 %", "rms error of the ratio"]
    tell_table(
        f"Peers, {len(rows)} pairs; load before / after {tell_load(rows)}; "
        f"{statistics.fmean(s for r in rows for s in r['fairtrial']['session_s']):.2f} s per "
        f"session of ours, {statistics.fmean(row['opened_s'] for row in rows):.0f} s once for a "
        "problem",
        (*head, "s per comparison", "of equal code; 3 %; 5 %"),
        body,
    )
    head = ["pyperf's width from", "its half-width", "our s / its s (goal: at most 0.20)"]
    tell_table(
        "Wall time until our interval is as narrow as pyperf's (medians over pairs)",
        (*head, "our sessions", "more than 46 needed", "load before / after"),
        [
            _tell_width(rows, "half_values", "all values, as its test takes them"),
            _tell_width(rows, "half_processes", "one mean a process"),
        ],
    )


def _tell_tool(rows: list[dict[str, Any]], tool: str, margin: float | None) -> list[str]:
    def claim_of(row: dict[str, Any]) -> str:
        if margin is None:
            return str(row[tool]["claim"])
        log = row[tool]["log"]
        return ("faster" if log < 0 else "slower") if abs(log) > math.log1p(margin) else "no"

    by_effect = {each: [row for row in rows if row["effect"] == each] for each in PIECES}
    cells = [tool if margin is None else f"{tool}, medians {margin:.0%} apart"]
    for effect, some in by_effect.items():
        claims = [claim_of(row) for row in some]
        wrong = [
            claim in ("faster", "slower") if effect == "equal" else claim != "faster"
            for claim in claims
        ]
        cells.append(tell_rate(sum(wrong), len(wrong)) if wrong else "-")
    errors = [row[tool]["log"] - true_log(PIECES[row["effect"]]) for row in rows]
    cells.append(f"{math.sqrt(statistics.fmean(error**2 for error in errors)):.2%}")
    cells.append(f"{statistics.fmean(row[tool]['seconds'] for row in rows):.1f}")
    seconds = [[row[tool]["seconds"] for row in some] for some in by_effect.values()]
    cells.append("; ".join(f"{statistics.fmean(each):.1f}" if each else "-" for each in seconds))
    return cells


def _tell_width(rows: list[dict[str, Any]], key: str, how: str) -> list[str]:
    shares, sessions, short = [], [], 0
    for row in rows:
        ours, goal = row["fairtrial"], row["pyperf"][key]
        values, session_s = ours["values"], ours["session_s"]
        # What staging took beside the sessions is spread over them.
        extra = ours["all_s"] / sum(session_s)
        looks = [at for at in LOOKS if at <= len(values)] or [len(values)]
        enough = next((at for at in looks if half_width(values[:at]) <= goal), None)
        taken = enough or len(values)
        scale = 1.0 if enough else (half_width(values) / goal) ** 2
        short += enough is None
        sessions.append(taken * scale)
        shares.append(sum(session_s[:taken]) * extra * scale / row["pyperf"]["seconds"])
    return [
        how,
        f"{statistics.median(row['pyperf'][key] for row in rows):.2%}",
        f"**{statistics.median(shares):.2f}** ({min(shares):.2f} to {max(shares):.2f})",
        f"{statistics.median(sessions):.0f}",
        f"{short} of {len(rows)}",
        tell_load(rows),
    ]
