"""Search/replace blocks applied to a file; each search text must occur exactly once."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fairtrial.core import on_one_line

LONGEST_LINE = 120
MOST_COMPARED = 2_000
"""In files of more lines no similar line is suggested: finding one takes too long."""


@dataclass(frozen=True, slots=True)
class EditBlock:
    """One search/replace block of an answer.

    number: its number in the answer, from 1
    body: the lines between its first and its last marker
    dividers: the indices in `body` of lines that may divide search from replacement: more than one
        if the text itself holds such lines
    """

    number: int
    body: tuple[str, ...]
    dividers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Splice:
    """Lines `start` to `stop` of a file, and the lines that replace them."""

    number: int
    start: int
    stop: int
    lines: tuple[str, ...]


def apply_edits(path: str, text: str, blocks: Sequence[EditBlock]) -> tuple[str, list[str]]:
    """Return the text after all edits, and why some can't be applied; then it is unchanged.

    Each block is located in the original text, not in the results of other blocks.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    pieces = text.removeprefix(mark).split("\n")
    # The last line end isn't followed by another line.
    last = pieces.pop() if pieces[-1] == "" else None
    lines = [piece.removesuffix("\r") for piece in pieces]
    results = [_locate(path, lines, block) for block in blocks]
    problems = [result for result in results if isinstance(result, str)]
    splices = sorted(
        (result for result in results if isinstance(result, _Splice)),
        key=lambda splice: splice.start,
    )
    problems.extend(
        f"blocks {before.number} and {after.number} change the same lines of {path}"
        for before, after in pairwise(splices)
        if after.start < before.stop
    )
    if problems:
        return text, problems
    for splice in reversed(splices):
        # New lines get the line end of the lines that they replace.
        end = "\r" if pieces[splice.start].endswith("\r") else ""
        pieces[splice.start : splice.stop] = [line + end for line in splice.lines]
    if last is not None and pieces:
        pieces.append(last)
    return mark + "\n".join(pieces), []


def _locate(path: str, lines: Sequence[str], block: EditBlock) -> _Splice | str:
    """Return which lines a block replaces, or why it can't be located."""
    fitting: list[_Splice] = []
    counts: list[int] = []
    for divider in block.dividers:
        search = block.body[:divider]
        starts = _occurrences(lines, search)
        counts.append(len(starts))
        if len(starts) == 1:
            stop = starts[0] + len(search)
            fitting.append(_Splice(block.number, starts[0], stop, block.body[divider + 1 :]))
    if len(fitting) == 1:
        return fitting[0]
    what = f"block {block.number}: the lines under SEARCH"
    if fitting:
        ways = f"block {block.number} can be read in more than one way: it holds several ======="
        return f"{ways}; leave such lines of {path} out of it"
    if not any(block.body[: block.dividers[0]]):
        return f"{what} are empty; say which lines of {path} are replaced"
    if max(counts) > 1:
        return f"{what} occur {max(counts)} times in {path}; add lines around them"
    return f"{what} are not in {path}{_nearest(lines, block.body[: block.dividers[0]])}"


def _occurrences(lines: Sequence[str], search: Sequence[str]) -> list[int]:
    """Return the indices where these whole lines begin."""
    if not any(search):
        return []
    size = len(search)
    wanted = list(search)
    return [
        start
        for start in range(len(lines) - size + 1)
        if lines[start] == wanted[0] and list(lines[start : start + size]) == wanted
    ]


def _nearest(lines: Sequence[str], search: Sequence[str]) -> str:
    """Return a message with the first line that isn't there, and the most similar one."""
    existing = set(lines)
    unknown = next((line for line in search if line not in existing), None)
    if unknown is None:
        return ": each line is, but not one after the other"
    shown = on_one_line(unknown, LONGEST_LINE)
    text = f": there is no line {shown!r}"
    if len(lines) <= MOST_COMPARED and len(unknown) <= 1_000:
        close = difflib.get_close_matches(unknown, dict.fromkeys(filter(None, lines)), n=1)
        if close:
            text += f" (the nearest is {on_one_line(close[0], LONGEST_LINE)!r})"
    return text


def restore_endings(text: str, base: str) -> str:
    """Return the text with the line ends and the byte order mark of the base."""
    if base.startswith("\ufeff") and not text.startswith("\ufeff"):
        text = f"\ufeff{text}"
    if base.count("\r\n") == base.count("\n") > 0:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return text
