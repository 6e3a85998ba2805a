"""Answers and figures found in what a program printed or a service returned.

A path leads to a value in JSON: `choices[0].message.content`, `items[-1]`, `["a key"].text`. Text
may be one JSON document or one in each line; then the last line with a value at the path counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairtrial.core import Mistake, plain_number

__all__ = ["find_value", "list_mistakes", "read_answer", "read_documents", "read_metrics"]

_STEP = re.compile(r"\.?([^.\[\]\"]+)|\[(-?\d+)\]|\.?\[\"([^\"]*)\"\]")
MAX_DOCUMENTS = 100_000
"""How many lines are read as documents, from the end."""


class AnswerMissing(ValueError):  # noqa: N818 - an agent's result, not an error in the code
    """There is no answer where the options look for one; the message says where that is."""


def read_documents(text: str) -> list[Any]:
    """Return the JSON documents of a text: the whole text, or those of its lines, in order."""
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    documents = []
    for line in text.splitlines()[-MAX_DOCUMENTS:]:
        if line.lstrip()[:1] in ("{", "["):
            try:
                documents.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    return documents


def find_value(documents: Sequence[Any], path: str) -> Any:
    """Return the value at a path in the last document that has one; raises `AnswerMissing`."""
    steps = list(_steps(path))
    for document in reversed(documents):
        try:
            return _follow(document, steps)
        except (LookupError, TypeError):
            continue
    what = "there is no JSON in it" if not documents else f"there is nothing at `{path}`"
    raise AnswerMissing(what)


def read_answer(text: str, documents: Sequence[Any], path: str, pattern: str) -> Any:
    """Return the answer in a text; raises `AnswerMissing` if there is none.

    path: where it is in the JSON; empty for the text itself
    pattern: a regular expression that finds it there: its group 1, or all of it; the last match
        counts. Empty for all of it
    """
    value_at_path = find_value(documents, path) if path else text
    if not pattern:
        return value_at_path.strip() if isinstance(value_at_path, str) else value_at_path
    whole = (
        value_at_path
        if isinstance(value_at_path, str)
        else json.dumps(value_at_path, ensure_ascii=False)
    )
    matches = list(re.finditer(pattern, whole))
    if not matches:
        raise AnswerMissing(f"there is no match for `answer` ({pattern})")
    return ((matches[-1][1] if matches[-1].re.groups else matches[-1][0]) or "").strip()


def read_metrics(documents: Sequence[Any], places: Mapping[str, str]) -> dict[str, Any]:
    """Return the numbers, texts and booleans at some paths, by name; missing ones are left out."""
    metrics = {}
    for name, path in places.items():
        try:
            value = find_value(documents, path)
        except AnswerMissing:
            continue
        number = plain_number(value)
        if number is not None or isinstance(value, str):
            metrics[name] = value if number is None else number
    return metrics


def list_mistakes(path: str, pattern: str, metrics: Mapping[str, str]) -> Iterator[Mistake]:
    """Yield the mistakes in the options `answer_path`, `answer` and `metrics`."""
    places: dict[tuple[str, ...], str] = {("answer_path",): path} if path else {}
    places |= {("metrics", name): place for name, place in metrics.items()}
    for field, place in places.items():
        if "".join(match[0] for match in _STEP.finditer(place)) != place or not place:
            message = f"'{place}' is no path into JSON"
            yield Mistake(field, message, "for example usage.input_tokens, or choices[0].text")
    try:
        re.compile(pattern)
    except re.error as error:
        yield Mistake(("answer",), f"is no regular expression: {error}")


def _steps(path: str) -> Iterator[str | int]:
    for match in _STEP.finditer(path):
        name, index, quoted = match.groups()
        yield int(index) if index is not None else name if name is not None else quoted


def _follow(value: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int) != isinstance(value, list):
            raise TypeError(step)
        value = value[step]
    return value
