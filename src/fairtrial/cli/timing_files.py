"""Options for files with the results of timing, and notes on where they were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import Measurement, write_timing_files
from fairtrial.cli.output import note, shown_path


def timing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--samples`` and ``--plot`` to a command."""
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
    return samples(plot(command))


def instructions_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--instructions`` to a command."""
    option = click.option(
        "--instructions",
        is_flag=True,
        help="Count instructions with valgrind, too: a second opinion, never the verdict.",
    )
    return option(command)


def save_timings(
    measurements: Mapping[str, Measurement],
    samples: Path | None,
    plot: Path | None,
    min_effect: float,
) -> None:
    """Write the requested files, and print notes on them."""
    if samples is not None:
        written = write_timing_files(measurements, samples=samples)
        note(f"{written.samples:,} samples are in {shown_path(samples)}")
    if plot is not None:
        written = write_timing_files(measurements, plot=plot, min_effect=min_effect)
        if written.has_plot:
            note(f"the intervals are in {shown_path(plot)}")
        else:
            note("nothing was timed: there are no intervals to draw")
