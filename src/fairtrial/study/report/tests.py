"""Questions answered: the test that a plan's word means, for what is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES
from fairtrial.study.hypotheses.planned_tests import DEFAULT_TEST
from fairtrial.study.model.study import Study
from fairtrial.study.report.follow_up_tests import (
    Compare,
    check_by_sets,
    compare_pairs,
    describe_strata,
    simple_effects,
)
from fairtrial.study.report.models import (
    fit_factorial,
    fit_mixed,
    fit_regression,
    numbers_of,
    span_of,
)
from fairtrial.study.report.pairing import Sets, cautions, put_together, replicate_is_subject
from fairtrial.study.report.samples import Sample
from fairtrial.study.report.test_questions import Question
from fairtrial.study.report.test_result import Answer, Detail, Margin, margin_of, spell_difference
from fairtrial.study.report.values import REPLICATE
from fairtrial.study.stats.anova import friedman, kruskal, one_way, repeated_measures, welch_anova
from fairtrial.study.stats.finding import (
    Finding,
    UntestableError,
    check_groups,
    has_statsmodels,
    pooled_sd,
    spread,
)
from fairtrial.study.stats.linear import correlation, slope
from fairtrial.study.stats.proportions import (
    barnard,
    chi_square,
    equivalent_proportions,
    fisher,
    is_binary,
    mcnemar,
)
from fairtrial.study.stats.two_groups import (
    TwoGroups,
    equivalent,
    mann_whitney,
    paired_t,
    welch,
    wilcoxon,
)

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Values

TWO: dict[str, TwoGroups] = {
    "welch_t": welch,
    "mann_whitney": mann_whitney,
    "fisher_exact": fisher,
    "barnard_exact": barnard,
    "equivalence": welch,
}
PAIRED: dict[str, TwoGroups] = {"paired_t": paired_t, "wilcoxon": wilcoxon, "mcnemar": mcnemar}
SEVERAL: dict[str, tuple[Callable[[Sequence[Values]], Finding], TwoGroups]] = {
    "welch_t": (one_way, welch),
    "equivalence": (one_way, welch),
    "anova": (one_way, welch),
    "welch_anova": (welch_anova, welch),
    "mann_whitney": (kruskal, mann_whitney),
    "kruskal_wallis": (kruskal, mann_whitney),
    "fisher_exact": (chi_square, fisher),
    "chi_square": (chi_square, fisher),
}
"""For more than two levels: a test of all, and the one of pairs that goes with it."""
PAIRED_SEVERAL: dict[str, tuple[Callable[[Values], Finding], TwoGroups]] = {
    "paired_t": (repeated_measures, paired_t),
    "wilcoxon": (friedman, wilcoxon),
}
MODELS = {
    "regression": fit_regression,
    "factorial_anova": fit_factorial,
    "mixed_effects": fit_mixed,
}
NO_MARGIN = "the values don't vary: a margin in standard deviations has no size"
CORRELATIONS = ("correlation", "spearman")


def answer_question(sample: Sample, word: str) -> Answer:
    """Test a sample by the test of that name (`stats.words`)."""
    question = sample.question
    if word == "equivalence" and not question.is_equivalence:
        raise UntestableError("the hypothesis claims a difference, not `direction: equivalent`")
    if question.is_equivalence and question.hypothesis.minimum_effect_of_interest is None:
        raise UntestableError("equivalence needs a minimum_effect_of_interest to lie within")
    if question.comparison.shape == "slope":
        return _answer_slope(sample, word)
    check_groups(sample.values, sample.names)
    if question.comparison.shape == "interaction":
        return _answer_interaction(sample, word)
    if word == DEFAULT_TEST:
        word = _fitting(sample)
    if word in CORRELATIONS:
        return _answer_correlation(sample, word)
    if word in MODELS:
        return _answer_model(sample, word)
    return _answer_pairs(sample, word) if word in PAIRED else _answer_groups(sample, word)


def _fitting(sample: Sample) -> str:
    """The test that `difference_in_means` means for these levels and values."""
    yes_or_no = sample.question.outcome.expected_type.strip().lower() in BINARY_TYPES
    if yes_or_no or is_binary(sample.y):
        return "fisher_exact"
    if len(sample.names) == 2:
        return "welch_t"
    # Unequal variances make the plain one see differences that aren't there.
    has_welch = has_statsmodels() and all(spread(group) > 0 for group in sample.values)
    return "welch_anova" if has_welch else "anova"


def _comparer(question: Question, test: TwoGroups, margin: Margin | None) -> Compare:
    """The test of two groups that the claim asks for: with its side, or of equivalence."""
    if not question.is_equivalence:
        return lambda left, right: test(left, right, question.alternative)
    if margin is None:
        raise UntestableError(NO_MARGIN)
    size = margin.size
    if test is mcnemar:
        raise UntestableError("mcnemar doesn't test equivalence; paired_t does")
    if test in (fisher, barnard):
        return lambda left, right: equivalent_proportions(left, right, size)
    return lambda left, right: equivalent(test, left, right, size)


def _answer_groups(sample: Sample, word: str) -> Answer:
    margin = margin_of(sample.question, pooled_sd(sample.values))
    notes = (*cautions(sample, is_paired=False), *check_by_sets(sample))
    several, pair = SEVERAL.get(word, (None, TWO.get(word, welch)))
    compare = _comparer(sample.question, pair, margin)
    if len(sample.names) > 2:
        if several is None:
            raise UntestableError(f"{word} compares two levels; there are {len(sample.names)}")
        title, details = compare_pairs(sample, compare, sample.values)
        if sample.question.is_equivalence:
            finding = _all_equivalent(details, len(sample.names))
        else:
            finding = several(sample.values)
        return _finish(Answer(finding, "run", "", margin, title, details, is_omnibus=True), notes)
    finding = compare(*sample.values)
    if word not in TWO and several is not None and not sample.question.is_equivalence:
        finding = _without_side(several(sample.values), finding)
    title, details = describe_strata(sample)
    difference = spell_difference(sample)
    return _finish(Answer(finding, "run", difference, margin, title, details), notes)


def _without_side(several: Finding, two: Finding) -> Finding:
    """A test of several groups on two of them: its p, with the size from the test of two."""
    return replace(
        several,
        estimate=two.estimate,
        estimate_of=two.estimate_of,
        interval=two.interval,
        bounds=two.bounds,
        leaning=two.leaning,
    )


def _all_equivalent(details: Sequence[Detail], count: int) -> Finding:
    """All pairs at once: as sure as the least sure of them."""
    tested = [each.p for each in details if each.p is not None]
    if len(tested) < len(details):
        raise UntestableError("some pairs of levels can't be compared")
    return Finding(
        method=f"two one-sided tests (TOST) of all pairs of {count} levels",
        p=max(tested),
        statistic_name="largest p",
        statistic=max(tested),
    )


def _answer_pairs(sample: Sample, word: str) -> Answer:
    sets = put_together(sample)
    if not sets.shared:
        raise UntestableError("runs of the levels have nothing in common to pair them by")
    margin = margin_of(sample.question, pooled_sd(sample.values))
    notes = (
        *_set_notes(sets, sample.question.study),
        *cautions(sample, is_paired=True),
        *check_by_sets(sample),
    )
    kind = "pair" if len(sample.names) == 2 else "set"
    unit = f"{kind} of runs that share {sets.text} ({len(sets.table):,} of them)"
    compare = _comparer(sample.question, PAIRED[word], margin)
    columns = list(sets.table.T)
    if len(columns) == 2:
        title, details = describe_strata(sample)
        answer = Answer(compare(*columns), unit, spell_difference(sample), margin, title, details)
        return _finish(answer, notes)
    if word not in PAIRED_SEVERAL:
        raise UntestableError(f"{word} compares two levels; there are {len(sample.names)}")
    title, details = compare_pairs(sample, compare, columns, is_paired=True)
    if sample.question.is_equivalence:
        finding = _all_equivalent(details, len(columns))
    else:
        finding = PAIRED_SEVERAL[word][0](sets.table)
    return _finish(Answer(finding, unit, "", margin, title, details, is_omnibus=True), notes)


def _set_notes(sets: Sets, study: Study) -> list[str]:
    notes = []
    others = [name for name in sets.shared if name != REPLICATE]
    if REPLICATE in sets.shared and not replicate_is_subject(study):
        notes.append(
            f"sets of one {', '.join(others)} count as independent: if the effect differs between "
            "them, p is too small for others at large"
            if others
            else "nothing but the replicate's number links these runs: it is no reason to pair them"
        )
    if sets.incomplete:
        notes.append(f"{sets.incomplete:,} combinations of {sets.text} lack a level: left out")
    if sets.averaged:
        notes.append("runs of one level that share all this were averaged")
    return notes


def _answer_model(sample: Sample, word: str) -> Answer:
    question, is_omnibus = sample.question, len(sample.names) > 2
    if question.is_equivalence and is_omnibus:
        raise UntestableError(f"{word} doesn't test the equivalence of more than two levels")
    margin = margin_of(question, pooled_sd(sample.values))
    finding = MODELS[word](sample, question.alternative, _width(question, margin))
    if is_omnibus:
        compare = _comparer(question, welch, margin)
        title, details = compare_pairs(sample, compare, sample.values)
        title = f"{title}, by Welch's t without the model"
    else:
        title, details = describe_strata(sample)
    difference = "" if is_omnibus else spell_difference(sample)
    notes = cautions(sample, is_paired=False, is_mixed=word == "mixed_effects")
    return _finish(Answer(finding, "run", difference, margin, title, details, is_omnibus), notes)


def _width(question: Question, margin: Margin | None) -> float:
    """The margin of an equivalence test; 0 for other claims."""
    if not question.is_equivalence:
        return 0.0
    if margin is None:
        raise UntestableError(NO_MARGIN)
    return margin.size


def _answer_correlation(sample: Sample, word: str) -> Answer:
    question = sample.question
    if question.is_equivalence:
        raise UntestableError("a correlation doesn't test equivalence")
    by_rank = word == "spearman"
    finding = correlation(numbers_of(sample), sample.y, question.alternative, by_rank=by_rank)
    difference = f"correlation with {question.comparison.variables[0]}"
    return _finish(Answer(finding, "run", difference), cautions(sample, is_paired=False))


def _answer_slope(sample: Sample, word: str) -> Answer:
    question = sample.question
    name = question.comparison.variables[0]
    if word in CORRELATIONS:
        return _answer_correlation(sample, word)
    if word not in (DEFAULT_TEST, "regression", "mixed_effects", "equivalence"):
        raise UntestableError(
            f"{word} compares groups, and '{name}' is sampled from a range; use regression"
        )
    x, (low, high) = numbers_of(sample), span_of(sample)
    margin = margin_of(question, slope(x, sample.y, high - low).residual_sd)
    width = _width(question, margin)
    if word in MODELS:
        finding = MODELS[word](sample, question.alternative, width)
    else:
        finding = slope(x, sample.y, high - low, question.alternative, width).finding
    difference = f"{name} = {high:g} − {name} = {low:g}, on a straight line"
    notes = cautions(sample, is_paired=False, is_mixed=word == "mixed_effects")
    return _finish(Answer(finding, "run", difference, margin), notes)


def _answer_interaction(sample: Sample, word: str) -> Answer:
    question = sample.question
    word = "factorial_anova" if word in (DEFAULT_TEST, "equivalence") else word
    if word not in MODELS:
        raise UntestableError(
            f"{word} doesn't test whether an effect depends on another factor; use factorial_anova"
        )
    margin = margin_of(question, pooled_sd(sample.values))
    finding = MODELS[word](sample, question.alternative, _width(question, margin))
    rows, columns = question.levels(0), question.levels(1)
    is_omnibus = len(sample.names) > 4
    difference = f"({rows[0]} − {rows[1]} at {columns[0]}) − (the same at {columns[1]})"
    title, details = simple_effects(sample)
    answer = Answer(
        finding, "run", "" if is_omnibus else difference, margin, title, details, is_omnibus
    )
    return _finish(answer, cautions(sample, is_paired=False, is_mixed=word == "mixed_effects"))


def _finish(answer: Answer, notes: Sequence[str]) -> Answer:
    return replace(answer, notes=(*answer.finding.notes, *notes))
