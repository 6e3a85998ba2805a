"""Options for files with the results of timing, and notes on where they were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import Comparison, Measurement, TimingFiles, suites
from fairtrial.cli.output import note, shown_path


def timing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--samples`` and ``--plot`` to a command, which gets `TimingFiles`."""
    samples = click.option(
        "--samples",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write all that was timed into a table: .csv or .parquet.",
    )
    plot = click.option(
        "--plot",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Draw the intervals: .png or .svg.",
    )

    @wraps(command)
    def with_files(*args: Any, samples: Path | None, plot: Path | None, **kwargs: Any) -> Any:
        return command(*args, timing_files=TimingFiles(samples, plot), **kwargs)

    return samples(plot(with_files))


def instructions_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--instructions`` to a command."""
    option = click.option(
        "--instructions",
        is_flag=True,
        help="Count instructions with valgrind, too: a second opinion, never the verdict.",
    )
    return option(command)


def save_timings(
    files: TimingFiles, measurements: Mapping[str, Measurement], min_effect: float
) -> None:
    """Write the requested files, and print notes on them."""
    if files.samples is not None:
        number = files.write_samples(measurements)
        note(f"{number:,} samples are in {shown_path(files.samples)}")
    if files.plot is not None:
        if files.draw_plot(measurements, min_effect):
            note(f"the intervals are in {shown_path(files.plot)}")
        else:
            note("nothing was timed: there are no intervals to draw")


def pytest_json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--pytest-benchmark-json`` to a command."""
    option = click.option(
        "--pytest-benchmark-json",
        "pytest_json",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the second version's figures as pytest-benchmark does.",
    )
    return option(command)


def save_pytest_json(path: Path | None, comparisons: Sequence[Comparison]) -> None:
    """Write the figures of comparisons as pytest-benchmark's JSON, if that was asked for."""
    if path is None:
        return
    measured = {
        comparison.second.name: comparison.measurement
        for comparison in comparisons
        if comparison.measurement is not None
    }
    number = suites.write_pytest_json(path, measured)
    note(f"the figures of {number} benchmarks are in {shown_path(path)}")
