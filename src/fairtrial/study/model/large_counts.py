"""Text for counts of conditions and runs, which can be astronomically large."""

from __future__ import annotations

import math


def format_large_count(number: int) -> str:
    """Format a count with thousands separators, or as a power of ten from 10^15 on."""
    if number < 10**15:
        return f"{number:,}"
    return f"some 10^{math.floor(math.log10(number))}"
