"""A factor that sets an option of one agent is tested on the runs of that agent only."""

import dataclasses
import json

import pytest
from simulated_study_kit import make_claim, make_plan, make_study, simulate

from fairtrial.cli.candidate_tree import make_heading
from fairtrial.study import (
    Contrast,
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Moderator,
    RunBudget,
    build_design,
    full_report,
    hypothesis_power,
    judge_hypotheses,
    open_results,
    render_methods_scaffold,
)
from fairtrial.study.design.agent_options import find_affected_agents, select_assignments
from fairtrial.study.hypotheses.planned_tests import claim_warnings, planned_tests

REPAIR = "agents.model.options.repair"
FACTOR = Factor(REPAIR, levels=(False, True))
AGENTS = ("rules", "model")
CLAIM = make_claim(
    independent_vars=(REPAIR,),
    contrast=Contrast(left="true", right="false"),
    direction=HypothesisDirection.GREATER,
    minimum_effect_of_interest=0.5,
)
AGENT_CLAIM = make_claim(
    independent_vars=("agent_id",), contrast=Contrast(left="model", right="rules")
)
AVERAGED = (
    "the runs of model are those of all levels of agents.model.options.repair: what is compared "
    "is their average; a filter in the analysis plan picks one level"
)

SEEN = [
    ("run-e4d35149aeaa", 1422365739),
    ("run-be0e2255fcdf", 794939687),
    ("run-4c4e1a04e9b4", 47756009),
    ("run-f56461595173", 963932623),
]
"""Runs and seeds of a study of one replicate, written down before its factor had an agent."""


def two_agents(*claims, **parts):
    given = {"factors": (FACTOR,), "agent_specs": AGENTS, "hypotheses": claims or (CLAIM,)}
    return make_study(**{**given, **parts})


def score(spec, condition, rng):
    """Repair gives the model 2; rules know nothing of it."""
    gained = 2.0 * condition.factor_assignments[REPAIR] if spec.agent_spec_ref == "model" else 0
    return gained + rng.gauss(0, 0.1)


def judge(study, value=score):
    return judge_hypotheses(study, *simulate(study, value))


def condition_rows(study):
    """The first three cells of each row of the report's table of conditions."""
    text = full_report(study, *simulate(study, score))
    lines = text.partition("## Conditions")[2].partition("## Tests")[0].strip().split("\n")[2:]
    return [[cell.strip() for cell in line.split("|")[1:4]] for line in lines if "|" in line]


def test_the_effect_is_that_on_the_agent_whose_option_it_is():
    (test,) = judge(two_agents())
    assert test.estimate == pytest.approx(2, abs=0.1)
    assert [group.n for group in test.groups] == [20, 20]
    assert test.agents == ("model",)


def test_the_report_says_whose_runs_were_tested():
    text = full_report(two_agents(), *simulate(two_agents(), score))
    assert f"(`score` by `{REPAIR}`, runs of `model` alone)" in text
    assert f"### `h1` Fancy helps: `score` by `{REPAIR}`, runs of `model` alone" in text


def test_a_study_of_a_single_agent_does_not_name_it():
    study = two_agents(agent_specs=("model",))
    conditions, results = simulate(study, score)
    text = full_report(study, conditions, results)
    (test,) = planned_tests(study, conditions)
    assert (test.agents, test.averages) == ((), "")
    assert "alone" not in text
    assert "option of" not in text


def test_the_plan_has_the_power_of_the_runs_that_are_tested():
    study = two_agents()
    conditions = build_design(study)
    (power,) = hypothesis_power(study, conditions)
    (alone,) = hypothesis_power(two_agents(agent_specs=("model",)), conditions)
    assert power.groups == alone.groups == {"true": 20, "false": 20}
    assert power.power == alone.power
    assert "between 'true' and 'false' in runs of model" in power.assumption
    (test,) = planned_tests(study, conditions)
    assert test.agents == ("model",)


def test_options_of_agents_that_are_levels_of_a_factor_are_tested_on_their_runs():
    """The same where agents are levels of a factor rather than a list."""
    factors = (Factor("agent_id", levels=AGENTS), FACTOR)
    study = two_agents(factors=factors, agent_specs=())
    (test,) = judge(study)
    assert [group.n for group in test.groups] == [20, 20]
    rows = condition_rows(study)
    assert rows == [["rules", "–", "40"], ["model", "false", "20"], ["model", "true", "20"]]


def test_tied_factors_apply_to_the_runs_of_all_their_agents():
    other = Factor("agents.rules.options.repair", levels=(False, True), tied_to=REPAIR)
    study = two_agents(factors=(FACTOR, other))
    (test,) = judge(study)
    assert [group.n for group in test.groups] == [40, 40]
    assert test.agents == ()
    plain = Factor("style", levels=("a", "b"))
    tied = Factor(REPAIR, levels=(False, True), tied_to="style")
    assert find_affected_agents(two_agents(factors=(plain, tied)), REPAIR) is None


def test_an_interaction_is_tested_on_runs_that_have_both_factors():
    claim = make_claim(
        independent_vars=(REPAIR,),
        kind=HypothesisKind.MODERATION,
        moderators=(Moderator("style"),),
    )
    study = two_agents(claim, factors=(FACTOR, Factor("style", levels=("a", "b"))))
    (test,) = judge(study)
    assert [group.n for group in test.groups] == [20, 20, 20, 20]
    assert test.agents == ("model",)


@pytest.mark.parametrize(
    ("moderator", "why"),
    [
        ("agent_id", f"'{REPAIR}' is an option of model alone: no other agent's runs have it"),
        (
            "agents.rules.options.depth",
            f"'{REPAIR}' and 'agents.rules.options.depth' are options of different agents: no run "
            "has both",
        ),
    ],
)
def test_an_interaction_that_no_run_shows_is_not_tested(moderator, why):
    claim = make_claim(
        independent_vars=(REPAIR,),
        kind=HypothesisKind.MODERATION,
        moderators=(Moderator(moderator),),
    )
    depth = Factor("agents.rules.options.depth", levels=(1, 2))
    study = two_agents(claim, factors=(FACTOR, depth))
    (planned,) = planned_tests(study, build_design(study))
    (test,) = judge(study)
    assert planned.reason == test.why == why


# -- agents compared, averaged over an option that only one of them has --


def test_agents_that_are_averaged_over_an_option_get_a_warning_and_a_note():
    study = two_agents(AGENT_CLAIM)
    conditions = build_design(study)
    assert claim_warnings(study, conditions) == [f"h1 compares agents, but {AVERAGED}"]
    (test,) = judge(study)
    assert AVERAGED in test.notes
    assert test.agents == ()
    assert [group.n for group in test.groups] == [40, 40]


def test_a_filter_picks_one_level_and_as_many_runs_of_the_other_agent():
    plan = make_plan(filters={REPAIR: True})
    study = two_agents(AGENT_CLAIM, analysis_plans=(plan,))
    assert claim_warnings(study, build_design(study)) == []
    (test,) = judge(study)
    assert test.estimate == pytest.approx(2, abs=0.1)
    assert [group.n for group in test.groups] == [20, 20]
    assert AVERAGED not in test.notes


def test_pairs_of_agents_are_averages_over_the_option():
    plan = make_plan("paired_t", generalize="these_problems_only")
    study = two_agents(AGENT_CLAIM, analysis_plans=(plan,))
    (test,) = judge(study)
    assert test.unit == "pair of runs that share problem_id, replicate (20 of them)"
    assert test.estimate == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("word", ["regression", "factorial_anova", "mixed_effects"])
def test_a_model_of_agents_and_an_option_of_one_of_them_can_be_fitted(word):
    pytest.importorskip("statsmodels")
    claim = make_claim(independent_vars=("agent_id", REPAIR))
    study = two_agents(claim, analysis_plans=(make_plan(word),))
    by_agent, by_repair = judge(study)
    assert abs(by_agent.estimate) == pytest.approx(1, abs=0.1)
    assert abs(by_repair.estimate) == pytest.approx(2, abs=0.1)
    # Repair is in the model, so that its effect isn't taken for noise.
    assert by_agent.interval[1] - by_agent.interval[0] < 0.2


# -- what people see --


def test_conditions_that_differ_only_in_options_of_other_agents_are_one_row():
    study = two_agents()
    rows = condition_rows(study)
    assert rows == [["–", "rules", "40"], ["false", "model", "20"], ["true", "model", "20"]]


def test_the_methods_say_whose_option_it_is():
    assert "an option of `model`: runs of other agents don't have it" in render_methods_scaffold(
        two_agents()
    )


def test_what_a_condition_assigns_to_a_run_leaves_out_options_of_others():
    assigned = {REPAIR: False, "style": "a"}
    assert select_assignments(two_agents(), "rules", assigned) == {"style": "a"}
    assert select_assignments(two_agents(), "model", assigned) == assigned


def test_ids_and_seeds_of_runs_stay_unchanged():
    study = two_agents(run_budget=RunBudget(replicates=1), problem_ids=("p1",))
    _, results = simulate(study, score)
    assert [(result.run_id, result.run_spec.seed) for result in results] == SEEN


def test_check_plan_and_show_name_the_agent(run, tmp_path):
    (tmp_path / "agents_of_two.py").write_text(
        "def rules(task):\n    return {'metrics': {'score': 1.0}}\n"
        "def model(task, repair=False):\n    return {'metrics': {'score': 2.0 * repair}}\n"
    )
    study = two_agents(CLAIM, dataclasses.replace(AGENT_CLAIM, hypothesis_id="h2"))
    data = dataclasses.replace(study, run_budget=RunBudget(replicates=1)).to_dict()
    data["agents"] = {name: {"use": f"agents_of_two:{name}"} for name in AGENTS}
    data["analysis_plans"][0]["hypothesis_ids"] = ["h1", "h2"]
    del data["problem_ids"]
    (tmp_path / "study.json").write_text(json.dumps(data))
    for command in ("check", "plan"):
        _, out, warned = run(command, "study.json")
        assert f"h2 compares agents, but {AVERAGED}" in " ".join(warned.split())
    assert "by Welch's t test; only the runs of model; plan p" in " ".join(out.split())
    assert run("run", "study.json", "--output", "out", "--executor", "serial")[0] == 0
    with open_results("out") as results:
        one, *_ = [result for result in results if result.run_spec.agent_spec_ref == "rules"]
    shown = json.loads(run("show", "out", one.run_id, "--json")[1])
    assert (shown["agent_id"], shown["factors"]) == ("rules", {})


def test_the_tree_of_candidates_labels_a_run_by_what_touches_it():
    study = two_agents(run_budget=RunBudget(replicates=1), problem_ids=("p1",))
    conditions, results = simulate(study, score)
    assigned = {result.condition_id: result.factor_assignments for result in conditions}
    labels = [make_heading(result, study, assigned).condition.strip() for result in results]
    assert sorted(set(labels)) == [
        "repair=False, model, p1, replicate 1",
        "repair=True, model, p1, replicate 1",
        "rules, p1, replicate 1",
    ]
