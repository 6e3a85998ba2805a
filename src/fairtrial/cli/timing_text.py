"""Measurements as people see them: the recommendation, a line per benchmark, and remarks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import click

from fairtrial.arena import Measurement, Verdict, describe_measurement
from fairtrial.cli.output import fold, style
from fairtrial.cli.table import GAP, cell_width, cut_cell, pad_cell
from fairtrial.core import on_one_line

LONGEST_NAME, SHORTEST_NAME, LONGEST_NOTE = 40, 10, 2_000
COLORS = {
    Verdict.PASSED: "green",
    Verdict.FASTER: "green",
    Verdict.REJECTED: "red",
    Verdict.SLOWER: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.EQUIVALENT: "cyan",
}


def measurement_lines(measurement: Measurement) -> Iterator[str]:
    """Yield wrapped, colored lines about a candidate that was timed."""
    text = describe_measurement(measurement)
    label = text.recommendation.value
    color = {"adopt": "green", "don't adopt": "red"}.get(label, "yellow")
    folded = fold(f"{label}: {on_one_line(text.reason, LONGEST_NOTE)}", "  ", "    ")
    yield "  " + style(label, fg=color, bold=True) + folded[2:].removeprefix(label)
    yield from remark_lines(measurement)


def remark_lines(measurement: Measurement, base_name: str = "base") -> Iterator[str]:
    """Yield the lines of each benchmark and all remarks, without a recommendation."""
    if len(measurement.timings) > 1:
        yield from benchmark_lines(measurement, base_name)
    for remark in describe_measurement(measurement).remarks:
        yield fold(on_one_line(remark, LONGEST_NOTE), "  ", "    ")


def benchmark_lines(measurement: Measurement, base_name: str = "base") -> Iterator[str]:
    """Yield one line per benchmark: verdict, ratio with interval, time of the base.

    base_name: what the candidate was timed against
    """
    timings = measurement.timings
    ratios = [
        timing.estimate.text() if timing.estimate else "too few sessions" for timing in timings
    ]
    bases = [f"{base_name} {timing.base_text}" if timing.base_text else "" for timing in timings]
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


def print_measurement(name: str, measurement: Measurement) -> None:
    """Print what is known of a candidate that was timed, under its name."""
    click.echo(f"\n{style(name, bold=True)}")
    for line in measurement_lines(measurement):
        click.echo(line)
