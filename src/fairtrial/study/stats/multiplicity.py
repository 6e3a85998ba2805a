"""Several tests at once: p values that say what is left of each finding."""

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
    """The p values of one family of tests, adjusted by a policy: none, bonferroni, holm or bh.

    Holm (1979) and Bonferroni hold the chance of any false finding, Benjamini and Hochberg (1995)
    the share of false ones among the findings.
    """
    name = policy_name(policy)
    if name not in _POLICIES:
        raise StudyError(
            Mistake(("policy",), f"'{policy}' is not known", did_you_mean(policy, _POLICIES))
        )
    return _POLICIES[name](list(p_values)) if p_values else []


def policy_name(word: str) -> str:
    """The policy that a word means; the word itself if it means none that is known."""
    plain = word.strip().lower().replace("-", "_").replace(" ", "_")
    return POLICY_ALIASES.get(plain, plain)


def is_policy(word: str) -> bool:
    """Whether a word means a policy."""
    return policy_name(word) in _POLICIES


def _none(p_values: list[float]) -> list[float]:
    return p_values


def _bonferroni(p_values: list[float]) -> list[float]:
    return [min(1.0, p * len(p_values)) for p in p_values]


def _holm(p_values: list[float]) -> list[float]:
    # scipy has none, and statsmodels may not be there; tests check the two against each other.
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
