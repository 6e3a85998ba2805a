"""Diffs as lines of colored words: the syntax is recognized here, so that pages need no library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairtrial.study.page.plain_data import clean_text

if TYPE_CHECKING:
    from pygments.lexer import Lexer

Line = list[Any]
"""A kind (``add``, ``del``, ``head`` or empty), then words as ``[class, text]``."""
MOST_LINES = 1_500
_CLASSES = (
    ("Keyword", "k"),
    ("Operator.Word", "k"),
    ("Literal.String", "s"),
    ("Comment", "c"),
    ("Literal.Number", "n"),
    ("Name.Function", "f"),
    ("Name.Class", "f"),
)
_KINDS = {"+": "add", "-": "del", " ": ""}


def color_diff(diff: str) -> list[Line]:
    """Return the lines of a unified diff with their words' classes; long diffs are cut."""
    all_lines = diff.splitlines()
    lines = list(_color(all_lines[:MOST_LINES]))
    if len(all_lines) > MOST_LINES:
        lines.append(["head", ["", f"… {len(all_lines) - MOST_LINES:,} lines left out"]])
    return lines


def _color(lines: list[str]) -> Iterator[Line]:
    lexer: Lexer | None = None
    hunk: list[str] = []
    for line in lines:
        is_header = not hunk and line.startswith(("+++ ", "--- "))
        if line[:1] in _KINDS and line and not is_header:
            hunk.append(line)
            continue
        if line.startswith("--- ") and hunk:  # a removed line that looks like a header
            hunk.append(line)
            continue
        yield from _color_hunk(hunk, lexer)
        hunk = []
        if line.startswith("+++ "):
            lexer = _find_lexer(line[4:])
        yield ["head", ["", clean_text(line, 500)]]
    yield from _color_hunk(hunk, lexer)


def _color_hunk(hunk: list[str], lexer: Lexer | None) -> Iterator[Line]:
    """Yield the lines of a hunk; its words are recognized in one piece."""
    texts = [clean_text(line[1:], 2_000).replace("\n", " ") for line in hunk]
    words = _split(texts, lexer)
    for line, parts in zip(hunk, words, strict=True):
        yield [_KINDS[line[0]], ["", line[0]], *parts]


def _split(texts: list[str], lexer: Lexer | None) -> list[list[list[str]]]:
    if lexer is None:
        return [[["", text]] for text in texts]
    rows: list[list[list[str]]] = [[]]
    for token, value in lexer.get_tokens("\n".join(texts)):
        name = _classify(str(token))
        for index, part in enumerate(value.split("\n")):
            if index:
                rows.append([])
            if part:
                last = rows[-1][-1] if rows[-1] else None
                if last is not None and last[0] == name:
                    last[1] += part
                else:
                    rows[-1].append([name, part])
    rows += [[] for _ in texts]
    return rows[: len(texts)]


def _classify(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((css for start, css in _CLASSES if name.startswith(start)), "")


def _find_lexer(path: str) -> Lexer | None:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    name = re.sub(r"^b/|\t.*$", "", path)
    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
