"""Markdown that no title, level or message can break, and figures as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

LONGEST_CELL = 400
# An underscore within a word is no markup, nor is a bracket that no address follows.
_SPECIAL = re.compile(r"([\\`*<>|~]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_]))")
_AT_START = re.compile(r"^(\d*)((?<!\d)[#+\-=]+|(?<=\d)[.)])(?=\s|$)|^()(\[)")


def plain_text(text: Any, longest: int = LONGEST_CELL) -> str:
    """Somebody's text as Markdown that shows just that: one line, no markup, no HTML.

    Characters that a terminal acts on, or that turn the direction of writing, become spaces.
    """
    line = _one_line(text, longest).replace("&", "&amp;")
    line = _SPECIAL.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")
    return _AT_START.sub(_escape_start, line)


def _escape_start(found: re.Match[str]) -> str:
    """What would begin a heading, a list or a box to tick, with a backslash before it."""
    return f"{found[1] or ''}\\{found[2] or found[4]}"


def code(text: Any, longest: int = LONGEST_CELL) -> str:
    """A name as code; longer fences around names that hold backticks."""
    line = _one_line(text, longest)
    if not line:
        return ""
    if "|" in line:
        # It would end a table's cell even within code, where not all readers let it be escaped.
        return plain_text(line, longest)
    runs = [len(found) for found in re.findall("`+", line)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _one_line(text: Any, longest: int) -> str:
    line = "".join(char if char.isprintable() else " " for char in str(text))
    line = " ".join(line.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table whose columns line up in a terminal too; cells are Markdown already.

    right: the columns, counted from 0, that hold numbers
    """
    grid = [list(columns), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[place]) for row in grid)) for place in range(len(columns))]
    lines = []
    for number, row in enumerate(grid):
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(cells)} |")
        if number == 0:
            rule = [
                f"{'-' * (width - 1)}:" if place in right else "-" * width
                for place, width in enumerate(widths)
            ]
            lines.append(f"| {' | '.join(rule)} |")
    return "\n".join(lines)


def figure(value: float | None, digits: int = 3) -> str:
    """A number to three digits; a dash for none. Whole numbers keep all of theirs."""
    if value is None or value != value:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 10**digits <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def signed(value: float | None) -> str:
    """A difference, with its sign."""
    text = figure(value)
    return f"+{text}" if value is not None and value > 0 else text


def spell_interval(interval: tuple[float, float] | None) -> str:
    """A confidence interval; nothing for none."""
    return "" if interval is None else f"[{figure(interval[0])}, {figure(interval[1])}]"


def spell_p(p: float | None) -> str:
    """A p value as ``= 0.034`` or ``< 0.0001``."""
    if p is None or p != p:
        return "= –"
    return "< 0.0001" if p < 0.0001 else f"= {p:.2g}"


def count(number: int, noun: str) -> str:
    """``1 run``, ``2,000 runs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {line}" for line in lines)
