"""Text about measurements for people: the recommendation, its reason, and remarks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fairtrial.arena.model.figures import percent_text, rough_seconds, seconds_text
from fairtrial.arena.model.timings import (
    Estimate,
    Measurement,
    Pair,
    Timing,
    TimingTopic,
    TotalVerdict,
)
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.timing.contradictions import name_inputs
from fairtrial.arena.timing.stats.ratio_text import ratio_text
from fairtrial.arena.timing.stats.sequential import LOOKS
from fairtrial.arena.timing.total_checks import describe_total_check

FEWEST, MOST = LOOKS[0], LOOKS[-1]
"""The fewest sessions that give an interval, and the most that are run."""
CPU_DIFFERENCE = 0.05
"""How far CPU time must differ from wall time to be mentioned, as a share."""
SLOW_START, MUCH_OUTSIDE, MORE_MEMORY = 1.1, 0.1, 1.1
"""The ratios from which start-up, work outside of samples and memory are mentioned."""
SAME_COUNT = 0.01
"""Instruction counts of equal code differ by about this much, since memory layouts differ."""


class Recommendation(StrEnum):
    """What to do with a candidate that was timed."""

    ADOPT = "adopt"
    DECLINE = "don't adopt"
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class MeasurementText:
    """What people are told about a candidate that was timed.

    recommendation: what to do with it
    reason: why, with the verdict and its interval
    remarks: further facts on the whole and on each benchmark, each once
    """

    recommendation: Recommendation
    reason: str
    remarks: tuple[str, ...]


def describe_measurement(measurement: Measurement) -> MeasurementText:
    """Return the recommendation on a candidate, its reason, and remarks."""
    recommendation, reason = _advise(measurement)
    remarks = tuple(dict.fromkeys(_remarks(measurement)))  # without repetitions
    return MeasurementText(recommendation, reason, remarks)


def _advise(measurement: Measurement) -> tuple[Recommendation, str]:
    reason = measurement.verdict_text
    if measurement.adopt:
        again = ", measured again in fresh sessions" if measurement.is_confirmed else ""
        return Recommendation.ADOPT, f"{reason}{again}"
    if measurement.vetoes:
        return Recommendation.DECLINE, f"{reason}, but: {'; '.join(measurement.vetoes)}"
    if measurement.verdict == Verdict.FASTER:
        reason += ": less than the smallest effect of interest"
    if measurement.verdict == Verdict.INCONCLUSIVE and not measurement.is_eliminated:
        return Recommendation.UNDECIDED, f"{reason}: {_describe_outlook(measurement)}"
    return Recommendation.DECLINE, reason


def _describe_outlook(measurement: Measurement) -> str:
    """Return what more sessions could show, for a measurement that is undecided."""
    estimate, sessions = measurement.estimate, measurement.session_count
    if estimate is None:
        text = f"{sessions} session{'' if sessions == 1 else 's'}, and an interval takes {FEWEST}"
        if not (sessions and measurement.seconds):
            return text
        return f"{text}: about {rough_seconds(FEWEST * measurement.seconds / sessions)} (budget_s)"
    effect = _detectable_effect(estimate)
    limit = (
        f"after {sessions} sessions a change below about {percent_text(effect)} can't be told "
        "from noise"
    )
    if sessions >= MOST:
        return f"{limit}, and more are not run; `fairtrial aa` says how noisy this machine is"
    more = MOST / sessions
    text = f"{limit}; with {MOST} sessions"
    if measurement.seconds:
        text += f", about {rough_seconds(more * measurement.seconds)} (budget_s)"
    return f"{text}, one of about {percent_text(effect / math.sqrt(more))} could be seen"


def _detectable_effect(estimate: Estimate) -> float:
    """Return the smallest effect that an interval of this width could show, as a share."""
    if not (estimate.low > 0 and math.isfinite(estimate.high)):
        return 1.0
    return math.expm1(math.log(estimate.high / estimate.low) / 2)


def _remarks(measurement: Measurement) -> Iterator[str]:
    """Yield remarks on a measurement and its benchmarks."""
    if measurement.is_confirmed and not measurement.adopt:
        yield "it led the race and was measured again: only the fresh sessions count here"
    for timing in measurement.timings:
        prefix = f"{timing.benchmark}: " if len(measurement.timings) > 1 else ""
        for remark in _timing_remarks(timing):
            yield prefix + remark
        for check in measurement.total_checks:  # vetoes and notes say the rest
            is_own = check.benchmark == timing.benchmark
            if is_own and check.verdict == TotalVerdict.CONFIRMED:
                yield prefix + describe_total_check(check)
        yield from (f"note: {prefix}{note}" for note in timing.notes)
    yield from (f"note: {note}" for note in measurement.notes)


def _timing_remarks(timing: Timing) -> Iterator[str]:
    """Yield remarks on the figures of a benchmark that vetoes and notes don't mention."""
    if timing.instructions is not None:
        yield describe_instructions(timing.instructions)
    if totals := _describe_totals(timing):
        yield totals
    if timing.slow_inputs and TimingTopic.SLOW_INPUTS not in timing.mentioned:
        yield f"slower on {name_inputs(timing.slow_inputs)}"
    difference = _describe_cpu_time(timing)
    if difference and TimingTopic.CPU_TIME not in timing.mentioned:
        yield difference
    is_slow_start = timing.startup is not None and timing.startup >= SLOW_START
    if is_slow_start and TimingTopic.STARTUP not in timing.mentioned:
        calls = timing.pays_after
        pays = "" if calls is None else f"; it pays after {calls:,} calls"
        yield f"start-up takes {timing.startup:.2f} times as long as the base's{pays}"
    outside = timing.outside or 0.0
    if outside >= MUCH_OUTSIDE and TimingTopic.OUTSIDE_WORK not in timing.mentioned:
        yield f"it works longer than the base while not being timed: {percent_text(outside)}"
    if timing.memory is not None:
        yield timing.memory.text()
    pair = None if timing.memory is not None else timing.peak_rss_mb
    if pair is not None and not 1 / MORE_MEMORY < pair.growth < MORE_MEMORY:
        yield (
            f"memory: {pair.candidate:.0f} MB while timed, {pair.growth:.2f} times the base's "
            f"{pair.base:.0f} MB"
        )
    if sampling := _describe_sampling(timing):
        yield sampling


def _describe_sampling(timing: Timing) -> str:
    """`samples of 5 calls (0.26 ms), 110 rounds a session: rounds vary by 5 %, ...`."""
    if timing.round_noise is None or timing.timed_share is None:
        return ""
    calls = f"{timing.calls:,} call{'s' if timing.calls != 1 else ''}"
    return (
        f"samples of {calls} ({seconds_text(timing.sample_s)}), {timing.rounds} rounds a session: "
        f"rounds vary by {percent_text(timing.round_noise)}, and samples take "
        f"{timing.timed_share:.0%} of the time"
    )


def _describe_totals(timing: Timing) -> str:
    """`1.21x by the median, 1.19x in total [1.16, 1.22], 1.2x in the slowest tenth`."""
    if timing.estimate is None or timing.total is None:
        return ""
    ratio, _, interval = timing.total.text().partition(" ")
    text = f"{timing.estimate.ratio_text()} by the median, {ratio} in total {interval}"
    if timing.tail is not None:
        text += f", {timing.tail.ratio_text()} in the slowest tenth"
    return text


def describe_instructions(pair: Pair) -> str:
    """Return instruction counts: `instructions: 1.32x fewer (4,100,000, the base 5,412,000)`."""
    ratio = pair.base / pair.candidate
    figures = f"({pair.candidate:,.0f}, the base {pair.base:,.0f})"
    if abs(math.log(ratio)) < SAME_COUNT:
        return f"instructions: as many, to {percent_text(SAME_COUNT)} {figures}"
    word, times = ("fewer", ratio) if ratio > 1 else ("more", 1 / ratio)
    return f"instructions: {ratio_text(times)} {word} {figures}"


def _describe_cpu_time(timing: Timing) -> str:
    """Return how CPU time differs from wall time; empty if it doesn't."""
    cpu, estimate = timing.cpu_ratio, timing.estimate
    if cpu is None or estimate is None or cpu <= 0 or estimate.low <= cpu <= estimate.high:
        return ""
    if abs(math.log(cpu / estimate.ratio)) < CPU_DIFFERENCE:
        return ""
    ratios = f"by CPU time it is {ratio_text(cpu)}, by the clock on the wall "
    ratios += estimate.ratio_text()
    if cpu < estimate.ratio:
        return (
            f"{ratios}: several cores at once, less waiting or other programs make the difference"
        )
    return f"{ratios}: waiting, or other programs, make the difference"
