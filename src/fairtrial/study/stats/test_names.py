"""The words that plans use for tests, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.core import did_you_mean

MISSING_DATA_POLICIES = ("drop", "zero", "fail")
"""What can happen to runs without a value: they don't count, count as 0, or stop the test."""
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
class Word:
    """A test as plans name it.

    name: the word
    meaning: what it does, for people
    aliases: other words for it
    """

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()


WORDS = (
    Word(
        "difference_in_means",
        "the test that fits the claim: Welch's t for two levels (Fisher's for yes/no outcomes), "
        "Welch's ANOVA for more (the plain one without statsmodels), a regression slope for "
        "numbers sampled from a range, an interaction for a moderation",
        ("mean_difference", "difference", "default"),
    ),
    Word(
        "welch_t",
        "Welch's t test",
        ("welch", "welch_t_test", "t_test", "ttest", "t", "two_sample_t", "independent_t"),
    ),
    Word(
        "mann_whitney",
        "Mann-Whitney test of ranks (Kruskal-Wallis for more than two levels)",
        ("mann_whitney_u", "mannwhitneyu", "rank_sum", "wilcoxon_rank_sum"),
    ),
    Word(
        "paired_t",
        "paired t test (repeated-measures ANOVA for more than two levels)",
        ("paired_t_test", "ttest_rel", "dependent_t", "repeated_measures_anova", "rm_anova"),
    ),
    Word(
        "wilcoxon",
        "Wilcoxon's signed-rank test of pairs (Friedman's for more than two levels)",
        ("wilcoxon_signed_rank", "signed_rank", "friedman"),
    ),
    Word("anova", "one-way analysis of variance", ("one_way_anova", "oneway_anova", "f_test")),
    Word("welch_anova", "Welch's analysis of variance"),
    Word("kruskal_wallis", "Kruskal-Wallis test of ranks", ("kruskal",)),
    Word(
        "factorial_anova",
        "analysis of variance of all the claim's variables and their interactions",
        ("two_way_anova", "anova_two_way", "three_way_anova", "interaction", "moderation"),
    ),
    Word(
        "regression",
        "least squares on all the claim's variables and the covariates, with HC3 errors",
        ("linear_regression", "ols", "ancova", "linear_model"),
    ),
    Word(
        "mixed_effects",
        "linear mixed model with the plan's random effects (the problem, if it names none)",
        ("mixed_model", "linear_mixed_model", "lmm", "mixedlm", "mixed_effects_model"),
    ),
    Word(
        "equivalence",
        "two one-sided Welch tests within plus and minus the minimum effect",
        ("tost", "equivalence_test", "two_one_sided_tests"),
    ),
    Word(
        "fisher_exact",
        "Fisher's exact test of proportions (chi-squared for more than two levels)",
        ("fisher", "fishers_exact", "difference_in_proportions", "proportions"),
    ),
    Word("barnard_exact", "Barnard's exact test of proportions", ("barnard",)),
    Word("chi_square", "chi-squared test of proportions", ("chi2", "chi_squared")),
    Word("mcnemar", "McNemar's exact test of paired proportions", ()),
    Word("correlation", "Pearson's correlation with a numeric factor", ("pearson", "pearsonr")),
    Word("spearman", "Spearman's rank correlation with a numeric factor", ("spearmanr",)),
)
_BY_WORD = {word: entry for entry in WORDS for word in (entry.name, *entry.aliases)}


def known_tests() -> tuple[str, ...]:
    """Every word that an analysis plan may use for a test, without the aliases."""
    return tuple(word.name for word in WORDS)


def find_test(word: str) -> Word | None:
    """The test that a word means; None if it means none. Case, spaces and hyphens don't matter."""
    return _BY_WORD.get(_plain(word))


def missing_data_policy(word: str) -> str | None:
    """The policy that a word means; None if it means none."""
    plain = MISSING_ALIASES.get(_plain(word), _plain(word))
    return plain if plain in MISSING_DATA_POLICIES else None


def _plain(word: str) -> str:
    return word.strip().lower().replace("'", "").replace("-", "_").replace(" ", "_")


def hint_at_test(word: str) -> str:
    """What may be meant by a word for a test that nobody knows; other words for one count."""
    aliases = [alias for each in WORDS for alias in each.aliases]
    hints = [did_you_mean(word, names) for names in (known_tests(), aliases)]
    return next((hint for hint in hints if hint.startswith("did")), hints[0])
