"""Simulated clocks, to measure error rates, power and session counts of the timing statistics.

Noise is simulated for single samples, in the order in which a session takes them. So all steps are
covered: the order ABBA, the discarded round, the median of a session, the interim looks.

Times are logarithms of seconds, since disturbances multiply. A candidate's speed-up shifts each of
its samples, and with them the statistic of each session, by the same amount. So noise is drawn once
(`draw_statistics`) and judged under any number of ratios and alphas.

Reference: Morris, White and Crowther (2019), Stat. Med. 38, 2074-2102: simulation studies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtrial.arena.timing.stats.autocorrelation import (
    CLEARLY_SLOWER,
    EARLY_LOOK,
    early_intervals,
    widened_intervals,
)
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim

if TYPE_CHECKING:
    from numpy.random import Generator

    from fairtrial.arena.timing.stats.arrays import Values

ROUNDS = 11
"""Rounds of a session; the first is discarded."""
AT_ONCE = 250
"""Comparisons drawn at once: more would only need more memory."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a simulated machine; all figures are shares of the time.

    name: its name
    jitter: standard deviation of each sample
    tails: degrees of freedom of the jitter, if it isn't normal; 3 is heavy
    spikes: the share of samples that are disturbed, and take half as long again on average
    process: standard deviation between fresh processes of the same code
    layouts: whether processes are of two sorts, each that far from the mean, instead of normal
    wave: amplitude of slow oscillations within and across sessions
    walk: standard deviation of the step of a random walk, from sample to sample
    load: how often, from sample to sample, another program starts or stops; meanwhile samples take
        5 to 50 % longer, and jitter twice as much
    warmup: how much slower the first samples of a process are, on average
    second: how much slower the second sample of each round is
    """

    name: str
    jitter: float = 0.015
    tails: int | None = None
    spikes: float = 0.0
    process: float = 0.0095
    layouts: bool = False
    wave: float = 0.0
    walk: float = 0.0
    load: float = 0.0
    warmup: float = 0.1
    second: float = 0.0


NOISES = {
    noise.name: noise
    for noise in (
        Noise("iid", jitter=0.027, process=0.0, warmup=0.0),
        Noise("drift", wave=0.05, walk=0.002, second=0.01),
        Noise("load", jitter=0.012, process=0.008, load=0.04),
        Noise("tails", jitter=0.011, tails=2, spikes=0.1, process=0.0075),
        Noise("process", jitter=0.01, process=0.0112),
        Noise("layouts", jitter=0.01, process=0.01, layouts=True),
        Noise(
            "all",
            jitter=0.008,
            tails=3,
            spikes=0.05,
            process=0.009,
            wave=0.05,
            walk=0.002,
            load=0.02,
            second=0.01,
        ),
    )
}
"""Simulated machines by name. Sessions spread by 1.2 to 1.7 %, as on real ones."""


@dataclass(frozen=True, slots=True)
class Stops:
    """Where comparisons ended; each row is one comparison.

    sessions: number of sessions
    mean, low, high: mean of log(candidate/base), and its interval at the end
    claims: the claims, as indices into `CLAIMS`
    """

    sessions: Values
    mean: Values
    low: Values
    high: Values
    claims: Values


CLAIMS = (Claim.INCONCLUSIVE, Claim.EQUIVALENT, Claim.FASTER, Claim.SLOWER)


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Rates of claims and errors, as shares of the runs.

    ratio: the true speed-up
    runs: number of comparisons
    false: wrong claims of "faster" or "slower"
    falsely_equivalent: claims of "equivalent" for a true effect that isn't below the minimum
    faster, slower, equivalent, inconclusive: each claim
    adopt: recommendations to adopt the candidate
    coverage: intervals that contain the true ratio
    mean_sessions: average number of sessions
    spread: standard deviation between sessions
    """

    ratio: float
    runs: int
    false: float
    falsely_equivalent: float
    faster: float
    slower: float
    equivalent: float
    inconclusive: float
    adopt: float
    coverage: float
    mean_sessions: float
    spread: float


def simulate(
    noise: Noise,
    ratio: float,
    runs: int,
    seed: int,
    *,
    alpha: float = 0.05,
    min_effect: float = 0.02,
    sessions: int = LOOKS[-1],
) -> SimulationResult:
    """Simulate comparisons of a base with a candidate that is `ratio` times as fast.

    sessions: after how many the budget ends
    """
    statistics = draw_statistics(noise, runs, seed, sessions)
    return judge(statistics, ratio, alpha=alpha, min_effect=min_effect)


def draw_statistics(noise: Noise, runs: int, seed: int, sessions: int = LOOKS[-1]) -> Values:
    """Draw session statistics of equal code: each row is a comparison, each column a session."""
    import numpy as np

    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, runs, AT_ONCE):
        base, candidate = draw_sessions(noise, rng, min(AT_ONCE, runs - start), sessions)
        parts.append(np.median((candidate - base)[:, :, 1:], axis=2))
    return np.concatenate(parts)


def draw_autocorrelated(rho: float, runs: int, seed: int, spread: float = 0.015) -> Values:
    """Draw session statistics of equal code, each correlated by `rho` with the one before it."""
    import numpy as np

    steps = np.random.default_rng(seed).standard_normal((runs, LOOKS[-1]))
    values: Values = steps.copy()
    for at in range(1, LOOKS[-1]):
        values[:, at] = rho * values[:, at - 1] + math.sqrt(1 - rho * rho) * steps[:, at]
    return spread * values


def judge(statistics: Values, ratio: float, *, alpha: float, min_effect: float) -> SimulationResult:
    """Return the test's error rates if a candidate is `ratio` times as fast as in `statistics`."""
    import numpy as np

    truth = -math.log(ratio)
    ends = stop(statistics + truth, alpha=alpha, min_effect=min_effect)
    claimed = {claim: ends.claims == index for index, claim in enumerate(CLAIMS)}
    faster, slower = claimed[Claim.FASTER], claimed[Claim.SLOWER]
    is_small = abs(truth) < math.log1p(min_effect)
    return SimulationResult(
        ratio=ratio,
        runs=len(statistics),
        false=float(np.mean((faster & (truth >= 0)) | (slower & (truth <= 0)))),
        falsely_equivalent=0.0 if is_small else float(np.mean(claimed[Claim.EQUIVALENT])),
        faster=float(np.mean(faster)),
        slower=float(np.mean(slower)),
        equivalent=float(np.mean(claimed[Claim.EQUIVALENT])),
        inconclusive=float(np.mean(claimed[Claim.INCONCLUSIVE])),
        adopt=float(np.mean((ends.high < 0) & (-ends.mean >= math.log1p(min_effect)))),
        coverage=float(np.mean((ends.low <= truth) & (truth <= ends.high))),
        mean_sessions=float(np.mean(ends.sessions)),
        spread=float(np.std(statistics)),
    )


def stop(statistics: Values, *, alpha: float, min_effect: float) -> Stops:
    """Run each comparison up to the first look that decides, or to its last session.

    This equals `session_look` after 3, 6, 10, 16, ... sessions and after the last, vectorized.
    """
    import numpy as np

    runs, most = statistics.shape
    sessions, claims = np.full(runs, most), np.zeros(runs, dtype=int)
    mean, low, high = (np.full(runs, value) for value in (math.nan, -math.inf, math.inf))
    margin = math.log1p(min_effect)
    going = np.arange(runs)
    if most >= EARLY_LOOK:
        lower, upper = early_intervals(statistics[:, :EARLY_LOOK], alpha)
        is_slower = lower > CLEARLY_SLOWER
        sessions[is_slower], claims[is_slower] = EARLY_LOOK, CLAIMS.index(Claim.SLOWER)
        mean[is_slower] = np.mean(statistics[is_slower, :EARLY_LOOK], axis=1)
        low[is_slower], high[is_slower] = lower[is_slower], upper[is_slower]
        going = going[~is_slower]
    for count in (*(look for look in LOOKS if look < most), most):
        if count < LOOKS[0] or not len(going):
            break
        taken = statistics[going, :count]
        lower, upper = widened_intervals(taken, alpha)
        code = np.select([(-margin < lower) & (upper < margin), upper < 0, lower > 0], [1, 2, 3])
        sessions[going], claims[going] = count, code
        mean[going], low[going], high[going] = np.mean(taken, axis=1), lower, upper
        going = going[code == 0]
    return Stops(sessions, mean, low, high, claims)


def draw_sessions(
    noise: Noise, rng: Generator, runs: int, sessions: int, rounds: int = ROUNDS
) -> tuple[Values, Values]:
    """Draw log times of base and candidate, equal code: comparison by session by round.

    Two fresh processes take turns in each session, in the order ABBA ... from a random start.
    """
    import numpy as np

    shape = (runs, sessions, rounds, 2)
    times = draw_samples(noise, rng, runs, sessions * rounds * 2).reshape(shape)
    times[..., 1] += noise.second
    times += _draw_warmup(noise, rng, (runs, sessions, 1, 2)) * _cooling(rounds)[:, None]
    turns = (rng.integers(0, 2, (runs, sessions, 1)) + np.arange(rounds)) % 2
    base_first = turns == 0
    own = draw_processes(noise, rng, (runs, sessions, 1, 2))
    base = np.where(base_first, times[..., 0], times[..., 1]) + own[..., 0]
    candidate = np.where(base_first, times[..., 1], times[..., 0]) + own[..., 1]
    return base, candidate


def draw_blocks(noise: Noise, rng: Generator, runs: int, samples: int) -> tuple[Values, Values]:
    """Draw log times of base and candidate, equal code, if all of the base's samples come first.

    Each has one process, as in tools that don't interleave samples. For comparison.
    """
    import numpy as np

    times = draw_samples(noise, rng, runs, 2 * samples).reshape(runs, 2, samples)
    times += _draw_warmup(noise, rng, (runs, 2, 1)) * _cooling(samples)
    times += draw_processes(noise, rng, (runs, 2, 1))
    return np.ascontiguousarray(times[:, 0]), np.ascontiguousarray(times[:, 1])


def draw_samples(noise: Noise, rng: Generator, runs: int, length: int) -> Values:
    """Draw the noise of `length` consecutive samples, except for the effect of their process."""
    import numpy as np

    shape = (runs, length)
    drawn = rng.standard_t(noise.tails, shape) if noise.tails else rng.standard_normal(shape)
    # No disturbance makes a sample much shorter: the heavy tail is the upper one.
    times = noise.jitter * np.maximum(drawn, -3.0)
    if noise.load:
        toggles = np.cumsum(rng.random(shape) < noise.load, axis=1)
        is_loaded = (toggles + rng.integers(0, 2, (runs, 1))) % 2 == 1
        times[is_loaded] *= 2
        times += is_loaded * np.log1p(rng.uniform(0.05, 0.5, (runs, 1)))
    if noise.spikes:
        is_hit = rng.random(shape) < noise.spikes
        times[is_hit] += np.log1p(rng.exponential(0.5, int(is_hit.sum())))
    if noise.walk:
        times += np.cumsum(rng.normal(0, noise.walk, shape), axis=1)
    if noise.wave:
        period, phase = rng.uniform(40, 1000, (runs, 1)), rng.uniform(0, 2 * np.pi, (runs, 1))
        times += noise.wave * np.sin(2 * np.pi * np.arange(length) / period + phase)
    return times


def draw_processes(noise: Noise, rng: Generator, shape: tuple[int, ...]) -> Values:
    """Draw how much slower than the average each fresh process is."""
    import numpy as np

    drawn = rng.choice((-1.0, 1.0), shape) if noise.layouts else rng.standard_normal(shape)
    return noise.process * np.asarray(drawn, dtype=float)


def _draw_warmup(noise: Noise, rng: Generator, shape: tuple[int, ...]) -> Values:
    return rng.exponential(noise.warmup, shape) if noise.warmup else 0 * rng.random(shape)


def _cooling(rounds: int) -> Values:
    """Return the share of the warm-up that is left in each round."""
    import numpy as np

    left: Values = np.exp(-2.0 * np.arange(rounds))
    return left
