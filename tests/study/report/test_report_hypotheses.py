"""Tests of hypotheses as their plans declare, and their verdicts."""

import dataclasses
import json
import math
import re
import sys

import pytest
from simulated_study_kit import (
    ONE_PROBLEM,
    level,
    make_claim,
    make_plan,
    make_study,
    noisy,
    simulate,
)

from fairtrial.compat import recipes
from fairtrial.study import (
    Block,
    Contrast,
    DesignKind,
    DesignSpec,
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Level,
    Moderator,
    OutcomeSpec,
    RunBudget,
    SeedPolicy,
    build_design,
    hypothesis_power,
    judge_hypotheses,
)
from fairtrial.study.report.comparison_results import FollowUpComparison
from fairtrial.study.report.verdicts import (
    TestVerdict,
    judge_difference,
    judge_equivalence,
    judge_several,
)
from fairtrial.study.stats.finding import Finding
from fairtrial.study.stats.named_tests import known_tests
from fairtrial.study.stats.two_groups import welch_t_test

GREATER, LESS = HypothesisDirection.GREATER, HypothesisDirection.LESS
EQUIVALENT = HypothesisDirection.EQUIVALENT
THREE = (Factor("arm", levels=("plain", "fancy", "wild")),)


def judge_one(study, value, **how):
    tests = judge_hypotheses(study, *simulate(study, value, **how))
    assert len(tests) == 1, [test.test for test in tests]
    return tests[0]


def claiming(**parts):
    return make_study(hypotheses=(make_claim(**parts),))


def using(*words, **parts):
    return make_study(analysis_plans=(make_plan(*words),), **parts)


def using_here(*words, **parts):
    """A study whose claims are about its own problems alone."""
    plan = make_plan(*words, generalize="these_problems_only")
    return make_study(analysis_plans=(plan,), **parts)


# -- what is compared, and which way --


def test_differences_of_numeric_levels_name_the_variable():
    study = make_study(factors=(Factor("arm", levels=(100, 1000)),))
    test = judge_one(study, lambda spec, condition, rng: rng.gauss(0, 1))
    assert test.difference == "arm 1000 − arm 100"


def test_the_first_level_is_the_baseline_and_the_difference_is_of_the_other():
    study = make_study(hypotheses=(make_claim(direction=GREATER),), **ONE_PROBLEM)
    test = judge_one(study, noisy(fancy=2.0))
    assert test.difference == "fancy − plain"
    assert test.estimate > 0
    assert test.verdict is TestVerdict.SUPPORTED
    assert test.method == "Welch's t test, one-sided (greater)"


def test_a_level_marked_as_baseline_is_the_one_that_others_are_compared_with():
    levels = (Level("fancy", "fancy"), Level("plain", "plain", metadata={"is_baseline": True}))
    study = make_study(factors=(Factor("arm", levels=levels),))
    assert judge_one(study, noisy(fancy=2.0)).difference == "fancy − plain"


def test_a_contrast_determines_the_sign_and_may_use_values():
    levels = (Level("low", 1), Level("mid", 2), Level("high", 3))
    study = make_study(
        factors=(Factor("arm", levels=levels),),
        hypotheses=(make_claim(contrast=Contrast(left="1", right="high"), direction=LESS),),
    )
    test = judge_one(study, lambda s, c, rng: level(c) + rng.gauss(0, 0.1))
    assert test.difference == "arm low − arm high"
    assert test.estimate == pytest.approx(-2, abs=0.2)
    assert [group.name for group in test.groups] == ["low", "high"]
    assert test.verdict is TestVerdict.SUPPORTED


def test_the_report_compares_the_groups_that_the_plan_computed_power_for():
    study = claiming(minimum_effect_of_interest=0.5)
    (power,) = hypothesis_power(study, build_design(study))
    test = judge_one(study, noisy())
    assert {group.name: group.n for group in test.groups} == dict(power.groups)


def test_an_unknown_operation_of_a_contrast_is_not_taken_for_a_difference():
    contrast = Contrast(left="fancy", right="plain", operation="ratio")
    test = judge_one(claiming(contrast=contrast), noisy())
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "operation 'ratio' is not tested" in test.why


# -- verdicts --


def figures(estimate, error, p=None, **parts):
    """A finding of 40 degrees of freedom or so."""
    low, high = estimate - 2 * error, estimate + 2 * error
    p = p if p is not None else math.erfc(abs(estimate / error) / math.sqrt(2))
    return Finding("t", p, "t", 0.0, (), estimate, "", (low, high), (low, high), **parts)


@pytest.mark.parametrize(
    ("estimate", "margin", "verdict", "words"),
    [
        (3.0, None, TestVerdict.SUPPORTED, "the difference is above 0"),
        (-3.0, None, TestVerdict.SUPPORTED, "the difference is below 0"),
        (3.0, 0.5, TestVerdict.SUPPORTED, "above 0, by at least 0.5"),
        (3.0, 2.0, TestVerdict.SUPPORTED, "above 0, perhaps by less than 2"),
        (3.0, 9.0, TestVerdict.NOT_SUPPORTED, "above 0, but by less than 9"),
        (1.0, None, TestVerdict.INCONCLUSIVE, "none is ruled out"),
        (1.0, 2.0, TestVerdict.INCONCLUSIVE, "it is ruled out that the difference is below 0 by 2"),
        (1.0, 0.5, TestVerdict.INCONCLUSIVE, "neither shown nor ruled out"),
        (1.0, 9.0, TestVerdict.NOT_SUPPORTED, "a difference of 9 is ruled out, in both directions"),
    ],
)
def test_the_verdict_on_a_difference(estimate, margin, verdict, words):
    finding = figures(estimate, 1.0)
    judged, why = judge_difference(finding, "two-sided", finding.p, None, margin)
    assert judged is verdict
    assert words in why


@pytest.mark.parametrize(
    ("estimate", "margin", "verdict"),
    [
        (3.0, None, TestVerdict.SUPPORTED),
        (-3.0, None, TestVerdict.CONTRADICTED),
        (-1.0, None, TestVerdict.INCONCLUSIVE),
        (-1.0, 2.0, TestVerdict.NOT_SUPPORTED),
        (1.0, 2.0, TestVerdict.INCONCLUSIVE),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_verdicts_on_directional_claims_are_symmetric(estimate, margin, verdict, sign):
    p = math.erfc(estimate / math.sqrt(2)) / 2
    finding = figures(sign * estimate, 1.0, p=p, p_opposite=1 - p)
    way = "greater" if sign > 0 else "less"
    assert judge_difference(finding, way, p, 1 - p, margin)[0] is verdict


def test_a_test_without_direction_supports_a_claim_only_in_the_direction_of_the_estimate():
    finding = figures(-3.0, 1.0, p=0.001)
    assert judge_difference(finding, "greater", 0.001, None, None)[0] is TestVerdict.CONTRADICTED
    assert judge_difference(finding, "less", 0.001, None, None)[0] is TestVerdict.SUPPORTED


def test_the_verdict_on_equivalence():
    assert judge_equivalence(figures(0.0, 0.1), 0.001, 1.0)[0] is TestVerdict.SUPPORTED
    assert judge_equivalence(figures(0.0, 1.0), 0.3, 1.0)[0] is TestVerdict.INCONCLUSIVE
    assert judge_equivalence(figures(9.0, 1.0), 1.0, 1.0)[0] is TestVerdict.CONTRADICTED
    assert judge_equivalence(figures(-9.0, 1.0), 1.0, 1.0)[0] is TestVerdict.CONTRADICTED


def test_a_directional_claim_about_several_levels_must_hold_for_all_of_them():
    holds = FollowUpComparison("b", (9, 9), 1.0, p=0.001, p_opposite=1.0)
    open_ = FollowUpComparison("c", (9, 9), 0.1, p=0.4, p_opposite=1.0)
    against = FollowUpComparison("d", (9, 9), -1.0, p=1.0, p_opposite=0.001)
    assert (
        judge_several("greater", 0.01, [holds, holds], None, p_opposite=1.0)[0]
        is TestVerdict.SUPPORTED
    )
    judged, why = judge_several("greater", 0.4, [holds, open_], None, p_opposite=1.0)
    assert judged is TestVerdict.INCONCLUSIVE
    assert "shown for b, not for all levels" in why
    judged, why = judge_several("greater", 1.0, [open_, against], None, p_opposite=0.002)
    assert judged is TestVerdict.CONTRADICTED
    assert "d is below 0" in why
    # One test among several claims: each level is above the baseline, but not after adjustment.
    judged, why = judge_several("greater", 0.08, [holds, holds], None, p_opposite=1.0)
    assert judged is TestVerdict.INCONCLUSIVE
    assert "without the adjustment for several claims" in why
    assert judge_several("two-sided", 0.01, [open_], None)[0] is TestVerdict.SUPPORTED
    assert judge_several("two-sided", 0.2, [holds], None)[0] is TestVerdict.INCONCLUSIVE
    small = dataclasses.replace(open_, bounds=(-0.1, 0.2))
    assert judge_several("two-sided", 0.2, [small], 1.0)[0] is TestVerdict.NOT_SUPPORTED


# -- minimum effects --


def test_a_minimum_effect_is_in_standard_deviations_unless_the_outcome_states_its_sd():
    study = claiming(minimum_effect_of_interest=0.5)
    value = lambda s, c, rng: 10 * rng.gauss(0, 1)  # noqa: E731
    free = judge_one(study, value)
    assert free.minimum_effect.startswith("d = 0.5, here ")
    assert re.search(r"a difference of [45]\.\d+ is neither shown nor ruled out", free.why)
    stated = dataclasses.replace(study, outcomes=(OutcomeSpec("score", primary=True, sd=10.0),))
    fixed = judge_one(stated, value)
    assert fixed.minimum_effect.startswith("0.5 in score's own units")
    assert "a difference of 0.5 is" in fixed.why


@pytest.mark.parametrize("word", ["difference_in_means", "tost", "welch_t", "paired_t", "wilcoxon"])
def test_equivalence_is_two_one_sided_tests_within_the_minimum_effect(word):
    claim = make_claim(direction=EQUIVALENT, minimum_effect_of_interest=1.0)
    study = using(word, hypotheses=(claim,), run_budget=RunBudget(replicates=12))
    same = judge_one(study, noisy())
    assert "TOST" in same.method
    assert same.verdict is TestVerdict.SUPPORTED
    apart = judge_one(study, noisy(fancy=4.0))
    assert apart.verdict is TestVerdict.CONTRADICTED


def test_equivalence_without_a_margin_and_a_margin_test_of_a_difference_are_not_made():
    test = judge_one(claiming(direction=EQUIVALENT), noisy())
    assert "needs a minimum_effect_of_interest" in test.why
    test = judge_one(using("equivalence"), noisy())
    assert "claims a difference" in test.why


def test_several_levels_are_equivalent_if_all_pairs_are():
    claim = make_claim(kind=HypothesisKind.EQUIVALENCE, minimum_effect_of_interest=1.0)
    study = make_study(factors=THREE, hypotheses=(claim,), run_budget=RunBudget(replicates=25))
    test = judge_one(study, noisy())
    assert test.verdict is TestVerdict.SUPPORTED
    assert test.p_value == max(detail.p for detail in test.details)
    assert judge_one(study, noisy(wild=3.0)).verdict is not TestVerdict.SUPPORTED


# -- the test that fits --


def test_yes_or_no_outcomes_are_tested_as_proportions():
    value = lambda s, c, rng: rng.random() < (0.9 if level(c) == "fancy" else 0.3)  # noqa: E731
    test = judge_one(make_study(**ONE_PROBLEM), value)
    assert test.method == "Fisher's exact test"
    assert test.estimate_of == "difference of proportions"
    assert test.interval is not None
    assert "Welch's t test" in judge_one(using("welch_t", **ONE_PROBLEM), value).method


def test_more_than_two_levels_get_an_analysis_of_variance_and_all_pairs():
    test = judge_one(make_study(factors=THREE, **ONE_PROBLEM), noisy(wild=3.0))
    assert test.method == "Welch's analysis of variance"
    assert test.verdict is TestVerdict.SUPPORTED
    assert len(test.details) == 3
    clear = {detail.label for detail in test.details if detail.p < 0.001}
    assert clear == {"wild − plain", "fancy − wild"}
    sided = make_study(factors=THREE, hypotheses=(make_claim(direction=GREATER),), **ONE_PROBLEM)
    test = judge_one(sided, noisy(wild=3.0, fancy=3.0))
    assert [detail.label for detail in test.details] == ["fancy − plain", "wild − plain"]
    assert test.verdict is TestVerdict.SUPPORTED
    assert judge_one(sided, noisy(wild=-3.0, fancy=-3.0)).verdict is TestVerdict.CONTRADICTED


@pytest.mark.parametrize("word", ["mann_whitney", "paired_t", "wilcoxon", "welch_anova", "kruskal"])
def test_every_test_of_two_levels_has_one_for_more(word):
    test = judge_one(using(word, factors=THREE), noisy(wild=3.0))
    assert test.verdict is TestVerdict.SUPPORTED
    assert len(test.details) == 3


def test_numbers_sampled_from_a_range_get_a_slope():
    study = make_study(
        factors=(Factor("arm", levels=(0.0, 10.0), dtype="float"),),
        design_spec=DesignSpec(kind=DesignKind.LATIN_HYPERCUBE, n_samples=12),
        hypotheses=(make_claim(direction=GREATER, minimum_effect_of_interest=1.0),),
    )
    alone = dataclasses.replace(study, problem_ids=("p1",), run_budget=RunBudget(replicates=20))
    test = judge_one(alone, lambda s, c, rng: level(c) + rng.gauss(0, 1))
    assert test.method == "regression slope (HC3 errors), one-sided (greater)"
    assert test.estimate == pytest.approx(10, abs=1.5)
    assert test.verdict is TestVerdict.SUPPORTED
    assert test.difference == "arm = 10 − arm = 0, on a straight line"
    for word in ("regression", "correlation", "spearman", "mixed_effects"):
        other = dataclasses.replace(study, analysis_plans=(make_plan(word),))
        finding = judge_one(other, lambda s, c, rng: level(c) + rng.gauss(0, 1))
        assert finding.verdict is TestVerdict.SUPPORTED, finding.why
    groups = dataclasses.replace(study, analysis_plans=(make_plan("mann_whitney"),))
    assert "compares groups" in judge_one(groups, noisy()).why


# -- moderation --


def crossed(**parts):
    factors = (
        Factor("arm", levels=("plain", "fancy")),
        Factor("task", levels=("easy", "hard")),
    )
    claim = make_claim(kind=HypothesisKind.MODERATION, moderators=(Moderator("task"),), **parts)
    return make_study(factors=factors, hypotheses=(claim,), run_budget=RunBudget(replicates=10))


def helps_when_hard(spec, condition, rng):
    helps = level(condition) == "fancy" and level(condition, "task") == "hard"
    return 2.0 * helps + rng.gauss(0, 1)


def test_a_moderation_is_an_interaction_with_its_simple_effects():
    alone = {"problem_ids": ("p1",), "run_budget": RunBudget(replicates=40)}
    study = dataclasses.replace(crossed(direction=GREATER), **alone)
    test = judge_one(study, helps_when_hard)
    assert test.verdict is TestVerdict.SUPPORTED
    assert test.difference == "(fancy − plain at hard) − (the same at easy)"
    assert test.estimate == pytest.approx(2, abs=0.8)
    effects = {detail.label: detail for detail in test.details}
    assert effects["fancy − plain at hard"].p < 0.001
    assert effects["fancy − plain at easy"].p > 0.05
    assert [group.n for group in test.groups] == [40] * 4
    opposite = dataclasses.replace(crossed(direction=LESS), **alone)
    assert judge_one(opposite, helps_when_hard).verdict is TestVerdict.CONTRADICTED


@pytest.mark.parametrize("word", ["factorial_anova", "regression", "mixed_effects"])
def test_models_test_interactions_and_other_tests_say_that_they_do_not(word):
    study = dataclasses.replace(crossed(), analysis_plans=(make_plan(word, "welch_t"),))
    model, plain = judge_hypotheses(study, *simulate(study, helps_when_hard))
    assert model.verdict is TestVerdict.SUPPORTED
    assert model.estimate == pytest.approx(2, abs=0.8)
    assert "use factorial_anova" in plain.why


def test_equal_effects_can_be_shown_by_the_interaction_too():
    study = crossed(direction=EQUIVALENT, minimum_effect_of_interest=2.0)
    test = judge_one(study, noisy(fancy=1.0))
    assert "TOST" in test.method
    assert test.verdict is TestVerdict.SUPPORTED


def test_a_larger_interaction_has_no_direction():
    claim = make_claim(kind=HypothesisKind.MODERATION, moderators=(Moderator("lang"),))
    study = make_study(
        factors=THREE,
        blocks=(Block("lang", levels=("en", "de")),),
        hypotheses=(claim,),
        **ONE_PROBLEM,
    )
    value = lambda s, c, rng: (  # noqa: E731
        3.0 * (level(c) == "wild" and c.block_assignments["lang"] == "de") + rng.gauss(0, 1)
    )
    test = judge_one(study, value)
    assert (test.estimate, test.verdict) == (None, TestVerdict.SUPPORTED)
    assert test.df[0] == 2
    assert 60 < test.df[1] < 114  # fewer than under equal variances


# -- pairs --


def by_problem(spec, condition, rng):
    """Problems are far apart; within a problem fancy helps a little."""
    return 10 * int(spec.problem_id[1]) + 0.5 * (level(condition) == "fancy") + rng.gauss(0, 0.3)


def test_an_effect_within_problems_is_found_however_far_problems_are_apart():
    study = using("difference_in_means", "paired_t", "wilcoxon", "mixed_effects")
    tests = {test.test: test for test in judge_hypotheses(study, *simulate(study, by_problem))}
    for word in ("difference_in_means", "paired_t", "mixed_effects"):
        assert tests[word].verdict is TestVerdict.SUPPORTED, word
    assert tests["wilcoxon"].p_value == 0.125  # the least that four problems allow
    assert tests["paired_t"].unit == "4 problems × 5 runs per level"
    assert tests["paired_t"].df == (3,)


def test_pairs_of_runs_are_compared_where_the_claim_is_about_these_problems():
    study = using_here("difference_in_means", "paired_t", "wilcoxon")
    tests = {test.test: test for test in judge_hypotheses(study, *simulate(study, by_problem))}
    for word in ("difference_in_means", "paired_t", "wilcoxon"):
        assert tests[word].verdict is TestVerdict.SUPPORTED, word
    paired = tests["paired_t"]
    assert paired.unit == "pair of runs that share problem_id, replicate (20 of them)"
    assert paired.df == (19,)
    assert any("sets of one problem_id count as independent" in note for note in paired.notes)
    check = "check with replicates averaged, 4 pairs by problem_id"
    assert any(check in note for note in paired.notes)


def test_pairs_that_share_only_the_replicate_number_get_a_note():
    test = judge_one(using("paired_t", problem_ids=("p1",)), noisy())
    assert test.unit == "pair of runs that share replicate (5 of them)"
    assert any("no reason to pair them" in note for note in test.notes)
    alone = using("paired_t", problem_ids=("p1",), run_budget=RunBudget(replicates=1))
    assert judge_one(alone, noisy()).verdict is TestVerdict.NOT_TESTED


def test_incomplete_pairs_are_left_out_and_reported():
    study = using_here("paired_t")
    lost = lambda spec, condition, rng: spec.problem_id == "p1" and level(condition) == "fancy"  # noqa: E731
    test = judge_one(study, by_problem, fails=lost)
    assert "(15 of them)" in test.unit
    assert "5 combinations of problem_id, replicate lack a level: left out" in test.notes


def test_factors_tied_to_the_compared_one_do_not_prevent_pairing():
    study = using_here(
        "paired_t",
        factors=(
            Factor("arm", levels=("plain", "fancy")),
            Factor("size", levels=(1, 2), tied_to="arm"),
            Factor("depth", levels=(1, 2), when='arm == "fancy"', default=0),
        ),
    )
    test = judge_one(study, by_problem)
    assert "problem_id, replicate (20 of them)" in test.unit
    assert "runs of one level that share all this were averaged" in test.notes


def test_agents_that_are_a_factor_are_compared_on_the_same_problems():
    study = using_here(
        "paired_t",
        factors=(Factor("agent_id", levels=("a", "b")),),
        agent_specs=(),
        hypotheses=(make_claim(independent_vars=("agent_id",)),),
    )
    test = judge_one(study, lambda s, c, rng: (s.agent_spec_ref == "b") + rng.gauss(0, 0.1))
    assert (test.difference, test.verdict) == ("b − a", TestVerdict.SUPPORTED)
    assert test.unit.startswith("pair of runs that share problem_id, replicate")


def test_agents_listed_beside_the_factors_are_compared_too():
    study = make_study(
        agent_specs=("a", "b"), hypotheses=(make_claim(independent_vars=("agent_id",)),)
    )
    test = judge_one(study, lambda s, c, rng: (s.agent_spec_ref == "b") + rng.gauss(0, 0.1))
    assert (test.difference, test.verdict) == ("b − a", TestVerdict.SUPPORTED)


def test_subjects_of_repeated_measures_are_kept_apart_when_replicates_are_averaged():
    study = using_here(
        "paired_t",
        design_spec=DesignSpec(kind=DesignKind.REPEATED_MEASURES),
        run_budget=RunBudget(replicates=8),
    )
    test = judge_one(study, lambda s, c, r: s.replicate + (level(c) == "fancy") + r.gauss(0, 0.1))
    assert test.unit == "pair of runs that share problem_id, replicate (32 of them)"
    assert test.verdict is TestVerdict.SUPPORTED
    assert not any("replicates averaged" in note for note in test.notes)
    mixed = dataclasses.replace(study, analysis_plans=(make_plan("mixed_effects"),))
    finding = judge_one(mixed, noisy(fancy=3.0))
    assert any("random effects: replicate" in note for note in finding.notes)


def test_problems_that_each_have_one_level_are_compared_with_each_other():
    study = make_study()
    skewed = lambda s, c, rng: (level(c) == "fancy") == (s.problem_id in ("p1", "p2"))  # noqa: E731
    test = judge_one(study, by_problem, fails=skewed)
    assert test.unit == "4 problems × 5 runs per level"
    assert test.method == "Welch's t test of the problems' means"
    assert any("each problem has runs at one level only" in note for note in test.notes)


# -- plans --


def test_the_first_test_of_a_plan_decides_and_others_do_not():
    study = using("mann_whitney", "regression")
    first, second = judge_hypotheses(study, *simulate(study, noisy(fancy=2.0)))
    assert (first.test, first.decides) == ("mann_whitney", True)
    assert (second.test, second.decides) == ("regression", False)


def test_p_values_are_adjusted_over_the_hypotheses_and_outcomes_of_a_plan():
    claims = (
        make_claim(dependent_vars=("score", "speed")),
        make_claim(hypothesis_id="h2", dependent_vars=("score",)),
    )
    study = make_study(
        outcomes=(OutcomeSpec("score"), OutcomeSpec("speed")),
        hypotheses=claims,
        analysis_plans=(make_plan(hypothesis_ids=("h1", "h2"), multiple_comparison_policy="holm"),),
    )
    value = lambda s, c, rng: {  # noqa: E731
        "score": (level(c) == "fancy") + rng.gauss(0, 1),
        "speed": rng.gauss(0, 1),
    }
    tests = judge_hypotheses(study, *simulate(study, value))
    assert [test.family for test in tests] == [3, 3, 3]
    least = min(test.p_value for test in tests)
    assert min(test.p_adjusted for test in tests) == pytest.approx(3 * least)
    assert all(test.p_adjusted >= test.p_value for test in tests)


def test_an_unknown_policy_is_replaced_by_the_strictest_and_reported():
    study = make_study(analysis_plans=(make_plan(multiple_comparison_policy="tukey"),))
    test = judge_one(study, noisy())
    assert test.policy == "bonferroni"
    assert any("policy 'tukey' is unknown" in note for note in test.notes)


def test_a_hypothesis_without_a_plan_is_tested_as_exploratory():
    study = make_study(analysis_plans=())
    test = judge_one(study, noisy(fancy=5.0))
    assert test.verdict is TestVerdict.EXPLORATORY
    assert test.why.startswith("no plan declared a test")
    assert test.p_value < 0.001
    asked = judge_one(claiming(kind=HypothesisKind.EXPLORATORY), noisy(fancy=5.0))
    assert asked.verdict is TestVerdict.EXPLORATORY


def test_unknown_test_names_are_reported_with_known_ones():
    test = judge_one(using("mann_witney"), noisy())
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "'mann_witney' is not a test that fairtrial knows; did you mean" in test.why
    assert test.groups  # described all the same


def test_mediation_is_not_tested_and_says_what_to_do():
    test = judge_one(claiming(kind=HypothesisKind.MEDIATION), noisy())
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "mediation takes a causal model" in test.why


def test_robustness_tests_the_overall_effect_and_describes_the_strata():
    test = judge_one(claiming(kind=HypothesisKind.ROBUSTNESS), noisy(fancy=2.0))
    assert test.verdict is TestVerdict.SUPPORTED
    assert [detail.label for detail in test.details] == [f"problem_id = p{i}" for i in (1, 2, 3, 4)]
    assert all(detail.p is None for detail in test.details)
    assert any("that it holds everywhere is described" in note for note in test.notes)


def test_an_outcome_that_the_plan_does_not_look_at_is_not_tested():
    study = make_study(
        outcomes=(OutcomeSpec("score"), OutcomeSpec("speed")),
        analysis_plans=(make_plan(outcomes=("speed",)),),
    )
    test = judge_one(study, noisy())
    assert "plan 'p' doesn't look at 'score'" in test.why


def test_models_adjust_for_covariates_and_other_tests_note_that_they_do_not():
    words, covariates = ("regression", "welch_t"), ("size", "problem_id")
    plan = make_plan(*words, covariates=covariates, generalize="these_problems_only")
    study = make_study(analysis_plans=(plan,))
    value = lambda s, c, rng: {  # noqa: E731
        "size": (size := rng.random()),
        "score": 20 * size + 0.5 * (level(c) == "fancy") + rng.gauss(0, 0.2),
    }
    model, plain = judge_hypotheses(study, *simulate(study, value))
    assert model.verdict is TestVerdict.SUPPORTED
    assert model.method == "regression (arm + size + problem_id; HC3 errors)"
    assert model.interval[1] - model.interval[0] < (plain.interval[1] - plain.interval[0]) / 5
    assert any("not adjusted for size, problem_id" in note for note in plain.notes)
    missing = make_study(analysis_plans=(make_plan("regression", covariates=("sice",)),))
    assert "covariate 'sice': 40 of 40 runs" in judge_one(missing, noisy()).why


def test_random_effects_are_those_of_the_plan():
    blocks = (Block("lang", levels=("en", "de", "fr", "it")),)
    plan = make_plan("mixed_effects", random_effects=("lang",))
    study = make_study(blocks=blocks, analysis_plans=(plan,), problem_ids=("p1",))
    test = judge_one(study, noisy(fancy=3.0))
    assert test.df == (3,)
    assert any("random effects: lang; fixed: arm" in note for note in test.notes)
    wrong = dataclasses.replace(study, analysis_plans=(make_plan("lmm", random_effects=("x",)),))
    assert "random effect 'x' is no factor" in judge_one(wrong, noisy()).why


# -- degenerate data --


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda s, c, rng: 1.5, "every value is 1.5"),
        (lambda s, c, rng: float(level(c) == "fancy") * 2, "don't vary within the groups"),
        (lambda s, c, rng: float("nan"), "are not numbers: nan"),
        (lambda s, c, rng: {}, "no run has a value for 'score'"),
        (lambda s, c, rng: "great", "are not numbers: 'great'"),
    ],
)
def test_data_that_cannot_be_tested_are_reported_with_a_reason(value, reason):
    test = judge_one(make_study(), value)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert reason in test.why
    assert "nan" not in json.dumps(test.to_dict()).replace("are not numbers: nan", "")


def test_too_few_runs_failed_runs_and_no_runs_are_reported():
    study = make_study()
    assert judge_hypotheses(study, build_design(study), [])[0].why == "no run has ended yet"
    all_failed = judge_one(study, noisy(), fails=lambda *run: True)
    assert all_failed.why == "every run failed"
    one_arm = judge_one(study, noisy(), fails=lambda s, c, rng: level(c) == "fancy")
    assert one_arm.why == "'fancy' has no runs with a value; a test needs 2 or more"
    assert [group.n for group in one_arm.groups] == [0, 20]


def test_an_unfinished_study_is_tested_on_the_runs_so_far():
    study = make_study()
    conditions, results = simulate(study, noisy(fancy=4.0))
    (test,) = judge_hypotheses(study, conditions, results[:30])
    assert sum(group.n for group in test.groups) == 30


def test_without_statsmodels_models_are_not_tested_and_the_rest_is(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    words = ("welch_t", "mann_whitney", "paired_t", "wilcoxon", "anova", "regression")
    needy = ("mixed_effects",)
    plan = make_plan(*words, "factorial_anova", *needy)
    study = make_study(analysis_plans=(plan,), **ONE_PROBLEM)
    for test in judge_hypotheses(study, *simulate(study, noisy(fancy=3.0))):
        if test.test in needy:
            assert test.why == 'needs `pip install "fairtrial[stats]"`'
        else:
            assert test.verdict is TestVerdict.SUPPORTED, (test.test, test.why)


# -- all of it --

BUILDERS = [getattr(recipes, name) for name in recipes.__all__ if name.startswith("build_")]
VALUES = {
    "noise": lambda s, c, rng: {"primary_outcome": rng.gauss(0, 1)},
    "constant": lambda s, c, rng: {"primary_outcome": 1},
    "yes/no": lambda s, c, rng: {"primary_outcome": rng.random() < 0.5},
    "huge": lambda s, c, rng: {"primary_outcome": rng.choice([1e308, -1e308, 0.0])},
    "ties": lambda s, c, rng: {"primary_outcome": rng.randrange(3)},
}


# Each recipe with two kinds of values, each kind with several recipes; all with all are slow.
USUAL = {(index, (index + step) % len(VALUES)) for index in range(len(BUILDERS)) for step in (0, 2)}


@pytest.mark.parametrize(
    ("build", "value"),
    [
        pytest.param(
            build,
            VALUES[kind],
            id=f"{build.__name__}-{kind}",
            marks=() if (index, number) in USUAL else pytest.mark.slow,
        )
        for index, build in enumerate(BUILDERS)
        for number, kind in enumerate(VALUES)
    ],
)
def test_every_recipe_can_be_judged_by_every_test_whatever_the_values(build, value):
    study = build()
    plans = tuple(
        dataclasses.replace(plan, tests=known_tests(), random_effects=())
        for plan in study.analysis_plans
    )
    study = dataclasses.replace(study, analysis_plans=plans, run_budget=RunBudget(replicates=1))
    fails = lambda s, c, rng: rng.random() < 0.1  # noqa: E731
    for test in judge_hypotheses(study, *simulate(study, value, fails=fails)):
        text = json.dumps(test.to_dict(), allow_nan=False)  # no nan, no infinity
        assert json.loads(text)["hypothesis_id"] == test.hypothesis_id
        assert (test.verdict is TestVerdict.NOT_TESTED) == (test.p_value is None)
        assert test.why


def test_without_an_effect_few_studies_support_their_claim():
    study = claiming(direction=GREATER)
    wrong = 0
    for seed in range(60):
        other = dataclasses.replace(study, seed_policy=SeedPolicy(base_seed=seed))
        wrong += judge_one(other, noisy(), seed=seed).verdict is TestVerdict.SUPPORTED
    assert wrong <= 11  # 5% of 60 are 3; more than 11 has a chance of 1 in 10,000


def test_a_row_has_the_results_of_the_test():
    test = judge_one(make_study(), noisy(fancy=2.0))
    row = test.to_row()
    assert row["p_value"] == test.p_value
    assert row["effect_size"] == test.effect_size
    assert (row["ci_low"], row["ci_high"]) == test.interval
    assert row["n"] == 40
    assert row["verdict"] == "supported"


def test_the_results_are_those_of_the_test_on_the_values_of_the_groups():
    study = make_study(**ONE_PROBLEM)
    conditions, results = simulate(study, noisy(fancy=1.0))
    names = {condition.condition_id: level(condition) for condition in conditions}
    values = {
        name: [r.metrics["score"] for r in results if names[r.run_spec.condition_id] == name]
        for name in ("fancy", "plain")
    }
    import numpy as np

    wanted = welch_t_test(np.array(values["fancy"]), np.array(values["plain"]))
    (test,) = judge_hypotheses(study, conditions, results)
    assert (test.p_value, test.interval) == (wanted.p, wanted.interval)
    shuffled = [results[i] for i in np.random.default_rng(0).permutation(len(results))]
    (other,) = judge_hypotheses(study, conditions, shuffled)
    assert other.p_value == pytest.approx(test.p_value)
