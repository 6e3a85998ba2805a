"""What the clock said, as people read it: ratios with their intervals, and what to make of them."""

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
"""Sessions without which there is no interval, and after which no more are run."""
LONGEST_NAME, SHORTEST_NAME, LONGEST_NOTE = 40, 10, 2_000
OTHER_STORY = 0.05
"""By how much CPU time has to differ from the clock on the wall to be mentioned, as a share."""
SLOW_START, MUCH_OUTSIDE, MORE_MEMORY = 1.1, 0.1, 1.1
"""From where on start-up, work outside of samples and memory are mentioned."""
SAME_COUNT = 0.01
"""Where other things lie in memory, counts of the same code may differ by about as much."""
OUT_OF_RACE = "out of the race"
"""How the note on a candidate begins that can't win any more."""
COLORS = {
    Verdict.PASSED: "green",
    Verdict.FASTER: "green",
    Verdict.REJECTED: "red",
    Verdict.SLOWER: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.EQUIVALENT: "cyan",
}


def percent_text(share: float) -> str:
    """`2 %`, `1.3 %`, `0.25 %`."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def verdict_text(verdict: Verdict, estimate: Estimate | None) -> str:
    """The verdict as it has to be worded: with its interval, and never "no difference"."""
    if estimate is None:
        return verdict.value
    told = estimate_text(estimate)
    if verdict != Verdict.EQUIVALENT:
        return f"{verdict.value}, {told}"
    if estimate.low > 1:
        return f"equivalent (tiny gain, {told})"
    if estimate.high < 1:
        return f"equivalent (tiny loss, {told})"
    most = max(estimate.high - 1, 1 - estimate.low)
    return f"equivalent (a difference is below {percent_text(most)}, {told})"


def outlook_text(measurement: Measurement) -> str:
    """What more sessions would show; for measurements without a verdict."""
    estimate, had = measurement.estimate, replicates(measurement)
    if estimate is None:
        text = f"{count(had, 'session')}, and an interval takes {FEWEST}"
        if not (had and measurement.seconds):
            return text
        return f"{text}: about {rough_seconds(FEWEST * measurement.seconds / had)} (budget_s)"
    seen = _visible(estimate)
    told = (
        f"after {had} sessions a change below about {percent_text(seen)} can't be told from noise"
    )
    if had >= MOST:
        return f"{told}, and more are not run; `fairtrial aa` says how noisy this machine is"
    more = MOST / had
    text = f"{told}; with {MOST} sessions"
    if measurement.seconds:
        text += f", about {rough_seconds(more * measurement.seconds)} (budget_s)"
    return f"{text}, one of about {percent_text(seen / math.sqrt(more))} could be seen"


def _visible(estimate: Estimate) -> float:
    """The smallest effect that such an interval could tell from none, as a share."""
    if not (estimate.low > 0 and math.isfinite(estimate.high)):
        return 1.0
    return math.expm1(math.log(estimate.high / estimate.low) / 2)


def rough_seconds(seconds: float) -> str:
    """`8 s`, `3 min`, `2 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 2 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"


def replicates(measurement: Measurement) -> int:
    """How many sessions of each benchmark there are."""
    if measurement.estimate is not None:
        return measurement.estimate.sessions
    numbers: dict[str, set[int]] = {}
    for session in measurement.sessions:
        numbers.setdefault(session.benchmark, set()).add(session.number)
    return min(map(len, numbers.values()), default=0)


def timed_memory_mb(measurement: Measurement) -> float:
    """The most memory the candidate held while it was timed; 0 where that isn't known."""
    pairs = [timing.peak_rss_mb for timing in measurement.timings]
    return max((pair.candidate for pair in pairs if pair is not None), default=0.0)


def advice(measurement: Measurement) -> tuple[str, str]:
    """Whether to take the candidate, and why or why not."""
    told = verdict_text(measurement.verdict, measurement.estimate)
    if measurement.adopt:
        again = ", measured again in fresh sessions" if measurement.is_confirmed else ""
        return "adopt", f"{told}{again}"
    if measurement.vetoes:
        return "don't adopt", f"{told}, but: {'; '.join(measurement.vetoes)}"
    if measurement.verdict == Verdict.FASTER:
        told += ": less than the smallest effect of interest"
    if measurement.verdict == Verdict.INCONCLUSIVE and not has_lost(measurement):
        return "not decided", f"{told}: {outlook_text(measurement)}"
    return "don't adopt", told


def has_lost(measurement: Measurement) -> bool:
    """Whether it has few sessions because others were better, not for want of time."""
    return any(note.startswith(OUT_OF_RACE) for note in measurement.notes)


def measurement_lines(measurement: Measurement) -> Iterator[str]:
    """All that is to be said of a candidate that was timed, folded, with colors."""
    label, why = advice(measurement)
    color = {"adopt": "green", "don't adopt": "red"}.get(label, "yellow")
    folded = fold(f"{label}: {on_one_line(why, LONGEST_NOTE)}", "  ", "    ")
    yield "  " + style(label, fg=color, bold=True) + folded[2:].removeprefix(label)
    yield from remark_lines(measurement)


def remark_lines(measurement: Measurement) -> Iterator[str]:
    """The same without what to do: benchmark by benchmark, and what else is to be said."""
    if len(measurement.timings) > 1:
        yield from benchmark_lines(measurement.timings)
    for remark in dict.fromkeys(_remarks(measurement)):  # each once
        yield fold(on_one_line(remark, LONGEST_NOTE), "  ", "    ")


def benchmark_lines(timings: Sequence[Timing]) -> Iterator[str]:
    """A line for each benchmark: verdict, ratio with interval, how long the base takes."""
    ratios = [estimate_text(each.estimate) or "too few sessions" for each in timings]
    bases = [f"base {seconds_text(each.base_s)}" if each.base_s else "" for each in timings]
    verdicts, speeds = (max(map(len, each)) for each in ([t.verdict for t in timings], ratios))
    taken = len("    ") + verdicts + speeds + max(map(len, bases)) + 3 * len(GAP)
    longest = max(min(shutil.get_terminal_size().columns - taken, LONGEST_NAME), SHORTEST_NAME)
    names = [cut_cell(on_one_line(each.benchmark, 400), longest) for each in timings]
    width = max(map(cell_width, names))
    for timing, name, ratio, base in zip(timings, names, ratios, bases, strict=True):
        verdict = style(timing.verdict.value.ljust(verdicts), fg=COLORS[timing.verdict])
        line = [pad_cell(name, width), verdict, ratio.ljust(speeds), base]
        yield f"    {GAP.join(line)}".rstrip()


def _remarks(measurement: Measurement) -> Iterator[str]:
    """What else speaks for or against believing it, or taking it."""
    if measurement.is_confirmed and not measurement.adopt:
        yield "it led the race and was measured again: only the fresh sessions count here"
    for timing in measurement.timings:
        of = f"{timing.benchmark}: " if len(measurement.timings) > 1 else ""
        told = [each for each in measurement.vetoes if each.startswith(timing.benchmark)]
        for remark in _timing_remarks(timing, " ".join(told)):
            yield of + remark
        for check in measurement.total_checks:  # vetoes and notes say the rest
            is_own = check.benchmark == timing.benchmark
            if is_own and check.verdict == TotalVerdict.CONFIRMED:
                yield of + describe_total_check(check)
        yield from (f"note: {of}{each}" for each in timing.notes)
    yield from (f"note: {each}" for each in measurement.notes)


def _timing_remarks(timing: Timing, vetoes: str) -> Iterator[str]:
    """What a benchmark's figures say, unless its vetoes and notes have said it."""
    if timing.instructions is not None:
        yield instructions_text(timing.instructions)
    if totals := totals_text(timing):
        yield totals
    if timing.slow_inputs and "slower on" not in vetoes:
        yield f"slower on {name_inputs(timing.slow_inputs)}"
    other = other_story(timing)
    if other and not any("CPU" in each for each in timing.notes):
        yield other
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
    """`instructions: 1.32x fewer (4,100,000, the base 5,412,000)`."""
    ratio = pair.base / pair.candidate
    figures = f"({pair.candidate:,.0f}, the base {pair.base:,.0f})"
    if abs(math.log(ratio)) < SAME_COUNT:
        return f"instructions: as many, to {percent_text(SAME_COUNT)} {figures}"
    word, times = ("fewer", ratio) if ratio > 1 else ("more", 1 / ratio)
    return f"instructions: {ratio_text(times)} {word} {figures}"


def other_story(timing: Timing) -> str:
    """What CPU time says where it says something else than the clock on the wall."""
    cpu, estimate = timing.cpu_ratio, timing.estimate
    if cpu is None or estimate is None or cpu <= 0 or estimate.low <= cpu <= estimate.high:
        return ""
    if abs(math.log(cpu / estimate.ratio)) < OTHER_STORY:
        return ""
    told = f"by CPU time it is {ratio_text(cpu)}, by the clock on the wall "
    told += point_text(estimate)
    if cpu < estimate.ratio:
        return f"{told}: several cores at once, less waiting or other programs make the difference"
    return f"{told}: waiting, or other programs, make the difference"


def print_measurement(name: str, measurement: Measurement) -> None:
    """A candidate that was timed, under its name."""
    click.echo(f"\n{style(name, bold=True)}")
    for line in measurement_lines(measurement):
        click.echo(line)
