"""Cost and tokens of runs, and of attempts that have no row in the table of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.ledger.ledger_summary import Summary
from fairtrial.study.model.runs import RunResult

ROUNDING_USD = 1e-9
"""Smaller differences are rounding errors of sums in different orders."""


@dataclass(slots=True)
class Spending:
    """A sum of costs.

    cost_usd: US dollars
    tokens: input and output tokens
    """

    cost_usd: float = 0.0
    tokens: int = 0

    @classmethod
    def from_summary(cls, summary: Summary) -> Spending:
        """Return the total spending of a study from the summary of its ledger."""
        return cls(summary.cost_usd, summary.tokens)

    def add(self, result: RunResult) -> None:
        """Add the cost of one run."""
        self.cost_usd += result.cost if math.isfinite(result.cost) else 0.0
        self.tokens += count_tokens(result.metrics)

    def minus(self, rows: Spending) -> Spending:
        """Return what was spent beyond `rows`: attempts without a result, runs not in the plan."""
        cost_usd = self.cost_usd - rows.cost_usd
        return Spending(
            cost_usd if cost_usd > ROUNDING_USD else 0.0, max(self.tokens - rows.tokens, 0)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return {"cost_usd": self.cost_usd, "tokens": self.tokens}


def count_tokens(metrics: Mapping[str, Any]) -> int:
    """Return the tokens that a run used: input and output, or else its total_tokens metric."""
    received, sent = metrics.get("input_tokens"), metrics.get("output_tokens")
    if type(received) is int and type(sent) is int and "total_tokens" not in metrics:
        return received + sent
    tokens = _amount(metrics, "input_tokens") + _amount(metrics, "output_tokens")
    return int(tokens or _amount(metrics, "total_tokens"))


def _amount(metrics: Mapping[str, Any], name: str) -> float:
    number = plain_number(metrics.get(name)) or 0
    return number if math.isfinite(number) else 0
