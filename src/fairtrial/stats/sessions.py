"""From the samples of sessions to one number for each: the only replicates there are.

Rounds of one session share two processes, and these differ by a per cent or more however often they
are called (where their memory lies, how their hashes fall). A round more makes the session's number
more exact, but is no independent evidence; a session more is.

Reference: Kalibera and Jones (2013), ISMM '13, 63-74: repeat at the level that varies.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fairtrial.model.timings import Sample

Clock = Literal["wall", "cpu"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Session statistics in short.

    sessions: how many
    mean: of log(candidate/base)
    sd: standard deviation between sessions; 0 for a single one
    """

    sessions: int
    mean: float
    sd: float


def session_statistic(base_s: Sequence[float], candidate_s: Sequence[float]) -> float:
    """The median of log(candidate/base) over the rounds of a session; below 0 for faster.

    The median of ratios of neighbours: what slows both down for a while cancels, and a round that
    something fell into doesn't count for more than any other.
    """
    if len(base_s) != len(candidate_s) or not base_s:
        raise ValueError(
            f"a session needs as many times of the base as of the candidate, at least one of each; "
            f"got {len(base_s)} and {len(candidate_s)}"
        )
    for seconds in (*base_s, *candidate_s):
        if not 0 < seconds < math.inf:
            raise ValueError(f"a time must be more than 0 seconds, got {seconds}")
    rounds = (math.log(new / old) for old, new in zip(base_s, candidate_s, strict=True))
    return statistics.median(rounds)


def kept_rounds(
    samples: Sequence[Sample], clock: Clock = "wall"
) -> tuple[list[float], list[float]]:
    """Seconds per call of the base and of the candidate, for the rounds that count and are whole.

    By CPU time, rounds in which it isn't known for both (or is nothing) are left out.
    """
    times: dict[int, dict[str, float]] = {}
    for sample in samples:
        seconds = sample.wall_s if clock == "wall" else sample.cpu_s
        if sample.is_kept and seconds:
            times.setdefault(sample.round, {})[sample.arm] = seconds / sample.calls
    whole = [arms for _, arms in sorted(times.items()) if len(arms) == 2]
    return [arms["base"] for arms in whole], [arms["candidate"] for arms in whole]


def mean_statistics(benchmarks: Sequence[Sequence[float]]) -> list[float]:
    """The replicates of several benchmarks together: session by session the mean over benchmarks.

    exp(-mean) of these is the geometric mean of the benchmarks' speed-ups.
    """
    counts = {len(each) for each in benchmarks}
    if len(counts) != 1:
        raise ValueError(
            "each benchmark needs the same number of sessions, and there must be one benchmark "
            f"at least; got {[len(each) for each in benchmarks]}"
        )
    return [statistics.fmean(replicate) for replicate in zip(*benchmarks, strict=True)]


def describe(values: Sequence[float]) -> Spread:
    """Number, mean and standard deviation of session statistics."""
    if not values:
        raise ValueError("there are no sessions to describe")
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(len(values), statistics.fmean(values), sd)
