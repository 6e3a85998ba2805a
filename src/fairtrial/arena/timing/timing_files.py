"""Files with the results of timing: the table of samples, and the plot of intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.timing.interval_plot import check_plot_path, interval_rows, plot_intervals
from fairtrial.arena.timing.samples_table import check_samples_path, write_samples
from fairtrial.arena.timing.valgrind import find_valgrind
from fairtrial.core import Mistake, StudyError


@dataclass(frozen=True, slots=True)
class WrittenTimings:
    """Which files were written.

    samples: number of samples in the table; None if there is no table
    has_plot: whether there is a plot; not if nothing was timed
    """

    samples: int | None = None
    has_plot: bool = False


def check_timing_options(
    samples: Path | None = None, plot: Path | None = None, *, instructions: bool = False
) -> None:
    """Raise `StudyError` if a file can't be written, or instructions can't be counted here.

    Call it before any work is done.
    """
    if instructions:
        find_valgrind()
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
    *,
    samples: Path | None = None,
    plot: Path | None = None,
    min_effect: float = 0.02,
) -> WrittenTimings:
    """Write the samples and plot the intervals of these measurements.

    measurements: by the name of the candidate
    samples: the table, .csv or .parquet
    plot: the plot, .png or .svg; not written if there is no measurement
    min_effect: the smallest effect of interest, drawn as a band around 1
    """
    count = None if samples is None else write_samples(samples, measurements)
    has_plot = plot is not None and bool(measurements)
    if plot is not None and has_plot:
        plot_intervals(plot, interval_rows(measurements), min_effect=min_effect)
    return WrittenTimings(count, has_plot)
