"""Aliases in verdicts: effects that the design or the runs can't tell from the tested one."""

import pytest
from simulated_study_kit import (
    level,
    make_claim,
    make_plan as make_default_plan,
    make_study,
    simulate,
)

from fairtrial.study import (
    Block,
    Constraint,
    DesignSpec,
    Factor,
    HypothesisKind,
    Moderator,
    RunBudget,
    full_report,
    judge_hypotheses,
)
from fairtrial.study.report import format_plan, summarize_plan
from fairtrial.study.report.verdicts import TestVerdict

HALF = DesignSpec(kind="fractional_factorial_2level", options={"generators": ["C = AB"]})
IV = DesignSpec(
    kind="fractional_factorial_2level", options={"resolution": "IV", "generators": ["D = ABC"]}
)


def make_plan(*tests, **parts):
    return make_default_plan(*tests, generalize="these_problems_only", **parts)


def two_levels(*names):
    return tuple(Factor(name, levels=("lo", "hi")) for name in names)


def is_high(condition, name):
    return level(condition, name) == "hi"


def make_claims(*names, **parts):
    """Return a hypothesis for each factor, and a plan for all of them."""
    claims = tuple(
        make_claim(hypothesis_id=name, independent_vars=(name,), **parts) for name in names
    )
    return {"hypotheses": claims, "analysis_plans": (make_plan(hypothesis_ids=names),)}


def judge(study, value):
    tests = judge_hypotheses(study, *simulate(study, value))
    return {test.hypothesis_id: test for test in tests}


def interact(spec, condition, rng):
    """Model and prompt interact; the tool has no effect."""
    same = is_high(condition, "model") == is_high(condition, "prompt")
    return 1.5 * same + rng.gauss(0, 1)


# -- fractions --


def test_a_factor_aliased_with_a_real_interaction_is_not_simply_supported():
    names = ("model", "prompt", "tool")
    study = make_study(factors=two_levels(*names), design_spec=HALF, **make_claims(*names))
    tests = judge(study, interact)
    tool = tests["tool"]
    assert tool.verdict is TestVerdict.SUPPORTED_OR_ALIAS
    assert tool.why.startswith(
        "supported, or model × prompt is: the design can't tell them apart; hi is higher than lo"
    )
    assert tool.aliases == ("model × prompt",)
    assert tests["model"].verdict is TestVerdict.INCONCLUSIVE


def test_an_aliased_effect_that_was_not_found_has_a_note():
    names = ("model", "prompt", "tool")
    study = make_study(factors=two_levels(*names), design_spec=HALF, **make_claims(*names))
    model = judge(study, interact)["model"]
    assert model.verdict is TestVerdict.INCONCLUSIVE
    note = "what is estimated is the effect together with prompt × tool: the design can't tell"
    assert any(line.startswith(note) for line in model.notes)


def test_the_same_claim_in_the_full_factorial_is_not_aliased():
    names = ("model", "prompt", "tool")
    study = make_study(factors=two_levels(*names), **make_claims("tool"))
    tests = judge(study, lambda s, c, rng: 2.0 * is_high(c, "tool") + rng.gauss(0, 1))
    assert (tests["tool"].verdict, tests["tool"].aliases) == (TestVerdict.SUPPORTED, ())


def test_in_resolution_iv_interactions_are_aliased_and_main_effects_are_not():
    claims = (
        make_claim(hypothesis_id="main", independent_vars=("a",)),
        make_claim(
            hypothesis_id="both",
            independent_vars=("a",),
            kind=HypothesisKind.MODERATION,
            moderators=(Moderator("b"),),
        ),
    )
    study = make_study(
        factors=two_levels("a", "b", "c", "d"),
        design_spec=IV,
        hypotheses=claims,
        analysis_plans=(make_plan(hypothesis_ids=("main", "both")),),
    )

    def value(spec, condition, rng):
        same = is_high(condition, "c") == is_high(condition, "d")
        return 2.0 * same + 1.5 * is_high(condition, "a") + rng.gauss(0, 1)

    tests = judge(study, value)
    assert tests["main"].verdict is TestVerdict.SUPPORTED
    assert tests["both"].verdict is TestVerdict.SUPPORTED_OR_ALIAS
    assert "or c × d is" in tests["both"].why


def test_a_screening_design_is_aliased_in_part():
    names = tuple("abcdefg")
    study = make_study(
        factors=two_levels(*names, "h", "i", "j", "k"),
        design_spec=DesignSpec(kind="plackett_burman"),
        **make_claims("a"),
    )
    test = judge(study, lambda s, c, rng: 2.0 * is_high(c, "a") + rng.gauss(0, 1))["a"]
    assert test.verdict is TestVerdict.SUPPORTED_OR_ALIAS
    assert "(correlation 0.33)" in test.why
    assert "can't fully tell them apart" in test.why


def test_equivalence_may_be_offset_by_an_alias():
    names = ("model", "prompt", "tool")
    claim = make_claim(
        independent_vars=("tool",),
        kind=HypothesisKind.EQUIVALENCE,
        minimum_effect_of_interest=0.8,
    )
    study = make_study(
        factors=two_levels(*names),
        design_spec=HALF,
        hypotheses=(claim,),
        analysis_plans=(make_plan(),),
        run_budget=RunBudget(replicates=20),
    )
    test = judge(study, lambda s, c, rng: rng.gauss(0, 1))["h1"]
    assert test.verdict is TestVerdict.SUPPORTED_OR_ALIAS
    assert test.why.startswith("supported, unless model × prompt offsets a difference")


def test_a_constrained_fraction_states_its_real_resolution():
    names = ("a", "b", "c", "d")
    rule = Constraint("no-both", expression='not (a == "hi" and b == "hi")')
    study = make_study(
        factors=two_levels(*names), design_spec=IV, constraints=(rule,), **make_claims("a")
    )
    plan = summarize_plan(study)
    assert plan.facts["resolution"] == "IV"
    assert plan.aliasing.resolution == "IV"
    assert plan.aliasing.excluded == 2
    assert plan.aliasing.among_mains == pytest.approx(0.5)
    assert any(line.startswith("a = b") for line in plan.aliasing.aliases)
    lines = [line.text for line in format_plan(plan).details]
    (line,) = [text for text in lines if text.startswith("aliases")]
    assert "resolution IV, partly II, partly III in the 6 conditions that constraints leave" in line
    assert plan.to_dict()["aliasing"]["rows"] == 6
    report = full_report(study, *simulate(study, lambda s, c, rng: rng.gauss(0, 1)))
    assert "- aliases: resolution IV, partly II, partly III in the 6 conditions" in report


def test_an_unconstrained_fraction_names_its_aliases_in_the_methods():
    names = ("model", "prompt", "tool")
    study = make_study(factors=two_levels(*names), design_spec=HALF, **make_claims("tool"))
    report = full_report(study, *simulate(study, interact))
    assert "- aliases: resolution III;" in report
    assert "tool = model × prompt (1)" in report
    assert "*Supported, or an alias is*" in report
    plain = make_study()
    assert summarize_plan(plain).aliasing is None


# -- constraints and missing cells --


def test_factors_that_a_constraint_ties_are_aliases_of_each_other():
    rule = Constraint("same", expression='(model == "hi") == (tool == "hi")')
    study = make_study(
        factors=two_levels("model", "tool"), constraints=(rule,), **make_claims("model", "tool")
    )
    tests = judge(study, lambda s, c, rng: 2.0 * is_high(c, "model") + rng.gauss(0, 1))
    assert "supported, or tool is: the design can't tell them apart" in tests["model"].why
    assert "supported, or model is: the design can't tell them apart" in tests["tool"].why


def test_a_factor_that_a_constraint_makes_go_with_another_is_aliased_in_part():
    rule = Constraint("not-both", expression='not (model == "lo" and tool == "hi")')
    study = make_study(
        factors=two_levels("model", "tool"), constraints=(rule,), **make_claims("tool")
    )
    # The tool does nothing; it only ever runs with the better model.
    test = judge(study, lambda s, c, rng: 3.0 * is_high(c, "model") + rng.gauss(0, 1))["tool"]
    assert test.verdict is TestVerdict.SUPPORTED_OR_ALIAS
    assert "or model (correlation 0.50) is" in test.why
    assert test.to_dict()["aliases"] == ["model (correlation 0.50)"]


def test_a_level_that_runs_on_one_problem_only_is_confounded_with_the_problem():
    factors = (Factor("arm", levels=("plain", "fancy")), Factor("problem_id", levels=("p1", "p2")))
    rule = Constraint("one", expression='(arm == "plain") == (problem_id == "p1")')
    study = make_study(
        factors=factors,
        problem_ids=(),
        constraints=(rule,),
        analysis_plans=(make_plan(),),
        run_budget=RunBudget(replicates=20),
    )
    conditions, results = simulate(
        study, lambda s, c, rng: 2.0 * (s.problem_id == "p2") + rng.gauss(0, 1)
    )
    (test,) = judge_hypotheses(study, conditions, results)
    assert test.verdict is TestVerdict.NOT_TESTED
    assert "a difference between levels can't be told from one between problems" in test.why


def test_cells_that_never_ran_confound_what_the_plan_kept_apart():
    study = make_study(agent_specs=("a", "b"), analysis_plans=(make_plan(),))
    conditions, results = simulate(
        study, lambda s, c, rng: 2.0 * (s.agent_spec_ref == "b") + rng.gauss(0, 1)
    )
    arms = {condition.condition_id: level(condition) for condition in conditions}
    ran = [
        result
        for result in results
        if (arms[result.run_spec.condition_id] == "fancy")
        == (result.run_spec.agent_spec_ref == "b")
    ]
    (test,) = judge_hypotheses(study, conditions, ran)
    assert test.verdict is TestVerdict.SUPPORTED_OR_ALIAS
    assert "supported, or agent_id is" in test.why


def test_blocks_with_one_level_in_each_group_are_named():
    study = make_study(
        blocks=(Block("day", ("mon", "tue")),),
        constraints=(Constraint("c", expression='(arm == "plain") == (day == "mon")'),),
        analysis_plans=(make_plan(),),
    )
    test = judge(study, lambda s, c, rng: 2.0 * (level(c) == "fancy") + rng.gauss(0, 1))["h1"]
    assert "supported, or day is" in test.why


def test_tied_factors_are_one_treatment_and_the_notes_say_so():
    factors = (
        Factor("arm", levels=("plain", "fancy")),
        Factor("limit", levels=(10, 20), tied_to="arm"),
    )
    study = make_study(factors=factors, analysis_plans=(make_plan(),))
    test = judge(study, lambda s, c, rng: 2.0 * (level(c) == "fancy") + rng.gauss(0, 1))["h1"]
    assert test.verdict is TestVerdict.SUPPORTED
    assert "arm, limit are tied: the effect is that of all of them together" in test.notes


def test_a_regression_that_adjusts_for_a_factor_is_not_aliased_with_it_in_part():
    rule = Constraint("not-both", expression='not (model == "lo" and tool == "hi")')
    claim = make_claim(independent_vars=("tool",))
    study = make_study(
        factors=two_levels("model", "tool"),
        constraints=(rule,),
        hypotheses=(claim,),
        analysis_plans=(make_plan("regression", covariates=("model",)),),
    )
    test = judge(study, lambda s, c, rng: 3.0 * is_high(c, "tool") + rng.gauss(0, 1))["h1"]
    assert (test.verdict, test.aliases) == (TestVerdict.SUPPORTED, ())
