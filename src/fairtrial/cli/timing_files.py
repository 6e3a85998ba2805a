"""Files that timing leaves if asked to: the table of samples, the picture of intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import (
    Measurement,
    check_plot_path,
    check_samples_path,
    interval_rows,
    plot_intervals,
    write_samples,
)
from fairtrial.cli.output import note, shown_path
from fairtrial.core import Mistake, StudyError


def timing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--samples`` and ``--plot``."""
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
    """``--instructions``."""
    option = click.option(
        "--instructions",
        is_flag=True,
        help="Count instructions with valgrind, too: a second opinion, never the verdict.",
    )
    return option(command)


def check_timing_files(samples: Path | None, plot: Path | None) -> None:
    """Refuse what can't be written, before any work is done for it."""
    if samples is not None:
        check_samples_path(samples)
    if plot is not None:
        check_plot_path(plot)
    for path in (samples, plot):
        if path is not None and not path.absolute().parent.is_dir():
            message = f"{path}: there is no folder {path.parent}"
            raise StudyError(Mistake((), message, "make it, or name another"))


def write_timing_files(
    measurements: Mapping[str, Measurement],
    samples: Path | None,
    plot: Path | None,
    min_effect: float,
) -> None:
    """What was asked for, of what was timed."""
    if samples is not None:
        count = write_samples(samples, measurements)
        note(f"{count:,} samples are in {shown_path(samples)}")
    if plot is not None and measurements:
        plot_intervals(plot, interval_rows(measurements), min_effect=min_effect)
        note(f"the intervals are in {shown_path(plot)}")
    elif plot is not None:
        note("nothing was timed: there are no intervals to draw")
