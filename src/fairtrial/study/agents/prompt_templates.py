"""Texts with placeholders for a run's problem and factors: `{brief}`, `{question}`, `{style}`.

A placeholder is a name in braces: `brief`, `problem_id`, `family`, a key of the problem's payload,
or a factor; it may have spaces. `{payload.unit}` and `{factors.style}` say which of them is meant,
and reach into nested mappings. A name in double braces stays as it is, in single ones; so does
anything in braces that can be no name, such as JSON.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean

_PLACEHOLDER = re.compile(r"\{\{([^{}\n]+)\}\}|\{([^{}\n]+)\}")
_WORD = re.compile(r"[^\W\d][\w.-]*")


def template_values(problem: Any, factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return what placeholders stand for in a run.

    Of equal names, parts of the problem (`brief`, ...) come first, then the payload, then factors.
    """
    payload = getattr(problem, "payload", None)
    payload = payload if isinstance(payload, Mapping) else {}
    return {
        **factors,
        **payload,
        "brief": problem.brief,
        "problem_id": problem.problem_id,
        "family": problem.family,
        "payload": payload,
        "factors": factors,
    }


def fill(template: Any, values: Mapping[str, Any], *, keeps_types: bool = False) -> Any:
    """Return a text, or plain data with texts, with its placeholders filled in.

    Texts are inserted as they are, other values as JSON. Raises `StudyError` for a name that stands
    for nothing.

    keeps_types: whether a text that is nothing but a placeholder becomes the value itself
    """
    if isinstance(template, str):
        only = _PLACEHOLDER.fullmatch(template) if keeps_types else None
        if only is not None and _is_name(only[2], values):
            return _find(only[2], values)
        return _PLACEHOLDER.sub(lambda match: _replace(match, values), template)
    if isinstance(template, Mapping):
        return {
            name: fill(value, values, keeps_types=keeps_types) for name, value in template.items()
        }
    if isinstance(template, (list, tuple)):
        return [fill(value, values, keeps_types=keeps_types) for value in template]
    return template


def _replace(match: re.Match[str], values: Mapping[str, Any]) -> str:
    if not _is_name(match[1] or match[2], values):
        return match[0]
    if match[1] is not None:
        return f"{{{match[1]}}}"
    value = _find(match[2], values)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _is_name(text: str | None, values: Mapping[str, Any]) -> bool:
    """Return whether a text in braces is a name: a word, or several that are, or resemble, one."""
    if text is None:
        return False
    if text in values or _WORD.fullmatch(text):
        return True
    spaced = [key for key in values if isinstance(key, str) and " " in key]
    return bool(difflib.get_close_matches(text, spaced, 1, 0.8))


def _find(name: str, values: Mapping[str, Any]) -> Any:
    if name in values:
        return values[name]
    first, _, rest = name.partition(".")
    inner = values.get(first)
    if rest and isinstance(inner, Mapping):
        return _find(rest, inner)
    known = sorted(key for key in values if isinstance(key, str))
    message = f"the placeholder {{{name}}} stands for nothing in this run"
    hint = f"{did_you_mean(name, known)}; write {{{{{name}}}}} for the braces themselves"
    raise StudyError(Mistake((), message, hint))
