"""Briefs with columns in braces: `What is {a} + {b}?`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from fairtrial.core import Mistake, did_you_mean
from fairtrial.study.datasets.rows import Row

_BRACES = re.compile(r"\{\{([^{}\n]+)\}\}|\{([^{}\n]+)\}")
_NAME = re.compile(r"[^\W\d][\w .-]*")


class RowTemplate:
    """A text with columns in braces.

    A name in double braces stays, in single ones, and so does what can be no column, such as JSON.

    names: the columns in it
    mistakes: a mistake for each name in braces that is no column
    """

    def __init__(self, text: str, columns: Sequence[str]) -> None:
        self._text = text
        names = dict.fromkeys(match[2] for match in _BRACES.finditer(text) if match[2])
        self.names = [name for name in names if name in columns]
        self.mistakes = [
            Mistake(
                ("brief",),
                f"there is no column '{name}'",
                f"{did_you_mean(name, columns)}; write {{{{{name}}}}} for the braces themselves",
            )
            for name in names
            if name not in columns and _NAME.fullmatch(name)
        ]

    def absent(self, row: Row) -> list[str]:
        """Return the columns of the text that a row doesn't have."""
        return [name for name in self.names if name not in row]

    def fill(self, row: Row) -> str:
        """Return the text for a row: texts as they are, other values as JSON."""

        def replace(match: re.Match[str]) -> str:
            if match[1] is not None:
                return f"{{{match[1]}}}"
            if match[2] not in self.names:
                return match[0]
            value = row.get(match[2])
            if isinstance(value, str):
                return value
            return json.dumps(value, ensure_ascii=False, default=str)

        return _BRACES.sub(replace, self._text)
