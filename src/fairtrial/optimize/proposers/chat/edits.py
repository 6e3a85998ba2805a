"""Search/replace blocks, applied to a file: each search is found exactly once, or it is refused."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fairtrial.core import on_one_line

LONGEST_LINE = 120
MOST_COMPARED = 2_000
"""In files of more lines than this nothing similar is looked for: it takes too long."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One block, as it stands in an answer.

    number: which block it is, from 1
    body: the lines between its first and its last marker
    dividers: the places in `body` of lines that can be the one between search and replacement:
        more than one, where the text itself holds such lines
    """

    number: int
    body: tuple[str, ...]
    dividers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Splice:
    number: int
    start: int
    stop: int
    lines: tuple[str, ...]


def apply_edits(path: str, text: str, edits: Sequence[Edit]) -> tuple[str, list[str]]:
    """The text after all edits, and why some can't be applied; then it is as before.

    All are found in the text as it is: none sees what another does.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    pieces = text.removeprefix(mark).split("\n")
    # Behind the last line end there is no further line.
    last = pieces.pop() if pieces[-1] == "" else None
    lines = [piece.removesuffix("\r") for piece in pieces]
    found = [_place(path, lines, edit) for edit in edits]
    problems = [each for each in found if isinstance(each, str)]
    splices = sorted(
        (each for each in found if isinstance(each, _Splice)), key=lambda splice: splice.start
    )
    problems.extend(
        f"blocks {before.number} and {after.number} change the same lines of {path}"
        for before, after in pairwise(splices)
        if after.start < before.stop
    )
    if problems:
        return text, problems
    for splice in reversed(splices):
        # Line ends stay what they are where the lines are.
        end = "\r" if pieces[splice.start].endswith("\r") else ""
        pieces[splice.start : splice.stop] = [line + end for line in splice.lines]
    if last is not None and pieces:
        pieces.append(last)
    return mark + "\n".join(pieces), []


def _place(path: str, lines: Sequence[str], edit: Edit) -> _Splice | str:
    """Where an edit belongs, or why it belongs nowhere."""
    fitting: list[_Splice] = []
    counts: list[int] = []
    for divider in edit.dividers:
        search = edit.body[:divider]
        starts = _occurrences(lines, search)
        counts.append(len(starts))
        if len(starts) == 1:
            stop = starts[0] + len(search)
            fitting.append(_Splice(edit.number, starts[0], stop, edit.body[divider + 1 :]))
    if len(fitting) == 1:
        return fitting[0]
    what = f"block {edit.number}: the lines under SEARCH"
    if fitting:
        ways = f"block {edit.number} can be read in more than one way: it holds several ======="
        return f"{ways}; leave such lines of {path} out of it"
    if not any(edit.body[: edit.dividers[0]]):
        return f"{what} are empty; say which lines of {path} are replaced"
    if max(counts) > 1:
        return f"{what} occur {max(counts)} times in {path}; add lines around them"
    return f"{what} are not in {path}{_nearest(lines, edit.body[: edit.dividers[0]])}"


def _occurrences(lines: Sequence[str], search: Sequence[str]) -> list[int]:
    """Where these whole lines stand, each place once."""
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
    """The first line that isn't there, and the one that may be meant."""
    known = set(lines)
    strange = next((line for line in search if line not in known), None)
    if strange is None:
        return ": each line is, but not one after the other"
    shown = on_one_line(strange, LONGEST_LINE)
    text = f": there is no line {shown!r}"
    if len(lines) <= MOST_COMPARED and len(strange) <= 1_000:
        close = difflib.get_close_matches(strange, dict.fromkeys(filter(None, lines)), n=1)
        if close:
            text += f" (the nearest is {on_one_line(close[0], LONGEST_LINE)!r})"
    return text


def restore_endings(text: str, base: str) -> str:
    """The text with the line ends and the byte order mark that the base has."""
    if base.startswith("\ufeff") and not text.startswith("\ufeff"):
        text = f"\ufeff{text}"
    if base.count("\r\n") == base.count("\n") > 0:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return text
