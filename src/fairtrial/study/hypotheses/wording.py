"""Claims and tests in words, for people who read a plan."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.study.hypotheses.comparisons import Comparison
from fairtrial.study.model.hypotheses import (
    Contrast,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
)

MOST_LEVELS = 6
SIGNS = {HypothesisDirection.GREATER: "> 0", HypothesisDirection.LESS: "< 0"}
TESTS = {
    "welch_t": ("Welch's t test", "one-way ANOVA"),
    "mann_whitney": ("the Mann-Whitney test", "the Kruskal-Wallis test"),
    "paired_t": ("the paired t test", "repeated-measures ANOVA"),
    "wilcoxon": ("Wilcoxon's signed-rank test", "Friedman's test"),
    "anova": ("one-way ANOVA", "one-way ANOVA"),
    "welch_anova": ("Welch's ANOVA", "Welch's ANOVA"),
    "kruskal_wallis": ("the Kruskal-Wallis test", "the Kruskal-Wallis test"),
    "fisher_exact": ("Fisher's exact test", "the chi-squared test"),
    "barnard_exact": ("Barnard's exact test", "Barnard's exact test"),
    "chi_square": ("the chi-squared test", "the chi-squared test"),
    "mcnemar": ("McNemar's test", "McNemar's test"),
    "difference_in_means": ("Welch's t test", "Welch's ANOVA"),
    "factorial_anova": ("factorial ANOVA", "factorial ANOVA"),
    "regression": ("regression", "regression"),
    "mixed_effects": ("a linear mixed model", "a linear mixed model"),
    "correlation": ("Pearson's correlation", "Pearson's correlation"),
    "spearman": ("Spearman's correlation", "Spearman's correlation"),
    "equivalence": ("Welch's t test", "Welch's t test"),
}
"""What a plan's word means for two levels, and for more."""

OPERATIONS = ("difference", "difference_in_means", "mean_difference", "")
"""What a contrast's `operation` may be: all of them mean left minus right."""
GENERAL = ("difference_in_means", "equivalence")
"""Words for whatever test fits."""
FITTING = {
    "slope": ("regression", "mixed_effects", "correlation", "spearman"),
    "interaction": ("factorial_anova", "regression", "mixed_effects"),
}
WHAT = {
    "slope": "numbers that are sampled from a range",
    "interaction": "whether an effect depends on another factor",
}


def is_equivalence(claim: Hypothesis) -> bool:
    """Whether the claim is that there is no difference that matters."""
    return (
        claim.kind is HypothesisKind.EQUIVALENCE
        or claim.direction is HypothesisDirection.EQUIVALENT
    )


def describe_test(word: str, comparison: Comparison, is_equal: bool) -> str:
    """The test that a word means for this comparison."""
    if comparison.shape != "levels" and word in GENERAL:
        name = "a regression slope" if comparison.shape == "slope" else "factorial ANOVA"
    else:
        two, several = TESTS[word]
        name = two if len(comparison.levels[0]) == 2 or is_equal else several
    return f"two one-sided tests (TOST), {name}" if is_equal else name


def explain_unsuitable_test(word: str, comparison: Comparison, is_equal: bool) -> str:
    """Why a test doesn't fit what it is to test; empty if it does."""
    if word not in TESTS:
        return f"'{word}' is not a test that fairtrial knows"
    if word == "equivalence" and not is_equal:
        return "the hypothesis claims a difference, not `direction: equivalent`"
    fitting = FITTING.get(comparison.shape)
    if fitting is None or word in (*GENERAL, *fitting):
        return ""
    return f"{word} doesn't test {WHAT[comparison.shape]}; use {fitting[0]}"


def explain_unsupported_operation(contrast: Contrast | None) -> str:
    """Why what a contrast asks for is not tested; empty if it is."""
    if contrast is None or contrast.operation.strip().lower() in OPERATIONS:
        return ""
    return f"the contrast's operation '{contrast.operation}' is not tested; 'difference' is"


def describe_claim(
    claim: Hypothesis, comparison: Comparison, levels: Sequence[Sequence[str]], has_sd: bool
) -> str:
    """What is claimed, in terms of levels; those come with the one that is subtracted last.

    has_sd: whether the minimum effect is in the outcome's own units
    """
    name = comparison.variables[0]
    how = _spell_size(claim, has_sd)
    if comparison.shape == "slope":
        return f"the slope over {name} {how}"
    if comparison.shape == "interaction":
        rows, columns = levels
        if len(rows) > 2 or len(columns) > 2:
            return f"the effect of {name} depends on {comparison.variables[1]}"
        return f"({rows[0]} − {rows[1]} at {columns[0]}) − (the same at {columns[1]}) {how}"
    (chosen,) = levels
    if len(chosen) == 2:
        shown = [f"{name} {level}" if _is_number(level) else level for level in chosen]
        return f"{shown[0]} − {shown[1]} {how}"
    if is_equivalence(claim):
        return (
            f"any two of {_spell_levels(comparison.levels[0])} differ by {how.removeprefix('is ')}"
        )
    if claim.direction in SIGNS:
        return f"each of {_spell_levels(chosen[:-1])} − {chosen[-1]} {how}"
    return f"{_spell_levels(comparison.levels[0])} differ"


def _spell_size(claim: Hypothesis, has_sd: bool) -> str:
    if not is_equivalence(claim):
        return SIGNS.get(claim.direction, "≠ 0")
    if claim.minimum_effect_of_interest is None:
        return "is within a minimum_effect_of_interest, which isn't stated"
    unit = "" if has_sd else " standard deviations"
    return f"is within ±{claim.minimum_effect_of_interest:g}{unit}"


def _spell_levels(levels: Sequence[str]) -> str:
    return ", ".join(levels) if len(levels) <= MOST_LEVELS else f"{len(levels):,} levels"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
