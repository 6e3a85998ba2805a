"""Replies of proposers: validated, and as the plain data that journal and records keep."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from fairtrial.arena import Candidate, FileState
from fairtrial.core import StudyError, canonical, on_one_line
from fairtrial.optimize.proposals import Reply, Request, Usage

VERSION = 1
"""The version of a record of a reply; records of other versions are refused."""
LARGEST_MB = 8
"""The most that the candidates of one reply may hold: the journal has to keep them."""
LONGEST = 300
_MB = 1_000_000


def check_reply(given: Any, name: str) -> Reply:
    """Return a reply that the journal can keep; an invalid or too large one becomes a refusal.

    name: the proposer's name, for the refusal
    """
    if not isinstance(given, Reply):
        kind = type(given).__name__
        return Reply(usage=Usage(name, cost_usd=None), refusal=f"{name} answered with a {kind}")
    usage, wrong = _read_usage(given.usage, name)
    for why in (*wrong, *_find_mistakes(given)):
        refusal = on_one_line(f"{name} gave an answer that can't be used: {why}", LONGEST)
        return Reply(usage=usage, refusal=refusal)
    size = sum(_size(candidate) for candidate in given.candidates if candidate is not None)
    if size > LARGEST_MB * _MB:
        refusal = f"{name} gave {size / _MB:.0f} MB, and an answer may have {LARGEST_MB} MB"
        return Reply(usage=usage, refusal=refusal)
    return given


def _read_usage(usage: Any, name: str) -> tuple[Usage, list[str]]:
    """Return the usage with invalid numbers replaced, and what is wrong with it."""
    if not isinstance(usage, Usage):
        return Usage(name, cost_usd=None), [f"its usage is a {type(usage).__name__}"]
    wrong = []
    if not isinstance(usage.model, str):
        wrong.append("usage.model is no text")
        usage = replace(usage, model=name)
    for field, kind in (
        ("prompt_tokens", int),
        ("completion_tokens", int),
        ("cost_usd", float),
        ("seconds", float),
    ):
        value = getattr(usage, field)
        if field == "cost_usd" and value is None:
            continue
        kinds = (int,) if kind is int else (int, float)
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
            wrong.append(f"usage.{field} is {value!r:.40}")
            changed: dict[str, Any] = {field: None if field == "cost_usd" else kind(0)}
            usage = replace(usage, **changed)
    return usage, wrong


def _find_mistakes(reply: Reply) -> Iterator[str]:
    if not isinstance(reply.refusal, str) or not _is_writable(reply.refusal):
        yield "its refusal is no text that could be written down"
    if not isinstance(reply.candidates, tuple):
        yield f"its candidates are a {type(reply.candidates).__name__}, not a tuple"
        return
    for place, candidate in enumerate(reply.candidates):
        if candidate is None:
            continue
        if not isinstance(candidate, Candidate):
            yield f"candidate {place} is a {type(candidate).__name__}"
        else:
            yield from (f"candidate {place}: {why}" for why in _find_candidate_mistakes(candidate))
    if not isinstance(reply.exchange, tuple):
        yield f"its exchange is a {type(reply.exchange).__name__}, not a tuple"


def _find_candidate_mistakes(candidate: Candidate) -> Iterator[str]:
    for field in ("name", "origin", "note"):
        if not _is_writable(getattr(candidate, field)):
            yield f"its {field} is no text that could be written down"
    if candidate.parent is not None and not _is_writable(candidate.parent):
        yield "its parent is no text"
    if candidate.diff is not None and not isinstance(candidate.diff, bytes):
        yield f"its diff is a {type(candidate.diff).__name__}, not bytes"
    for path, state in dict(candidate.files).items():
        if not _is_writable(path):
            yield f"the name of a file is no text that could be written down: {path!r:.60}"
        elif not isinstance(state, FileState) or not isinstance(state.content, bytes):
            yield f"the content of {path} is no FileState with bytes"


def _is_writable(text: Any) -> bool:
    """Return whether it is text that UTF-8 can hold; names of files may hold other bytes."""
    if not isinstance(text, str):
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _size(candidate: Candidate) -> int:
    return len(candidate.diff or b"") + sum(
        len(state.content) for state in candidate.files.values()
    )


# -- as plain data --


def make_record(request: Request, reply: Reply) -> dict[str, Any]:
    """Return a reply as plain data, with the key of its request."""
    about = [{"name": tried.name, "digest": tried.digest} for tried in request.about]
    asked = {
        "kind": request.kind.value,
        "lineage": request.lineage,
        "step": request.step,
        "replicate": request.replicate,
        "seed": request.seed,
        "wanted": request.wanted,
        "about": about,
    }
    answered = {
        "candidates": [candidate and _pack_candidate(candidate) for candidate in reply.candidates],
        "usage": asdict(reply.usage),
        "refusal": reply.refusal,
        "exchange": canonical.to_plain(reply.exchange),
    }
    return {"version": VERSION, "key": request.key, "request": asked, "reply": answered}


def read_record(record: Mapping[str, Any]) -> Reply:
    """Return the reply that a record holds; raise a `StudyError` if it is no valid record."""
    version = record.get("version") if isinstance(record, Mapping) else None
    if version != VERSION:
        expected = f"expected a record of version {VERSION}"
        raise StudyError(f"{expected}, got {'none' if version is None else repr(version)}")
    try:
        if not isinstance(record["key"], str):
            raise TypeError("key")
        answered = record["reply"]
        return Reply(
            tuple(packed and _unpack_candidate(packed) for packed in answered["candidates"]),
            _unpack_usage(answered["usage"]),
            _text(answered["refusal"]),
            tuple(dict(entry) for entry in answered["exchange"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        detail = on_one_line(f"{type(error).__name__}: {error}", LONGEST)
        raise StudyError(f"is no record of a reply ({detail})") from None


def _pack_candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "diff": None if candidate.diff is None else _pack_bytes(candidate.diff),
        "files": {
            path: {
                "content": _pack_bytes(state.content),
                "executable": state.executable,
                "is_link": state.is_link,
            }
            for path, state in candidate.files.items()
        },
        "parent": candidate.parent,
        "origin": candidate.origin,
        "note": candidate.note,
    }


def _unpack_candidate(data: Mapping[str, Any]) -> Candidate:
    return Candidate(
        _text(data["name"]),
        None if data["diff"] is None else _unpack_bytes(data["diff"]),
        {
            path: FileState(_unpack_bytes(state["content"]), state["executable"], state["is_link"])
            for path, state in data["files"].items()
        },
        None if data["parent"] is None else _text(data["parent"]),
        _text(data["origin"]),
        _text(data["note"]),
    )


def _pack_bytes(content: bytes) -> str | dict[str, str]:
    """Return text as text, so that records are readable, and other bytes as base64."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _unpack_bytes(packed: Any) -> bytes:
    if isinstance(packed, str):
        return packed.encode("utf-8")
    return base64.b64decode(packed["base64"], validate=True)


def _unpack_usage(data: Mapping[str, Any]) -> Usage:
    cost = data["cost_usd"]
    return Usage(
        _text(data["model"]),
        int(data["prompt_tokens"]),
        int(data["completion_tokens"]),
        None if cost is None else float(cost),
        float(data["seconds"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value
