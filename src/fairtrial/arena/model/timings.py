"""Timing results of a candidate: samples, sessions, estimates and the overall measurement.

Ratios are speed-ups: the base's time divided by the candidate's, above 1 for a faster candidate.
The statistic of a session is the logarithm of the inverse, computed from its samples: below 0 for a
faster candidate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from fairtrial.arena.model.figures import percent_text, seconds_text
from fairtrial.arena.model.memory import MemoryResult
from fairtrial.arena.model.verdicts import Rejection, Verdict

Arm = Literal["base", "candidate"]
Clock = Literal["wall", "cpu"]
MOST_DIGITS, NARROW = 4, 2.5
"""The most decimal places, and how many units of the last place an interval must be wide."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed unit: a batch of calls, or a process.

    round: the round of its session, from 0; -1 before the first
    position: 0 if it came first in its round, 1 if second
    arm: what was timed, base or candidate
    calls: the number of calls in the batch; 0 if only the request and the reply were timed
    wall_s: wall time from request to reply
    cpu_s: CPU time meanwhile, as counted by the kernel; None where that is not available
    is_kept: whether it is used; samples of a session's first round are not
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
    """A value for the base and the same for the candidate."""

    base: float
    candidate: float

    @property
    def growth(self) -> float:
        """The candidate's value divided by the base's; 1 if the base's is 0."""
        return self.candidate / self.base if self.base > 0 else 1.0


@dataclass(frozen=True, slots=True)
class SlowInput:
    """Inputs of one sample on which the candidate took longer than the base.

    session: the number of the session
    first: the index of its first input within the session, from 0
    calls: the number of calls of the sample
    growth: the candidate's time as a multiple of the base's
    what: types and sizes of the inputs' arguments
    """

    session: int
    first: int
    calls: int
    growth: float
    what: str


@dataclass(frozen=True, slots=True)
class Session:
    """One replicate of a benchmark: two fresh processes, or two workers that took turns.

    benchmark: the benchmark's name
    number: the number of the session within its comparison, from 0
    samples: all samples, in the order in which they were taken
    seconds: wall time of the whole session
    startup_s: time until each arm could be called, plus CPU time that it spent once, in the first
        call or later; None where that is part of the sample
    outside_s: time per round that each arm worked while it was not timed (reading inputs, writing
        results, background threads and processes, cores that it wasn't given); None where that
        can't happen
    stalled_s: time per round that each arm kept the bench waiting, while it was loaded or was not
        timed, without its own process working; None where that isn't known
    others_s: CPU time per round of each arm's other processes than its worker; None where they may
        use cores of their own, or aren't counted
    materializing: the share of each arm's samples that was spent on iterating over results
    peak_rss_mb: peak memory of each arm
    rejection: what the candidate did wrong, if that ended the session without a result
    loaded: files that the candidate's worker imported, by their paths inside the sandbox
    slow_inputs: inputs on which the candidate was slowest relative to the base, the slowest first
    judged_mb: peak memory of each arm, if the benchmark measures it
    host: the machine; times of different machines are never compared
    """

    benchmark: str
    number: int
    samples: tuple[Sample, ...]
    seconds: float
    startup_s: Pair | None = None
    outside_s: Pair | None = None
    stalled_s: Pair | None = None
    materializing: Pair | None = None
    peak_rss_mb: Pair | None = None
    rejection: Rejection | None = None
    loaded: frozenset[str] = field(default=frozenset(), repr=False)
    slow_inputs: tuple[SlowInput, ...] = ()
    others_s: Pair | None = None
    judged_mb: Pair | None = None
    host: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A speed-up and its confidence interval.

    ratio: how many times as fast as the base
    low, high: the bounds of the interval, valid at whichever session timing stops
    sessions: the number of sessions that it is based on
    confidence: the coverage of the interval, as a share
    """

    ratio: float
    low: float
    high: float
    sessions: int
    confidence: float

    def is_tied(self, other: Estimate, min_effect: float) -> bool:
        """Return whether two speeds can't be told apart, or only by less than `min_effect`.

        Each ratio must lie within the other's bounds. Overlapping bounds aren't enough: a wide
        interval overlaps with almost any.
        """
        slower, faster = sorted((self.ratio, other.ratio))
        is_close = faster < slower * (1 + min_effect)
        is_within = other.low <= self.ratio <= other.high and self.low <= other.ratio <= self.high
        return is_close or is_within

    def text(self) -> str:
        """Format ratio and interval like `1.42x [1.38, 1.46]`."""
        digits = self._count_digits()
        ratio, low, high = (f"{value:.{digits}f}" for value in (self.ratio, self.low, self.high))
        return f"{ratio}x [{low}, {high}]"

    def ratio_text(self) -> str:
        """Format the ratio alone, like `1.42x`, with the same digits as beside its interval."""
        return self.text().partition(" ")[0]

    def as_dict(self) -> dict[str, Any]:
        """Return ratio, interval and confidence as plain data."""
        return {
            "ratio": self.ratio,
            "interval": [self.low, self.high],
            "confidence": self.confidence,
        }

    def _count_digits(self) -> int:
        """Return the fewest decimal places that show the width, and each bound's side of 1."""
        bounds = [bound for bound in (self.low, self.high) if math.isfinite(bound)]
        largest = max(self.ratio, *bounds)
        least = 0 if largest >= 100 else 1 if largest >= 10 else 2
        width = self.high - self.low
        most = MOST_DIGITS
        if 0 < self.ratio < 1:
            most -= math.floor(math.log10(self.ratio))  # leading zeros don't count
        for digits in range(least, most):
            is_wide = width * 10**digits >= NARROW
            if is_wide and all(bound == 1 or round(bound, digits) != 1 for bound in bounds):
                return digits
        return most


def describe_verdict(verdict: Verdict, estimate: Estimate | None) -> str:
    """Return a verdict with its interval; equivalence is never worded as "no difference"."""
    if estimate is None:
        return verdict.value
    ratio = estimate.text()
    if verdict != Verdict.EQUIVALENT:
        return f"{verdict.value}, {ratio}"
    if estimate.low > 1:
        return f"equivalent (tiny gain, {ratio})"
    if estimate.high < 1:
        return f"equivalent (tiny loss, {ratio})"
    most = max(estimate.high - 1, 1 - estimate.low)
    return f"equivalent (a difference is below {percent_text(most)}, {ratio})"


class TimingTopic(StrEnum):
    """A figure of a benchmark that a veto or a note may be about."""

    SLOW_INPUTS = "slow inputs"
    STARTUP = "start-up"
    OUTSIDE_WORK = "work outside of samples"
    CPU_TIME = "CPU time"


@dataclass(frozen=True, slots=True)
class Timing:
    """The timing result of one benchmark.

    benchmark: the benchmark's name
    verdict: faster, slower, equivalent or inconclusive, for this benchmark alone
    estimate: the speed-up; None if there were too few sessions
    cpu_ratio: the speed-up by CPU time instead of wall time; None where it isn't known
    base_s: how long one call, or the process, takes on the base
    calls: the number of calls in a sample
    startup: start-up time, as a multiple of the base's
    outside: time that the candidate worked untimed, beyond the base's, as a share of the base's
        samples
    peak_rss_mb: peak memory of base and candidate
    notes: caveats for the user
    instructions: instructions that each arm executes per call, or per process, if they were
        counted; a second opinion that doesn't affect the verdict
    total: the speed-up by the sum of all times instead of the median; None if it isn't known
    tail: the speed-up of the slowest tenth of samples, each arm's own; None if it isn't known
    slow_inputs: inputs on which the candidate was slower than the base, the slowest first
    startup_extra_s: how many seconds longer than the base it takes to start
    pays_after: the number of calls after which a longer start is made up for; None if it is not
        longer, or never made up for
    serial_correlation: the lag-1 autocorrelation of the sessions, by the von Neumann ratio
    mentioned: the figures that vetoes and notes are about, so that remarks don't repeat them
    rounds: the number of rounds of a session that count
    sample_s: how long a sample of the base takes
    round_noise: what the logarithms of the ratios of rounds vary by within a session: a standard
        deviation, by the quartiles; None with fewer than four rounds
    timed_share: the share of the sessions' time that was spent in samples
    memory: the result of peak memory, if the benchmark measures it
    cpu: the speed-up by CPU time with its interval; None if it isn't known
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
    total: Estimate | None = None
    tail: Estimate | None = None
    slow_inputs: tuple[SlowInput, ...] = ()
    startup_extra_s: float | None = None
    pays_after: int | None = None
    serial_correlation: float | None = None
    mentioned: tuple[TimingTopic, ...] = ()
    rounds: int = 0
    sample_s: float = 0.0
    round_noise: float | None = None
    timed_share: float | None = None
    memory: MemoryResult | None = None
    cpu: Estimate | None = None

    @property
    def base_text(self) -> str:
        """How long one call, or the process, takes on the base, as text; empty if unknown."""
        return seconds_text(self.base_s) if self.base_s else ""


class TotalVerdict(StrEnum):
    """Whether a claimed saving appears in the total time of whole processes."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class TotalCheck:
    """Whether the saving that sessions claim appears in the total time of whole processes.

    benchmark: the benchmark's name
    verdict: whether it does
    claimed_s: the claimed saving per call
    base_s, candidate_s: wall time per call, with reading inputs and writing results
    base_cpu_s, candidate_cpu_s: CPU time per call of all processes, children included however they
        end; None where it isn't counted
    share: the part of the claimed saving that the total shows
    low, high: the bounds of its interval
    confidence: the coverage of the interval, as a share
    clock: the time that the share refers to, `wall` or `cpu`
    blocks: how often two processes of each version were run, one with twice the calls
    calls: the number of calls of the shorter process, in the last block
    seconds: how long it took
    varied: for a command: the files of which variations were read instead; empty otherwise
    is_unseen: whether each process got each input once, so that no result could be remembered
    """

    benchmark: str
    verdict: TotalVerdict
    claimed_s: float
    base_s: float
    candidate_s: float
    base_cpu_s: float | None
    candidate_cpu_s: float | None
    share: float
    low: float
    high: float
    confidence: float
    clock: Clock
    blocks: int
    calls: int
    seconds: float
    varied: str = ""
    is_unseen: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """The timing result of one candidate over all benchmarks.

    verdict: faster, slower, equivalent or inconclusive, over all benchmarks
    estimate: the geometric mean of the benchmarks' speed-ups; None if there were too few sessions
    adopt: whether the candidate should be adopted: significantly faster, by the smallest effect of
        interest or more, not contradicted by total time or slowest inputs, and without vetoes
    vetoes: reasons against adoption
    timings: the result of each benchmark
    seconds: wall time of the measurement
    waited_s: how long it waited for an idle host
    is_confirmed: whether it rests on fresh sessions that were taken after the candidate won a race
    notes: remarks for the user
    sessions: the sessions, from which all of the above can be recomputed
    total_checks: whether claimed savings appear in the total of whole processes, one for each
        benchmark of calls that is faster; empty if the candidate was not to be adopted anyway
    is_eliminated: whether it has few sessions because it was eliminated from a race
    host: the machine that all its sessions were on; empty in records of earlier versions
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
    total_checks: tuple[TotalCheck, ...] = ()
    is_eliminated: bool = False
    host: str = ""

    @property
    def verdict_text(self) -> str:
        """The verdict with its interval: `faster, 1.42x [1.38, 1.46]`."""
        return describe_verdict(self.verdict, self.estimate)

    @property
    def speed_text(self) -> str:
        """The speed-up with its interval; empty if there were too few sessions."""
        return self.estimate.text() if self.estimate else ""

    @property
    def session_count(self) -> int:
        """The number of sessions that every benchmark has."""
        if self.estimate is not None:
            return self.estimate.sessions
        numbers: dict[str, set[int]] = {}
        for session in self.sessions:
            numbers.setdefault(session.benchmark, set()).add(session.number)
        return min(map(len, numbers.values()), default=0)

    @property
    def peak_rss_mb(self) -> float:
        """The candidate's peak memory while it was timed; 0 if unknown."""
        pairs = [timing.peak_rss_mb for timing in self.timings]
        return max((pair.candidate for pair in pairs if pair is not None), default=0.0)
