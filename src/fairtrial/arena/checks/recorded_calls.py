"""Recorded calls: a JSON file of arguments with the results of a function.

A list of objects with ``args`` and ``kwargs``, either ``result`` or ``raises``
(``{"type": "builtins.ValueError", "args": [...]}``), and, where they matter, ``arguments_after``
(``{"args": [...], "kwargs": {...}}``) and ``output`` (a text); ``seconds``, for input makers,
says how long it took. Values are plain JSON or in the tagged form of
`fairtrial.sandbox.harness.codec`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.arena.checks.encoded_values import Encoded, find_unplain
from fairtrial.arena.checks.value_text import render
from fairtrial.core import FieldPath, Mistake, StudyError, atomic_write
from fairtrial.sandbox import wire

_OUTCOMES = {"result": "result", "raises": "raised", "arguments_after": "after", "output": "output"}
"""Keys in a file, with the keys of a worker's report."""
_KEYS = {"args", "kwargs", *_OUTCOMES, "seconds"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call, encoded.

    case: its ``args`` and ``kwargs``
    expected: the recorded parts of its outcome, by a worker's keys; empty for generated inputs
    """

    case: Mapping[str, Encoded]
    expected: Mapping[str, Encoded] = field(default_factory=dict)


def record_call(
    function: Callable[..., Any], *args: object, **kwargs: object
) -> Mapping[str, Encoded]:
    """Call a function, and return the encoded call with its result or exception."""
    call = {"args": wire.encode(list(args)), "kwargs": wire.encode(kwargs)}
    try:
        return {**call, "result": wire.encode(function(*args, **kwargs))}
    except Exception as stop:
        return {**call, "raises": wire.encode_raised(stop)}


def write_calls(path: Path, calls: Iterable[Mapping[str, Encoded]]) -> None:
    """Write calls of `record_call` to a file, one per line.

    Raises `StudyError` if a call holds values that can't be encoded.
    """
    lines = []
    for number, call in enumerate(calls, start=1):
        unplain = find_unplain(call)
        if unplain is not None:
            raise StudyError(f"call {number} can't be recorded: it holds {render(unplain)}")
        lines.append(wire.dump_encoded(call))
    with atomic_write(path) as file:
        file.write("[\n{}\n]\n".format(",\n".join(lines)))


def read_calls(content: bytes, place: FieldPath, source: str) -> list[Call]:
    """Parse a file of recorded calls; raise `StudyError` with all mistakes.

    place: the path in the problem, for mistakes
    source: the file's name, for mistakes
    """
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StudyError(Mistake(place, f"{source} isn't JSON: {error}")) from None
    if not isinstance(data, list) or not data:
        hint = 'such as [{"args": [1, 2], "kwargs": {}, "result": 3}]'
        raise StudyError(Mistake(place, f"{source} must hold a list of calls", hint))
    mistakes = [
        Mistake(place, f"{source}, call {number}: {message}")
        for number, call in enumerate(data, start=1)
        for message in _find_mistakes(call)
    ]
    if mistakes:
        raise StudyError(mistakes)
    return [_parse_call(call) for call in data]


def _parse_call(call: Mapping[str, Encoded]) -> Call:
    case = {"args": call.get("args", []), "kwargs": call.get("kwargs", {})}
    return Call(case, {_OUTCOMES[key]: call[key] for key in call if key in _OUTCOMES})


def _find_mistakes(call: object) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f"must be an object, got {type(call).__name__}"
        return
    for name in sorted(call.keys() - _KEYS):
        yield f"{name!r} isn't known; known: {', '.join(sorted(_KEYS))}"
    if ("result" in call) == ("raises" in call):
        yield "needs either `result` or `raises`"
    after = call.get("arguments_after", {"args": [], "kwargs": {}})
    for prefix, holder in (("", call), ("arguments_after.", after)):
        if not isinstance(holder, dict):
            yield f"{prefix.rstrip('.')} must be an object with `args` and `kwargs`"
        elif not isinstance(holder.get("args", []), list):
            yield f"{prefix}args must be a list"
        elif not isinstance(holder.get("kwargs", {}), dict):
            yield f"{prefix}kwargs must be an object"
    match call.get("raises", {"type": "", "args": []}):
        case {"type": str(), "args": list()}:
            pass
        case _:
            yield 'raises must be such as {"type": "builtins.ValueError", "args": ["..."]}'
