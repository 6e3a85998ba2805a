"""Text about measurements: ratios with intervals, recommendations and remarks."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence

import click

from fairtrial.arena import (
    LOOKS,
    Estimate,
    Measurement,
    Pair,
    Timing,
    TotalVerdict,
    Verdict,
    describe_total_check,
    estimate_text,
    name_inputs,
    point_text,
    ratio_text,
    seconds_text,
)
from fairtrial.cli.output import count, fold, style
from fairtrial.cli.table import GAP, cell_width, cut_cell, pad_cell
from fairtrial.core import on_one_line

FEWEST, MOST = LOOKS[0], LOOKS[-1]
"""The fewest sessions that give an interval, and the most that are run."""
LONGEST_NAME, SHORTEST_NAME, LONGEST_NOTE = 40, 10, 2_000
CPU_DIFFERENCE = 0.05
"""How far CPU time must differ from wall time to be mentioned, as a share."""
SLOW_START, MUCH_OUTSIDE, MORE_MEMORY = 1.1, 0.1, 1.1
"""The ratios from which start-up, work outside of samples and memory are mentioned."""
SAME_COUNT = 0.01
"""Instruction counts of equal code differ by about this much, since memory layouts differ."""
OUT_OF_RACE = "out of the race"
"""The beginning of the note on a candidate that was eliminated from a race."""
COLORS = {
    Verdict.PASSED: "green",
    Verdict.FASTER: "green",
    Verdict.REJECTED: "red",
    Verdict.SLOWER: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.EQUIVALENT: "cyan",
}


def percent_text(share: float) -> str:
    """Return a share as a percentage: `2 %`, `1.3 %`, `0.25 %`."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def verdict_text(verdict: Verdict, estimate: Estimate | None) -> str:
    """Return a verdict with its interval; equivalence is never worded as "no difference"."""
    if estimate is None:
        return verdict.value
    ratio = estimate_text(estimate)
    if verdict != Verdict.EQUIVALENT:
        return f"{verdict.value}, {ratio}"
    if estimate.low > 1:
        return f"equivalent (tiny gain, {ratio})"
    if estimate.high < 1:
        return f"equivalent (tiny loss, {ratio})"
    most = max(estimate.high - 1, 1 - estimate.low)
    return f"equivalent (a difference is below {percent_text(most)}, {ratio})"


def outlook_text(measurement: Measurement) -> str:
    """Return what more sessions could show, for a measurement that is undecided."""
    estimate, sessions = measurement.estimate, replicates(measurement)
    if estimate is None:
        text = f"{count(sessions, 'session')}, and an interval takes {FEWEST}"
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


def rough_seconds(seconds: float) -> str:
    """Return a duration in one unit: `8 s`, `3 min`, `2 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 2 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"


def replicates(measurement: Measurement) -> int:
    """Return the number of sessions that every benchmark has."""
    if measurement.estimate is not None:
        return measurement.estimate.sessions
    numbers: dict[str, set[int]] = {}
    for session in measurement.sessions:
        numbers.setdefault(session.benchmark, set()).add(session.number)
    return min(map(len, numbers.values()), default=0)


def timed_memory_mb(measurement: Measurement) -> float:
    """Return the candidate's peak memory while it was timed; 0 if unknown."""
    pairs = [timing.peak_rss_mb for timing in measurement.timings]
    return max((pair.candidate for pair in pairs if pair is not None), default=0.0)


def advice(measurement: Measurement) -> tuple[str, str]:
    """Return the recommendation on a candidate, and its reason."""
    reason = verdict_text(measurement.verdict, measurement.estimate)
    if measurement.adopt:
        again = ", measured again in fresh sessions" if measurement.is_confirmed else ""
        return "adopt", f"{reason}{again}"
    if measurement.vetoes:
        return "don't adopt", f"{reason}, but: {'; '.join(measurement.vetoes)}"
    if measurement.verdict == Verdict.FASTER:
        reason += ": less than the smallest effect of interest"
    if measurement.verdict == Verdict.INCONCLUSIVE and not has_lost(measurement):
        return "not decided", f"{reason}: {outlook_text(measurement)}"
    return "don't adopt", reason


def has_lost(measurement: Measurement) -> bool:
    """Return whether a candidate has few sessions because it was eliminated from a race."""
    return any(note.startswith(OUT_OF_RACE) for note in measurement.notes)


def measurement_lines(measurement: Measurement) -> Iterator[str]:
    """Yield wrapped, colored lines about a candidate that was timed."""
    label, why = advice(measurement)
    color = {"adopt": "green", "don't adopt": "red"}.get(label, "yellow")
    folded = fold(f"{label}: {on_one_line(why, LONGEST_NOTE)}", "  ", "    ")
    yield "  " + style(label, fg=color, bold=True) + folded[2:].removeprefix(label)
    yield from remark_lines(measurement)


def remark_lines(measurement: Measurement) -> Iterator[str]:
    """Yield the lines of each benchmark and all remarks, without a recommendation."""
    if len(measurement.timings) > 1:
        yield from benchmark_lines(measurement.timings)
    for remark in dict.fromkeys(_remarks(measurement)):  # without repetitions
        yield fold(on_one_line(remark, LONGEST_NOTE), "  ", "    ")


def benchmark_lines(timings: Sequence[Timing]) -> Iterator[str]:
    """Yield one line per benchmark: verdict, ratio with interval, time of the base."""
    ratios = [estimate_text(timing.estimate) or "too few sessions" for timing in timings]
    bases = [f"base {seconds_text(timing.base_s)}" if timing.base_s else "" for timing in timings]
    columns = ([timing.verdict for timing in timings], ratios)
    verdicts, speeds = (max(map(len, column)) for column in columns)
    taken = len("    ") + verdicts + speeds + max(map(len, bases)) + 3 * len(GAP)
    longest = max(min(shutil.get_terminal_size().columns - taken, LONGEST_NAME), SHORTEST_NAME)
    names = [cut_cell(on_one_line(timing.benchmark, 400), longest) for timing in timings]
    width = max(map(cell_width, names))
    for timing, name, ratio, base in zip(timings, names, ratios, bases, strict=True):
        verdict = style(timing.verdict.value.ljust(verdicts), fg=COLORS[timing.verdict])
        line = [pad_cell(name, width), verdict, ratio.ljust(speeds), base]
        yield f"    {GAP.join(line)}".rstrip()


def _remarks(measurement: Measurement) -> Iterator[str]:
    """Yield remarks on a measurement and its benchmarks."""
    if measurement.is_confirmed and not measurement.adopt:
        yield "it led the race and was measured again: only the fresh sessions count here"
    for timing in measurement.timings:
        prefix = f"{timing.benchmark}: " if len(measurement.timings) > 1 else ""
        vetoes = [veto for veto in measurement.vetoes if veto.startswith(timing.benchmark)]
        for remark in _timing_remarks(timing, " ".join(vetoes)):
            yield prefix + remark
        for check in measurement.total_checks:  # vetoes and notes say the rest
            is_own = check.benchmark == timing.benchmark
            if is_own and check.verdict == TotalVerdict.CONFIRMED:
                yield prefix + describe_total_check(check)
        yield from (f"note: {prefix}{note}" for note in timing.notes)
    yield from (f"note: {note}" for note in measurement.notes)


def _timing_remarks(timing: Timing, vetoes: str) -> Iterator[str]:
    """Yield remarks on the figures of a benchmark that its vetoes and notes don't mention."""
    if timing.instructions is not None:
        yield instructions_text(timing.instructions)
    if totals := totals_text(timing):
        yield totals
    if timing.slow_inputs and "slower on" not in vetoes:
        yield f"slower on {name_inputs(timing.slow_inputs)}"
    difference = cpu_text(timing)
    if difference and not any("CPU" in note for note in timing.notes):
        yield difference
    if timing.startup is not None and timing.startup >= SLOW_START and "start" not in vetoes:
        pays = "" if timing.pays_after is None else f"; it pays after {timing.pays_after:,} calls"
        yield f"start-up takes {timing.startup:.2f} times as long as the base's{pays}"
    if timing.outside is not None and timing.outside >= MUCH_OUTSIDE and "clock" not in vetoes:
        yield f"it works longer than the base while not being timed: {percent_text(timing.outside)}"
    pair = timing.peak_rss_mb
    if pair is not None and not 1 / MORE_MEMORY < pair.growth < MORE_MEMORY:
        yield (
            f"memory: {pair.candidate:.0f} MB while timed, {pair.growth:.2f} times the base's "
            f"{pair.base:.0f} MB"
        )


def totals_text(timing: Timing) -> str:
    """`1.21x by the median, 1.19x in total [1.16, 1.22], 1.2x in the slowest tenth`."""
    if timing.estimate is None or timing.total is None:
        return ""
    ratio, _, interval = estimate_text(timing.total).partition(" ")
    text = f"{point_text(timing.estimate)} by the median, {ratio} in total {interval}"
    if timing.tail is not None:
        text += f", {point_text(timing.tail)} in the slowest tenth"
    return text


def instructions_text(pair: Pair) -> str:
    """Return instruction counts: `instructions: 1.32x fewer (4,100,000, the base 5,412,000)`."""
    ratio = pair.base / pair.candidate
    figures = f"({pair.candidate:,.0f}, the base {pair.base:,.0f})"
    if abs(math.log(ratio)) < SAME_COUNT:
        return f"instructions: as many, to {percent_text(SAME_COUNT)} {figures}"
    word, times = ("fewer", ratio) if ratio > 1 else ("more", 1 / ratio)
    return f"instructions: {ratio_text(times)} {word} {figures}"


def cpu_text(timing: Timing) -> str:
    """Return how CPU time differs from wall time; empty if it doesn't."""
    cpu, estimate = timing.cpu_ratio, timing.estimate
    if cpu is None or estimate is None or cpu <= 0 or estimate.low <= cpu <= estimate.high:
        return ""
    if abs(math.log(cpu / estimate.ratio)) < CPU_DIFFERENCE:
        return ""
    ratios = f"by CPU time it is {ratio_text(cpu)}, by the clock on the wall "
    ratios += point_text(estimate)
    if cpu < estimate.ratio:
        return (
            f"{ratios}: several cores at once, less waiting or other programs make the difference"
        )
    return f"{ratios}: waiting, or other programs, make the difference"


def print_measurement(name: str, measurement: Measurement) -> None:
    """Print what is known of a candidate that was timed, under its name."""
    click.echo(f"\n{style(name, bold=True)}")
    for line in measurement_lines(measurement):
        click.echo(line)
