"""Canonical JSON: the one text that a value is hashed as.

Ids and seeds are made from this text, so it is a file format: nothing here may change the text that
a value gives.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any

from fairtrial.core.errors import Mistake, Place, StudyError

DEPTH_LIMIT = 100
"""How deep lists and mappings may be nested. Python's own limit differs between versions, and a
study must be valid everywhere or nowhere."""
TOO_DEEP = f"lists and mappings are nested more than {DEPTH_LIMIT} deep"
SAME_KEY = "two keys are the same once written as text"


def plain(value: Any, path: Place = ()) -> Any:
    """`value` in the types that JSON has; anything else is refused, never turned into its text.

    Enums become their value, paths their text, tuples lists, sets sorted lists, keys text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value, path)
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
        return _plain_mapping(value, path)
    if isinstance(value, (list, tuple)):
        return [plain(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        items = [plain(item, path) for item in value]
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
    """A mapping's key as the text that files have in its place."""
    return str(key.value) if isinstance(key, Enum) else str(key)


def _plain_mapping(value: Mapping[Any, Any], path: Place) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = key_text(key)
        if text in result:
            raise StudyError(Mistake((*path, text), SAME_KEY))
        result[text] = plain(item, (*path, text))
    return result


def canonical_json(value: Any) -> str:
    """The one text that a value is hashed as."""
    try:
        return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))
    except StudyError:
        raise
    except ValueError:
        raise StudyError("a number has too many digits to be written down") from None
    except RecursionError:
        raise StudyError(TOO_DEEP) from None


def same_text(values: Sequence[Any]) -> list[tuple[int, int]]:
    """Pairs of positions whose values hash alike, the earlier one first."""
    first: dict[str, int] = {}
    pairs = []
    for index, value in enumerate(values):
        text = canonical_json(value)
        if text in first:
            pairs.append((first[text], index))
        first.setdefault(text, index)
    return pairs
