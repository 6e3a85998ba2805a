"""Canonical JSON: one text for each value, from which ids and seeds are hashed.

Treat it as a file format: a change of the text that a value gives changes ids and seeds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any

from fairtrial.core.errors import FieldPath, Mistake, StudyError

DEPTH_LIMIT = 100
"""How deep lists and mappings may be nested. Python's own limit differs between versions; a study
must be valid on all of them or on none."""
TOO_DEEP = f"lists and mappings are nested more than {DEPTH_LIMIT} deep"
DUPLICATE_KEY = "two keys are the same once written as text"


def to_plain(value: Any, path: FieldPath = ()) -> Any:
    """Convert a value to JSON's types.

    Enums become their value, paths text, tuples lists, sets sorted lists, keys text. Raises
    `StudyError` for other types (they are not replaced by their `str`), for numbers that are not
    finite, and for values nested deeper than `DEPTH_LIMIT`.

    path: where the value stands, for messages
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return to_plain(value.value, path)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise StudyError(Mistake(path, f"{value} is not a finite number"))
        return float(value)
    if isinstance(value, PurePath):
        return str(value)
    if len(path) > DEPTH_LIMIT:
        raise StudyError(Mistake(path[:3], TOO_DEEP))
    if isinstance(value, Mapping):
        return _mapping_to_plain(value, path)
    if isinstance(value, (list, tuple)):
        return [to_plain(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        items = [to_plain(item, path) for item in value]
        try:
            return sorted(items)
        except TypeError:
            return sorted(items, key=canonical_json)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise StudyError(
        Mistake(
            path,
            f"a value of type {kind} can't be written down",
            "use text, a number, true/false, null, a list or a mapping",
        )
    )


def key_text(key: Any) -> str:
    """Return the text by which files write a mapping's key."""
    return str(key.value) if isinstance(key, Enum) else str(key)


def _mapping_to_plain(value: Mapping[Any, Any], path: FieldPath) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = key_text(key)
        if text in result:
            raise StudyError(Mistake((*path, text), DUPLICATE_KEY))
        result[text] = to_plain(item, (*path, text))
    return result


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of a value; raises `StudyError` where `to_plain` does."""
    try:
        return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"))
    except StudyError:
        raise
    except ValueError:
        raise StudyError("a number has too many digits to be written down") from None
    except RecursionError:
        raise StudyError(TOO_DEEP) from None


def find_equal_values(values: Sequence[Any]) -> list[tuple[int, int]]:
    """Find values with the same canonical JSON.

    Returns pairs of indexes: the first occurrence, and each later one.
    """
    first_indexes: dict[str, int] = {}
    pairs = []
    for index, value in enumerate(values):
        text = canonical_json(value)
        if text in first_indexes:
            pairs.append((first_indexes[text], index))
        first_indexes.setdefault(text, index)
    return pairs
