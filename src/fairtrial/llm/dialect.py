"""The field by which an endpoint limits an answer: `max_tokens` or `max_completion_tokens`.

OpenAI's reasoning models refuse the older name, and many other servers don't know the newer one.
The only way to find out is the refusal, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairtrial.llm.responses import AttemptError

TokensField = Literal["either", "max_tokens", "max_completion_tokens"]
MAX_TOKENS, MAX_COMPLETION_TOKENS = "max_tokens", "max_completion_tokens"
TOKEN_LIMIT_FIELDS = (MAX_TOKENS, MAX_COMPLETION_TOKENS)
"""The names that the limit of an answer may have in a request."""


@dataclass(slots=True)
class Dialect:
    """The name by which one endpoint takes the limit of an answer.

    field: the name
    may_adapt: whether the name changes when the endpoint refuses it
    """

    field: str = MAX_TOKENS
    may_adapt: bool = True

    @classmethod
    def from_option(cls, field: TokensField) -> Dialect:
        """Return the dialect for an option: a fixed name, or `either`."""
        return cls() if field == "either" else cls(field, may_adapt=False)

    def translate(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request's body with the limit under this endpoint's name."""
        if self.field == MAX_TOKENS:
            return body
        return {self.field if name == MAX_TOKENS else name: value for name, value in body.items()}

    def adapt_to(self, error: AttemptError, sent: Mapping[str, Any]) -> bool:
        """Switch to the newer name if the endpoint refused the older one.

        Returns whether the request should be sent again. It depends on the body that was sent, not
        on `field`, which concurrent requests may have changed meanwhile.
        """
        if not (self.may_adapt and error.unsupported == MAX_TOKENS and MAX_TOKENS in sent):
            return False
        self.field = MAX_COMPLETION_TOKENS
        return True


def hint_unsupported(unsupported: str) -> str:
    """Return the advice for a request field that an endpoint doesn't support."""
    if unsupported in (MAX_TOKENS, MAX_COMPLETION_TOKENS):
        other = MAX_COMPLETION_TOKENS if unsupported == MAX_TOKENS else MAX_TOKENS
        return f"set `tokens_field: {other}`, or `max_tokens: null` for no bound"
    if unsupported == "temperature":
        return "leave out `temperature`: this model has its own"
    if unsupported in ("stream", "stream_options"):
        return "set `stream: false`"
    return f"leave `{unsupported}` out of `extra`"
