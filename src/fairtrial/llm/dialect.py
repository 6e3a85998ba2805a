"""What endpoints call the bound of an answer: `max_tokens`, or `max_completion_tokens`.

OpenAI's reasoning models refuse the older name, and many other servers don't know the newer one.
Nothing tells them apart but their refusal, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairtrial.llm.wire import Trouble

TokensField = Literal["either", "max_tokens", "max_completion_tokens"]
OLD, NEW = "max_tokens", "max_completion_tokens"


@dataclass(slots=True)
class Dialect:
    """How one endpoint is spoken to, as far as we know.

    field: what the bound is called
    may_learn: whether it is called otherwise once the endpoint asks for that
    """

    field: str = OLD
    may_learn: bool = True

    @classmethod
    def of(cls, field: TokensField) -> Dialect:
        """As an option has it."""
        return cls() if field == "either" else cls(field, may_learn=False)

    def speak(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """A request as this endpoint wants it."""
        if self.field == OLD:
            return body
        return {self.field if name == OLD else name: value for name, value in body.items()}

    def learns_from(self, trouble: Trouble, sent: Mapping[str, Any]) -> bool:
        """Whether the same request is worth sending once more in other words.

        Others may have learned that while this one was under way: what counts is what was sent.
        """
        if not (self.may_learn and trouble.unsupported == OLD and OLD in sent):
            return False
        self.field = NEW
        return True


def spell_hint(unsupported: str) -> str:
    """What to do about a field that an endpoint refuses."""
    if unsupported in (OLD, NEW):
        other = NEW if unsupported == OLD else OLD
        return f"set `tokens_field: {other}`, or `max_tokens: null` for no bound"
    if unsupported == "temperature":
        return "leave out `temperature`: this model has its own"
    if unsupported in ("stream", "stream_options"):
        return "set `stream: false`"
    return f"leave `{unsupported}` out of `extra`"
