"""Layout of the table of verdicts, one row per candidate, fitted to a width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fairtrial.cli.output import count
from fairtrial.cli.table import GAP, cell_width, cut_cell, pad_cell, rule_mark

NARROWEST_WHY, NARROWEST = 36, 10
INDENT = "  "
SEAMS = (r"::", r"/", r"[_.,:-]")
"""Patterns at which a long word is divided, the preferred one first (between file and test)."""
FIGURES = ("sessions", "time", "timing", "memory")
"""Right-aligned columns."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one candidate.

    name, verdict: the candidate and its verdict
    why: the reason for a rejection, or the basis of the verdict
    time: how long its checks took
    color: the color of the verdict
    speed: the ratio with its interval
    sessions: the number of timing sessions
    timing: how long it was timed
    memory: its peak memory
    """

    name: str
    verdict: str
    why: str = ""
    time: str = ""
    color: str | None = None
    speed: str = ""
    sessions: str = ""
    timing: str = ""
    memory: str = ""


HEADER = Row("candidate", "verdict", "why", "time")
TIMED_HEADER = Row(
    "candidate", "verdict", "why", "checks", None, "speed", "sessions", "timing", "memory"
)
Line = tuple[str, str, str, str | None]


def lay_out(rows: Sequence[Row], width: int | None, *, folded: bool = True) -> Iterator[Line]:
    """Yield the lines of the table: text before the verdict, verdict, text after, and color.

    A text that is too long for `width` is wrapped if `folded`, else cut. Without a width each row
    is one line. If any candidate was timed there are more columns; if these leave too little space
    for the reason, it goes on a second line below the candidate, with the less important figures.
    """
    if not any(row.speed or row.sessions for row in rows):
        return _lay_out([HEADER, *rows], width, (), ("time",), folded=folded)
    shown = [TIMED_HEADER, *rows]
    if not folded:
        shown = shown if width is None else _without_whys(shown, width)
        return _lay_out(shown, width, ("speed", "sessions"), (), folded=folded)
    figures = ("speed", *FIGURES)
    widths = _measure(shown, ("name", "verdict", *figures))
    if width is None or width >= _room(widths.values()) + NARROWEST_WHY:
        return _lay_out(shown, width, figures, (), folded=folded)
    return _lay_out_in_two(shown, width)


def _measure(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, int]:
    """Return the width of each column."""
    return {name: max(cell_width(getattr(row, name)) for row in rows) for name in columns}


def _room(widths: Iterable[int]) -> int:
    """Return the total width of columns, each with a gap."""
    return sum(width + len(GAP) for width in widths)


def _lay_out(
    rows: Sequence[Row],
    width: int | None,
    before: Sequence[str],
    after: Sequence[str],
    *,
    folded: bool,
) -> Iterator[Line]:
    """Yield lines with name, verdict, figures, reason, figures; reasons may take several lines."""
    widths = _measure(rows, ("verdict", *before, *after))
    names, whys = _measure(rows, ("name", "why")).values()
    if width is not None:
        left = width - _room(widths.values()) - len(GAP)
        names = min(names, max(left - min(whys, NARROWEST_WHY), NARROWEST))
        whys = max(left - names, NARROWEST) if whys else 0
    for row in rows:
        lines = [row.why]
        if width is not None:
            lines = fold_cell(row.why, whys) if folded else [cut_cell(row.why, whys)]
        for number, line in enumerate(lines):
            one = row if number == 0 else Row("", "")
            ends = f"{_cells(one, before, widths)}{GAP}{pad_cell(line, whys)}"
            yield (
                pad_cell(cut_cell(one.name, names), names) + GAP,
                pad_cell(one.verdict, widths["verdict"]),
                (ends + _cells(one, after, widths)).rstrip(),
                one.color,
            )
        if row is rows[0]:
            total = _room([names, whys, *widths.values()]) - len(GAP)
            yield rule_mark() * total, "", "", None


def _without_whys(rows: Sequence[Row], width: int) -> list[Row]:
    """Return the rows, without reasons if names would have to be cut to make space for them."""
    room = _room(_measure(rows, ("name", "verdict", "speed", "sessions")).values())
    return list(rows) if width >= room + NARROWEST_WHY else [replace(row, why="") for row in rows]


def _lay_out_in_two(rows: Sequence[Row], width: int) -> Iterator[Line]:
    """Yield lines with name, verdict, speed and memory as far as they fit, the rest below."""
    columns: tuple[str, ...] = ("speed", "memory")
    widths = _measure(rows, ("verdict", *columns))
    while columns and width < _room(widths.values()) + NARROWEST:
        del widths[columns[-1]]
        columns = columns[:-1]
    names = max(cell_width(row.name) for row in rows)
    names = min(names, max(width - _room(widths.values()), NARROWEST))
    for row in rows:
        yield (
            pad_cell(cut_cell(row.name, names), names) + GAP,
            pad_cell(row.verdict, widths["verdict"]),
            _cells(row, columns, widths).rstrip(),
            row.color,
        )
        if row is rows[0]:
            yield rule_mark() * (names + _room(widths.values())), "", "", None
            continue
        rest = _rest(row, columns)
        for line in fold_cell(rest, max(width - len(INDENT), NARROWEST)) if rest else ():
            yield INDENT + line, "", "", None


def _rest(row: Row, columns: Sequence[str]) -> str:
    """Return the text for what a narrow table has no columns for."""
    parts = [
        row.speed if "speed" not in columns else "",
        row.memory if "memory" not in columns else "",
        row.sessions and count(int(row.sessions), "session"),
        row.time and f"checks {row.time}",
        row.timing and f"timing {row.timing}",
        row.why,
    ]
    return "; ".join(filter(None, parts))


def _cells(row: Row, columns: Sequence[str], widths: Mapping[str, int]) -> str:
    """Return padded cells, each after a gap."""
    return "".join(
        GAP + (text.rjust(widths[name]) if name in FIGURES else pad_cell(text, widths[name]))
        for name in columns
        for text in [getattr(row, name)]
    )


def fold_cell(text: str, width: int) -> list[str]:
    """Wrap a text; words that are longer than a line are divided at a pattern of `SEAMS`."""
    lines = [""]
    for word in text.split(" "):
        for number, piece in enumerate(_divide(word, width)):
            joint = " " if number == 0 and lines[-1] else ""
            if lines[-1] and (number or cell_width(lines[-1] + joint + piece) > width):
                lines.append(piece)
            else:
                lines[-1] += joint + piece
    return lines


def _divide(word: str, width: int) -> list[str]:
    """Divide a word into the fewest pieces that fit."""
    if cell_width(word) <= width:
        return [word]
    for seam in SEAMS:
        pieces = re.findall(rf"(?:(?!{seam}).)*(?:{seam}|$)", word)
        if all(cell_width(piece) <= width for piece in pieces):
            return _join(pieces, width)
    return _join(list(word), width)


def _join(pieces: Sequence[str], width: int) -> list[str]:
    joined = [""]
    for piece in pieces:
        if cell_width(joined[-1] + piece) > width:
            joined.append("")
        joined[-1] += piece
    return joined
