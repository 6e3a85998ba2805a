"""A key: where it comes from, and how it is kept out of everything else."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from fairtrial.core import LabError

SHORTEST_SECRET = 8
"""Local servers take any key: what is shorter is a placeholder, and may well be in a file."""
REMOVED = "[key removed]"


@dataclass(frozen=True, slots=True)
class Secret:
    """A key, and the name of the environment variable that it comes from.

    variable: the name; empty if there is no key
    value: the key
    """

    variable: str = ""
    value: str = field(default="", repr=False)

    @classmethod
    def of(cls, variable: str) -> Secret:
        """The key in a variable; raises `LabError` where there is none that can be sent."""
        if not variable:
            return cls()
        value = os.environ.get(variable, "").strip()
        if not value:
            raise LabError(
                f"the environment variable {variable} is not set; it should hold the key "
                "(`key_variable` names it; leave it empty for a server that needs none)"
            )
        if not all("!" <= char <= "~" for char in value):
            raise LabError(f"the environment variable {variable} holds what no key can: not ASCII")
        return cls(variable, value)

    def _forms(self) -> Iterator[str]:
        """The key as it may come back."""
        if len(self.value) < SHORTEST_SECRET:
            return
        yield self.value
        yield json.dumps(self.value)[1:-1]
        yield self.value.replace("/", "\\/")
        yield quote(self.value, safe="")
        yield html.escape(self.value)
        yield base64.b64encode(self.value.encode()).decode().rstrip("=")

    def is_in(self, text: str) -> bool:
        """Whether a text holds the key, in one form or another."""
        return any(form in text for form in self._forms())

    def redact(self, text: str) -> str:
        """The text without the key."""
        for form in self._forms():
            text = text.replace(form, REMOVED)
        return text


def redact_all(value: Any, redact: Callable[[str], str]) -> Any:
    """Plain data with each of its texts redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(key): redact_all(item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(item, redact) for item in value]
    return value
