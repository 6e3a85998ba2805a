"""What a command-line agent is given and must not give away: the values of its variables."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairtrial.core import Mistake, StudyError
from fairtrial.llm import REMOVED, SHORTEST_SECRET, Secret
from fairtrial.sandbox import Captured

_WITHHELD = "[left out: it holds the value of {}, in other words]"
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_ALPHABET = re.compile(r"[A-Za-z0-9]")
_SHORTEST_PIECE = 4


@dataclass(frozen=True, slots=True)
class Keys:
    """The variables that are passed on, and how to keep their values out of everything else.

    What has fewer than 8 characters is taken for a setting, not for a secret.

    values: by name
    """

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, variables: Sequence[str]) -> Keys:
        """The values in our own environment; `StudyError` for those that aren't there."""
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
            if len(value.strip()) >= SHORTEST_SECRET:
                yield name, value.strip()

    def find(self, content: bytes) -> str | None:
        """The variable whose value a file holds: as it is, encoded, or in pieces.

        Seen are base64, hexadecimal digits and UTF-16, and pieces with anything but letters and
        digits between them: ends of lines, quotes, plus signs.
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
        """The text without any of the values; all of it goes if one is there in other words."""
        for name, value in self._secrets():
            text = Secret(name, value).redact(text)
            for form in (
                *_encoded_forms(value),
                value.encode().hex(),
                value.encode().hex().upper(),
            ):
                text = text.replace(form, REMOVED)
        found = self.find(text.encode("utf-8", "surrogatepass"))
        return text if found is None else _WITHHELD.format(found)

    def read(self, captured: Captured) -> str:
        """What a program printed, without any of the values, nor a piece where it was cut."""
        head, tail = (part.decode("utf-8", "replace") for part in (captured.head, captured.tail))
        if not captured.dropped:
            return self.redact(head + tail)
        for _, value in self._secrets():
            for form in (value, base64.b64encode(value.encode()).decode(), value.encode().hex()):
                head, tail = _without_piece(head, tail, form)
        gap = f"\n... {captured.dropped:,} bytes left out ...\n"
        return f"{self.redact(head)}{gap}{self.redact(tail)}"


def _encoded_forms(value: str) -> Iterator[str]:
    """What base64 makes of a value, wherever in a longer text it stands."""
    raw = value.encode()
    for skipped in range(3):
        whole = raw[skipped : len(raw) - (len(raw) - skipped) % 3]
        if len(whole) >= SHORTEST_SECRET - 2:
            yield base64.b64encode(whole).decode()
            yield base64.urlsafe_b64encode(whole).decode()


def _squeezed_forms(value: str) -> Iterator[str]:
    for form in (value, *_encoded_forms(value)):
        squeezed = "".join(_ALPHABET.findall(form))
        if len(squeezed) >= SHORTEST_SECRET:
            yield squeezed


def _without_piece(head: str, tail: str, form: str) -> tuple[str, str]:
    """A text that was cut within a value holds one part before the cut, or one after it."""
    for length in range(len(form) - 1, _SHORTEST_PIECE - 1, -1):
        if head.endswith(form[:length]):
            head = head[:-length] + REMOVED
        if tail.startswith(form[-length:]):
            tail = REMOVED + tail[length:]
    return head, tail
