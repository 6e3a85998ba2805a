"""Summarizing sessions as a measurement: verdict, estimates, vetoes and notes; a pure function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median, stdev
from types import MappingProxyType

from fairtrial.arena.model.memory import MemoryVerdict
from fairtrial.arena.model.problem import MAX_STARTUP_RATIO
from fairtrial.arena.model.timings import (
    Estimate,
    Measurement,
    Pair,
    Session,
    SlowInput,
    Timing,
    TimingTopic,
)
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.timing.contradictions import find_contradictions
from fairtrial.arena.timing.memory import judge_memory
from fairtrial.arena.timing.outside_work import outside_doubts, outside_share, outside_vetoes
from fairtrial.arena.timing.startup import (
    pays_after,
    startup_extra_s,
    startup_ratio,
    startup_vetoes,
)
from fairtrial.arena.timing.stats.autocorrelation import (
    is_suspicious,
    serial_correlation,
    session_look,
)
from fairtrial.arena.timing.stats.ratio_text import ratio_text
from fairtrial.arena.timing.stats.sequential import Claim, SessionLook, adopt
from fairtrial.arena.timing.stats.session_ratio import (
    mean_ratio,
    net_rounds,
    round_noise,
    seconds_per_call,
    session_cpu_ratio,
    session_ratio,
    timed_share,
)
from fairtrial.arena.timing.stats.totals import tail_ratio, total_ratio
from fairtrial.core import LabError

MOST_GOING_THROUGH = 0.1
LEAST_BUSY = 0.85
"""The share of its time that the base should be computing; requests and replies take some, too."""
MOST_SLOW_INPUTS = 5
"""The number of slow inputs that a result names."""
CLOCK_GAP = 0.05
"""From this difference of log ratios on, wall and CPU time are reported to contradict."""

Replicate = Sequence[Session]
"""One session of each benchmark."""


def replicate_statistics(replicates: Sequence[Replicate]) -> list[float]:
    """Return the statistic of each replicate: log(candidate/base) over all benchmarks."""
    return [mean_ratio([_ratio(session) for session in replicate]) for replicate in replicates]


def session_statistics(measured: Measurement) -> list[float]:
    """Return the statistic of each replicate of a measurement, from its sessions."""
    replicates: dict[int, list[Session]] = {}
    for session in measured.sessions:
        replicates.setdefault(session.number, []).append(session)
    return replicate_statistics(list(replicates.values()))


def summarize(
    replicates: Sequence[Replicate],
    *,
    alpha: float,
    min_effect: float,
    startup_limits: Mapping[str, float] = MappingProxyType({}),
    seconds: float = 0.0,
    waited_s: float = 0.0,
    notes: Sequence[str] = (),
    counts_doubts: bool = True,
) -> Measurement:
    """Summarize the sessions of a candidate, over all benchmarks and for each.

    startup_limits: how many times as long as the base a candidate may take to start, by benchmark
    counts_doubts: whether work outside of samples that sessions don't agree on is a veto
    seconds: how long they took
    waited_s: how long the host lock was waited for
    notes: remarks for people
    """
    host = _only_host(replicates)
    look = session_look(replicate_statistics(replicates), alpha=alpha, min_effect=min_effect)
    by_benchmark = [list(sessions) for sessions in zip(*replicates, strict=True)]
    limits = [
        startup_limits.get(sessions[0].benchmark, MAX_STARTUP_RATIO) for sessions in by_benchmark
    ]
    timings = [
        _time(sessions, alpha, min_effect, limit)
        for sessions, limit in zip(by_benchmark, limits, strict=True)
    ]
    verdict = Verdict(look.claim.value)
    is_faster = verdict == Verdict.FASTER
    vetoes: list[str] = []
    for index, (timing, sessions, limit) in enumerate(
        zip(timings, by_benchmark, limits, strict=True)
    ):
        outside = outside_vetoes(timing, sessions)
        if counts_doubts and is_faster:
            outside += outside_doubts(timing, sessions)
        starting = startup_vetoes(timing, limit)
        contradictions = [item.text for item in find_contradictions(timing, verdict)]
        slower = _slower_vetoes(timing) if len(timings) > 1 else []
        larger = _larger_vetoes(timing)
        vetoes += [*slower, *larger, *starting, *outside, *contradictions]
        topics = {
            TimingTopic.STARTUP: starting,
            TimingTopic.OUTSIDE_WORK: outside,
            TimingTopic.SLOW_INPUTS: contradictions and timing.slow_inputs,
        }
        mentioned = (topic for topic, mentions in topics.items() if mentions)
        timings[index] = replace(timing, mentioned=(*timing.mentioned, *mentioned))
    return Measurement(
        verdict=verdict,
        estimate=_estimate(look, alpha),
        adopt=adopt(look, min_effect) and not vetoes,
        vetoes=tuple(vetoes),
        timings=tuple(timings),
        seconds=seconds,
        waited_s=waited_s,
        notes=tuple(notes),
        sessions=tuple(session for replicate in replicates for session in replicate),
        host=host,
    )


def _only_host(replicates: Sequence[Sequence[Session]]) -> str:
    """Return the machine that all sessions were on; `LabError` if there are several."""
    hosts = {session.host for replicate in replicates for session in replicate}
    if len(hosts) > 1:
        raise LabError(
            f"sessions of several machines can't be compared: {', '.join(sorted(hosts))}"
        )
    return next(iter(hosts), "")


def _time(sessions: Sequence[Session], alpha: float, min_effect: float, limit: float) -> Timing:
    statistics = [_ratio(session) for session in sessions]
    look = session_look(statistics, alpha=alpha, min_effect=min_effect)
    samples = [sample for sample in sessions[0].samples if sample.is_kept]
    estimate = _estimate(look, alpha)
    base_s = median(seconds_per_call(session.samples, "base") for session in sessions)
    extra_s = startup_extra_s(sessions)
    notes, mentions_cpu_time = _clock_notes(sessions, estimate)
    rounds = [
        list(net_rounds(session.samples, lambda sample: sample.wall_s).values())
        for session in sessions
    ]
    return Timing(
        benchmark=sessions[0].benchmark,
        verdict=Verdict(look.claim.value),
        estimate=estimate,
        cpu_ratio=_cpu_ratio(sessions),
        base_s=base_s,
        calls=samples[0].calls,
        startup=startup_ratio(sessions, limit),
        outside=outside_share(sessions),
        peak_rss_mb=_peak(sessions),
        notes=(*_share_notes(sessions), *notes, *_describe_dependence(statistics)),
        total=total_ratio(rounds),
        tail=tail_ratio(rounds),
        slow_inputs=() if look.claim == Claim.SLOWER else _slow_inputs(sessions),
        startup_extra_s=extra_s,
        pays_after=pays_after(extra_s, base_s, estimate),
        serial_correlation=serial_correlation(statistics),
        rounds=len(rounds[0]),
        sample_s=median(sample.wall_s for sample in samples if sample.arm == "base"),
        round_noise=round_noise(rounds),
        timed_share=timed_share(sessions),
        mentioned=(TimingTopic.CPU_TIME,) if mentions_cpu_time else (),
        memory=judge_memory(sessions, alpha=alpha, min_effect=min_effect),
        cpu=_cpu_estimate(sessions, alpha, min_effect),
    )


def _slow_inputs(sessions: Sequence[Session]) -> tuple[SlowInput, ...]:
    """Return the inputs on which the candidate was slowest relative to the base."""
    slow = (slow for session in sessions for slow in session.slow_inputs)
    return tuple(sorted(slow, key=lambda slow_input: -slow_input.growth)[:MOST_SLOW_INPUTS])


def _describe_dependence(statistics: Sequence[float]) -> list[str]:
    """Return a note on sessions that resemble those before them more than chance explains."""
    correlation = serial_correlation(statistics)
    if correlation is None or not is_suspicious(correlation, len(statistics)):
        return []
    return [
        f"successive sessions resemble each other (autocorrelation {correlation:.2f}, von Neumann "
        f"ratio {2 - 2 * correlation:.2f} instead of 2): the machine's state drifts, and the "
        "interval is wider for it; `fairtrial doctor` says what disturbs"
    ]


def _estimate(look: SessionLook, alpha: float) -> Estimate | None:
    if not math.isfinite(look.low):
        return None
    return Estimate(look.speedup, look.speedup_low, look.speedup_high, look.sessions, 1 - alpha)


def _ratio(session: Session) -> float:
    ratio = session_ratio(session.samples)
    if ratio is None:
        raise ValueError(f"{session.benchmark}: session {session.number} has no whole round")
    return ratio


def _cpu_ratio(sessions: Sequence[Session]) -> float | None:
    ratios = [session_cpu_ratio(session.samples) for session in sessions]
    known = [ratio for ratio in ratios if ratio is not None]
    return math.exp(-fmean(known)) if len(known) == len(sessions) else None


def _cpu_estimate(sessions: Sequence[Session], alpha: float, min_effect: float) -> Estimate | None:
    ratios = [session_cpu_ratio(session.samples) for session in sessions]
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) != len(sessions):
        return None
    return _estimate(session_look(known, alpha=alpha, min_effect=min_effect), alpha)


def _peak(sessions: Sequence[Session]) -> Pair | None:
    peaks = [session.peak_rss_mb for session in sessions if session.peak_rss_mb]
    if not peaks:
        return None
    return Pair(max(peak.base for peak in peaks), max(peak.candidate for peak in peaks))


def _share_notes(sessions: Sequence[Session]) -> list[str]:
    """Return a note on results that take long to iterate over."""
    shares = [session.materializing for session in sessions if session.materializing]
    share = median(pair.candidate for pair in shares) if shares else 0.0
    if share <= MOST_GOING_THROUGH:
        return []
    return [f"{share:.0%} of the time went into going through what it returns"]


def _clock_notes(sessions: Sequence[Session], estimate: Estimate | None) -> tuple[list[str], bool]:
    """Return a note on wall and CPU time that disagree, and whether it mentions CPU time."""
    busy = _busy_share(sessions)
    if busy is not None and busy < LEAST_BUSY:  # then a gap of the clocks has an unknown cause
        cpu = _cpu_ratio(sessions)
        return [_describe_idle(busy, cpu, _wall_text(sessions, estimate))], cpu is not None
    walls = [_ratio(session) for session in sessions]
    cpus = [session_cpu_ratio(session.samples) for session in sessions]
    gaps = [cpu - wall for cpu, wall in zip(cpus, walls, strict=True) if cpu is not None]
    if len(gaps) != len(sessions) or len(gaps) < 2:
        return [], False
    gap, doubt = fmean(gaps), 3 * stdev(gaps) / math.sqrt(len(gaps))
    if abs(gap) - doubt <= CLOCK_GAP:
        return [], False
    wall, cpu_text = _wall_text(sessions, estimate), ratio_text(math.exp(-fmean(walls) - gap))
    more = "more" if gap > 0 else "less"
    return [
        f"the clock says {wall}, CPU time {cpu_text}: it works {more} than it saves; "
        "other cores, waiting or other programs make the difference"
    ], True


def _wall_text(sessions: Sequence[Session], estimate: Estimate | None) -> str:
    """Format the ratio of wall times as in estimates."""
    return (
        estimate.ratio_text() if estimate else ratio_text(math.exp(-fmean(map(_ratio, sessions))))
    )


def _describe_idle(busy: float, cpu: float | None, wall: str) -> str:
    """Return a note on a base that computes for a part of its time only."""
    ratios = (
        "" if cpu is None else f": by CPU time alone it is {ratio_text(cpu)}, by the clock {wall}"
    )
    return (
        f"only {busy:.0%} of the base's time was spent computing, since it waits for something or "
        f"since other programs had the core, and the clock can't tell which{ratios}; "
        "`fairtrial doctor` says what disturbs"
    )


def _busy_share(sessions: Sequence[Session]) -> float | None:
    """Return the share of the base's samples that was CPU time; None where it isn't known."""
    kept = [
        sample
        for session in sessions
        for sample in session.samples
        if sample.is_kept and sample.arm == "base" and sample.calls
    ]
    if not kept or any(sample.cpu_s is None for sample in kept):
        return None
    return sum(sample.cpu_s or 0.0 for sample in kept) / sum(sample.wall_s for sample in kept)


def _slower_vetoes(timing: Timing) -> list[str]:
    """Return the veto of a benchmark that got slower, while others got faster."""
    if timing.verdict != Verdict.SLOWER:
        return []
    assert timing.estimate is not None
    return [f"{timing.benchmark} got slower: {timing.estimate.ratio_text()}"]


def _larger_vetoes(timing: Timing) -> list[str]:
    """Return the veto of a benchmark that measures memory, and needs more of it."""
    memory = timing.memory
    if memory is None or memory.verdict != MemoryVerdict.LARGER:
        return []
    return [f"{timing.benchmark} needs more memory: {memory.growth:.3g} times the base's"]
