"""Registry of the test names and missing-data policies that analysis plans may use."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.core import did_you_mean

MISSING_DATA_POLICIES = ("drop", "zero", "fail")
"""How runs without a value are treated: dropped, counted as 0, or the test is refused."""
MISSING_ALIASES = {
    "": "drop",
    "omit": "drop",
    "exclude": "drop",
    "ignore": "drop",
    "listwise": "drop",
    "complete_case": "drop",
    "complete_cases": "drop",
    "fill_zero": "zero",
    "zero_fill": "zero",
    "as_zero": "zero",
    "error": "fail",
    "raise": "fail",
}


@dataclass(frozen=True, slots=True)
class NamedTest:
    """A test that an analysis plan can request by name.

    name: canonical name
    meaning: description for readers of reports and docs
    aliases: other accepted names
    """

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()


NAMED_TESTS = (
    NamedTest(
        "difference_in_means",
        "the test that fits the claim: of the problems' differences if there are several problems; "
        "else Welch's t for two levels (Fisher's for yes/no outcomes), Welch's ANOVA for more, a "
        "regression slope for numbers sampled from a range, an interaction for a moderation",
        ("mean_difference", "difference", "default"),
    ),
    NamedTest(
        "welch_t",
        "Welch's t test; for small groups with a permutation test beside it (the larger p)",
        ("welch", "welch_t_test", "t_test", "ttest", "t", "two_sample_t", "independent_t"),
    ),
    NamedTest(
        "mann_whitney",
        "Mann-Whitney test of ranks (Kruskal-Wallis for more than two levels)",
        ("mann_whitney_u", "mannwhitneyu", "rank_sum", "wilcoxon_rank_sum"),
    ),
    NamedTest(
        "paired_t",
        "paired t test (repeated-measures ANOVA for more than two levels, by Greenhouse-Geisser)",
        ("paired_t_test", "ttest_rel", "dependent_t", "repeated_measures_anova", "rm_anova"),
    ),
    NamedTest(
        "wilcoxon",
        "Wilcoxon's signed-rank test of pairs (Friedman's for more than two levels)",
        ("wilcoxon_signed_rank", "signed_rank", "friedman"),
    ),
    NamedTest(
        "anova",
        "one-way analysis of variance by Welch's method: variances may differ",
        ("one_way_anova", "oneway_anova", "f_test"),
    ),
    NamedTest("welch_anova", "Welch's analysis of variance"),
    NamedTest(
        "classic_anova",
        "Fisher's one-way analysis of variance, which assumes equal variances",
        ("fisher_anova",),
    ),
    NamedTest("kruskal_wallis", "Kruskal-Wallis test of ranks", ("kruskal",)),
    NamedTest(
        "factorial_anova",
        "analysis of variance of all the claim's variables and their interactions; variances may "
        "differ",
        ("two_way_anova", "anova_two_way", "three_way_anova", "interaction", "moderation"),
    ),
    NamedTest(
        "regression",
        "least squares on all the claim's variables and the covariates, with HC3 errors",
        ("linear_regression", "ols", "ancova", "linear_model"),
    ),
    NamedTest(
        "mixed_effects",
        "linear mixed model with the plan's random effects (the problem, if it names none)",
        ("mixed_model", "linear_mixed_model", "lmm", "mixedlm", "mixed_effects_model"),
    ),
    NamedTest(
        "equivalence",
        "two one-sided Welch tests of the means within plus and minus the minimum effect",
        ("tost", "equivalence_test", "two_one_sided_tests"),
    ),
    NamedTest(
        "fisher_exact",
        "Fisher's exact test of proportions (chi-squared for more than two levels)",
        ("fisher", "fishers_exact", "difference_in_proportions", "proportions"),
    ),
    NamedTest("barnard_exact", "Barnard's exact test of proportions", ("barnard",)),
    NamedTest("chi_square", "chi-squared test of proportions", ("chi2", "chi_squared")),
    NamedTest("mcnemar", "McNemar's exact test of paired proportions", ()),
    NamedTest(
        "correlation", "Pearson's correlation with a numeric factor", ("pearson", "pearsonr")
    ),
    NamedTest("spearman", "Spearman's rank correlation with a numeric factor", ("spearmanr",)),
)
_TEST_BY_NAME = {name: test for test in NAMED_TESTS for name in (test.name, *test.aliases)}


def known_tests() -> tuple[str, ...]:
    """Return the canonical names of all tests."""
    return tuple(test.name for test in NAMED_TESTS)


def find_test(name: str) -> NamedTest | None:
    """Find a test by name or alias, ignoring case, spaces and hyphens.

    Returns:
        The test, or None if the name is unknown.
    """
    return _TEST_BY_NAME.get(_normalize(name))


def missing_data_policy(name: str) -> str | None:
    """Return the canonical name of a missing-data policy, or None if the name is unknown."""
    normalized = _normalize(name)
    policy = MISSING_ALIASES.get(normalized, normalized)
    return policy if policy in MISSING_DATA_POLICIES else None


def _normalize(name: str) -> str:
    return name.strip().lower().replace("'", "").replace("-", "_").replace(" ", "_")


def suggest_test(name: str) -> str:
    """Return a hint for an unknown test name: the most similar name or alias."""
    aliases = [alias for test in NAMED_TESTS for alias in test.aliases]
    hints = [did_you_mean(name, names) for names in (known_tests(), aliases)]
    return next((hint for hint in hints if hint.startswith("did")), hints[0])
