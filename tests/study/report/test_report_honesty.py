"""Correctness of verdicts in difficult cases: directions, effect sizes, clusters, families."""

import json

import pytest
from click.testing import CliRunner
from simulated_study_kit import (
    ONE_PROBLEM,
    level,
    make_claim,
    make_plan,
    make_study,
    noisy,
    simulate,
)

from fairtrial.cli.report import command
from fairtrial.study import (
    Contrast,
    DesignKind,
    DesignSpec,
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Moderator,
    OutcomeSpec,
    RunBudget,
    RunOutput,
    hypothesis_power,
    judge_hypotheses,
    run_study,
)
from fairtrial.study.report.hypothesis_sections import render_tests, render_verdicts
from fairtrial.study.report.markdown_text import format_interval, format_number, format_signed
from fairtrial.study.report.verdicts import TestVerdict

GREATER, EQUIVALENT = HypothesisDirection.GREATER, HypothesisDirection.EQUIVALENT


def judge(word, value, claim=None, plan=None, **parts):
    study = make_study(
        hypotheses=(make_claim(**(claim or {})),),
        analysis_plans=(make_plan(word, **(plan or {})),),
        **parts,
    )
    (test,) = judge_hypotheses(study, *simulate(study, value))
    return test


def with_equal_medians(spec, condition, rng):
    """Both medians are 3; the rest of fancy's lies below, the rest of plain's above."""
    if rng.random() < 0.55:
        return 3
    return 0 if level(condition) == "fancy" else 6


@pytest.mark.parametrize("word", ["mann_whitney", "kruskal_wallis"])
def test_ranks_determine_the_direction_where_medians_are_equal(word):
    many = {"problem_ids": ("p1",), "run_budget": RunBudget(replicates=80)}
    test = judge(word, with_equal_medians, {"direction": GREATER}, **many)
    assert test.estimate == 0
    assert test.verdict is TestVerdict.CONTRADICTED
    sized = judge(word, with_equal_medians, {"minimum_effect_of_interest": 0.3}, **many)
    assert sized.verdict is TestVerdict.SUPPORTED, sized.why
    assert "in the mean" in sized.why
    assert sized.bounds[1] < -sized.minimum_size
    assert any("compared with the difference of means" in note for note in sized.notes)


def skewed(spec, condition, rng):
    """Most of fancy's lie 5 above plain's, and a few far above: its mean is about 22 higher."""
    if level(condition) == "plain":
        return rng.gauss(0, 1)
    return 90 + rng.gauss(0, 1) if rng.random() < 0.2 else 5 + rng.gauss(0, 1)


@pytest.mark.parametrize("word", ["mann_whitney", "wilcoxon"])
def test_the_verdict_line_distinguishes_means_and_medians(word):
    parts = {"outcomes": (OutcomeSpec("score", primary=True, sd=1.0),), **ONE_PROBLEM}
    test = judge(word, skewed, {"minimum_effect_of_interest": 132.0}, **parts)
    assert "less than 132 in the mean" in test.why
    fancy, plain = (group.mean for group in test.groups)
    low, high = test.bounds
    interval = f"[{format_number(low)}, {format_number(high)}]"
    mean = f"fancy − plain = {format_signed(fancy - plain)} {interval} in the mean"
    median = f"{format_signed(test.estimate)} {format_interval(test.interval)} in the median"
    assert f"{mean}, {median}; p" in render_verdicts([test])
    without = judge(word, skewed, **parts)
    assert f"fancy − plain = {median}; p" in render_verdicts([without])


def test_pairs_of_levels_compared_by_medians_are_labeled_so():
    three = (Factor("arm", levels=("plain", "fancy", "wild")),)
    outcomes = (OutcomeSpec("score", primary=True, sd=1.0),)
    parts = {"outcomes": outcomes, "factors": three, **ONE_PROBLEM}
    claim = {"minimum_effect_of_interest": 132.0}
    test = judge("kruskal_wallis", skewed, claim, **parts)
    assert "less than 132 in the mean" in test.why
    assert "| difference of medians |" in render_tests([test])
    assert "| size |" in " ".join(render_tests([judge("anova", skewed, claim, **parts)]).split())


def test_a_two_sided_claim_is_not_small_because_ranks_and_means_disagree():
    def value(spec, condition, rng):
        # Fancy is a little above plain most of the time, and far below it now and then.
        if level(condition) == "plain":
            return rng.gauss(0, 0.1)
        return rng.gauss(-60, 0.1) if rng.random() < 0.2 else rng.gauss(1, 0.1)

    outcomes = (OutcomeSpec("score", primary=True, sd=1.0),)
    test = judge(
        "mann_whitney",
        value,
        {"minimum_effect_of_interest": 2.0},
        outcomes=outcomes,
        problem_ids=("p1",),
        run_budget=RunBudget(replicates=160),
    )
    assert test.effect_size > 0 > test.bounds[1]
    assert test.verdict is TestVerdict.SUPPORTED
    assert test.why == "fancy tends to be higher than plain, although its mean goes the other way"


@pytest.mark.parametrize("names", [("off", "on"), ("no", "yes")])
def test_a_contrast_does_not_reverse_a_moderator_with_levels_of_the_same_names(names):
    claim = {
        "kind": HypothesisKind.MODERATION,
        "moderators": (Moderator("mod"),),
        "contrast": Contrast(left="on", right="off"),
        "direction": GREATER,
    }
    factors = (Factor("arm", levels=("off", "on")), Factor("mod", levels=names))

    def value(spec, condition, rng):
        helps = level(condition) == "on" and level(condition, "mod") == names[1]
        return 2.0 * helps + rng.gauss(0, 1)

    test = judge("difference_in_means", value, claim, factors=factors, **ONE_PROBLEM)
    expected = f"(arm on − arm off at mod {names[1]}) − (the same at mod {names[0]})"
    assert test.difference == expected
    assert test.verdict is TestVerdict.SUPPORTED


def test_an_interaction_without_direction_does_not_support_a_directional_claim():
    claim = {
        "kind": HypothesisKind.MODERATION,
        "moderators": (Moderator("mod"),),
        "direction": GREATER,
    }
    factors = (Factor("arm", levels=("off", "on")), Factor("mod", levels=("a", "b", "c")))

    def value(spec, condition, rng):
        hurts = level(condition) == "on" and level(condition, "mod") != "a"
        return -2.0 * hurts + rng.gauss(0, 1)

    test = judge("difference_in_means", value, claim, factors=factors, **ONE_PROBLEM)
    assert test.p_value < 0.001
    assert test.verdict is TestVerdict.INCONCLUSIVE
    assert "its direction is not tested" in test.why


@pytest.mark.parametrize("word", ["regression", "mixed_effects"])
def test_other_numbers_sampled_from_a_range_are_numbers_in_a_model(word):
    test, _ = judge_hypotheses(study := sampled(word), *simulate(study, rising))
    assert test.verdict is TestVerdict.SUPPORTED, test.why
    assert test.estimate == pytest.approx(2, abs=0.5)


def sampled(word):
    return make_study(
        factors=tuple(Factor(name, levels=(0.0, 1.0), dtype="float") for name in ("arm", "x2")),
        design_spec=DesignSpec(kind=DesignKind.LATIN_HYPERCUBE, n_samples=30),
        hypotheses=(make_claim(independent_vars=("arm", "x2")),),
        analysis_plans=(make_plan(word),),
    )


def rising(spec, condition, rng):
    return 2 * level(condition) + level(condition, "x2") + rng.gauss(0, 1)


def test_a_compared_variable_is_no_random_effect_under_another_name():
    test = judge(
        "mixed_effects",
        lambda spec, condition, rng: rng.gauss(0, 1),
        {"independent_vars": ("agent",)},
        {"random_effects": ("agent_id",)},
        factors=(Factor("agent", levels=("a", "b", "c", "d")),),
    )
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "'agent_id' is what is compared" in test.why


def test_levels_that_the_plan_filters_out_are_not_compared():
    factors = (Factor("arm", levels=("plain", "fancy", "wild")),)
    plan = {"filters": {"arm": ["plain", "fancy"]}}
    test = judge("difference_in_means", noisy(fancy=2.0), plan=plan, factors=factors)
    assert test.difference == "fancy − plain"
    assert test.verdict is TestVerdict.SUPPORTED


def test_runs_of_deterministic_agents_count_once_in_a_mixed_model():
    offsets = dict(zip(PROBLEMS, (0, 3, 1, 7, 2.5), strict=True))
    effects = dict(zip(PROBLEMS, (0.3, 0.5, -0.2, 0.6, 0.1), strict=True))

    def value(spec, condition, rng):
        return offsets[spec.problem_id] + effects[spec.problem_id] * (level(condition) == "fancy")

    repeated = judge("mixed_effects", value, problem_ids=PROBLEMS)
    single = judge("paired_t", value, problem_ids=PROBLEMS, run_budget=RunBudget(replicates=1))
    assert repeated.p_value == pytest.approx(single.p_value, rel=1e-4)
    assert any("count once" in note for note in repeated.notes)
    added = judge(
        "mixed_effects",
        lambda spec, condition, rng: offsets[spec.problem_id] + (level(condition) == "fancy"),
        problem_ids=PROBLEMS,
    )
    assert added.verdict is TestVerdict.NOT_TESTED


PROBLEMS = ("p1", "p2", "p3", "p4", "p5")


@pytest.mark.parametrize("word", ["mixed_effects", "regression", "factorial_anova"])
def test_a_claim_of_equivalence_is_never_supported_by_a_difference(word):
    claim = {"direction": EQUIVALENT, "minimum_effect_of_interest": 0.5}
    test = judge(word, lambda spec, condition, rng: 5 + (level(condition) == "fancy"), claim)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "no size" in test.why


@pytest.mark.parametrize("word", ["mann_whitney", "wilcoxon", "kruskal_wallis"])
def test_equivalence_is_tested_by_means_where_a_rank_test_is_named(word):
    # 0.5 and 0.9 are further apart than 0.38, and ranks of moved ones and zeros don't see it.
    def value(spec, condition, rng):
        return float(rng.random() < (0.5 if level(condition) == "fancy" else 0.9))

    claim = {"direction": EQUIVALENT, "minimum_effect_of_interest": 0.38}
    parts = {
        "outcomes": (OutcomeSpec("score", primary=True, sd=1.0),),
        "problem_ids": ("p1",),
        "run_budget": RunBudget(replicates=400),
    }
    test = judge(word, value, claim, **parts)
    assert test.verdict is not TestVerdict.SUPPORTED
    if word != "kruskal_wallis":
        assert "t test" in test.method
        assert any("ranks can't test" in note for note in test.notes)


def test_paired_proportions_are_not_tested_for_equivalence_as_unpaired():
    claim = {"direction": EQUIVALENT, "minimum_effect_of_interest": 0.5}
    value = lambda spec, condition, rng: float(rng.random() < 0.5)  # noqa: E731
    test = judge("mcnemar", value, claim, **ONE_PROBLEM)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "paired_t does" in test.why


def test_an_infinite_odds_ratio_is_reported_and_not_a_number():
    value = lambda s, c, rng: float(level(c) == "fancy" or rng.random() < 0.3)  # noqa: E731
    test = judge("fisher_exact", value, **ONE_PROBLEM)
    assert (test.verdict, test.statistic) == (TestVerdict.SUPPORTED, None)
    assert any("odds ratio is infinite" in note for note in test.notes)


def test_each_verdict_names_its_plan_where_a_hypothesis_has_two():
    plans = (make_plan(), make_plan("welch_t", analysis_plan_id="q"))
    study = make_study(analysis_plans=plans)
    text = render_verdicts(judge_hypotheses(study, *simulate(study, noisy())))
    assert "plan `p`" in text
    assert "plan `q`" in text
    alone = make_study()
    assert "plan" not in render_verdicts(judge_hypotheses(alone, *simulate(alone, noisy())))


def test_the_plan_shares_alpha_among_as_many_tests_as_the_report():
    study = make_study(
        outcomes=(OutcomeSpec("score", primary=True), OutcomeSpec("speed")),
        hypotheses=(
            make_claim(dependent_vars=("score", "speed"), minimum_effect_of_interest=0.5),
            make_claim(hypothesis_id="h2", minimum_effect_of_interest=0.5),
        ),
        analysis_plans=(make_plan(hypothesis_ids=("h1", "h2"), multiple_comparison_policy="holm"),),
    )
    value = lambda s, c, rng: {"score": rng.random(), "speed": rng.random()}  # noqa: E731
    conditions, results = simulate(study, value)
    tests = judge_hypotheses(study, conditions, results)
    assert {test.family for test in tests} == {3}
    powers = hypothesis_power(study, conditions)
    assert [power.alpha for power in powers] == [pytest.approx(0.05 / 3)] * 3
    assert "over 3 tests" in powers[0].assumption


def test_json_output_has_the_notes_of_the_tests(tmp_path):
    study = make_study(output_dir=str(tmp_path / "out"), problem_ids=(), agent_specs=())

    def runner(run_spec, condition):
        if run_spec.replicate == 1:
            raise RuntimeError("no")
        return RunOutput({}, {"score": run_spec.seed % 7})

    run_study(study, condition_runner=runner, show_progress=False)
    outcome = CliRunner().invoke(command, [str(tmp_path / "out"), "--json"])
    data = json.loads(outcome.stdout)
    assert data["planned"] == 10
    assert data["statuses"] == {"failed": 2, "success": 8}
    assert any("2 runs failed" in line for line in data["deviations"])
    (test,) = data["tests"]
    assert test["bounds"] == test["interval"]
    assert "p_opposite" in test


@pytest.mark.parametrize(("policy", "is_unfair"), [("drop", True), ("zero", False)])
def test_the_verdict_says_that_losses_differ_where_failed_runs_are_left_out(policy, is_unfair):
    study = make_study(
        outcomes=(OutcomeSpec("score", primary=True, missing_data_policy=policy),),
        run_budget=RunBudget(replicates=10),
    )
    fails = lambda spec, condition, rng: level(condition) == "fancy" and rng.random() < 0.5  # noqa: E731
    (test,) = judge_hypotheses(study, *simulate(study, noisy(), fails=fails))
    assert ("losses differ" in test.why) is is_unfair
    assert any("losses differ" in note for note in test.notes) is is_unfair
