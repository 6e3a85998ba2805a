"""Files with the results of timing: the table of samples, and the plot of intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.model.timings import Measurement
from fairtrial.arena.timing.interval_plot import check_plot_path, interval_rows, plot_intervals
from fairtrial.arena.timing.samples_table import (
    SampleRow,
    check_samples_path,
    read_samples,
    write_samples,
)
from fairtrial.arena.timing.valgrind import find_valgrind
from fairtrial.core import Mistake, StudyError


@dataclass(frozen=True, slots=True)
class TimingFiles:
    """The files that results of timing are to be written to.

    samples: the table of all samples, .csv or .parquet; None for none
    plot: the plot of the intervals, .png or .svg; None for none
    """

    samples: Path | None = None
    plot: Path | None = None

    def check(self, *, instructions: bool = False) -> None:
        """Raise `StudyError` if a file can't be written; call it before any work is done.

        instructions: whether instructions are to be counted, too, which needs valgrind
        """
        if instructions:
            find_valgrind()
        if self.samples is not None:
            check_samples_path(self.samples)
        if self.plot is not None:
            check_plot_path(self.plot)
        for path in (self.samples, self.plot):
            if path is not None and not path.absolute().parent.is_dir():
                message = f"{path}: there is no folder {path.parent}"
                raise StudyError(Mistake((), message, "make it, or name another"))

    def write_samples(self, measurements: Mapping[str, Measurement]) -> int | None:
        """Write the table, and return its number of samples; None if it isn't wanted.

        measurements: by the name of the candidate
        """
        return None if self.samples is None else write_samples(self.samples, measurements)

    def read_samples(self) -> list[SampleRow]:
        """Return the rows of the table; raises `StudyError` if it can't be read."""
        return [] if self.samples is None else read_samples(self.samples)

    def draw_plot(self, measurements: Mapping[str, Measurement], min_effect: float) -> bool:
        """Draw the plot, and return whether there is one; not if nothing was timed.

        measurements: by the name of the candidate
        min_effect: the smallest effect of interest, drawn as a band around 1
        """
        if self.plot is None or not measurements:
            return False
        plot_intervals(self.plot, interval_rows(measurements), min_effect=min_effect)
        return True
