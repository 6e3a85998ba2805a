"""Prices of tokens: list prices of some models on a given day, and prices that users give.

Prices change, and gateways set their own. Models are found by their exact name only, since dated
versions of a model may differ in price. The price of any other model is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from fairtrial.core import Mistake

Price = tuple[float, float]
"""US dollars per million tokens of the prompt, and per million tokens of the answer."""

PRICES_DATE = "2026-11-15"
"""The day of the prices in `PRICES`; check them against your provider's own list."""

PRICES: Mapping[str, Price] = MappingProxyType(
    {
        # OpenAI: standard processing, prompts of up to 200,000 tokens
        "gpt-4o": (2.50, 10.00),
        "gpt-4o-mini": (0.15, 0.60),
        "gpt-4.1": (2.00, 8.00),
        "gpt-4.1-mini": (0.40, 1.60),
        "gpt-4.1-nano": (0.10, 0.40),
        "gpt-5": (1.25, 10.00),
        "gpt-5-mini": (0.25, 2.00),
        "gpt-5-nano": (0.05, 0.40),
        "gpt-5.4": (2.50, 15.00),
        "gpt-5.4-mini": (0.75, 4.50),
        "gpt-5.4-nano": (0.20, 1.25),
        "gpt-5.5": (5.00, 30.00),
        # Anthropic
        "claude-haiku-4-5": (1.00, 5.00),
        "claude-sonnet-4-5": (3.00, 15.00),
        "claude-sonnet-4-6": (3.00, 15.00),
        "claude-sonnet-5": (2.00, 10.00),
        "claude-opus-4-1": (15.00, 75.00),
        "claude-opus-4-5": (5.00, 25.00),
        "claude-opus-4-6": (5.00, 25.00),
        "claude-opus-4-7": (5.00, 25.00),
        "claude-opus-4-8": (5.00, 25.00),
        "claude-opus-5": (5.00, 25.00),
        "claude-fable-5": (10.00, 50.00),
    }
)
"""List prices, without discounts for cached prompts or surcharges for very long ones."""


def find_price(model: str, given: Mapping[str, Price]) -> Price | None:
    """Return a model's price: the user's, else the list price; None if unknown."""
    return given.get(model, PRICES.get(model))


def describe_price_date(model: str) -> str:
    """Return ` (prices of DATE)` for a model with a list price; an empty text for others."""
    return f" (prices of {PRICES_DATE})" if model in PRICES else ""


def cost_usd(
    price: Price | None, prompt_tokens: int | None, completion_tokens: int | None
) -> float | None:
    """Return the cost of an answer; None if the price, or a count that it needs, is unknown."""
    if price is None:
        return None
    total = 0.0
    for rate, tokens in zip(price, (prompt_tokens, completion_tokens), strict=True):
        if rate and tokens is None:
            return None
        total += rate * (tokens or 0)
    return total / 1_000_000


def price_mistakes(given: Mapping[str, Price]) -> Iterator[Mistake]:
    """Yield a mistake for each of a user's prices that is negative or not finite."""
    for model, price in given.items():
        for index, amount in enumerate(price):
            if amount < 0 or not math.isfinite(amount):
                yield Mistake(
                    ("prices", model, index),
                    f"must be 0 or more US dollars for a million tokens, got {amount:g}",
                )
