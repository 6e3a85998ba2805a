"""The secrets of a command-line agent: found in files, removed from texts."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairtrial.core import Mistake, StudyError
from fairtrial.llm import Secret
from fairtrial.sandbox import Captured

_WITHHELD = "[left out: it holds the value of {}, in another encoding]"
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_ALPHABET = re.compile(r"[A-Za-z0-9]")
_SHORTEST_PIECE = 4


@dataclass(frozen=True, slots=True)
class AgentSecrets:
    """The environment variables that an agent gets; their values are kept out of everything else.

    A value of fewer than 8 characters counts as a setting, not as a secret.

    values: the values, by name
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, variables: Sequence[str]) -> AgentSecrets:
        """Read the variables from the environment; raise a `StudyError` if one isn't set."""
        missing = [
            Mistake(
                ("variables", place),
                f"the environment variable {name} is not set",
                f"`export {name}=...` first, or leave it out here if it isn't needed",
            )
            for place, name in enumerate(variables)
            if not os.environ.get(name)
        ]
        if missing:
            raise StudyError(missing)
        return cls({name: os.environ[name] for name in variables})

    def _secrets(self) -> Iterator[tuple[str, str]]:
        for name, value in self.values.items():
            if len(value.strip()) >= Secret.MIN_CHARS:
                yield name, value.strip()

    def find(self, content: bytes) -> str | None:
        """Return the variable whose value a content holds: literally, encoded, or in pieces.

        Base64, hexadecimal digits and UTF-16 are recognized, and pieces that are separated by
        anything but letters and digits: ends of lines, quotes, plus signs.
        """
        text = content.decode("utf-8", "replace")
        squeezed = _BETWEEN.sub("", text)
        for name, value in self._secrets():
            if Secret(name, value).is_in(text):
                return name
            if any(form in squeezed for form in _squeezed_forms(value)):
                return name
            if value.encode().hex() in squeezed.lower():
                return name
        return None

    def redact(self, text: str) -> str:
        """Return the text without the values; a placeholder if one remains in another encoding."""
        for name, value in self._secrets():
            text = Secret(name, value).redact(text)
            for form in (
                *_encoded_forms(value),
                value.encode().hex(),
                value.encode().hex().upper(),
            ):
                text = text.replace(form, Secret.REDACTED)
        variable = self.find(text.encode("utf-8", "surrogatepass"))
        return text if variable is None else _WITHHELD.format(variable)

    def redact_output(self, captured: Captured) -> str:
        """Return what a program printed without the values, or pieces of them at a cut."""
        head, tail = (part.decode("utf-8", "replace") for part in (captured.head, captured.tail))
        if not captured.dropped:
            return self.redact(head + tail)
        for _, value in self._secrets():
            for form in (value, base64.b64encode(value.encode()).decode(), value.encode().hex()):
                head, tail = _strip_piece(head, tail, form)
        gap = f"\n... {captured.dropped:,} bytes left out ...\n"
        return f"{self.redact(head)}{gap}{self.redact(tail)}"


def _encoded_forms(value: str) -> Iterator[str]:
    """Yield the base64 forms of a value at each offset in a longer text."""
    raw = value.encode()
    for skipped in range(3):
        whole = raw[skipped : len(raw) - (len(raw) - skipped) % 3]
        if len(whole) >= Secret.MIN_CHARS - 2:
            yield base64.b64encode(whole).decode()
            yield base64.urlsafe_b64encode(whole).decode()


def _squeezed_forms(value: str) -> Iterator[str]:
    for form in (value, *_encoded_forms(value)):
        squeezed = "".join(_ALPHABET.findall(form))
        if len(squeezed) >= Secret.MIN_CHARS:
            yield squeezed


def _strip_piece(head: str, tail: str, form: str) -> tuple[str, str]:
    """Return head and tail of a cut text without pieces of a value at the cut."""
    for length in range(len(form) - 1, _SHORTEST_PIECE - 1, -1):
        if head.endswith(form[:length]):
            head = head[:-length] + Secret.REDACTED
        if tail.startswith(form[-length:]):
            tail = Secret.REDACTED + tail[length:]
    return head, tail
