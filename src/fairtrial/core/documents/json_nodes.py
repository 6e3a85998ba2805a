"""JSON text to nodes: values as `json.loads` reads them, with their lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import Any

from fairtrial.core.canonical import TOO_DEEP
from fairtrial.core.documents.nodes import Collection, Composer, Node, Scalar
from fairtrial.core.errors import Mistake, StudyError

# Finds the tokens of a text that is known to be JSON; commas and colons say nothing more then.
_TOKEN = re.compile(r'[\[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,:\[\]{}"]+')


def compose_json(text: str) -> Node | None:
    """The value of a JSON text; None if the text is blank."""
    if not text.strip():
        return None
    _check_syntax(text)
    ends = [match.start() for match in re.finditer("\n", text)]
    composer = Composer()
    for match in _TOKEN.finditer(text):
        token, line = match.group(), bisect_left(ends, match.start()) + 1
        if token in ("[", "{"):
            composer.open(Collection(line, is_mapping=token == "{"))
        elif token in ("]", "}"):
            composer.close()
        else:
            composer.add(_scalar(token, line))
    return composer.root


def _scalar(token: str, line: int) -> Scalar:
    try:
        value: Any = json.loads(token)
    except ValueError:
        # Python refuses to convert numbers of thousands of digits, which take it too long.
        problem = f"`{token[:37]}...` has too many digits for a number"
        return Scalar(line, token, token, problem=problem, hint="put it in quotes for the text")
    return Scalar(line, value if isinstance(value, str) else token, value)


def _check_syntax(text: str) -> None:
    def skip(_: str) -> None:
        return None

    try:
        json.loads(text, parse_int=skip, parse_float=skip, parse_constant=skip)
    except json.JSONDecodeError as error:
        raise StudyError(_syntax_mistake(error)) from None
    except RecursionError:
        raise StudyError(TOO_DEEP) from None


def _syntax_mistake(error: json.JSONDecodeError) -> Mistake:
    said = error.msg[:1].lower() + error.msg[1:]
    following = error.doc[error.pos : error.pos + 1]
    hint = ""
    if following == "'":
        hint = "JSON wants double quotes"
    elif following in ("#", "/"):
        hint = "JSON has no comments"
    elif following in ("]", "}") or "trailing comma" in said:
        hint = "remove the comma before the bracket, or add what is missing"
    return Mistake((), f"not valid JSON at column {error.colno}: {said}", hint, error.lineno)
