"""The level of each comparison of a family, so that all together keep one alpha.

By Bonferroni's inequality the chance of any false claim among comparisons is at most the sum of
their levels, however they depend on each other.

Reference: Bonferroni (1936), Pubbl. R. Ist. Super. Sci. Econ. Commer. Firenze 8, 3-62
"""

from __future__ import annotations


def alpha_share(alpha: float, count: int) -> float:
    """Return the level of each comparison in a family of known size: alpha / count."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, e.g. 0.05; got {alpha}")
    if count < 1:
        raise ValueError(f"count must be 1 or more; got {count}")
    return alpha / count
