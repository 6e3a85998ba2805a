"""HTML of records for notebooks: tables and facts, without scripts, with every text escaped."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from fairtrial.core.errors import on_one_line

LONGEST_CELL = 200
LONGEST_BLOCK = 20_000
MOST_ROWS = 12


def compose(title: str, *parts: str, kind: str = "") -> str:
    """Return parts under a title.

    kind: what the object is, in a word or two
    """
    head = f"<strong>{escape(title)}</strong>" + (f" <small>{escape(kind)}</small>" if kind else "")
    return f"<div>{head}{''.join(parts)}</div>"


def facts(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return a line with names and values; without those that are None or empty."""
    shown = [f"{escape(name)}: {escape(value)}" for name, value in pairs if value not in (None, "")]
    return f"<p>{' · '.join(shown)}</p>" if shown else ""


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, total: int = 0) -> str:
    """Return a table with the first rows, and how many more there are.

    total: the number of rows in all, if `rows` has not all of them
    """
    shown = rows[:MOST_ROWS]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in shown
    )
    more = max(total, len(rows)) - len(shown)
    note = f"<p><small>and {more:,} more</small></p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def items(texts: Sequence[str]) -> str:
    """Return a list of the first texts, and how many more there are."""
    shown = "".join(f"<li>{escape(text)}</li>" for text in texts[:MOST_ROWS])
    more = len(texts) - MOST_ROWS
    return f"<ul>{shown}{f'<li>and {more:,} more</li>' if more > 0 else ''}</ul>" if texts else ""


def code_block(title: str, text: str) -> str:
    """Return a text as it is, folded under a title; empty for an empty text."""
    if not text:
        return ""
    cut = text if len(text) <= LONGEST_BLOCK else f"{text[:LONGEST_BLOCK]}\n..."
    lines = "\n".join(
        "".join(
            char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}"
            for char in line
        )
        for line in cut.split("\n")
    )
    return f"<details><summary>{escape(title)}</summary><pre>{html.escape(lines)}</pre></details>"


def escape(value: Any) -> str:
    """Return any value as one line of text that is no markup."""
    if isinstance(value, float) and math.isfinite(value):
        value = f"{value:.4g}"
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif value is None:
        value = "–"
    # on_one_line escapes lone surrogates too: they are not printable.
    return html.escape(on_one_line(str(value), LONGEST_CELL))
