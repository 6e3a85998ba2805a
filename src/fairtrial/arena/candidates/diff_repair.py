"""A hunk against the file as it is: where it fits, what can be mended, and what to say if not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairtrial.arena.candidates.diffs import FileDiff, Hunk, Line
from fairtrial.arena.candidates.paths import spell
from fairtrial.arena.model.verdicts import Difference, Failure
from fairtrial.core import on_one_line

_LONGEST_LINE, _MOST_SHOWN, _MOST_DIFFERENCES = 200, 15, 5
_MOST_VOTES = 50
"""How many places of a common line (a blank one) are looked at."""


class Content:
    """A file's lines, and where each of them stands."""

    def __init__(self, text: bytes) -> None:
        lines = [line + b"\n" for line in text.split(b"\n")]  # only a newline ends one, as in git
        last = lines.pop()[:-1]
        self.lines = [*lines, last] if last else lines
        self.places: defaultdict[bytes, list[int]] = defaultdict(list)
        for place, line in enumerate(self.lines):
            self.places[line].append(place)

    def fits(self, hunk: Hunk) -> bool:
        """Whether the lines that a hunk wants are here, wherever."""
        wanted = hunk.before
        if not wanted:
            return True
        offset = min(range(len(wanted)), key=lambda at: len(self.places.get(wanted[at], ())))
        return any(
            place >= offset and self.lines[place - offset : place - offset + len(wanted)] == wanted
            for place in self.places.get(wanted[offset], ())
        )


def mend(diff: FileDiff, text: bytes) -> FileDiff:
    """The diff with the file's own line ends, where these are all that is wrong with a hunk."""
    content = Content(text)
    return diff.with_hunks(_mend_hunk(hunk, content) for hunk in diff.hunks)


def _mend_hunk(hunk: Hunk, content: Content) -> Hunk:
    if content.fits(hunk):
        return hunk
    return next(filter(content.fits, _variants(hunk, content.lines)), hunk)


def _variants(hunk: Hunk, content: Sequence[bytes]) -> Iterator[Hunk]:
    ends = {line.endswith(b"\r\n") for line in content if line.endswith(b"\n")}
    given = [hunk]
    if len(ends) == 1:
        is_crlf = ends.pop()
        lines = tuple(Line(sign, _end(line, is_crlf=is_crlf)) for sign, line in hunk.lines)
        given.append(replace(hunk, lines=lines))
    yield from given[1:]
    for each in given:
        yield from _other_last_line(each, content)


def _end(line: bytes, *, is_crlf: bool) -> bytes:
    if not line.endswith(b"\n"):
        return line
    return line.removesuffix(b"\n").removesuffix(b"\r") + (b"\r\n" if is_crlf else b"\n")


def _other_last_line(hunk: Hunk, content: Sequence[bytes]) -> Iterator[Hunk]:
    """The hunk as it is if its last old line ends the file like the base's last line does."""
    olds = [place for place, line in enumerate(hunk.lines) if line.sign != "+"]
    if not olds or not content:
        return
    place, last = olds[-1], content[-1]
    sign, text = hunk.lines[place]
    if text.rstrip(b"\r\n") != last.rstrip(b"\r\n") or text == last:
        return
    lines = list(hunk.lines)
    if sign == "-" or place == len(lines) - 1:
        lines[place] = Line(sign, last)
    else:  # lines come after it, so that it has to get an end now
        kept = last if last.endswith(b"\n") else last + b"\n"
        lines[place : place + 1] = [Line("-", last), Line("+", kept)]
    yield replace(hunk, lines=tuple(lines))


def explain(diff: FileDiff, text: bytes, most: int) -> tuple[list[Failure], int]:
    """What is to be said of the first hunks that don't fit, and how many there are."""
    content = Content(text)
    misfits = [
        (number, hunk) for number, hunk in enumerate(diff.hunks, 1) if not content.fits(hunk)
    ]
    explained = [_explain_hunk(diff.name, *misfit, content.lines) for misfit in misfits[:most]]
    return explained, len(misfits)


def _explain_hunk(name: str, number: int, hunk: Hunk, content: Sequence[bytes]) -> Failure:
    wanted = hunk.before
    at = _likeliest(hunk, content)
    differences = []
    for offset, line in enumerate(wanted):
        there = content[at + offset] if at + offset < len(content) else None
        if there != line:
            where = f"line {at + offset + 1}"
            differences.append(Difference(where, _show(there), _show(line)))
    end = min(at + len(wanted), len(content), at + _MOST_SHOWN)
    shown = [f"{place + 1:>5} {_show(content[place])}" for place in range(at, end)]
    if not content:
        stands = "the file is empty"
    elif shown:
        stands = f"what stands there now, lines {at + 1} to {end}:\n" + "\n".join(shown)
    else:
        stands = f"the file has only {len(content):,} lines"
    first = differences[0] if differences else None
    said = "no such lines"
    if first:
        said = f"{first.where} of the base is `{first.expected}`, the diff has `{first.actual}`"
    return Failure(
        check="diff",
        what=f"hunk {number} of {spell(name)} (line {hunk.start})",
        message=f"{said}; {stands}",
        differences=tuple(differences[:_MOST_DIFFERENCES]),
    )


def _show(line: bytes | None) -> str:
    if line is None:
        return "(the end of the file)"
    text = line.rstrip(b"\n").decode("utf-8", "replace")
    shown = on_one_line(text, _LONGEST_LINE) or "(empty)"
    return shown if line.endswith(b"\n") else f"{shown} (without a newline)"


def _likeliest(hunk: Hunk, content: Sequence[bytes]) -> int:
    """Where most of a hunk's lines stand in the right order; of equals the nearest one."""
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, line in enumerate(content):
        stripped = line.strip()
        if len(places[stripped]) < _MOST_VOTES:
            places[stripped].append(place)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(hunk.before):
        for place in places.get(line.strip(), ()):
            if place >= offset:
                votes[place - offset] += 1 + bool(line.strip())
    stated = min(max(hunk.start - 1, 0), max(len(content) - 1, 0))
    if not votes:
        return stated
    return min(votes, key=lambda at: (-votes[at], abs(at - stated)))
