"""The field of a race: session statistics of its runners, and bounds of their differences.

Bounds of how far a runner is behind a rival are one-sided and repeated: Welch's t over the first n
sessions of both, for n in the looks, however many more one of them has. So the bounds don't depend
on which runner gets how many sessions. The level of each look is that of the group-sequential test,
which was computed for fewer degrees of freedom, and is slightly conservative here. All bounds in a
race assume independent sessions: they decide who is timed further, while verdicts, the winner's
confirmation among them, come from intervals that allow for autocorrelated ones (`autocorrelation`).

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

from fairtrial.arena.timing.stats.sequential import SessionLook, interim_look, nominal_level
from fairtrial.core import sequential


class RunnerState(StrEnum):
    """The state of a runner in a race."""

    RUNNING = "running"
    CLOSE = "can't beat the leader by as much as matters"
    SLOWER = "slower than the leader"
    NO_FASTER = "no faster than the base by as much as matters"
    EQUIVALENT = "too close to the base to win"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Standing:
    """A runner's state and result so far.

    runner: the runner's number
    state: whether it is in the race, or why not
    sessions: its number of sessions
    look: its latest interim look, with an interval that holds for all runners simultaneously
    rival: the runner that it is slower than, or too close to
    """

    runner: int
    state: RunnerState
    sessions: int
    look: SessionLook
    rival: int | None = None


class Field:
    """Session statistics of runners, log(candidate/base), and the alpha of each."""

    def __init__(self, looks: Sequence[int], min_effect: float) -> None:
        """Start without runners; `looks` are the numbers of sessions with an interim look."""
        self.looks = tuple(looks)
        self._min_effect = min_effect
        self._statistics: list[list[float]] = []
        self._alphas: list[float] = []
        self._levels: list[float] = []

    def add(self, alpha: float) -> int:
        """Add a runner and return its number.

        alpha: the two-sided level of its interval, and the one-sided level of losing to it
        """
        self._statistics.append([])
        self._alphas.append(alpha)
        # A two-sided test at twice the level errs on either side at the level. (A single runner has
        # all of alpha; no other can lose to it, and twice its alpha may be no valid level.)
        self._levels.append(nominal_level(2 * alpha) / 2 if alpha < 0.5 else alpha / 2)
        return len(self._statistics) - 1

    def record(self, runner: int, statistics: Sequence[float]) -> None:
        """Add new sessions of a runner."""
        self._statistics[runner] += map(float, statistics)

    def count(self, runner: int) -> int:
        """Return a runner's number of sessions."""
        return len(self._statistics[runner])

    def looked(self, runner: int) -> int:
        """Return how many interim looks a runner has had."""
        return sum(at <= self.count(runner) for at in self.looks)

    def mean(self, runner: int) -> float:
        """Return the estimate of a runner that has had a session."""
        return fmean(self._statistics[runner])

    def look(self, runner: int, *, is_last: bool = False) -> SessionLook:
        """Return a runner's comparison with the base at its latest interim look.

        is_last: whether no more sessions will follow; only then later sessions count, too
        """
        statistics = self._statistics[runner]
        if not is_last and (done := self.looked(runner)):
            statistics = statistics[: self.looks[done - 1]]
        return interim_look(statistics, alpha=self._alphas[runner], min_effect=self._min_effect)

    def least_lag(self, runner: int, rival: int) -> float:
        """Return the highest lower bound, over all looks, of how much slower it is than a rival.

        Both must have had their first look.
        """
        looks = min(self.looked(runner), self.looked(rival))
        mine, other = self._statistics[runner], self._statistics[rival]
        level = self._levels[rival]
        return max(_least_gap(mine[:at], other[:at], level) for at in self.looks[:looks])


def _least_gap(mine: Sequence[float], other: Sequence[float], level: float) -> float:
    """Return Welch's one-sided lower bound of the difference of two means, equal sizes."""
    from scipy.special import stdtrit

    mean, other_mean = fmean(mine), fmean(other)
    variance, other_variance = _variance(mine, mean), _variance(other, other_mean)
    total = variance + other_variance
    part = variance / total
    df = (len(mine) - 1) / (part * part + (1 - part) * (1 - part))
    return mean - other_mean + float(stdtrit(df, level)) * math.sqrt(total / len(mine))


def _variance(values: Sequence[float], mean: float) -> float:
    squares = math.fsum((value - mean) * (value - mean) for value in values)
    return max(squares / (len(values) - 1), sequential.LEAST_SPREAD**2)
