"""From sessions to what may be said of a candidate: pure, so that it can be said again later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, median_low, stdev

from fairtrial.arena.model.timings import Estimate, Measurement, Pair, Session, Timing
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.timing.stats.ratio_text import point_text, ratio_text
from fairtrial.arena.timing.stats.sequential import Look, adopt, look
from fairtrial.arena.timing.stats.session_ratio import (
    mean_ratio,
    seconds_per_call,
    session_cpu_ratio,
    session_ratio,
)

SLOWEST_START = 1.2
"""How many times the base's start-up a candidate's may be before that speaks against it."""
MOST_GROWTH = 2.0
"""What one session's growth counts at most: others can't hide behind it by varying more."""
BLAMED_WRONGLY = 0.005
"""How often noise alone may look like something that sessions agree on."""
FEWEST_THAT_AGREE = 4
"""What counts at most so much in each has no spread if it is too much in both of two."""
MOST_OUTSIDE = 0.1
"""Which share of a sample may be done before or after it, beyond what the base does there."""
LITTLE_OUTSIDE = 0.02
"""Which share of it may be, however small the gain is."""
MOST_GOING_THROUGH = 0.1
LEAST_BUSY = 0.85
"""Which share of its time the base should be computing; asking and replying take some, too."""
TWO_STORIES = 0.05
"""From which difference on wall and CPU time tell different stories."""

Replicate = Sequence[Session]
"""One session of each benchmark."""


def statistics_of(replicates: Sequence[Replicate]) -> list[float]:
    """The statistic of each replicate: over all benchmarks, log(candidate/base)."""
    return [mean_ratio([_ratio(session) for session in replicate]) for replicate in replicates]


def summarise(
    replicates: Sequence[Replicate],
    *,
    alpha: float,
    min_effect: float,
    seconds: float = 0.0,
    waited_s: float = 0.0,
    notes: Sequence[str] = (),
) -> Measurement:
    """What these sessions say of a candidate, over all benchmarks and of each."""
    found = look(statistics_of(replicates), alpha=alpha, min_effect=min_effect)
    by_benchmark = [list(sessions) for sessions in zip(*replicates, strict=True)]
    timings = tuple(_time(sessions, alpha, min_effect) for sessions in by_benchmark)
    vetoes = tuple(
        veto
        for timing, sessions in zip(timings, by_benchmark, strict=True)
        for veto in (*_vetoes(timing, len(timings) > 1), *_doubts(timing, sessions))
    )
    return Measurement(
        verdict=Verdict(found.claim.value),
        estimate=_estimate(found, alpha),
        adopt=adopt(found, min_effect) and not vetoes,
        vetoes=vetoes,
        timings=timings,
        seconds=seconds,
        waited_s=waited_s,
        notes=tuple(notes),
        sessions=tuple(session for replicate in replicates for session in replicate),
    )


def _time(sessions: Sequence[Session], alpha: float, min_effect: float) -> Timing:
    found = look([_ratio(session) for session in sessions], alpha=alpha, min_effect=min_effect)
    samples = [sample for sample in sessions[0].samples if sample.is_kept]
    starts = [session.startup_s for session in sessions if session.startup_s]
    estimate = _estimate(found, alpha)
    return Timing(
        benchmark=sessions[0].benchmark,
        verdict=Verdict(found.claim.value),
        estimate=estimate,
        cpu_ratio=_cpu_ratio(sessions),
        base_s=median(seconds_per_call(session.samples, "base") for session in sessions),
        calls=samples[0].calls,
        startup=_startup([start.growth for start in starts]),
        outside=_outside(sessions),
        peak_rss_mb=_peak(sessions),
        notes=tuple(_notes(sessions, estimate)),
    )


def _estimate(found: Look, alpha: float) -> Estimate | None:
    if not math.isfinite(found.low):
        return None
    return Estimate(found.speedup, found.speedup_low, found.speedup_high, found.sessions, 1 - alpha)


def _ratio(session: Session) -> float:
    ratio = session_ratio(session.samples)
    if ratio is None:
        raise ValueError(f"{session.benchmark}: session {session.number} has no whole round")
    return ratio


def _cpu_ratio(sessions: Sequence[Session]) -> float | None:
    ratios = [session_cpu_ratio(session.samples) for session in sessions]
    known = [ratio for ratio in ratios if ratio is not None]
    return math.exp(-fmean(known)) if len(known) == len(sessions) else None


def _outside(sessions: Sequence[Session]) -> float | None:
    """What is done outside of samples beyond the base, as a share of the base's samples.

    Zero unless sessions agree on it.
    """
    figures = (_shares(sessions, name) for name in ("outside_s", "stalled_s"))
    return max((max(0.0, _agreed(shares)) for shares in figures if shares), default=None)


def _shares(sessions: Sequence[Session], name: str) -> list[float]:
    """What each session has of that beyond the base, as a share of the base's samples.

    None counts as more than all of a sample, or a candidate could hide behind one session in which
    it idles away.
    """
    return [
        max(-1.0, min((figure.candidate - figure.base) / _sample_s(session), 1.0))
        for session in sessions
        if (figure := getattr(session, name)) is not None
    ]


def _startup(growths: Sequence[float]) -> float | None:
    """Start-up as a multiple of the base's; more than what is allowed only if sessions agree."""
    if not growths:
        return None
    middle = median_low(growths)
    agreed = _agreed([min(growth, MOST_GROWTH) for growth in growths])
    return middle if agreed > SLOWEST_START else min(middle, SLOWEST_START)


def _agreed(values: Sequence[float]) -> float:
    """The lower end of where the mean may lie: few that happen to be alike prove little."""
    from scipy import special

    if len(values) < FEWEST_THAT_AGREE:
        return -math.inf
    quantile = float(special.stdtrit(len(values) - 1, 1 - BLAMED_WRONGLY))
    return fmean(values) - quantile * stdev(values) / math.sqrt(len(values))


def _sample_s(session: Session) -> float:
    """How long the base works for a sample: CPU time, where it is known."""
    base = [each for each in session.samples if each.is_kept and each.arm == "base"]
    return median(each.cpu_s or each.wall_s for each in base)


def _peak(sessions: Sequence[Session]) -> Pair | None:
    peaks = [session.peak_rss_mb for session in sessions if session.peak_rss_mb]
    if not peaks:
        return None
    return Pair(max(peak.base for peak in peaks), max(peak.candidate for peak in peaks))


def _notes(sessions: Sequence[Session], estimate: Estimate | None) -> list[str]:
    notes = []
    gone = [session.materializing for session in sessions if session.materializing]
    share = median(each.candidate for each in gone) if gone else 0.0
    if share > MOST_GOING_THROUGH:
        notes.append(f"{share:.0%} of the time went into going through what it returns")
    busy = _busy(sessions)
    if busy is not None and busy < LEAST_BUSY:  # what else the two clocks differ in, nobody knows
        return [*notes, _tell_idle(busy, sessions, estimate)]
    walls = [_ratio(session) for session in sessions]
    cpus = [session_cpu_ratio(session.samples) for session in sessions]
    gaps = [cpu - wall for cpu, wall in zip(cpus, walls, strict=True) if cpu is not None]
    if len(gaps) == len(sessions) > 1:
        doubt = 3 * stdev(gaps) / math.sqrt(len(gaps))
        gap = fmean(gaps)
        if abs(gap) - doubt > TWO_STORIES:
            wall, cpu = _tell_wall(sessions, estimate), ratio_text(math.exp(-fmean(walls) - gap))
            more = "more" if gap > 0 else "less"
            notes.append(
                f"the clock says {wall}, CPU time {cpu}: it works {more} than it saves; "
                "other cores, waiting or other programs make the difference"
            )
    return notes


def _tell_wall(sessions: Sequence[Session], estimate: Estimate | None) -> str:
    """What the clock says, spelt as everywhere else."""
    return point_text(estimate) if estimate else ratio_text(math.exp(-fmean(map(_ratio, sessions))))


def _tell_idle(busy: float, sessions: Sequence[Session], estimate: Estimate | None) -> str:
    """What can be said where the base computes for a part of its time only."""
    wall, cpu = _tell_wall(sessions, estimate), _cpu_ratio(sessions)
    told = (
        "" if cpu is None else f": by CPU time alone it is {ratio_text(cpu)}, by the clock {wall}"
    )
    return (
        f"only {busy:.0%} of the base's time was spent computing, since it waits for something or "
        f"since other programs had the core, and the clock can't tell which{told}; "
        "`fairtrial doctor` says what disturbs"
    )


def _busy(sessions: Sequence[Session]) -> float | None:
    """Which share of the base's samples was CPU time; None where that isn't known."""
    kept = [
        sample
        for session in sessions
        for sample in session.samples
        if sample.is_kept and sample.arm == "base" and sample.calls
    ]
    if not kept or any(sample.cpu_s is None for sample in kept):
        return None
    return sum(sample.cpu_s or 0.0 for sample in kept) / sum(sample.wall_s for sample in kept)


def _most_outside(timing: Timing) -> float:
    """What may be done outside: half of what is gained at most, or it could be all of the gain."""
    ratio = timing.estimate.ratio if timing.estimate else math.inf
    gained = max(0.0, 1 - 1 / ratio)
    return min(MOST_OUTSIDE, max(LITTLE_OUTSIDE, gained / 2)) if ratio > 1 else MOST_OUTSIDE


def _vetoes(timing: Timing, has_others: bool) -> list[str]:
    vetoes = []
    if timing.verdict == Verdict.SLOWER and has_others:
        assert timing.estimate is not None
        vetoes.append(f"{timing.benchmark} got slower: {point_text(timing.estimate)}")
    if timing.startup is not None and timing.startup > SLOWEST_START:
        vetoes.append(
            f"{timing.benchmark}: it takes {timing.startup:.2f} times as long as the base to start "
            "and get going: work may have been moved there"
        )
    if timing.outside is not None and timing.outside > _most_outside(timing):
        vetoes.append(
            f"{timing.benchmark}: work equal to {timing.outside:.0%} of the base's time is done "
            "while the clock doesn't run, or on other cores: before calls, after them, or in "
            "threads and processes that go on"
        )
    return vetoes


def _doubts(timing: Timing, sessions: Sequence[Session]) -> list[str]:
    """Work outside of samples that sessions don't agree on: nobody is blamed for it, nor taken.

    By CPU time alone, which others on the machine hardly change: honest candidates come nowhere
    near, however busy it is. Some that do cheat are seen in a part of their sessions only, there.
    """
    shares = _shares(sessions, "outside_s")
    if (
        not shares
        or fmean(shares) <= MOST_OUTSIDE
        or (timing.outside or 0.0) > _most_outside(timing)
    ):
        return []
    seen = sum(share > MOST_OUTSIDE for share in shares)
    return [
        f"{timing.benchmark}: in {seen} of {len(shares)} sessions work was done while the clock "
        "doesn't run, which is too few to be sure of it and too many to take it; measure it again "
        "when the machine has less to do"
    ]
