"""A plot of the estimates: a row with an interval for each candidate (extra `report`)."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.timing.stats.ratio_text import estimate_text
from fairtrial.core import Mistake, StudyError, atomic_write, on_one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
LONGEST_LABEL = 48
MOST_ROWS = 400
WIDTH_IN, ROW_IN, AROUND_IN = 9.0, 0.27, 1.5
DOTS_PER_IN = 150
WIDEST = 1_000.0
"""Bounds beyond this ratio (or its inverse) are cut off."""
TICKS = (
    1, 10, 0.1, 100, 0.01, 1_000, 0.001, 2, 0.5, 5, 0.2, 1.5, 0.8, 1.2, 1.1, 0.9, 20, 0.05, 50,
    0.02, 200, 500, 3, 0.3, 1.05, 0.95, 0.7, 0.6, 1.3, 1.4, 1.7, 1.02, 0.98, 1.01, 0.99,
)  # fmt: skip
"""Round ratios, the best first."""
CLOSEST = 0.075
"""How close two ticks may be, as a share of the axis."""
STYLES = {
    Verdict.FASTER: ("#1a7f37", "o"),
    Verdict.SLOWER: ("#c4302b", "s"),
    Verdict.EQUIVALENT: ("#2f6fb0", "D"),
    Verdict.INCONCLUSIVE: ("#8a6d00", "^"),
}
"""Colors that most people can distinguish, and markers for all others."""


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """A row of the plot.

    label: the name of the candidate or benchmark
    verdict: determines its color
    estimate: the point and its bounds; None where there were too few sessions
    is_part: whether it is one benchmark of the candidate above it
    """

    label: str
    verdict: Verdict
    estimate: Estimate | None
    is_part: bool = False


def interval_rows(measurements: Mapping[str, Measurement]) -> list[IntervalRow]:
    """Return a row for each candidate, and for each benchmark where there are several."""
    return list(_rows(measurements))


def _rows(measurements: Mapping[str, Measurement]) -> Iterator[IntervalRow]:
    for name, measurement in measurements.items():
        yield IntervalRow(name, measurement.verdict, measurement.estimate)
        if len(measurement.timings) > 1:
            for timing in measurement.timings:
                yield IntervalRow(timing.benchmark, timing.verdict, timing.estimate, is_part=True)


def check_plot_path(path: Path) -> None:
    """Raise `StudyError` if a plot can't be written to a file of this name."""
    if path.suffix not in FORMATS:
        message = f"{path}: a picture can't be made in the format '{path.suffix}'"
        raise StudyError(Mistake((), message, f"end the name in {' or '.join(FORMATS)}"))
    if path.is_dir():
        raise StudyError(Mistake((), f"{path} is a directory", "name a file in it"))
    if find_spec("matplotlib") is None:
        raise StudyError(Mistake((), "pictures need matplotlib", 'pip install "fairtrial[report]"'))


def plot_intervals(
    path: Path, rows: Sequence[IntervalRow], *, min_effect: float = 0.02, title: str = ""
) -> None:
    """Plot the rows into a PNG or SVG file, atomically.

    min_effect: the smallest effect of interest, drawn as a band around 1
    title: the title of the plot
    """
    check_plot_path(path)
    import matplotlib

    # The same rows give the same bytes. A character that the font lacks becomes a box.
    with matplotlib.rc_context({"svg.hashsalt": "fairtrial"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = _draw(rows[:MOST_ROWS], min_effect, title, len(rows))
        buffer = io.BytesIO()
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(buffer, format=path.suffix[1:], dpi=DOTS_PER_IN, metadata=metadata)
    with atomic_write(path) as file:
        file.buffer.write(buffer.getvalue())


def _draw(rows: Sequence[IntervalRow], min_effect: float, title: str, total: int) -> Figure:
    from matplotlib.figure import Figure

    height = AROUND_IN + ROW_IN * max(len(rows), 2)
    figure = Figure(figsize=(WIDTH_IN, height), layout="constrained")
    axes = figure.add_subplot()
    low, high = find_range(rows, min_effect)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)  # the first row on top
    axes.axvspan(1 / (1 + min_effect), 1 + min_effect, color="#e4e4e4", zorder=0)
    axes.axvline(1, color="#555555", linewidth=1, zorder=1)
    for index, row in enumerate(rows):
        _draw_row(axes, index, row, low, high)
    _label(axes, rows, choose_ticks(low, high))
    shown = [f"the first {len(rows):,} of {total:,}"] if total > len(rows) else []
    heading = axes.set_title("; ".join([on_one_line(title, 80), *shown]).strip("; "), fontsize=10)
    heading.set_parse_math(False)
    _add_legend(figure, rows, min_effect)
    return figure


def _draw_row(axes: Axes, index: int, row: IntervalRow, low: float, high: float) -> None:
    color, marker = STYLES.get(row.verdict, ("#555555", "o"))
    text = "too few sessions"
    if row.estimate is not None:
        estimate = row.estimate
        left, right = max(estimate.low, low), min(estimate.high, high)
        width = 1.2 if row.is_part else 2
        axes.plot([left, right], [index, index], color=color, linewidth=width, zorder=2)
        point = min(max(estimate.ratio, low), high)
        axes.plot(
            [point], [index], marker=marker, color=color, markersize=4 if row.is_part else 6,
            linestyle="", zorder=3, clip_on=False,
        )  # fmt: skip
        text = estimate_text(estimate)
    size = 7 if row.is_part else 8
    axes.text(
        1.01, index, text, transform=axes.get_yaxis_transform(), fontsize=size, va="center",
        color=color,
    )  # fmt: skip


def _label(axes: Axes, rows: Sequence[IntervalRow], ticks: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(ticks, labels=[f"{tick:.3g}x" for tick in ticks], fontsize=8)
    axes.set_xlabel("how many times as fast as the base", fontsize=9)
    labels = [("    " if row.is_part else "") + _shorten(row.label) for row in rows]
    axes.set_yticks(range(len(rows)), labels=labels)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_parse_math(False)  # names may hold dollar signs
        label.set_fontsize(7 if row.is_part else 8)
        label.set_color("#555555" if row.is_part else "black")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#eeeeee", zorder=-1)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _add_legend(figure: Figure, rows: Sequence[IntervalRow], min_effect: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    verdicts = {row.verdict for row in rows}
    handles: list[Any] = [
        Line2D([], [], color=color, marker=marker, markersize=5, label=verdict.value)
        for verdict, (color, marker) in STYLES.items()
        if verdict in verdicts
    ]
    handles.append(Patch(color="#e4e4e4", label=f"± {100 * min_effect:g} %"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False
    )


def _shorten(label: str) -> str:
    """Shorten a label in the middle: names often differ only at their end."""
    text = on_one_line(label, 10 * LONGEST_LABEL)
    if len(text) <= LONGEST_LABEL:
        return text
    end = LONGEST_LABEL // 4
    return f"{text[: LONGEST_LABEL - end - 1]}…{text[-end:]}"


def find_range(rows: Sequence[IntervalRow], min_effect: float) -> tuple[float, float]:
    """Return the limits of the axis: all bounds and the band, with a margin."""
    band = (1 + min_effect) ** 2
    estimates = [row.estimate for row in rows if row.estimate is not None]
    low = min([1 / band, *(estimate.low for estimate in estimates)])
    high = max([band, *(estimate.high for estimate in estimates)])
    low, high = max(low, 1 / WIDEST), min(high, WIDEST)
    margin = (high / low) ** 0.03
    return low / margin, high * margin


def choose_ticks(low: float, high: float) -> list[float]:
    """Return 1 and round ratios on both sides of it, far enough apart to be readable."""
    span = math.log(high / low)
    chosen: list[float] = []
    for tick in TICKS:
        is_clear = all(abs(math.log(tick / other)) >= CLOSEST * span for other in chosen)
        if low <= tick <= high and is_clear:
            chosen.append(tick)
    return sorted(chosen)
