"""Tables on a terminal: cells are shortened and columns left out to fit, which a last line says."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from fairtrial.cli.output import count, print_wrapped, style
from fairtrial.core import on_one_line, table_files

LONGEST_CELL = 40
LONGEST_TEXT = 200
"""Longer texts are cut here before anything else."""
SHORT_CELL = 24
"""The key column is dropped before other cells become shorter than this."""
SHORTEST_CELL = 12
GAP = "  "


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    total: int,
    has_key: bool = False,
    has_remark: bool = False,
    advice: str = "--out FILE writes them all",
) -> None:
    """Print the first of `total` rows, fitted to the width of the terminal if there is one.

    A narrow terminal gets shorter cells, then no key column (the first, if `has_key`), then fewer
    columns, but always the last if `has_remark`. A last line names what was left out.

    advice: where all of it is
    """
    columns = [_text(name) for name in columns]
    texts = [[_text(value) for value in row] for row in rows]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    shown, longest = _fit([list(columns), *texts], width, has_key, has_remark)
    widths = [
        max(cell_width(cut_cell(row[column], longest)) for row in [columns, *texts])
        for column in shown
    ]
    header, *lines = (
        GAP.join(
            pad_cell(cut_cell(row[column], longest), room)
            for column, room in zip(shown, widths, strict=True)
        ).rstrip()
        for row in [columns, *texts]
    )
    click.echo(style(header, bold=True))
    click.echo(rule_mark() * (sum(widths) + len(GAP) * (len(widths) - 1)))
    for line in lines:
        click.echo(line)
    left_out = [name for i, name in enumerate(columns) if i not in shown]
    _print_left_out(left_out, total - len(texts), advice)


def _fit(
    rows: Sequence[Sequence[str]], width: int | None, has_key: bool, has_remark: bool
) -> tuple[list[int], int]:
    """Return the columns to show and the maximum length of a cell."""
    everything = list(range(len(rows[0])))
    sizes = [max(cell_width(row[column]) for row in rows) for column in everything]

    def fits(columns: Sequence[int], longest: int) -> bool:
        room = sum(min(sizes[column], longest) for column in columns)
        return width is None or room + len(GAP) * (len(columns) - 1) <= width

    for longest in range(LONGEST_CELL, SHORT_CELL - 1, -1):
        if fits(everything, longest):
            return everything, longest
    shown = everything[1:] if has_key else everything
    for longest in range(LONGEST_CELL, SHORTEST_CELL - 1, -1):
        if fits(shown, longest):
            return shown, longest
    while len(shown) > 1 + has_remark and not fits(shown, longest):
        del shown[-2 if has_remark else -1]
    return shown, longest


def _print_left_out(columns: Sequence[str], rows: int, advice: str) -> None:
    more = [f"{rows:,} more"] if rows else []
    if columns:
        names = ", ".join(columns[:3]) + (", ..." if len(columns) > 3 else "")
        more.append(f"{count(len(columns), 'column')} that don't fit ({names})")
    if more:
        print_wrapped(f"... and {', and '.join(more)}; {advice}", "", "    ")


def _text(value: Any) -> str:
    """Return a value as text on one line; long fractions are rounded to six digits."""
    if isinstance(value, float) and len(repr(value)) > 8:
        return f"{value:.6g}"
    return on_one_line(
        " ".join(str(table_files.format_cell(value))[:LONGEST_TEXT].split()), LONGEST_TEXT
    )


def cell_width(text: str) -> int:
    """Return the width of a text in terminal columns."""
    from rich.cells import cell_len  # Chinese and Japanese characters are two columns wide

    return cell_len(text)


def cut_cell(text: str, longest: int) -> str:
    """Shorten a text in its middle: names often differ only in their last letters."""
    if cell_width(text) <= longest:
        return text
    end = text[-(longest // 4) :]
    while cell_width(text) + cell_width(end) >= longest:
        text = text[:-1]
    return f"{text}…{end}"


def pad_cell(text: str, width: int) -> str:
    """Pad a text with spaces to a width."""
    return text + " " * (width - cell_width(text))


def rule_mark() -> str:
    """Return the character of the line below a header."""
    try:
        "─…".encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "-"
    return "─"
