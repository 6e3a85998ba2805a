"""How often the gate fails on equal code, and what it finds: on simulated clocks, in full.

Each noise model is a machine (`tests/kits/simulated_clock.py`). Every comparison goes through
`measure` and `Gate`, as in `fairtrial compare --fail-on slower`. "Stated" is how often a regression
is found of the size that the gate stated after a comparison of equal code: it must be 95 %. Exit
code 1 if a figure misses its goal.

    python benchmarks/gate.py              # about 4 minutes; Markdown
    python benchmarks/gate.py --runs 200   # a quick look
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

from fairtrial.arena import gate

sys.path.insert(1, str(Path(__file__).resolve().parent.parent / "tests" / "kits"))
from gate_kit import RULES, count_failures, judge_statistics
from simulated_clock import NOISES, Noise, draw_statistics

SLOWDOWNS = (0.03, 0.05, 0.10)
LIMITS = (0.0, 0.02)
BUDGETS = (6, 16, 46)
"""Sessions after which the budget ends."""
ALPHA, POWER = 0.05, 0.95


def main() -> int:
    """Print a table for each limit; return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000, help="comparisons of each kind")
    runs = parser.parse_args().runs
    missed = 0
    for limit in LIMITS:
        print(f"\n#### --max-regression {limit:.0%}: % that fail, of {runs} comparisons\n")
        head = ["equal code", *(f"{slowdown:.0%} slower" for slowdown in SLOWDOWNS)]
        head += [f"stated, {budget} sessions" for budget in BUDGETS]
        print("| noise | " + " | ".join(head) + " |")
        print("|---|" + "---|" * len(head))
        for name, noise in NOISES.items():
            shares = measure_gate(noise, limit, runs)
            missed += shares[0] > ALPHA or any(share < POWER for share in shares[-len(BUDGETS) :])
            cells = " | ".join(f"{share:.1%}" for share in shares)
            print(f"| {name} | {cells} |", flush=True)
    return 1 if missed else 0


def measure_gate(noise: Noise, limit: float, runs: int) -> list[float]:
    """The shares that fail: of equal code, of each slowdown, of what is stated with each budget."""
    rules = replace(RULES, max_regression=limit)
    judge = gate.Gate(gate.parse_conditions("slower"), limit)
    rows = draw_statistics(noise, runs, 21)
    counts = [
        count_failures(judge, rows, slowdown=slowdown, rules=rules) for slowdown in (0, *SLOWDOWNS)
    ]
    for budget in BUDGETS:
        equal, other = (draw_statistics(noise, runs, seed, budget) for seed in (22, 23))
        found = 0
        for row, fresh in zip(equal, other, strict=True):
            (finding,) = judge.judge([judge_statistics(row, rules=rules)]).findings
            stated = float(re.findall(r"above ([\d.]+) %", finding.sensitivity)[0]) / 100
            found += count_failures(judge, [fresh], slowdown=stated, rules=rules)
        counts.append(found)
    return [count / runs for count in counts]


if __name__ == "__main__":
    sys.exit(main())
