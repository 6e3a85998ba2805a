"""Markdown building blocks: escaped text, tables, lists, and formatted numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

MAX_CELL_CHARS = 400
# An underscore inside a word is not markup, nor is a bracket without an address after it.
_SPECIAL = re.compile(r"([\\`*<>|~]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_]))")
_AT_START = re.compile(r"^(\d*)((?<!\d)[#+\-=]+|(?<=\d)[.)])(?=\s|$)|^()(\[)")


def escape_markdown(text: Any, max_chars: int = MAX_CELL_CHARS) -> str:
    """Return text as one line of Markdown that displays literally, without markup or HTML.

    Control characters, also those that change the direction of writing, become spaces.
    """
    line = _one_line(text, max_chars).replace("&", "&amp;")
    line = _SPECIAL.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")
    return _AT_START.sub(_escape_start, line)


def _escape_start(match: re.Match[str]) -> str:
    """Put a backslash before characters that would start a heading, a list or a checkbox."""
    return f"{match[1] or ''}\\{match[2] or match[4]}"


def format_code(text: Any, max_chars: int = MAX_CELL_CHARS) -> str:
    """Return text as inline code, with longer fences around text that has backticks."""
    line = _one_line(text, max_chars)
    if not line:
        return ""
    if "|" in line:
        # It would end a table cell even inside code, and not all readers support an escape there.
        return escape_markdown(line, max_chars)
    backtick_runs = [len(match) for match in re.findall("`+", line)]
    fence = "`" * (max(backtick_runs, default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _one_line(text: Any, max_chars: int) -> str:
    line = "".join(char if char.isprintable() else " " for char in str(text))
    line = " ".join(line.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def format_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """Return a table with aligned columns.

    columns, rows: cells that are Markdown already
    right: indices of the columns to align right
    """
    grid = [list(columns), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[index]) for row in grid)) for index in range(len(columns))]
    lines = []
    for row_index, row in enumerate(grid):
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(cells)} |")
        if row_index == 0:
            rule = [
                f"{'-' * (width - 1)}:" if index in right else "-" * width
                for index, width in enumerate(widths)
            ]
            lines.append(f"| {' | '.join(rule)} |")
    return "\n".join(lines)


def format_number(value: float | None, digits: int = 3) -> str:
    """Format a number to three significant digits; larger ones as integers, None as a dash."""
    if value is None or value != value:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 10**digits <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def format_signed(value: float | None) -> str:
    """Format a difference with its sign."""
    text = format_number(value)
    return f"+{text}" if value is not None and value > 0 else text


def format_interval(interval: tuple[float, float] | None) -> str:
    """Format a confidence interval; empty for None."""
    if interval is None:
        return ""
    low, high = interval
    return f"[{format_number(low)}, {format_number(high)}]"


def format_confidence(confidence: float) -> str:
    """Format a confidence as a percentage, such as ``98.3%``; below 1 it is never ``100%``."""
    text = f"{100 * confidence:.3g}"
    if text == "100" and confidence < 1:
        missing = f"{100 * (1 - confidence):.1e}"
        text = f"{100 - float(missing):.{1 - int(missing.partition('e')[2])}f}".rstrip("0")
    return f"{text}%"


def format_p(p: float | None) -> str:
    """Format a p value as ``= 0.034`` or ``< 0.0001``."""
    if p is None or p != p:
        return "= –"
    return "< 0.0001" if p < 0.0001 else f"= {p:.2g}"


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun: ``1 run``, ``2,000 runs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_list(lines: Iterable[str]) -> str:
    """Return a bullet list."""
    return "\n".join(f"- {line}" for line in lines)
