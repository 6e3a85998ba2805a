"""The power of hypotheses, computed from a plan."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from fairtrial.study import (
    AnalysisPlan,
    Block,
    Constraint,
    Contrast,
    DesignSpec,
    Factor,
    Hypothesis,
    Level,
    Moderator,
    OutcomeSpec,
    RunBudget,
    Study,
    build_design,
    hypothesis_power,
)
from fairtrial.study.design import count_runs
from fairtrial.study.stats.power import (
    anova_power,
    interaction_power,
    slope_power,
)
from fairtrial.study.stats.problem_power import problem_power
from fairtrial.study.stats.welch_power import welch_power

MODEL = Factor("model", levels=("a", "b"))
TONE = Factor("tone", levels=("x", "y", "z"))


def _claim(*variables, effect=0.8, name="H1", **fields):
    return Hypothesis(
        name,
        "label",
        "statement",
        independent_vars=variables,
        minimum_effect_of_interest=effect,
        **fields,
    )


def _study(*claims, factors=(MODEL, TONE), replicates=4, **fields):
    return Study(
        "s",
        "s",
        factors=factors,
        hypotheses=claims,
        run_budget=RunBudget(replicates=replicates),
        **fields,
    )


def _powers(*claims, **fields):
    study = _study(*claims, **fields)
    return hypothesis_power(study, build_design(study))


def _power(*claims, **fields):
    (result,) = _powers(*claims, **fields)
    return result


# Groups


def test_two_levels_are_a_t_test_on_the_planned_runs():
    result = _power(_claim("model"))
    assert result.test == "Welch/two-sample t"
    assert result.groups == {"a": 12, "b": 12}  # 3 tones × 4 replicates
    assert result.power == welch_power(0.8, 12, 12)
    assert result.variables == ("model",)
    assert result.reason == ""


def test_runs_multiply_by_agents_problems_and_replicates():
    result = _power(
        _claim("model", effect=0.1),
        agent_specs=("ann", "bob"),
        problem_ids=("p", "q", "r"),
        design_spec=DesignSpec(replicates=2),
    )
    assert result.groups == {"a": 144, "b": 144}  # 3 tones × (4 × 2) replicates × 2 × 3
    # 48 runs of each level in each of 3 problems; the effect varies by half its size.
    assert result.power == problem_power(0.1, 0.05**2 + 2 / 48, 3)


def test_conditions_that_never_run_are_not_counted():
    rule = Constraint("c", expression='not (model == "b" and tone == "z")')
    result = _power(_claim("model"), constraints=(rule,))
    assert result.groups == {"a": 12, "b": 8}
    assert result.power == welch_power(0.8, 12, 8)


@pytest.mark.parametrize("variable", ["agent", "agent_id", "agent_spec"])
def test_agents_can_be_compared(variable):
    result = _power(_claim(variable), agent_specs=("ann", "bob"), problem_ids=("p", "q"))
    assert result.groups == {"ann": 48, "bob": 48}


def test_an_agent_factor_goes_by_any_of_its_names():
    agents = Factor("agent_id", levels=("ann", "bob"))
    result = _power(_claim("agent"), factors=(agents, TONE), agent_specs=("nobody",))
    assert result.groups == {"ann": 12, "bob": 12}


def test_problems_can_be_compared():
    result = _power(_claim("problem"), problem_ids=("p", "q"))
    assert result.groups == {"p": 24, "q": 24}


@pytest.mark.parametrize("name", ["day", "block_day"])
def test_blocks_can_be_compared(name):
    result = _power(_claim(name), blocks=(Block("day", ("mon", "tue")),))
    assert result.groups == {"mon": 24, "tue": 24}


def test_groups_go_by_the_names_of_levels():
    size = Factor("size", levels=(Level("small", [1, 2]), Level("large", [3, 4])))
    assert _power(_claim("size"), factors=(size,)).groups == {"small": 4, "large": 4}


def test_a_default_where_a_factor_does_not_apply_is_no_level():
    depth = Factor("depth", levels=(1, 2), default=0, when='model == "a"')
    result = _power(_claim("depth"), factors=(MODEL, depth))
    assert result.groups == {"1": 4, "2": 4}


def test_a_plan_of_billions_is_not_counted_run_by_run():
    result = _power(_claim("model", effect=1e-5), replicates=10**9)
    assert result.groups == {"a": 3 * 10**9, "b": 3 * 10**9}
    assert 0 < result.power < 1


# Which test


def test_several_levels_are_an_analysis_of_variance():
    result = _power(_claim("tone", direction="different"))
    assert result.test == "one-way ANOVA"
    assert result.groups == {"x": 8, "y": 8, "z": 8}
    assert result.power == anova_power(0.8, [8, 8, 8])
    assert "sided" not in result.assumption  # an F test has no side


@pytest.mark.parametrize("direction", ["greater", "less"])
def test_a_direction_makes_the_test_one_sided(direction):
    result = _power(_claim("model", direction=direction))
    assert result.power == welch_power(0.8, 12, 12, test="one-sided")
    assert "one-sided" in result.assumption


def test_a_contrast_picks_two_levels():
    result = _power(_claim("tone", contrast=Contrast(left="x", right="z")))
    assert result.test == "Welch/two-sample t"
    assert result.groups == {"x": 8, "z": 8}
    assert result.power == welch_power(0.8, 8, 8)


def test_a_contrast_may_name_values():
    depth = Factor("depth", levels=(Level("low", 1), Level("mid", 2), Level("high", 3)))
    result = _power(_claim("depth", contrast=Contrast(left="1", right="high")), factors=(depth,))
    assert result.groups == {"low": 4, "high": 4}


def test_a_contrast_of_levels_that_are_not_there_is_reported():
    result = _power(_claim("tone", contrast=Contrast(left="x", right="loud")))
    assert result.power is None
    assert "'loud'" in result.reason


def test_several_variables_are_several_main_effects():
    result = _powers(_claim("model", "tone", contrast=Contrast(left="x", right="y")))
    assert [entry.variables for entry in result] == [("model",), ("tone",)]
    assert [list(entry.groups) for entry in result] == [["a", "b"], ["x", "y"]]


@pytest.mark.parametrize(
    "claim",
    [
        _claim("model", "tone", kind="moderation"),
        _claim("model", moderators=(Moderator("tone"),)),
        _claim("model", kind="moderation", moderators=(Moderator("tone"),)),
    ],
)
def test_a_moderation_is_an_interaction(claim):
    result = _power(claim)
    assert result.test == "interaction"
    assert result.variables == ("model", "tone")
    assert result.groups["model=a, tone=z"] == 4
    assert len(result.groups) == 6
    assert result.power == interaction_power(0.8, [[4, 4, 4], [4, 4, 4]])


def test_a_moderation_may_be_about_some_levels():
    claim = _claim("model", moderators=(Moderator("tone", ("x", "z")),), direction="less")
    result = _power(claim)
    assert list(result.groups) == [f"model={model}, tone={tone}" for model in "ab" for tone in "xz"]
    assert result.power == interaction_power(0.8, [[4, 4], [4, 4]], test="one-sided")


@pytest.mark.parametrize("variables", [("model", "tone"), ("tone", "model")])
def test_a_contrast_picks_two_levels_of_an_interaction(variables):
    contrast = Contrast(left="x", right="z")
    result = _power(_claim(*variables, kind="moderation", contrast=contrast))
    assert result.power == interaction_power(0.8, [[4, 4], [4, 4]])


def test_the_agent_may_be_moderated_by_the_problem():
    claim = _claim("agent", moderators=(Moderator("problem"),))
    result = _power(claim, agent_specs=("ann", "bob"), problem_ids=("p", "q"))
    assert result.groups["agent=ann, problem=q"] == 24
    assert result.power == interaction_power(0.8, [[24, 24], [24, 24]])


@pytest.mark.parametrize("fields", [{"kind": "equivalence"}, {"direction": "equivalent"}])
def test_equivalence_is_two_one_sided_tests(fields):
    result = _power(_claim("model", effect=1.2, **fields))
    assert result.test == "equivalence (TOST)"
    assert result.power == welch_power(1.2, 12, 12, test="equivalence") > 0
    assert "no true difference" in result.assumption


def test_equivalence_of_several_levels_is_bounded_from_below():
    result = _power(_claim("tone", effect=2.5, kind="equivalence"))
    missed = 1 - welch_power(2.5, 8, 8, test="equivalence")
    assert result.power == pytest.approx(1 - 3 * missed)
    assert "lower bound" in result.assumption


def test_a_sampled_factor_has_a_slope():
    rate = Factor("rate", levels=(0.0, 2.0))
    study = _study(
        _claim("rate"),
        factors=(rate,),
        replicates=2,
        design_spec=DesignSpec(kind="lhs", n_samples=30),
    )
    conditions = build_design(study)
    (result,) = hypothesis_power(study, conditions)
    runs_at = {condition.factor_assignments["rate"]: 2 for condition in conditions}
    assert result.test == "regression slope"
    assert result.groups == {"30 values in 0..2": 60}
    assert result.power == slope_power(0.8, runs_at, span=2.0)
    assert result.needed_replicates is not None


def test_center_points_make_a_slope_of_two_levels():
    factors = tuple(Factor(name, levels=(0, 1)) for name in "pqr")
    spec = DesignSpec(kind="frac2", center_points=3)
    result = _power(_claim("p"), factors=factors, design_spec=spec, replicates=2)
    assert result.power == slope_power(0.8, {0.0: 8, 1.0: 8, 0.5: 6})


def test_declared_numbers_are_levels_unless_there_are_very_many():
    depth = Factor("depth", levels=(1, 2, 4))
    assert _power(_claim("depth"), factors=(depth,)).test == "one-way ANOVA"
    many = Factor("depth", levels=tuple(range(12)))
    assert _power(_claim("depth"), factors=(many,)).test == "regression slope"


# Effect and level


def test_the_effect_is_standardized_unless_the_outcome_states_its_sd():
    result = _powers(
        _claim("model", effect=3.0, dependent_vars=("score", "time", "unknown")),
        outcomes=(OutcomeSpec("score", sd=6.0), OutcomeSpec("time")),
    )
    assert [(entry.outcome, entry.effect_d) for entry in result] == [
        ("score", 0.5),
        ("time", 3.0),
        ("unknown", 3.0),
    ]
    assert result[0].power == welch_power(0.5, 12, 12)
    assert "3 in score (d = 0.5, as its sd is 6)" in result[0].assumption
    assert "d = 3 (standardized, as no sd is stated)" in result[1].assumption


def test_without_dependent_variables_primary_outcomes_count():
    outcomes = (OutcomeSpec("time"), OutcomeSpec("score", primary=True))
    assert _power(_claim("model"), outcomes=outcomes).outcome == "score"
    assert _power(_claim("model")).outcome == ""


def test_hypotheses_without_a_minimum_effect_are_left_out():
    assert _powers(_claim("model", effect=None)) == []


@pytest.mark.parametrize(
    ("policy", "alpha", "said"),
    [
        ("none", 0.05, "alpha 0.05,"),
        ("holm", 0.05 / 3, "Bonferroni bound for holm"),
        ("bonferroni", 0.05 / 3, "Bonferroni bound for bonferroni"),
        ("bh", 0.05 / 3, "worst case for bh"),
    ],
)
def test_alpha_is_shared_by_the_hypotheses_of_a_plan(policy, alpha, said):
    plans = (
        AnalysisPlan("p", ("H1", "H2", "H3"), ("t",), multiple_comparison_policy=policy),
        AnalysisPlan("q", ("H1",), ("t",), multiple_comparison_policy=policy),
        AnalysisPlan("r", ("H2", "H4", "H5", "H6"), ("t",), multiple_comparison_policy="holm"),
    )
    result = _power(_claim("model"), analysis_plans=plans)
    assert result.alpha == pytest.approx(alpha)
    assert result.power == pytest.approx(welch_power(0.8, 12, 12, alpha=alpha))
    assert said in result.assumption


# Replicates


@pytest.mark.parametrize(
    "claim",
    [
        _claim("model"),
        _claim("tone"),
        _claim("model", kind="equivalence"),
        _claim("model", "tone", kind="moderation"),
        _claim("tone", contrast=Contrast(left="x", right="z"), direction="greater"),
    ],
)
def test_needed_replicates_are_just_enough(claim):
    rule = Constraint("c", expression='not (model == "b" and tone == "z")')
    constraints = () if claim.kind == "moderation" else (rule,)
    needed = _power(claim, constraints=constraints).needed_replicates
    assert needed > 2
    assert _power(claim, constraints=constraints, replicates=needed).power >= 0.8
    assert _power(claim, constraints=constraints, replicates=needed - 1).power < 0.8


@given(st.integers(1, 30), st.floats(0.3, 2.0))
def test_what_is_needed_does_not_depend_on_what_is_planned(replicates, effect):
    claim = _claim("model", effect=effect)
    result = _power(claim, replicates=replicates)
    assert result.needed_replicates == _power(claim).needed_replicates
    assert (result.power >= 0.8) == (replicates >= result.needed_replicates)


def test_too_few_runs_say_so_and_how_many_would_do():
    result = _power(_claim("tone"), factors=(TONE,), replicates=1)
    assert result.power is None
    assert result.reason == "x has one run in the plan; a test needs 2 or more in every group"
    assert result.needed_replicates > 1


def test_an_empty_cell_has_no_interaction():
    rule = Constraint("c", expression='not (model == "b" and tone == "z")')
    result = _power(_claim("model", "tone", kind="moderation"), constraints=(rule,))
    assert result.power is None
    assert result.reason.startswith("model=b, tone=z has no runs")
    assert result.needed_replicates is None


# What can't be computed


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (_claim("model", kind="mediation"), "no closed form"),
        (_claim(), "no independent variable"),
        (_claim("modle"), "did you mean 'model'"),
        (_claim("model", moderators=(Moderator("tune"),)), "did you mean 'tone'"),
        (_claim("model", kind="moderation"), "no moderator"),
        (_claim("agent"), "'agent' has fewer than two levels"),
        (_claim("model", moderators=(Moderator("problem"),)), "'problem' has fewer than two"),
        (_claim("model", moderators=(Moderator("tone", ("x", "loud")),)), "tone=loud has no runs"),
        (_claim("model", "tone", kind="moderation", direction="equivalent"), "2 × 2"),
        (_claim("tone", contrast=Contrast(left="x", right="x")), "fewer than two levels"),
        (
            _claim("model", "tone", kind="moderation", contrast=Contrast(left="x", right="loud")),
            "no levels 'x' and 'loud'",
        ),
    ],
)
def test_reasons_are_given(claim, said):
    result = _power(claim)
    assert result.power is None
    assert said in result.reason


def test_interactions_of_sampled_factors_are_not_computed():
    result = _power(
        _claim("p", "q", kind="moderation"),
        factors=(Factor("p", levels=(0.0, 1.0)), Factor("q", levels=(0.0, 1.0))),
        design_spec=DesignSpec(kind="lhs", n_samples=8),
    )
    assert "'p' is sampled" in result.reason


def test_a_condition_runner_has_no_agents_to_compare():
    result = _power(_claim("agent"), condition_runner="m:f")
    assert "fewer than two levels" in result.reason


@pytest.mark.parametrize("kind", ["robustness", "exploratory"])
def test_other_kinds_are_effects(kind):
    assert _power(_claim("model", kind=kind)).power == welch_power(0.8, 12, 12)


# The assumptions that are shown


def test_one_problem_does_not_generalize():
    assert "the one problem of the plan, not for others" in _power(_claim("model")).assumption
    many = _power(_claim("model"), problem_ids=tuple("abcdefghijkl")).assumption
    assert "not for others" not in many
    assert "random sample of those that the claim is about" in many
    assert "problem" not in _power(_claim("model"), condition_runner="m:f").assumption


def test_a_claim_about_exactly_these_problems_has_runs_as_its_unit():
    plan = AnalysisPlan("p", ("H1",), ("welch_t",), generalize="these_problems_only")
    result = _power(_claim("model"), problem_ids=("p", "q"), analysis_plans=(plan,))
    assert result.power == welch_power(0.8, 24, 24)
    assert result.problems == 0
    assert "speak for the 2 problems of the plan, not for others" in result.assumption


def test_two_problems_are_too_few_to_generalize():
    result = _power(_claim("model"), problem_ids=("p", "q"))
    assert result.power is None
    assert result.reason.startswith("2 problems have runs in all groups; a claim about problems")
    assert result.needed_problems > 2
    assert result.needed_replicates is None


def test_no_figure_is_called_cautious():
    days = (Block("day", ("mon", "tue")),)
    for fields in ({"blocks": days}, {"problem_ids": ("p", "q", "r")}, {}):
        assert "cautious" not in _power(_claim("model"), **fields).assumption


def test_what_goes_with_a_block_may_be_due_to_it():
    days = (Block("day", ("mon", "tue")),)
    rule = Constraint("c", expression='not (model == "b" and day == "tue")')
    result = _power(_claim("model"), blocks=days, constraints=(rule,)).assumption
    assert "model and day don't meet evenly: a difference may be due to day" in result
    rule = Constraint("c", expression='not (tone == "z" and day == "tue")')
    rest = {"blocks": days, "constraints": (rule,)}
    contrast = Contrast(left="x", right="y")
    assert "evenly" not in _power(_claim("tone", contrast=contrast), **rest).assumption
    assert "evenly" in _power(_claim("tone"), **rest).assumption


def test_groups_with_different_problems_are_compared_between_problems():
    problem = Factor("problem", levels=("p", "q"), tied_to="model")
    result = _power(_claim("model"), factors=(MODEL, problem))
    assert result.power is None
    assert result.reason.startswith("the groups have different problems (2 in all)")
    problem = Factor("problem", levels=tuple("pqrstu"))
    rule = Constraint("c", expression='(problem in ["p", "q", "r"]) == (model == "a")')
    result = _power(_claim("model"), factors=(MODEL, problem), constraints=(rule,))
    assert result.test == "Welch's t between problems"
    # icc 0.3, the effect varies by half its size, 4 runs of each problem
    assert result.power == welch_power(0.8 / (0.3 + 0.4**2 / 2 + 0.7 / 4) ** 0.5, 3, 3)
    assert "30% of the variance is taken to lie between problems" in result.assumption


def test_an_interaction_whose_cells_are_all_empty_has_no_power():
    tone = replace(TONE, when='model == "c"', default="none")
    claim = _claim(
        "tone",
        kind="moderation",
        moderators=(Moderator("model", ("a", "b")),),
        contrast=Contrast(left="x", right="y"),
    )
    result = _power(claim, factors=(MODEL, tone), problem_ids=("p", "q"))
    assert result.power is None


def test_entries_are_plain_data():
    data = _power(_claim("model")).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["groups"] == {"a": 12, "b": 12}
    assert data["variables"] == ["model"]


def test_groups_hold_all_runs_of_the_plan():
    study = _study(_claim("model"), problem_ids=("p", "q"))
    conditions = build_design(study)
    (result,) = hypothesis_power(study, conditions)
    assert sum(result.groups.values()) == count_runs(study, conditions)
    assert hypothesis_power(replace(study, hypotheses=()), conditions) == []


@pytest.mark.parametrize(("effect", "sd", "power"), [(1e300, 1e-300, 1), (1e-300, 1e300, 0.05)])
def test_an_effect_beyond_all_numbers_still_has_a_power(effect, sd, power):
    claim = _claim("model", effect=effect, dependent_vars=("score",))
    result = _power(claim, outcomes=(OutcomeSpec("score", sd=sd),))
    assert result.power == pytest.approx(power, abs=2e-3)  # Welch's level is not exact
    assert json.dumps(result.to_dict(), allow_nan=False)
