"""Recorded calls: a JSON file of arguments with the results of a function.

A list of objects with ``args`` and ``kwargs``, either ``result`` or ``raises``
(``{"type": "builtins.ValueError", "args": [...]}``), and, where they matter, ``arguments_after``
(``{"args": [...], "kwargs": {...}}``) and ``output`` (a text); ``seconds``, for input makers,
says how long it took. Values are plain JSON or in the tagged form of
`fairtrial.sandbox.harness.codec`.

Arguments that hold other objects are kept as ``pickle`` (``{"protocol": 4, "sha256": "...",
"repr": "...", "data": "..."}``, the data in base64); ``args`` and ``kwargs`` then say what they
consist of. Workers load the pickle, which runs code that it names: the file is trusted like code.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtrial.arena.checks.encoded_values import Encoded, find_unplain
from fairtrial.arena.checks.value_text import render, render_call
from fairtrial.core import FieldPath, Mistake, StudyError, atomic_write
from fairtrial.sandbox import wire

_OUTCOMES = {"result": "result", "raises": "raised", "arguments_after": "after", "output": "output"}
"""Keys in a file, with the keys of a worker's report."""
_PICKLE = "pickle"
_KEYS = {"args", "kwargs", _PICKLE, *_OUTCOMES, "seconds"}
_LONGEST_REPR = 500


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
    """Call a function, and return the encoded call with its result or exception.

    The arguments are recorded as they are before the call. Those that aren't plain data are
    pickled; if that isn't possible, `write_calls` says so. A method is called with its object as
    first argument: `record_call(Cart.total, cart)`.
    """
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    try:
        call = dict(wire.encode_call(args, kwargs, wire.Caps()))
    except wire.UnusableError as error:
        call = {"args": [{wire.TAG: "unreadable", "why": str(error)}], "kwargs": {}}
    call = name_pickle(call, f":{name}")
    try:
        return {**call, "result": wire.encode(function(*args, **kwargs))}
    except Exception as stop:
        return {**call, "raises": wire.encode_raised(stop)}


def name_pickle(case: Mapping[str, Encoded], function: str) -> dict[str, Encoded]:
    """Return an encoded call as files hold it: a pickle with its digest, and what it holds."""
    call = dict(case)
    if wire.PICKLED in call:
        call[_PICKLE] = _describe_pickle(call.pop(wire.PICKLED), function, call)
    return call


def _describe_pickle(data: str, name: str, call: Mapping[str, Encoded]) -> Mapping[str, Encoded]:
    return {
        "protocol": wire.PROTOCOL,
        "sha256": hashlib.sha256(binascii.a2b_base64(data)).hexdigest(),
        "repr": render_call(name, call, _LONGEST_REPR),
        "data": data,
    }


def write_calls(path: Path, calls: Iterable[Mapping[str, Encoded]]) -> None:
    """Write calls of `record_call` to a file, one per line.

    Raises `StudyError` if a call holds values that can't be recorded.
    """
    lines = []
    for number, call in enumerate(calls, start=1):
        parts = call.keys() - ({"args", "kwargs"} if _PICKLE in call else set())
        unplain = find_unplain({part: call[part] for part in parts})
        if unplain is not None:
            raise StudyError(f"call {number} can't be recorded: {_explain(unplain)}")
        lines.append(wire.dump_encoded(call))
    with atomic_write(path) as file:
        file.write("[\n{}\n]\n".format(",\n".join(lines)))


def _explain(unplain: Encoded) -> str:
    if unplain[wire.TAG] == "unreadable":
        return str(unplain["why"])
    return f"it holds {render(unplain)}, whose content can't be read"


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
    if _PICKLE in call:
        case[wire.PICKLED] = call[_PICKLE]["data"]
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
    if _PICKLE in call:
        yield from _find_pickle_mistakes(call[_PICKLE])
    match call.get("raises", {"type": "", "args": []}):
        case {"type": str(), "args": list()}:
            pass
        case _:
            yield 'raises must be such as {"type": "builtins.ValueError", "args": ["..."]}'


def _find_pickle_mistakes(pickled: object) -> Iterator[str]:
    match pickled:
        case {"data": str(data), "sha256": str(digest)}:
            try:
                content = binascii.a2b_base64(data)
            except ValueError as error:
                yield f"the data of its pickle isn't base64: {error}"
                return
            if hashlib.sha256(content).hexdigest() != digest:
                yield "its pickle is not the one that was recorded: the digest differs"
        case _:
            yield "pickle must be an object with `data` and `sha256`, as record_call makes it"
