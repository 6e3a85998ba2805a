"""Adjustment of p values for multiple comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairtrial.core import Mistake, StudyError, did_you_mean

POLICY_ALIASES = {
    "": "none",
    "fdr": "bh",
    "fdr_bh": "bh",
    "benjamini_hochberg": "bh",
    "holm_bonferroni": "holm",
}


def adjust_p(p_values: Sequence[float], policy: str) -> list[float]:
    """Adjust the p values of one family of tests.

    Bonferroni and Holm (1979) control the family-wise error rate; Benjamini and Hochberg (1995)
    control the false discovery rate.

    Args:
        p_values: unadjusted p values.
        policy: none, bonferroni, holm or bh, or an alias of one of these.

    Returns:
        The adjusted p values, in the same order.

    Raises:
        StudyError: if the policy is unknown.
    """
    name = policy_name(policy)
    if name not in _POLICIES:
        raise StudyError(
            Mistake(("policy",), f"'{policy}' is not known", did_you_mean(policy, _POLICIES))
        )
    return _POLICIES[name](list(p_values)) if p_values else []


def interval_error_rate(p_adjusted: Sequence[float], policy: str, alpha: float) -> float:
    """Return the error rate of each confidence interval of a family of tests.

    Intervals are simultaneous for Bonferroni and Holm. For Benjamini and Hochberg the share of
    rejected hypotheses whose interval misses is controlled (Benjamini and Yekutieli 2005).

    Args:
        p_adjusted: adjusted p values of the family.
        policy: canonical name of the policy.
        alpha: error rate of the family.
    """
    if policy == "none" or not p_adjusted:
        return alpha
    rejected = sum(p < alpha for p in p_adjusted) if policy == "bh" else 1
    return alpha * max(1, rejected) / len(p_adjusted)


def policy_name(name: str) -> str:
    """Return the canonical name of a policy; an unknown name is returned in normalized form."""
    normalized = name.strip().lower().replace("-", "_").replace(" ", "_")
    return POLICY_ALIASES.get(normalized, normalized)


def is_policy(name: str) -> bool:
    """Return whether a policy of this name exists."""
    return policy_name(name) in _POLICIES


def _none(p_values: list[float]) -> list[float]:
    return p_values


def _bonferroni(p_values: list[float]) -> list[float]:
    return [min(1.0, p * len(p_values)) for p in p_values]


def _holm(p_values: list[float]) -> list[float]:
    # scipy lacks Holm's method and statsmodels is optional; a test compares the two.
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = largest
    return adjusted


def _bh(p_values: list[float]) -> list[float]:
    from scipy import stats

    return [float(p) for p in stats.false_discovery_control(p_values, method="bh")]


_POLICIES: dict[str, Callable[[list[float]], list[float]]] = {
    "none": _none,
    "bonferroni": _bonferroni,
    "holm": _holm,
    "bh": _bh,
}
