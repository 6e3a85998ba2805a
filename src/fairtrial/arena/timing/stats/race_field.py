"""The field of a race: what its runners have shown, and how far one is behind another for certain.

Bounds of how far a runner is behind a rival are one-sided and repeated: Welch's t over the first n
sessions of both, for n in the looks, however many more one of them has. So which runner gets how
many sessions can't bend them. The level of each look is that of the group-sequential test, which
was made for fewer degrees of freedom, and is a little on the safe side here.

References::

    Welch (1947), Biometrika 34, 28-35
    Jennison and Turnbull (1989), J. R. Stat. Soc. B 51, 305-361: repeated confidence intervals
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from fairtrial.arena.timing.stats.sequential import LEAST_SPREAD, Look, look, nominal_level


class State(StrEnum):
    """Where a runner is in a race."""

    RUNNING = "running"
    CLOSE = "can't beat the leader by as much as matters"
    SLOWER = "slower than the leader"
    NO_FASTER = "no faster than the base by as much as matters"
    EQUIVALENT = "equivalent to the base"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a runner is doing.

    runner: which one
    state: whether it is in the race, or why not
    sessions: how many it has had
    look: what its latest look said, with an interval that holds for all runners at once
    rival: whom it is slower than, or too close to
    """

    runner: int
    state: State
    sessions: int
    look: Look
    rival: int | None = None


class Field:
    """Session statistics of runners, log(candidate/base), and the alpha that each may spend."""

    def __init__(self, looks: Sequence[int], min_effect: float) -> None:
        """`looks`: after how many sessions one looks."""
        self.looks = tuple(looks)
        self._min_effect = min_effect
        self._statistics: list[list[float]] = []
        self._alphas: list[float] = []
        self._levels: list[float] = []

    def add(self, alpha: float) -> int:
        """A new runner: the two-sided level of its interval, and the one-sided of losing to it."""
        self._statistics.append([])
        self._alphas.append(alpha)
        # A two-sided test at twice the level errs on either side at the level. (One runner alone
        # may have all of alpha; nobody ever loses to it, and twice that may be no level at all.)
        self._levels.append(nominal_level(2 * alpha) / 2 if alpha < 0.5 else alpha / 2)
        return len(self._statistics) - 1

    def tell(self, runner: int, statistics: Sequence[float]) -> None:
        """New sessions of a runner."""
        self._statistics[runner] += map(float, statistics)

    def count(self, runner: int) -> int:
        """How many sessions a runner has had."""
        return len(self._statistics[runner])

    def looked(self, runner: int) -> int:
        """How many looks a runner has behind it."""
        return sum(at <= self.count(runner) for at in self.looks)

    def mean(self, runner: int) -> float:
        """The estimate of a runner that has had a session."""
        return fmean(self._statistics[runner])

    def look(self, runner: int, *, is_last: bool = False) -> Look:
        """A runner against the base, as of its latest look.

        Sessions since then count only if no more will come: anything else would be peeking.
        """
        taken = self._statistics[runner]
        if not is_last and (done := self.looked(runner)):
            taken = taken[: self.looks[done - 1]]
        return look(taken, alpha=self._alphas[runner], min_effect=self._min_effect)

    def least_lag(self, runner: int, rival: int) -> float:
        """The firmest lower bound of how much slower a runner is than a rival.

        Both have had their first look.
        """
        both = min(self.looked(runner), self.looked(rival))
        mine, other = self._statistics[runner], self._statistics[rival]
        level = self._levels[rival]
        return max(_least_gap(mine[:at], other[:at], level) for at in self.looks[:both])


def _least_gap(mine: Sequence[float], other: Sequence[float], level: float) -> float:
    """Welch's one-sided lower bound of the difference of two means of equally many."""
    from scipy.special import stdtrit

    mean, other_mean = fmean(mine), fmean(other)
    variance, other_variance = _variance(mine, mean), _variance(other, other_mean)
    total = variance + other_variance
    part = variance / total
    df = (len(mine) - 1) / (part * part + (1 - part) * (1 - part))
    return mean - other_mean + float(stdtrit(df, level)) * math.sqrt(total / len(mine))


def _variance(values: Sequence[float], mean: float) -> float:
    squares = math.fsum((value - mean) * (value - mean) for value in values)
    return max(squares / (len(values) - 1), LEAST_SPREAD**2)
