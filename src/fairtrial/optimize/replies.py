"""Validation of replies before they are written to the journal, which replays them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairtrial.arena import Candidate, FileState
from fairtrial.core import on_one_line
from fairtrial.optimize.proposals import Reply, Usage

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
