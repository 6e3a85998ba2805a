"""Recognition of outputs of optimizations, without an import of the arena."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KIND = "optimization"
"""The value of `kind` in the outputs of optimizations."""
_OLDER_KEYS = frozenset(
    (
        *("best", "ratio", "low", "high", "confidence", "adopt", "sessions", "candidates"),
        *("passed", "unjudged", "tokens", "cost_usd", "why_over", "tree", "problem", "patch"),
        *("edits", "explanation", "notes", "out"),
    )
)
"""The keys of outputs that were stored before they had a `kind`."""


def is_optimization_output(output: Mapping[str, Any]) -> bool:
    """Return whether an output is in the form of `OptimizationResult.to_output`."""
    return output.get("kind") == KIND or output.keys() == _OLDER_KEYS
