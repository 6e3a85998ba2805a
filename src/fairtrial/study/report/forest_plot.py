"""A forest plot in text: one line for each problem with its estimate and interval."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.study.report.comparison_results import ProblemEffect
from fairtrial.study.report.markdown_text import (
    format_confidence,
    format_interval,
    format_number,
    format_signed,
)
from fairtrial.study.stats.finding import CONFIDENCE, Interval

WIDTH = 41
MAX_NAME = 20
MAX_PROBLEMS = 30


def draw_forest_plot(
    effects: Sequence[ProblemEffect],
    estimate: float | None,
    interval: Interval | None,
    confidence: float = CONFIDENCE,
) -> str:
    """Return a plot of the effects in problems, and of the overall estimate if there is one.

    The first 30 problems are shown.

    confidence: the confidence of the overall interval; those of the problems have 95%
    """
    shown = list(effects[:MAX_PROBLEMS])
    rows = [(effect.problem, effect.estimate, effect.interval, "●") for effect in shown]
    if estimate is not None:
        rows.append(("overall", estimate, interval, "◆"))
    low, high = _find_range([(value, ends) for _, value, ends, _ in rows])
    names = [_shorten(name) for name, *_ in rows]
    width = max(map(len, names))
    lines = [
        f"{name.ljust(width)} {_draw_row(value, ends, mark, low, high)} "
        f"{format_signed(value)} {format_interval(ends)}".rstrip()
        for name, (_, value, ends, mark) in zip(names, rows, strict=True)
    ]
    if estimate is not None and interval is not None and confidence != CONFIDENCE:
        lines[-1] += f" ({format_confidence(confidence)})"
    axis = format_number(low).ljust(WIDTH - len(format_number(high))) + format_number(high)
    return "\n".join([*lines, f"{' ' * width} {axis}"])


def _find_range(rows: Sequence[tuple[float, Interval | None]]) -> Interval:
    """Return the range of all estimates, their intervals and 0."""
    ends = [0.0, *(value for value, _ in rows)]
    ends += [end for _, interval in rows if interval is not None for end in interval]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low - 1, high + 1)


def _draw_row(value: float, interval: Interval | None, mark: str, low: float, high: float) -> str:
    """Return the line of one estimate: its interval, a mark at 0, and a mark at the estimate."""

    def place(number: float) -> int:
        return round((number - low) / (high - low) * (WIDTH - 1))

    cells = [" "] * WIDTH
    if interval is not None:
        for position in range(place(interval[0]), place(interval[1]) + 1):
            cells[position] = "─"
    cells[place(0.0)] = "┼" if cells[place(0.0)] == "─" else "│"
    cells[place(value)] = mark
    return "".join(cells)


def _shorten(name: str) -> str:
    line = "".join(char if char.isprintable() and char != "`" else " " for char in name)
    return line if len(line) <= MAX_NAME else f"{line[: MAX_NAME - 1]}…"
