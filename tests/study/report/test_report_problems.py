"""The unit of inference: problems, runs within fixed problems, and identical replicates."""

import dataclasses
import json
import re

import numpy as np
import pytest
from simulated_study_kit import (
    level,
    make_claim,
    make_plan,
    make_study,
    noisy,
    simulate,
    succeed,
)

from fairtrial.study import (
    Block,
    DesignKind,
    DesignSpec,
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Moderator,
    OutcomeSpec,
    RunBudget,
    build_design,
    judge_hypotheses,
    plan_runs,
)
from fairtrial.study.hypotheses.planned_tests import planned_tests
from fairtrial.study.report.hypothesis_sections import render_tests, render_verdicts
from fairtrial.study.report.verdicts import TestVerdict

HERE = "these_problems_only"
EQUIVALENT = HypothesisDirection.EQUIVALENT
ARM = Factor("arm", levels=("plain", "fancy"))


def problem_study(problems, replicates, word="difference_in_means", generalize="problems", **parts):
    return make_study(
        problem_ids=tuple(f"p{number}" for number in range(problems)),
        run_budget=RunBudget(replicates=replicates),
        analysis_plans=(make_plan(word, generalize=generalize),),
        **parts,
    )


def judge_one(study, value, **how):
    (test,) = judge_hypotheses(study, *simulate(study, value, **how))
    return test


def test_before_the_first_run_a_plan_with_two_problems_says_that_it_tests_nothing():
    study = problem_study(2, 4)
    (test,) = judge_hypotheses(study, build_design(study), [])
    assert test.why.startswith("a claim about problems in general needs 3 or more")
    study = problem_study(3, 4)
    assert judge_hypotheses(study, build_design(study), [])[0].why == "no run has ended yet"


def varying(**effects):
    """Return values whose effect is the problem's own: p0 has the first effect, and so on."""

    def value(spec, condition, rng):
        is_fancy = level(condition) == "fancy"
        return 3 * int(spec.problem_id[1:]) + is_fancy * effects[spec.problem_id] + rng.gauss(0, 1)

    return value


def count_significant(study, draw, repeats, seed=1):
    """Return the share of simulated studies with p below 0.05.

    draw: called as `draw(rng, problem, fancy)` with the problem of each run, and 1 for fancy
    """
    conditions = build_design(study)
    specs = list(plan_runs(study, conditions))
    levels = {condition.condition_id: condition for condition in conditions}
    problem = np.array([study.problem_ids.index(spec.problem_id) for spec in specs])
    rows = [levels[spec.condition_id] for spec in specs]
    rng, found = np.random.default_rng(seed), 0
    for _ in range(repeats):
        values = draw(rng, problem, rows)
        results = [
            succeed(spec, {"score": float(value)})
            for spec, value in zip(specs, values, strict=True)
        ]
        (test,) = judge_hypotheses(study, conditions, results)
        found += test.p_adjusted is not None and test.p_adjusted < 0.05
    return found / repeats


def is_fancy(rows):
    return np.array([float(level(row) == "fancy") for row in rows])


def random_effects(rng, problem, rows):
    effect = rng.normal(0, 0.5, problem.max() + 1)
    return effect[problem] * is_fancy(rows) + rng.normal(0, 1, len(problem))


def repeated_values(rng, problem, rows):
    values = rng.normal(0, 1, (problem.max() + 1, 2))
    return values[problem, is_fancy(rows).astype(int)]


def random_rates(rng, problem, rows):
    count = problem.max() + 1
    logit = rng.normal(0, 1, count)[problem]
    logit = logit + rng.normal(0, 0.8, count)[problem] * is_fancy(rows)
    return rng.random(len(problem)) < 1 / (1 + np.exp(-logit))


def random_interactions(rng, problem, rows):
    tool = np.array([level(row, "tool") == "b" for row in rows])
    effect = rng.normal(0, 1, problem.max() + 1)[problem]
    return effect * is_fancy(rows) * tool + rng.normal(0, 1, len(problem))


def random_slopes(rng, problem, rows):
    x = np.array([level(row) for row in rows]) / 12
    slope = rng.normal(0, 2, problem.max() + 1)[problem]
    return slope * x + rng.normal(0, 0.5, len(problem))


MODERATION = {
    "factors": (ARM, Factor("tool", levels=("a", "b"))),
    "hypotheses": (make_claim(kind=HypothesisKind.MODERATION, moderators=(Moderator("tool"),)),),
}
SLOPE = {"factors": (Factor("arm", levels=tuple(range(1, 13))),)}
CASES = [
    pytest.param(8, 40, random_effects, {}, id="effects"),
    pytest.param(5, 10, repeated_values, {}, id="repeated-5"),
    pytest.param(12, 10, repeated_values, {}, id="repeated-12"),
    pytest.param(12, 10, repeated_values, {"generalize": HERE}, id="repeated-here"),
    pytest.param(8, 40, random_rates, {}, id="rates"),
    pytest.param(8, 10, random_interactions, MODERATION, id="interactions"),
    pytest.param(8, 2, random_slopes, SLOPE, id="slopes"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "replicates", "draw", "parts"), CASES)
def test_effects_that_vary_around_zero_are_significant_in_one_of_twenty(
    problems, replicates, draw, parts
):
    study = problem_study(problems, replicates, **parts)
    # 5% of 300 are 15; more than 29 has a chance of 1 in 3,000.
    assert count_significant(study, draw, 300) <= 29 / 300


@pytest.mark.parametrize(
    ("problems", "draw", "parts"),
    [
        (8, random_effects, {}),
        (12, repeated_values, {}),
        (12, repeated_values, {"generalize": HERE}),
        (8, random_rates, {}),
        (8, random_interactions, MODERATION),
        (6, random_slopes, SLOPE),
    ],
)
def test_effects_that_vary_around_zero_are_rarely_significant(problems, draw, parts):
    study = problem_study(problems, 1 if draw is random_slopes else 4, **parts)
    # 5% of 40 are 2; more than 8 has a chance of 1 in 2,000.
    assert count_significant(study, draw, 40) <= 8 / 40


def test_an_effect_that_holds_in_every_problem_is_found():
    def draw(rng, problem, rows):
        effect = 1 + rng.normal(0, 0.5, 8)
        return effect[problem] * is_fancy(rows) + rng.normal(0, 1, len(problem))

    assert count_significant(problem_study(8, 10), draw, 20) >= 0.75


def test_the_report_shows_the_unit_and_the_effect_problem_by_problem():
    effects = {f"p{number}": 1 + 0.1 * number for number in range(6)}
    test = judge_one(problem_study(6, 10), varying(**effects))
    assert test.unit == "6 problems × 10 runs per level"
    assert test.df == (5,)
    assert [effect.problem for effect in test.by_problem] == list(effects)
    assert test.by_problem[0].n == (10, 10)
    low, high = test.by_problem[0].interval
    assert low < test.by_problem[0].estimate < high
    mean = sum(effect.estimate for effect in test.by_problem) / 6
    assert test.estimate == pytest.approx(mean)
    assert len(json.loads(json.dumps(test.to_dict()))["by_problem"]) == 6
    text = render_tests([test])
    assert "| p3      | 10 + 10 |" in text
    plot = text.partition("```text\n")[2].partition("\n```")[0].splitlines()
    assert len(plot) == 8  # six problems, the mean and the axis
    assert "◆" in plot[6]
    assert all("●" in line for line in plot[:6])
    assert "n = 6 problems × 10 runs per level" in render_verdicts([test])


def test_a_plot_of_many_problems_shows_the_first_of_them():
    test = judge_one(problem_study(40, 2), noisy(fancy=1.0))
    text = render_tests([test])
    assert text.count("●") == 30
    assert "… and 10 more problems" in text


@pytest.mark.parametrize(
    ("effect", "words"), [(2.0, "fancy is higher than plain"), (-2.0, "fancy is lower than plain")]
)
def test_the_direction_is_said_in_words(effect, words):
    outcomes = (OutcomeSpec("score", primary=True, sd=1.0),)
    claim = make_claim(minimum_effect_of_interest=0.5)
    study = problem_study(6, 10, outcomes=outcomes, hypotheses=(claim,))
    test = judge_one(study, noisy(fancy=effect))
    assert f"{words}, by at least 0.5." in render_verdicts([test])
    side = "lower" if effect > 0 else "higher"
    assert f"- ruled out: that fancy is {side} than plain by 0.5" in render_tests([test])


def test_no_direction_is_claimed_without_evidence():
    test = judge_one(problem_study(6, 3), noisy())
    assert "in these runs (no direction is shown)" in render_verdicts([test])


def test_two_problems_are_not_enough_to_generalize_and_enough_for_themselves():
    test = judge_one(problem_study(2, 50), noisy(fancy=3.0))
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "problems, not replicates, are what is missing" in test.why
    assert "generalize: these_problems_only" in test.why
    here = judge_one(problem_study(2, 50, generalize=HERE), noisy(fancy=3.0))
    assert here.verdict is TestVerdict.SUPPORTED
    assert here.method == "Welch's t test within problems"


def test_few_problems_get_a_note_that_problems_are_what_helps():
    (note,) = judge_one(problem_study(4, 5), noisy()).notes
    assert note.startswith("only 4 problems: adding problems, not replicates, narrows the interval")
    assert "p would be too small" in note
    assert not any("adding problems" in n for n in judge_one(problem_study(12, 5), noisy()).notes)


def test_one_problem_is_what_the_claim_is_about():
    test = judge_one(problem_study(1, 20), noisy(fancy=2.0))
    assert (test.unit, test.by_problem) == ("run", ())
    assert "the claim is about the one problem of the study, not about others" in test.notes


@pytest.mark.parametrize("generalize", ["problems", HERE])
def test_identical_replicates_count_once(generalize):
    values = {f"p{number}": value for number, value in enumerate((0.3, 0.5, -0.2, 0.6, 0.1))}
    exact = lambda s, c, rng: values[s.problem_id] * (level(c) == "fancy")  # noqa: E731
    once = judge_one(problem_study(5, 1, generalize=generalize), exact)
    often = judge_one(problem_study(5, 40, generalize=generalize), exact)
    assert often.p_value == pytest.approx(once.p_value)
    assert often.interval == pytest.approx(once.interval)
    assert any("count once: 400 runs are 10 observations" in note for note in often.notes)


@pytest.mark.parametrize("word", ["difference_in_means", "fisher_exact", "mann_whitney"])
def test_identical_replicates_of_one_problem_are_not_tested(word):
    exact = lambda s, c, rng: float(level(c) == "fancy")  # noqa: E731
    test = judge_one(problem_study(1, 30, word), exact)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "don't vary within the groups" in test.why


def test_problems_that_lack_a_level_are_left_out_and_counted():
    lost = lambda s, c, rng: s.problem_id == "p0" and level(c) == "fancy"  # noqa: E731
    test = judge_one(problem_study(7, 4), noisy(fancy=2.0), fails=lost)
    assert test.unit == "6 problems × 4 runs per level"
    assert "1 problem lacks runs at some of the compared levels: left out" in test.notes


def test_problems_that_mostly_have_one_level_are_explained():
    lost = lambda s, c, rng: (  # noqa: E731
        s.problem_id not in ("p0", "p1") and (level(c) == "fancy") == (s.problem_id in ("p2", "p3"))
    )
    test = judge_one(problem_study(6, 4), noisy(fancy=2.0), fails=lost)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "2 of 6 problems have runs at all compared levels" in test.why


def test_a_moderator_that_differs_between_problems_is_tested_between_them():
    claim = make_claim(kind=HypothesisKind.MODERATION, moderators=(Moderator("lang"),))
    study = problem_study(8, 5, blocks=(Block("lang", levels=("en", "de")),), hypotheses=(claim,))
    is_german = lambda spec: int(spec.problem_id[1:]) >= 4  # noqa: E731
    lost = lambda s, c, rng: (c.block_assignments["lang"] == "de") != is_german(s)  # noqa: E731
    value = lambda s, c, rng: 3 * is_german(s) * (level(c) == "fancy") + rng.gauss(0, 1)  # noqa: E731
    test = judge_one(study, value, fails=lost)
    assert test.method == "Welch's t test of the effects in 8 problems"
    assert test.estimate == pytest.approx(3, abs=1)
    # The runs that would mix the languages were made to fail, so they count as lost.
    assert test.verdict is TestVerdict.SUPPORTED_IF_LOSSES_HARMLESS


def test_a_regression_by_problem_adjusts_for_covariates():
    value = lambda s, c, rng: {  # noqa: E731
        "size": (size := rng.random()),
        "score": 20 * size + 0.5 * (level(c) == "fancy") + rng.gauss(0, 0.2),
    }
    plan = make_plan("regression", "welch_t", covariates=("size",))
    study = dataclasses.replace(problem_study(6, 5), analysis_plans=(plan,))
    model, plain = judge_hypotheses(study, *simulate(study, value))
    assert model.verdict is TestVerdict.SUPPORTED
    assert model.interval[1] - model.interval[0] < (plain.interval[1] - plain.interval[0]) / 5


def test_equivalence_is_shown_by_problem():
    claim = make_claim(direction=EQUIVALENT, minimum_effect_of_interest=1.0)
    test = judge_one(problem_study(10, 10, hypotheses=(claim,)), noisy())
    assert test.method == "two one-sided tests (TOST), t test of the differences of 10 problems"
    assert test.verdict is TestVerdict.SUPPORTED


def test_all_claims_on_an_outcome_share_one_standard_deviation():
    factors = (ARM, Factor("tool", levels=("a", "b")))
    claims = tuple(
        make_claim(hypothesis_id=name, independent_vars=(name,), minimum_effect_of_interest=0.5)
        for name in ("arm", "tool")
    )
    plan = make_plan(hypothesis_ids=("arm", "tool"))
    study = make_study(factors=factors, hypotheses=claims, analysis_plans=(plan,))
    value = lambda s, c, rng: 9 * (level(c) == "fancy") + rng.gauss(0, 1)  # noqa: E731
    arm, tool = judge_hypotheses(study, *simulate(study, value))
    assert arm.minimum_size == tool.minimum_size < 1


@pytest.mark.parametrize(
    ("word", "parts", "planned", "method"),
    [
        ("difference_in_means", {}, "t on the differences", "t test of the differences"),
        ("mann_whitney", {}, "Wilcoxon's signed-rank test on the means", "Wilcoxon's signed-rank"),
        (
            "difference_in_means",
            {"factors": (Factor("arm", levels=("plain", "fancy", "wild")),)},
            "repeated-measures ANOVA (Greenhouse-Geisser) on the means",
            "repeated-measures analysis of variance by problem",
        ),
        (
            "difference_in_means",
            {"factors": (Factor("arm", levels=tuple(range(12))),)},
            "t on the slopes",
            "t test of the slopes",
        ),
    ],
)
def test_the_plan_names_the_test_that_the_report_makes(word, parts, planned, method):
    study = problem_study(6, 4, word, **parts)
    (test,) = planned_tests(study, build_design(study))
    assert test.test == f"{planned} of 6 problems"
    judged = judge_one(study, lambda s, c, rng: rng.gauss(0, 1))
    assert judged.method.startswith(method)
    assert "6 problems" in judged.method


def test_the_plan_names_the_permutation_test_of_rates():
    outcomes = (OutcomeSpec("score", primary=True, expected_type="bool"),)
    study = problem_study(8, 4, outcomes=outcomes)
    (test,) = planned_tests(study, build_design(study))
    assert test.test == "sign-flip permutation of the differences of 8 problems"
    value = lambda s, c, rng: rng.random() < (0.9 if level(c) == "fancy" else 0.2)  # noqa: E731
    judged = judge_one(study, value)
    assert judged.method.startswith("sign-flip permutation test of the differences of 8 problems")
    assert judged.verdict is TestVerdict.SUPPORTED


def test_the_plan_says_that_two_problems_are_too_few():
    study = problem_study(2, 50)
    (test,) = planned_tests(study, build_design(study))
    assert "needs 3 or more of them, and there are 2" in test.reason
    here = problem_study(2, 50, generalize=HERE)
    (test,) = planned_tests(here, build_design(here))
    assert test.test == "Welch's t test, within these 2 problems"


@pytest.mark.parametrize("word", ["mann_whitney", "regression", "anova", "paired_t", "wilcoxon"])
def test_claims_about_these_problems_are_tested_within_them(word):
    def by_problem(spec, condition, rng):
        base = 50 * int(spec.problem_id[1:])
        return base + (level(condition) == "fancy") + rng.gauss(0, 0.5)

    test = judge_one(problem_study(3, 8, word, HERE), by_problem)
    assert test.verdict is TestVerdict.SUPPORTED, test.why
    assert any("about exactly these 3 problems" in note for note in test.notes)


def test_three_levels_are_compared_within_these_problems():
    factors = (Factor("arm", levels=("plain", "fancy", "wild")),)
    test = judge_one(problem_study(3, 8, generalize=HERE, factors=factors), noisy(wild=2.0))
    assert test.method == "Welch's analysis of variance within problems"
    assert {detail.label for detail in test.details if detail.p < 0.01} == {
        "wild − plain",
        "fancy − wild",
    }


def test_rates_are_compared_within_these_problems():
    def value(spec, condition, rng):
        rate = 0.1 + 0.4 * (spec.problem_id == "p1") + 0.4 * (level(condition) == "fancy")
        return float(rng.random() < rate)

    test = judge_one(problem_study(2, 25, generalize=HERE), value)
    assert test.method == "exact test of proportions within problems (Mantel-Haenszel)"
    assert test.verdict is TestVerdict.SUPPORTED


def test_subjects_that_differ_in_the_effect_count_as_units_too():
    design = DesignSpec(kind=DesignKind.REPEATED_MEASURES)
    effects = (2.0, -1.0, 1.5, -0.5, 0.2, 1.0)

    def value(spec, condition, rng):
        effect = effects[spec.replicate - 1] * (level(condition) == "fancy")
        return effect + rng.gauss(0, 0.01)

    test = judge_one(problem_study(8, 6, design_spec=design), value)
    assert test.unit == "6 subjects"
    assert test.method == "t test of the differences of 6 subjects"
    assert test.verdict is TestVerdict.INCONCLUSIVE
    assert any("the weaker result counts: by problem p = " in note for note in test.notes)


def test_a_yes_or_no_outcome_of_five_problems_cannot_be_significant():
    value = lambda s, c, rng: float(rng.random() < (0.9 if level(c) == "fancy" else 0.1))  # noqa: E731
    test = judge_one(problem_study(5, 40), value)
    assert test.verdict is TestVerdict.INCONCLUSIVE
    assert any("too few for an interval of 95% by permutation" in note for note in test.notes)


def test_a_mixed_model_compares_levels_by_problem_too():
    arms = Factor("arm", levels=("plain", "fancy", "fast"))
    studies = [
        problem_study(
            8,
            6,
            word,
            factors=(arms,),
            hypotheses=(make_claim(direction=HypothesisDirection.GREATER),),
        )
        for word in ("mixed_effects", "paired_t")
    ]

    def value(spec, condition, rng):
        problem = int(spec.problem_id[1:])
        effect = {"plain": 0.0, "fancy": 6 + problem, "fast": 1.5 + 4 * (-1) ** problem}
        return effect[level(condition)] + rng.gauss(0, 1)

    mixed, by_problem = (judge_one(study, value) for study in studies)
    for model, paired in zip(mixed.details, by_problem.details, strict=True):
        assert model.estimate == pytest.approx(paired.estimate)
    # Welch's test of runs, as if they were independent, finds p < 0.02 for `fast`.
    assert mixed.details[1].p == pytest.approx(by_problem.details[1].p, rel=0.1)
    assert mixed.details[1].p > 0.1
    assert mixed.verdict == "inconclusive"
    assert "by mixed models of two levels at a time" in mixed.details_title


def test_a_statistic_before_the_correction_for_skewness_is_called_so():
    values = (1.5, 1.5, 1.75, 1.5, 1.6, 0.2, 1.1, 0.76)
    skewed = lambda s, c, rng: values[int(s.problem_id[1:])] * (level(c) == "fancy")  # noqa: E731
    test = judge_one(problem_study(8, 1), skewed)
    assert "corrected for skewness" in test.method
    assert re.search(r"t\(7\) = [\d.]+ before the correction, p ", render_tests([test]))
    even = lambda s, c, rng: (1 + int(s.problem_id[1:]) % 2) * (level(c) == "fancy")  # noqa: E731
    assert "before the correction" not in render_tests([judge_one(problem_study(8, 1), even)])
