"""API keys: reading them from the environment, and redacting them from texts."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import quote

from fairtrial.core import AccessError


@dataclass(frozen=True, slots=True)
class Secret:
    """A key, and the environment variable that it comes from.

    variable: the variable's name; empty if there is no key
    value: the key
    """

    MIN_CHARS: ClassVar[int] = 8
    """Shorter keys are placeholders for local servers, which may well occur in files: they are not
    redacted."""
    REDACTED: ClassVar[str] = "[key removed]"
    """What stands in place of a key."""

    variable: str = ""
    value: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, variable: str) -> Secret:
        """Read the key from a variable; raises `AccessError` if it is missing or not ASCII."""
        if not variable:
            return cls()
        value = os.environ.get(variable, "").strip()
        if not value:
            raise AccessError(
                f"the environment variable {variable} is not set; it should hold the key "
                "(`key_variable` names it; leave it empty for a server that needs none)"
            )
        if not all("!" <= char <= "~" for char in value):
            raise AccessError(
                f"the environment variable {variable} holds what no key can: not ASCII"
            )
        return cls(variable, value)

    def _forms(self) -> Iterator[str]:
        """Yield the key in the encodings in which it may occur in a response."""
        if len(self.value) < self.MIN_CHARS:
            return
        yield self.value
        yield json.dumps(self.value)[1:-1]
        yield self.value.replace("/", "\\/")
        yield quote(self.value, safe="")
        yield html.escape(self.value)
        yield base64.b64encode(self.value.encode()).decode().rstrip("=")

    def is_in(self, text: str) -> bool:
        """Return whether a text holds the key, in any encoding."""
        return any(form in text for form in self._forms())

    def redact(self, text: str) -> str:
        """Return the text with the key replaced by `Secret.REDACTED`."""
        for form in self._forms():
            text = text.replace(form, self.REDACTED)
        return text


def redact_all(value: Any, redact: Callable[[str], str]) -> Any:
    """Return plain data with all keys and texts redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(key): redact_all(item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(item, redact) for item in value]
    return value
