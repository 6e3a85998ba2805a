"""Plain data for a page: harmless text of limited length, numbers that JSON has, one JSON text.

Agents and candidates are not trusted. Their text is data of a JSON block, which scripts put into
the page as text; nothing of it is ever parsed as HTML.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

LONGEST_TEXT = 12_000
"""Longer texts are cut in the middle."""
MOST_ITEMS = 200
DEEPEST = 8
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def clean_text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return a text for people: of limited length, without colors and invisible characters.

    Characters that control a terminal or the direction of writing are spelled out: ``<U+202E>``.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > longest:
        half = longest // 2
        left_out = len(text) - 2 * half
        text = f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"
    text = _ANSI.sub("", text).replace("\r\n", "\n")
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def clean_data(value: Any, longest: int = LONGEST_TEXT, depth: int = 0) -> Any:
    """Return any value as plain data of limited size, with harmless texts."""
    if value is None or isinstance(value, (bool, int)):
        return clean_number(value)
    if isinstance(value, float):
        return clean_number(value) if math.isfinite(value) else str(value)
    if depth >= DEEPEST or isinstance(value, (str, bytes)):
        return clean_text(value, longest)
    if isinstance(value, Mapping):
        items = list(value.items())
        data = {
            clean_text(key, 200): clean_data(item, longest, depth + 1)
            for key, item in items[:MOST_ITEMS]
        }
        if len(items) > MOST_ITEMS:
            data["…"] = f"{len(items) - MOST_ITEMS:,} more"
        return data
    if isinstance(value, (list, tuple, set, frozenset)):
        members = list(value)
        shown = [clean_data(item, longest, depth + 1) for item in members[:MOST_ITEMS]]
        return [*shown, *([f"… {len(members) - MOST_ITEMS:,} more"] * (len(members) > MOST_ITEMS))]
    return clean_text(value, longest)


def clean_number(value: Any) -> Any:
    """Return a number that JavaScript reads exactly; others as text, NaN as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)
    return value


def round_number(value: float | None, digits: int = 6) -> float | None:
    """Return a number with fewer digits, for charts; None for NaN and infinities."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def dump_data(data: Any) -> bytes:
    """Return data as JSON in ASCII, for a page that asks for it."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()


def to_script_json(data: Any) -> str:
    """Return data as JSON in ASCII that can stand inside a script element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.translate(_MARKUP)
