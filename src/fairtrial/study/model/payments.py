"""What was paid for, in numbers that budgets add up."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairtrial.core import plain_number

MOST = 2**53
"""The largest number of tokens that can be believed."""


class Paid(NamedTuple):
    """What something took: US dollars, as far as that is known, and tokens."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def checked(cls, cost_usd: Any, input_tokens: Any, output_tokens: Any) -> Paid:
        """The same of what an agent says; None counts as nothing, what is no number is refused."""
        told = zip(cls._fields, (cost_usd, input_tokens, output_tokens), strict=True)
        cost, put_in, got_out = (_number(name, value) for name, value in told)
        return cls(float(cost), int(put_in), int(got_out))

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Paid) -> Paid:
        """Both together."""
        return Paid(
            self.cost_usd + other.cost_usd,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def minus(self, other: Paid) -> Paid:
        """What it takes more than another; nothing less than nothing."""
        return Paid(
            max(self.cost_usd - other.cost_usd, 0.0),
            max(self.input_tokens - other.input_tokens, 0),
            max(self.output_tokens - other.output_tokens, 0),
        )


NOTHING = Paid()


def _number(name: str, value: Any) -> float:
    number = 0 if value is None else plain_number(value)
    if number is None or not 0 <= number <= MOST:  # NaN is not, either
        raise ValueError(f"{name} must be a number of 0 or more, not {value!r:.100}")
    return number
