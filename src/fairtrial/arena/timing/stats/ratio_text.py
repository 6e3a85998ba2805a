"""Ratios with and without their intervals as text."""

from __future__ import annotations

from fairtrial.arena.model.timings import Estimate


def estimate_text(estimate: Estimate | None) -> str:
    """Format an estimate like `1.42x [1.38, 1.46]`; an empty text for None."""
    return "" if estimate is None else estimate.text()


def ratio_text(ratio: float) -> str:
    """Format a ratio like `1.42x`, with more digits where 1.00 would hide its side of 1."""
    return Estimate(ratio, ratio / 1.02, ratio * 1.02, 0, 0.95).ratio_text()
