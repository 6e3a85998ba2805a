"""What was spent: on a study's runs, and on attempts that no run's row tells of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import plain_number
from fairtrial.study.ledger.summary import Summary
from fairtrial.study.model.runs import RunResult

UNTOLD_USD = 1e-9
"""Less than that is what comes of adding up floats in another order."""


@dataclass(slots=True)
class Spending:
    """US dollars and tokens, added up."""

    cost_usd: float = 0.0
    tokens: int = 0

    @classmethod
    def of(cls, summary: Summary) -> Spending:
        """All that a study has spent, as its ledger tells."""
        return cls(summary.cost_usd, summary.tokens)

    def add(self, result: RunResult) -> None:
        """Count what the row of one run says."""
        self.cost_usd += result.cost if math.isfinite(result.cost) else 0.0
        self.tokens += count_tokens(result.metrics)

    def beside(self, rows: Spending) -> Spending:
        """The part of it that no row has: attempts without a result, runs not in the plan."""
        cost_usd = self.cost_usd - rows.cost_usd
        return Spending(
            cost_usd if cost_usd > UNTOLD_USD else 0.0, max(self.tokens - rows.tokens, 0)
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"cost_usd": self.cost_usd, "tokens": self.tokens}


def count_tokens(metrics: Mapping[str, Any]) -> int:
    """What a run used of the study's tokens."""
    both = _amount(metrics, "input_tokens") + _amount(metrics, "output_tokens")
    return int(both or _amount(metrics, "total_tokens"))


def _amount(metrics: Mapping[str, Any], name: str) -> float:
    number = plain_number(metrics.get(name)) or 0
    return number if math.isfinite(number) else 0
