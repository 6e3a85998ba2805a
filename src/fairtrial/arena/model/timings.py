"""What the clock said of a candidate: samples, sessions, and what they come to.

Ratios are speed-ups: the base's time by the candidate's, above 1 for a faster candidate. The
statistic of a session is the logarithm of the inverse, as its samples give it: below 0 for faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fairtrial.arena.model.verdicts import Rejection, Verdict

Arm = Literal["base", "candidate"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing that was timed: some calls, or a process.

    round: which round of its session, from 0; -1 before the first
    position: 0 if it came first in its round, 1 if second
    arm: whose it is
    calls: how many calls it is the time of; with none, what asking and replying alone takes
    wall_s: from request to reply, by our clock
    cpu_s: CPU time meanwhile, as the kernel counts it; None where it doesn't tell
    is_kept: whether it counts: the first round of a session doesn't
    """

    round: int
    position: int
    arm: Arm
    calls: int
    wall_s: float
    cpu_s: float | None
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of both arms."""

    base: float
    candidate: float

    @property
    def growth(self) -> float:
        """How many times the base's figure the candidate's is; 1 where there is nothing."""
        return self.candidate / self.base if self.base > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """Two fresh processes, or two workers that took turns: one replicate.

    benchmark: what was timed
    number: which session of this comparison, from 0
    samples: all of them, in the order in which they were taken
    seconds: how long it took, all in all
    startup_s: how long each took until it could be called, and CPU time that it used once, in the
        first call or later; None where that is part of the sample
    outside_s: time per round that each was at work but not being timed (reading inputs, writing
        results down, threads and other processes that went on, cores that it wasn't given); None
        where there is no such time
    stalled_s: time per round that each let us wait, when it was loaded or wasn't being timed, while
        its own process didn't work; None where that isn't known
    materialising: the share of each one's samples that went into going through results
    peak_rss_mb: the most memory each held
    rejection: why there is no result: what the candidate did wrong meanwhile
    loaded: files that the candidate's worker imported, as it saw them
    """

    benchmark: str
    number: int
    samples: tuple[Sample, ...]
    seconds: float
    startup_s: Pair | None = None
    outside_s: Pair | None = None
    stalled_s: Pair | None = None
    materialising: Pair | None = None
    peak_rss_mb: Pair | None = None
    rejection: Rejection | None = None
    loaded: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio, and within which bounds it lies.

    ratio: how many times as fast as the base
    low, high: the bounds; they hold at whatever session one stops
    sessions: what it rests on
    confidence: how often such bounds hold, as a share
    """

    ratio: float
    low: float
    high: float
    sessions: int
    confidence: float


@dataclass(frozen=True, slots=True)
class Timing:
    """One benchmark of a candidate.

    benchmark: what was timed
    verdict: faster, slower, equivalent or inconclusive, for this one alone
    estimate: its ratio; None if there were too few sessions
    cpu_ratio: the same by CPU time instead of the clock on the wall; None where it isn't known
    base_s: how long one call, or the process, takes on the base
    calls: how many calls a sample is
    startup: start-up time, as a multiple of the base's
    outside: time at work but not being timed beyond the base's, as a share of the base's samples
    peak_rss_mb: the most memory the candidate held, and the base
    notes: what people should know before they believe it
    instructions: how many each executes per call, or as a process, if they were counted; a second
        opinion, which decides nothing
    """

    benchmark: str
    verdict: Verdict
    estimate: Estimate | None
    cpu_ratio: float | None = None
    base_s: float = 0.0
    calls: int = 1
    startup: float | None = None
    outside: float | None = None
    peak_rss_mb: Pair | None = None
    notes: tuple[str, ...] = ()
    instructions: Pair | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """All that the clock said of one candidate.

    verdict: faster, slower, equivalent or inconclusive; over all benchmarks
    estimate: the geometric mean of the benchmarks' ratios; None if there were too few sessions
    adopt: whether it is worth taking: certainly faster, by the smallest effect of interest or more,
        and nothing speaks against it
    vetoes: what speaks against it
    timings: benchmark by benchmark
    seconds: how long it took
    waited_s: how long the host stood idle for it
    is_confirmed: whether this comes of fresh sessions after it had won a race
    notes: what people should know
    sessions: what all of it can be computed from again
    """

    verdict: Verdict
    estimate: Estimate | None
    adopt: bool = False
    vetoes: tuple[str, ...] = ()
    timings: tuple[Timing, ...] = ()
    seconds: float = 0.0
    waited_s: float = 0.0
    is_confirmed: bool = False
    notes: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = field(default=(), repr=False)
