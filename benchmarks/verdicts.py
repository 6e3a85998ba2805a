"""How often verdicts are wrong where data are clustered, lost, peeked at or badly behaved.

Each row simulates sets of data without an effect (or with the largest one for which the claim is
false) and counts how often the claim is called supported; with a realistic effect, it counts how
often it is found. Beside both, how often the intervals hold the true value. Everything goes through
public functions: `judge_hypotheses` for studies, `run_study` and `open_results` for studies that
are continued after a look, and the decision of a timed comparison on simulated sessions.

    python benchmarks/verdicts.py                   # 1,000 sets of data for each cell; Markdown
    python benchmarks/verdicts.py --quick           # 100
    python benchmarks/verdicts.py --only look_and   # the rows whose names begin so

Exit code 1 if a rate of false claims is above 0.055, or a coverage below 0.94, by more than twice
its Monte-Carlo error.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from verdict_scenarios import Scenario, Scored, make_scenarios
from verdict_sequences import make_sequences

MOST_FALSE = 0.055
LEAST_COVERAGE = 0.94
SEED = 15


@dataclass(frozen=True)
class Rate:
    """A share of simulated sets of data, with its Monte-Carlo error."""

    share: float
    error: float

    @classmethod
    def of(cls, shares: list[float]) -> Rate | None:
        if not shares:
            return None
        share = float(np.mean(shares))
        return cls(share, math.sqrt(max(share * (1 - share), 0.25 / len(shares)) / len(shares)))

    def __str__(self) -> str:
        return f"{self.share:.3f} ± {self.error:.3f}"


@dataclass(frozen=True)
class Row:
    """The rates of one scenario.

    runs: the number of sets of data
    false: at least one claim is supported although none is true
    qualified: at least one claim is supported with a reservation, and none without
    coverage: intervals that hold the true value
    power: the share of claims that are supported at the realistic effect, with a reservation or
        without
    is_biased: whether the data are biased: then the coverage is shown and not judged
    """

    name: str
    situation: str
    runs: int
    false: Rate | None
    qualified: Rate | None
    coverage: Rate | None
    power: Rate | None
    effect: float | None
    seconds: float
    is_biased: bool = False

    @property
    def misses(self) -> list[str]:
        """What is worse than the goals by more than chance."""
        misses = []
        if self.false is not None and self.false.share - 2 * self.false.error > MOST_FALSE:
            misses.append(f"{self.name}: false claims {self.false}, at most {MOST_FALSE}")
        coverage = self.coverage
        if self.is_biased or coverage is None:
            return misses
        if coverage.share + 2 * coverage.error < LEAST_COVERAGE:
            misses.append(f"{self.name}: coverage {coverage}, at least {LEAST_COVERAGE}")
        return misses


def measure(scenario: Scenario, runs: int) -> Row:
    """Simulate a scenario; its seed depends on its name only."""
    started = time.perf_counter()
    rng = np.random.default_rng([SEED, zlib.crc32(scenario.name.encode())])
    runs = max(20, runs // scenario.cost)
    null = [scenario.score(rng, scenario.null) for _ in range(runs)]
    with_effect: list[Scored] = []
    if scenario.effect is not None:
        with_effect = [scenario.score(rng, scenario.effect) for _ in range(max(20, runs // 4))]
    # One figure for each set of data, as the intervals of one set may depend on each other.
    covered = [float(np.mean(scored.covered)) for scored in null if scored.covered]
    return Row(
        scenario.name,
        scenario.situation,
        runs,
        Rate.of([float(scored.supported > 0) for scored in null]),
        Rate.of([float(scored.qualified > 0 and not scored.supported) for scored in null]),
        Rate.of(covered),
        Rate.of([scored.supported + scored.qualified for scored in with_effect]),
        scenario.effect,
        time.perf_counter() - started,
        scenario.is_biased,
    )


def print_row(row: Row) -> None:
    power = "-" if row.power is None else f"{row.power} (effect {row.effect:g})"
    cells = [f"{row.situation} (`{row.name}`)", row.false, row.qualified, row.coverage, power]
    texts = ["-" if cell is None else str(cell) for cell in cells]
    print(f"| {' | '.join(texts)} | {row.runs} | {row.seconds:.0f} s |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="100 sets of data for each cell")
    parser.add_argument("--runs", type=int, help="so many sets of data for each cell")
    parser.add_argument("--only", metavar="NAME", help="the scenarios whose names begin with this")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to a file")
    given = parser.parse_args()
    runs = given.runs or (100 if given.quick else 1_000)
    scenarios = [*make_scenarios(), *make_sequences()]
    chosen = [scenario for scenario in scenarios if scenario.name.startswith(given.only or "")]
    if not chosen:
        names = ", ".join(scenario.name for scenario in scenarios)
        parser.error(f"no scenario is called {given.only}; there are {names}")
    print(
        "| situation | false supported | supported with a reservation | coverage | power | sets | "
        "time |\n|---|---|---|---|---|---|---|"
    )
    rows = []
    for scenario in chosen:
        rows.append(measure(scenario, runs))
        print_row(rows[-1])
    if given.json:
        figures = json.dumps([asdict(row) for row in rows], indent=1)
        Path(given.json).write_text(figures, encoding="utf-8")
    misses = [miss for row in rows for miss in row.misses]
    for miss in misses:
        print(miss, file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
