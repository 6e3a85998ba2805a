"""The constants of the group-sequential test, made anew by a seeded Monte Carlo.

Every look has the same two-sided level a. Wanted is the a for which the chance that the interval of
*any* look misses the true mean is alpha. Counting how often that happens in plain simulated
comparisons would need millions of them for each further digit of alpha. So each comparison is
simulated *given* that look k misses, and weighted by one over the number N of looks that miss::

    P(any look misses) = a * sum over k of E[1/N | look k misses]

1/N lies between 1/6 and 1 whatever alpha is: the relative error is the same at 0.2 and at 1e-8.
Levels are rounded down, after four standard errors have been taken off.

Reference: Naiman and Priebe (2001), J. Comput. Graph. Stat. 10, 296-328: importance sampling for
the chance of a union of events.

    python benchmarks/boundaries.py            # prints the rows of stats/boundaries.py; 30 s
    python benchmarks/boundaries.py --check    # compares; exit code 1 if it differs
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from scipy import special

from fairtrial.arena.timing.stats.boundaries import LEVELS
from fairtrial.arena.timing.stats.sequential import LOOKS

SEED = 20_250_711
PATHS = 60_000
"""Simulated comparisons for each look."""
ROUNDS_OF_SOLVING = 6
SAFETY = 4.0
"""How many standard errors the levels are on the safe side."""
ALPHAS = (
    *(0.5, 0.4, 0.3, 0.2, 0.1),
    *(float(f"{digit}e-{power}") for power in range(2, 9) for digit in (5, 2, 1)),
)
CLOSE = 2e-3
"""What `--check` takes as the same: other versions of numpy and scipy may round otherwise."""


class Paths:
    """Simulated comparisons in which look `index` is going to miss by a given amount.

    A comparison is needed only as far as the looks see it: for the sessions that each look adds,
    their sum (divided by the root of their number) and their sum of squares about their mean.
    """

    def __init__(self, index: int, rng: np.random.Generator) -> None:
        self.index = index
        added = np.diff((0, *LOOKS))
        self.sums = rng.standard_normal((len(LOOKS), PATHS))
        self.squares = np.stack([rng.chisquare(count - 1, PATHS) for count in added])
        self.length = rng.chisquare(LOOKS[index], PATHS)
        # Evenly spread instead of drawn: the tail's quantiles need no luck.
        self.tail = (rng.permutation(PATHS) + 0.5) / PATHS
        self.roots = np.sqrt(added)[:, None]

    def misses(self, level: float) -> np.ndarray:
        """How many looks miss, for each comparison in which look `index` does."""
        sums, squares = self._given(level)
        total = np.cumsum(self.roots * sums, axis=0)
        square = np.cumsum(squares + sums**2, axis=0)
        count = np.zeros(PATHS)
        for at, sessions in enumerate(LOOKS):
            if at == self.index:
                count += 1  # by construction; rounding could say otherwise
                continue
            about_mean = square[at] - total[at] ** 2 / sessions
            t_squared = total[at] ** 2 / sessions * (sessions - 1) / about_mean
            count += t_squared > critical(level, sessions) ** 2
        return count

    def _given(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Sums and squares such that t of this look is drawn from its tail beyond the level.

        t, the length of the vector of all sessions up to the look, and the direction of what is
        left when their mean is taken off, are independent: t is drawn anew, the rest is kept.
        """
        upto, sessions = self.index + 1, LOOKS[self.index]
        t = critical(level * self.tail, sessions)
        along = self.roots[:upto] / math.sqrt(sessions)
        across = self.sums[:upto] - along * np.sum(along * self.sums[:upto], axis=0)
        rest = np.sum(across**2 + self.squares[:upto], axis=0)
        wanted = self.length / (1 + t**2 / (sessions - 1))
        scale = np.sqrt(wanted / rest)
        sums, squares = self.sums.copy(), self.squares.copy()
        sums[:upto] = across * scale + along * t * np.sqrt(wanted / (sessions - 1))
        squares[:upto] *= wanted / rest
        return sums, squares


def critical(level: float | np.ndarray, sessions: int) -> np.ndarray:
    """What |t| exceeds with this chance."""
    return np.asarray(-special.stdtrit(sessions - 1, np.asarray(level) / 2))


def chance_per_level(level: float, paths: list[Paths]) -> tuple[float, float]:
    """The chance that any look misses, divided by the level of each; and its standard error."""
    weights = [1 / path.misses(level) for path in paths]
    mean = sum(float(np.mean(each)) for each in weights)
    error = math.sqrt(sum(float(np.var(each)) / PATHS for each in weights))
    return mean, error


def solve(alpha: float, paths: list[Paths]) -> float:
    """The level of each look for this alpha, on the safe side."""
    level = alpha / 3
    for _ in range(ROUNDS_OF_SOLVING):  # the chance per level hardly changes with the level
        mean, error = chance_per_level(level, paths)
        level = alpha / (mean + SAFETY * error)
    exponent = math.floor(math.log10(level)) - 3
    return float(f"{math.floor(level / 10.0**exponent)}e{exponent}")


def make_table() -> list[tuple[float, float]]:
    """(alpha, level) for each alpha of the grid, the largest first."""
    rng = np.random.default_rng(SEED)
    paths = [Paths(index, rng) for index in range(len(LOOKS))]
    return [(alpha, solve(alpha, paths)) for alpha in ALPHAS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the table in use")
    arguments = parser.parse_args()
    table = make_table()
    if not arguments.check:
        for alpha, level in table:
            print(f"    ({alpha:g}, {level:.3e}),")
        return 0
    known = dict(LEVELS)
    wrong = [
        f"alpha {alpha:g}: {known.get(alpha)} in use, {level:.3e} made anew"
        for alpha, level in table
        if not math.isclose(known.get(alpha, 0.0), level, rel_tol=CLOSE)
    ]
    wrong += [f"alpha {alpha:g} is not in the grid" for alpha in known if alpha not in ALPHAS]
    print("\n".join(wrong) or f"all {len(table)} levels are as made anew")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
