"""Recorded calls: a JSON file of arguments and what a function gave for them.

A list of objects with ``args`` and ``kwargs``, either ``result`` or ``raises``
(``{"type": "builtins.ValueError", "args": [...]}``), and, where they matter, ``arguments_after``
(``{"args": [...], "kwargs": {...}}``) and ``output`` (a text). Values are plain JSON or tagged as
`fairtrial.sandbox.harness.codec` does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.value_text import render
from fairtrial.core import Mistake, Place, StudyError, replacing
from fairtrial.sandbox import Encoded, dump, encode, encode_raised

_OUTCOMES = {"result": "result", "raises": "raised", "arguments_after": "after", "output": "output"}
"""A file's words, and a worker's."""
_KNOWN = {"args", "kwargs", *_OUTCOMES}


@dataclass(frozen=True, slots=True)
class Call:
    """One call, encoded.

    case: its ``args`` and ``kwargs``
    expected: those parts of its outcome that were recorded, in a worker's words; none of an input
        that was made
    """

    case: Mapping[str, Encoded]
    expected: Mapping[str, Encoded] = field(default_factory=dict)


def record_call(
    function: Callable[..., Any], *args: object, **kwargs: object
) -> Mapping[str, Encoded]:
    """Call a function here and now, and write down what it gives or raises."""
    call = {"args": encode(list(args)), "kwargs": encode(kwargs)}
    try:
        return {**call, "result": encode(function(*args, **kwargs))}
    except Exception as stop:
        return {**call, "raises": encode_raised(stop)}


def write_calls(path: Path, calls: Iterable[Mapping[str, Encoded]]) -> None:
    """Write calls (`record_call` makes them) to a file, one on each line."""
    lines = []
    for number, call in enumerate(calls, start=1):
        unplain = find_unplain(call)
        if unplain is not None:
            raise StudyError(f"call {number} can't be written down: it holds {render(unplain)}")
        lines.append(dump(call))
    with replacing(path) as file:
        file.write("[\n{}\n]\n".format(",\n".join(lines)))


def read_calls(content: bytes, place: Place, source: str) -> list[Call]:
    """The calls of a file; a StudyError that tells all that is wrong with it."""
    try:
        read = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StudyError(Mistake(place, f"{source} isn't JSON: {error}")) from None
    if not isinstance(read, list) or not read:
        hint = 'such as [{"args": [1, 2], "kwargs": {}, "result": 3}]'
        raise StudyError(Mistake(place, f"{source} must hold a list of calls", hint))
    mistakes = [
        Mistake(place, f"{source}, call {number}: {message}")
        for number, call in enumerate(read, start=1)
        for message in _find_mistakes(call)
    ]
    if mistakes:
        raise StudyError(mistakes)
    return [_take(call) for call in read]


def _take(call: Mapping[str, Encoded]) -> Call:
    case = {"args": call.get("args", []), "kwargs": call.get("kwargs", {})}
    return Call(case, {_OUTCOMES[key]: call[key] for key in call if key in _OUTCOMES})


def _find_mistakes(call: object) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f"must be an object, got {type(call).__name__}"
        return
    for name in sorted(call.keys() - _KNOWN):
        yield f"{name!r} isn't known; known: {', '.join(sorted(_KNOWN))}"
    if ("result" in call) == ("raises" in call):
        yield "needs either `result` or `raises`"
    after = call.get("arguments_after", {"args": [], "kwargs": {}})
    for where, holder in (("", call), ("arguments_after.", after)):
        if not isinstance(holder, dict):
            yield f"{where.rstrip('.')} must be an object with `args` and `kwargs`"
        elif not isinstance(holder.get("args", []), list):
            yield f"{where}args must be a list"
        elif not isinstance(holder.get("kwargs", {}), dict):
            yield f"{where}kwargs must be an object"
    match call.get("raises", {"type": "", "args": []}):
        case {"type": str(), "args": list()}:
            pass
        case _:
            yield 'raises must be such as {"type": "builtins.ValueError", "args": ["..."]}'
