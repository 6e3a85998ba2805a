"""Hypotheses and tests in words, as `fairtrial plan` and the report show them."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.study.hypotheses.planned_comparison import PlannedComparison
from fairtrial.study.hypotheses.problem_units import (
    BETWEEN_PROBLEMS,
    RANK_TESTS,
    RATE_TESTS,
    ProblemUnit,
)
from fairtrial.study.model.hypotheses import Contrast, Hypothesis, HypothesisDirection

MAX_LEVELS_SHOWN = 6
SIGNS = {HypothesisDirection.GREATER: "> 0", HypothesisDirection.LESS: "< 0"}
OF_EVERY_LEVEL = "then every level against the baseline, of which the least clear one decides"
TESTS = {
    "welch_t": ("Welch's t test", "Welch's ANOVA"),
    "mann_whitney": ("the Mann-Whitney test", "the Kruskal-Wallis test"),
    "paired_t": ("the paired t test", "repeated-measures ANOVA"),
    "wilcoxon": ("Wilcoxon's signed-rank test", "Friedman's test"),
    "anova": ("Welch's ANOVA", "Welch's ANOVA"),
    "classic_anova": ("one-way ANOVA", "one-way ANOVA"),
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
"""For each test name of a plan: the test for two levels, and for more than two."""

OPERATIONS = ("difference", "difference_in_means", "mean_difference", "")
"""The values of a contrast's `operation` that mean left minus right."""
GENERAL_TESTS = ("difference_in_means", "equivalence")
"""Test names that stand for whichever test suits the comparison."""
SUITABLE_TESTS = {
    "slope": ("regression", "mixed_effects", "correlation", "spearman"),
    "interaction": ("factorial_anova", "regression", "mixed_effects"),
}
SUBJECTS = {
    "slope": "numbers that are sampled from a range",
    "interaction": "whether an effect depends on another factor",
}


def describe_test_by_problem(
    test_name: str, comparison: PlannedComparison, is_equivalence: bool, unit: ProblemUnit
) -> str:
    """Return the test with problems as units that a test name of a plan stands for."""
    count = f"{unit.problems:,} problems"
    if not unit.is_within:
        base = describe_test(BETWEEN_PROBLEMS.get(test_name, test_name), comparison, is_equivalence)
        return f"{base} of the means of {count}"
    has_two_levels = all(len(levels) == 2 for levels in comparison.levels)
    if test_name in ("correlation", "spearman"):
        text = f"t on the correlations of {count}"
    elif comparison.shape == "slope":
        text = f"t on the slopes of {count}"
    elif test_name in RANK_TESTS and not is_equivalence:
        rank_test = "Wilcoxon's signed-rank test" if has_two_levels else "Friedman's test"
        text = f"{rank_test} on the means of {count}"
    elif not has_two_levels and not is_equivalence:
        text = f"repeated-measures ANOVA (Greenhouse-Geisser) on the means of {count}"
    elif test_name in RATE_TESTS:
        text = f"sign-flip permutation of the differences of {count}"
    else:
        text = f"t on the differences of {count}"
    return f"{'two one-sided tests (TOST), ' if is_equivalence else ''}{text}"


def describe_test_in_these_problems(
    test_name: str, comparison: PlannedComparison, is_equivalence: bool, unit: ProblemUnit
) -> str:
    """Return the test within fixed problems that a test name of a plan stands for."""
    text = describe_test(test_name, comparison, is_equivalence)
    return f"{text}, within these {unit.problems:,} problems"


def describe_test(test_name: str, comparison: PlannedComparison, is_equivalence: bool) -> str:
    """Return the test of runs that a test name of a plan stands for in a comparison."""
    if comparison.shape != "levels" and test_name in GENERAL_TESTS:
        text = "a regression slope" if comparison.shape == "slope" else "factorial ANOVA"
    else:
        for_two, for_several = TESTS[test_name]
        text = for_two if len(comparison.levels[0]) == 2 or is_equivalence else for_several
    return f"two one-sided tests (TOST), {text}" if is_equivalence else text


def explain_unsuitable_test(
    test_name: str, comparison: PlannedComparison, is_equivalence: bool
) -> str:
    """Return why a test doesn't suit a comparison; empty if it does."""
    if test_name not in TESTS:
        return f"'{test_name}' is not a test that fairtrial knows"
    if test_name == "equivalence" and not is_equivalence:
        return "the hypothesis claims a difference, not `direction: equivalent`"
    suitable = SUITABLE_TESTS.get(comparison.shape)
    if suitable is None or test_name in (*GENERAL_TESTS, *suitable):
        return ""
    return f"{test_name} doesn't test {SUBJECTS[comparison.shape]}; use {suitable[0]}"


def explain_unsupported_operation(contrast: Contrast | None) -> str:
    """Return why a contrast's operation is not tested; empty if it is."""
    if contrast is None or contrast.operation.strip().lower() in OPERATIONS:
        return ""
    return f"the contrast's operation '{contrast.operation}' is not tested; 'difference' is"


def describe_claim(
    hypothesis: Hypothesis,
    comparison: PlannedComparison,
    levels: Sequence[Sequence[str]],
    has_sd: bool,
) -> str:
    """Return what is tested, as differences of levels.

    levels: the levels of each variable, the one that is subtracted last
    has_sd: whether the minimum effect is in the outcome's own units
    """
    name = comparison.variables[0]
    size = _format_size(hypothesis, has_sd)
    if comparison.shape == "slope":
        return f"the slope over {name} {size}"
    if comparison.shape == "interaction":
        rows, columns = levels
        if len(rows) > 2 or len(columns) > 2:
            return f"the effect of {name} depends on {comparison.variables[1]}"
        return f"({rows[0]} − {rows[1]} at {columns[0]}) − (the same at {columns[1]}) {size}"
    (ordered,) = levels
    if len(ordered) == 2:
        shown = [f"{name} {level}" if _is_number(level) else level for level in ordered]
        return f"{shown[0]} − {shown[1]} {size}"
    all_levels = _format_levels(comparison.levels[0])
    if hypothesis.is_equivalence:
        return f"any two of {all_levels} differ by {size.removeprefix('is ')}"
    if hypothesis.direction in SIGNS:
        return f"each of {_format_levels(ordered[:-1])} − {ordered[-1]} {size}"
    return f"{all_levels} differ"


def _format_size(hypothesis: Hypothesis, has_sd: bool) -> str:
    if not hypothesis.is_equivalence:
        return SIGNS.get(hypothesis.direction, "≠ 0")
    if hypothesis.minimum_effect_of_interest is None:
        return "is within a minimum_effect_of_interest, which isn't stated"
    unit = "" if has_sd else " standard deviations"
    return f"is within ±{hypothesis.minimum_effect_of_interest:g}{unit}"


def _format_levels(levels: Sequence[str]) -> str:
    return ", ".join(levels) if len(levels) <= MAX_LEVELS_SHOWN else f"{len(levels):,} levels"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
