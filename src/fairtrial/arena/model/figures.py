"""Shares and durations as text, with as few digits as are needed."""

from __future__ import annotations

import math

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def percent_text(share: float) -> str:
    """Return a share as a percentage: `2 %`, `1.3 %`, `0.25 %`."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def share_text(share: float) -> str:
    """Format a share like `97 %`; `unknown` if it isn't finite."""
    return f"{100 * share:.0f} %" if math.isfinite(share) else "unknown"


def seconds_text(seconds: float) -> str:
    """Format a duration like `0.41 ms`, with three digits, in a unit that fits."""
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rough_seconds(seconds: float) -> str:
    """Return a duration in one unit, without fractions: `8 s`, `3 min`; `1.5 s` below 2 s."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 2 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3_600:.1f} h"
