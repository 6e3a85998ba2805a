"""Compare fairtrial's comparison of commands with hyperfine's: width per second, false alarms.

    python benchmarks/commands.py [--pairs N] [--budget SECONDS]

Both get the same two commands and about the same time. hyperfine gives no interval for a ratio, so
one is computed from its exported times: Welch's 95 % interval of the difference of mean logarithms.
A false alarm is an interval of two equal commands that excludes 1. Prints the load of the machine:
under load the figures say little.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean, median, variance

from fairtrial.arena import ArenaSettings, commands

PYTHON = shlex.quote(sys.executable)
PAIRS = {
    "start of Python, with and without site": (f"{PYTHON} -c 1", f"{PYTHON} -S -c 1"),
    "sleeps of 10 and 11 ms": ("sleep 0.010", "sleep 0.011"),
}
EQUAL = f"{PYTHON} -S -c 1"


def by_fairtrial(first: str, second: str, budget_s: float) -> tuple[float, float, float]:
    """Return the bounds of the log ratio, and the seconds that it took."""
    import anyio

    began = time.monotonic()

    async def work() -> tuple[float, float]:
        options = commands.CommandOptions(budget_s=budget_s)
        (comparison,) = await commands.compare_commands(
            [first, second], options=options, settings=ArenaSettings()
        )
        measured = comparison.measurement
        estimate = measured.estimate if measured else None
        return (math.log(estimate.low), math.log(estimate.high)) if estimate else (-9.0, 9.0)

    low, high = anyio.run(work)
    return low, high, time.monotonic() - began


def by_hyperfine(first: str, second: str, budget_s: float) -> tuple[float, float, float]:
    """Return the same of hyperfine, with as many runs as fit into the budget."""
    from scipy import stats

    once = time.monotonic()
    subprocess.run(shlex.split(first), check=True)
    subprocess.run(shlex.split(second), check=True)
    runs = max(10, int(budget_s / (time.monotonic() - once)))
    began = time.monotonic()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = ["hyperfine", "-N", "--warmup", "3", "--runs", str(runs), "--style", "none"]
        subprocess.run([*command, "--export-json", file.name, first, second], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        results = json.loads(Path(file.name).read_text("utf-8"))["results"]
    logs = [[math.log(value) for value in result["times"]] for result in results]
    parts = [variance(values) / len(values) for values in logs]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, logs, strict=True)
    )
    middle = fmean(logs[0]) - fmean(logs[1])
    half = float(stats.t.ppf(0.975, freedom)) * error
    return middle - half, middle + half, time.monotonic() - began


def main() -> None:
    """Print a table of widths, and the false alarms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="equal pairs for false alarms")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of a comparison")
    given = parser.parse_args()
    if shutil.which("hyperfine") is None:
        sys.exit("hyperfine is not installed")
    tools = {"fairtrial": by_fairtrial, "hyperfine": by_hyperfine}
    for name, pair in PAIRS.items():
        for tool, measure in tools.items():
            low, high, seconds = measure(*pair, given.budget)
            print(
                f"{name}: {tool}: {math.exp((low + high) / 2):.3f}x "
                f"[{math.exp(low):.3f}, {math.exp(high):.3f}] in {seconds:.1f} s; width of the log "
                f"ratio times root of seconds: {(high - low) * math.sqrt(seconds):.3f}",
                flush=True,
            )
    for tool, measure in tools.items():
        taken = [measure(EQUAL, EQUAL, given.budget) for _ in range(given.pairs)]
        alarms = sum(not low <= 0 <= high for low, high, _ in taken)
        width = median(high - low for low, high, _ in taken)
        print(f"equal commands: {tool}: {alarms} of {given.pairs} exclude 1; width {width:.3f}")
    print("load averages:", " ".join(f"{load:.1f}" for load in os.getloadavg()))


if __name__ == "__main__":
    main()
