"""Lost runs in verdicts: failed, broken and valueless runs by group, and their worst case."""

import json
from collections import Counter

import pytest
from click.testing import CliRunner
from run_kit import make_study as make_small_study, run
from simulated_study_kit import (
    level,
    lose,
    make_claim,
    make_plan as make_default_plan,
    make_study as make_default_study,
    noisy,
    simulate,
    succeed,
)

from fairtrial import Broken
from fairtrial.cli.main import cli
from fairtrial.study import (
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Moderator,
    OutcomeSpec,
    RunBudget,
    full_report,
    judge_hypotheses,
)
from fairtrial.study.report import report_facts
from fairtrial.study.report.verdicts import TestVerdict

HOW = ("failed", "no value", "broken")
GREATER, LESS = HypothesisDirection.GREATER, HypothesisDirection.LESS
HARMLESS = TestVerdict.SUPPORTED_IF_LOSSES_HARMLESS


def make_plan(*tests, **parts):
    """Return a plan for these problems only, so that single runs are the unit of inference."""
    return make_default_plan(*tests, generalize="these_problems_only", **parts)


def make_study(**parts):
    return make_default_study(**{"analysis_plans": (make_plan(),), **parts})


def rank_arm(conditions, results, arm):
    """Return the ids of an arm's runs, the lowest score first."""
    levels = {condition.condition_id: level(condition) for condition in conditions}
    runs = [result for result in results if levels[result.run_spec.condition_id] == arm]
    return [r.run_id for r in sorted(runs, key=lambda result: result.metrics["score"])]


def judge_with_losses(study, value, how, *, low=0, high=0, arm="fancy", seed=1):
    """Return the test of a study after an arm has lost its lowest and highest runs."""
    conditions, results = simulate(study, value, seed=seed)
    ranked = rank_arm(conditions, results, arm)
    lost = {*ranked[:low], *(ranked[-high:] if high else ())}
    results = lose(results, lambda result: result.run_id in lost, how)
    (test,) = judge_hypotheses(study, conditions, results)
    return test


# -- what losses do to verdicts --


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("replicates", [3, 10])
def test_the_worst_third_of_an_arm_lost_supports_nothing_unconditionally(how, replicates):
    claim, budget = make_claim(direction=GREATER), RunBudget(replicates=replicates)
    study = make_study(hypotheses=(claim,), run_budget=budget)
    third = round(4 * replicates / 3)
    verdicts = Counter(
        judge_with_losses(study, noisy(), how, low=third, seed=seed).verdict for seed in range(34)
    )
    assert verdicts[TestVerdict.SUPPORTED] == 0
    assert verdicts[HARMLESS] > 8


@pytest.mark.parametrize("how", HOW)
def test_the_reason_has_the_losses_of_each_group(how):
    study = make_study(run_budget=RunBudget(replicates=10))
    test = judge_with_losses(study, noisy(fancy=1.0), how, low=13)
    assert test.verdict is HARMLESS
    assert "13 of 40 for fancy and 0 of 40 for plain" in test.why
    assert "losses differ between the groups (Fisher's exact test" in test.why
    words = {"failed": "13 failed", "broken": "13 broke", "no value": "13 have no value"}
    assert any(words[how] in note for note in test.notes)


def test_few_losses_that_could_not_turn_the_verdict_are_only_noted():
    study = make_study(run_budget=RunBudget(replicates=10))
    test = judge_with_losses(study, noisy(fancy=3.0), "broken", low=1)
    assert test.verdict is TestVerdict.SUPPORTED
    assert test.why == "fancy is higher than plain"
    assert any("they would not change the verdict" in note for note in test.notes)
    assert test.losses.is_harmless
    assert test.losses.worst_case == "supported"


def test_losses_that_do_not_differ_may_still_turn_the_verdict():
    study = make_study(hypotheses=(make_claim(direction=GREATER),))
    conditions, results = simulate(study, noisy(fancy=0.9), seed=2)
    lost = {
        *rank_arm(conditions, results, "fancy")[:3],
        *rank_arm(conditions, results, "plain")[:3],
    }
    results = lose(results, lambda result: result.run_id in lost, "no value")
    (test,) = judge_hypotheses(study, conditions, results)
    assert test.losses.p_differ == pytest.approx(1.0)
    assert test.verdict is HARMLESS
    assert "with lost runs at their worst the verdict would be" in test.why
    assert "losses differ" not in test.why


def test_a_two_sided_claim_is_turned_where_lost_runs_could_reverse_the_difference():
    study = make_study(run_budget=RunBudget(replicates=10))
    test = judge_with_losses(study, noisy(), "failed", low=20)
    assert test.verdict is HARMLESS
    assert test.losses.worst_case == "inconclusive"


@pytest.mark.parametrize("how", HOW)
def test_a_yes_or_no_outcome_counts_lost_runs_as_the_worst_answer(how):
    outcomes = (OutcomeSpec("score", primary=True, expected_type="bool"),)
    study = make_study(outcomes=outcomes, run_budget=RunBudget(replicates=10))
    value = lambda spec, condition, rng: spec.replicate % 2  # noqa: E731
    test = judge_with_losses(study, value, how, low=18)
    assert test.verdict is HARMLESS
    assert "would be inconclusive" in test.why


def test_equivalence_is_not_claimed_past_lost_runs_that_could_differ():
    claim = make_claim(kind=HypothesisKind.EQUIVALENCE, minimum_effect_of_interest=0.8)
    study = make_study(hypotheses=(claim,), run_budget=RunBudget(replicates=15))
    whole = judge_with_losses(study, noisy(), "failed")
    assert whole.verdict is TestVerdict.SUPPORTED
    test = judge_with_losses(study, noisy(), "failed", low=4, high=4)
    assert test.verdict is HARMLESS
    assert "within" in test.why


def test_what_losses_could_turn_is_neither_contradicted_nor_ruled_out():
    claim = make_claim(direction=LESS)
    study = make_study(hypotheses=(claim,), run_budget=RunBudget(replicates=10))
    test = judge_with_losses(study, noisy(), "broken", low=14)
    assert test.verdict is TestVerdict.INCONCLUSIVE
    assert test.why.startswith("contradicted only if losses are harmless")
    small = make_claim(direction=GREATER, minimum_effect_of_interest=0.6)
    study = make_study(hypotheses=(small,), run_budget=RunBudget(replicates=15))
    assert judge_with_losses(study, noisy(), "broken").verdict is TestVerdict.NOT_SUPPORTED
    test = judge_with_losses(study, noisy(), "broken", low=7, high=7)
    assert test.verdict is TestVerdict.INCONCLUSIVE
    assert test.why.startswith("not supported only if losses are harmless")


def test_several_levels_differ_only_if_losses_are_harmless():
    factors = (Factor("arm", levels=("plain", "fancy", "wild")),)
    study = make_study(factors=factors, run_budget=RunBudget(replicates=10))
    test = judge_with_losses(study, noisy(), "no value", low=18)
    assert test.verdict is HARMLESS
    assert "18 of 40 for fancy, 0 of 40 for wild and 0 of 40 for plain" in test.why


def test_an_interaction_is_supported_only_if_losses_are_harmless():
    claim = make_claim(kind=HypothesisKind.MODERATION, moderators=(Moderator("mod"),))
    study = make_study(
        factors=(Factor("arm", levels=("plain", "fancy")), Factor("mod", levels=("off", "on"))),
        hypotheses=(claim,),
        run_budget=RunBudget(replicates=10),
    )
    conditions, results = simulate(study, noisy(), seed=4)
    levels = {c.condition_id: (level(c), level(c, "mod")) for c in conditions}
    cell = [r for r in results if levels[r.run_spec.condition_id] == ("fancy", "on")]
    lost = {r.run_id for r in sorted(cell, key=lambda r: r.metrics["score"])[:20]}
    lost_results = lose(results, lambda result: result.run_id in lost, "broken")
    (test,) = judge_hypotheses(study, conditions, lost_results)
    assert test.verdict is HARMLESS
    assert "20 of 40 for fancy × on" in test.why


def test_a_slope_is_supported_only_if_losses_are_harmless():
    x = Factor("x", levels=tuple(range(12)))
    claim = make_claim(independent_vars=("x",))
    study = make_study(factors=(x,), hypotheses=(claim,), run_budget=RunBudget(replicates=4))
    conditions, results = simulate(study, lambda spec, c, rng: rng.gauss(0, 1))
    at = {c.condition_id: level(c, "x") for c in conditions}
    lost = lose(
        results,
        lambda r: at[r.run_spec.condition_id] >= 6 and r.metrics["score"] < -0.4,
        "failed",
    )
    (test,) = judge_hypotheses(study, conditions, lost)
    assert test.verdict is HARMLESS
    assert "for upper values of x" in test.why


@pytest.mark.parametrize("word", ["mann_whitney", "paired_t", "mixed_effects"])
def test_losses_are_allowed_for_whatever_the_test_is(word):
    study = make_study(
        analysis_plans=(make_plan(word),),
        hypotheses=(make_claim(direction=GREATER),),
        problem_ids=tuple(f"p{number}" for number in range(10)),
        run_budget=RunBudget(replicates=6),
    )
    test = judge_with_losses(study, noisy(fancy=0.1), "broken", low=20)
    assert test.verdict is not TestVerdict.SUPPORTED
    assert "20 of 60 for fancy" in test.why


def test_the_worst_case_is_adjusted_for_the_family_as_the_test_is():
    claims = [make_claim(hypothesis_id=f"h{n}", direction=GREATER) for n in (1, 2)]
    plan = make_plan(hypothesis_ids=("h1", "h2"), multiple_comparison_policy="bonferroni")
    study = make_study(hypotheses=tuple(claims), analysis_plans=(plan,))
    conditions, results = simulate(study, noisy(fancy=2.0))
    ranked = rank_arm(conditions, results, "fancy")
    results = lose(results, lambda result: result.run_id in ranked[:1], "failed")
    for test in judge_hypotheses(study, conditions, results):
        assert test.p_adjusted == pytest.approx(2 * test.p_value)
        assert test.losses.worst_case == str(test.verdict) == "supported"


def test_runs_that_count_as_zero_are_not_lost_but_broken_ones_are():
    outcomes = (OutcomeSpec("score", primary=True, missing_data_policy="zero"),)
    study = make_study(outcomes=outcomes, run_budget=RunBudget(replicates=10))
    failed = judge_with_losses(study, noisy(fancy=4.0), "failed", low=13)
    assert (failed.verdict, failed.losses) == (TestVerdict.SUPPORTED, None)
    broken = judge_with_losses(study, noisy(fancy=4.0), "broken", low=13)
    assert broken.verdict is HARMLESS


def test_a_plan_that_filters_by_status_has_lost_the_failed_runs():
    plan = make_plan(filters={"status": "success"})
    study = make_study(analysis_plans=(plan,), run_budget=RunBudget(replicates=10))
    test = judge_with_losses(study, noisy(), "failed", low=14)
    assert test.verdict is HARMLESS
    assert {group.name: group.failed for group in test.groups} == {"fancy": 14, "plain": 0}


# -- the flow of runs --


def test_every_group_shows_the_flow_of_its_runs():
    study = make_study()
    conditions, results = simulate(study, noisy(fancy=9.0))
    fancy = rank_arm(conditions, results, "fancy")
    results = lose(results, lambda r: r.run_id in fancy[:2], "failed")
    results = lose(results, lambda r: r.run_id in fancy[2:5], "broken")
    results = lose(results, lambda r: r.run_id == fancy[5], "no value")
    results = [r for r in results if r.run_id not in fancy[6:10]]
    (test,) = judge_hypotheses(study, conditions, results)
    group = test.groups[0]
    flow = (group.planned, group.runs, group.failed, group.broken, group.pending, group.missing)
    assert (group.name, *flow, group.n) == ("fancy", 20, 13, 2, 3, 4, 1, 10)
    report = " ".join(full_report(study, conditions, results).split())
    assert "| fancy | 20 | 13 | 2 | 3 | 4 | 1 | 10 |" in report
    assert "| all runs | 40 | 33 | 2 | 3 | 4 | 1 | 30 |" in report
    assert "2 failed · 3 broken" in report
    facts = report_facts(study, conditions, results)
    assert "1 successful run without a value of `score`" in facts["deviations"]
    assert facts["flow"] == [
        {
            "name": "all runs",
            "planned": 40,
            "finished": 33,
            "failed": 2,
            "broken": 3,
            "pending": 4,
            "no_value": {"score": 1},
            "used": {"score": 30},
        }
    ]
    assert facts["tests"][0]["groups"][0]["broken"] == 3
    assert facts["tests"][0]["losses"]["arms"][0] == {"name": "fancy", "lost": 6, "runs": 16}


def test_the_flow_of_a_study_is_by_agent_if_there_are_several():
    study = make_study(agent_specs=("a", "b"))
    conditions, results = simulate(study, noisy())
    results = lose(results, lambda r: r.run_spec.agent_spec_ref == "b", "broken")
    flow = report_facts(study, conditions, results)["flow"]
    assert [(row["name"], row["planned"], row["broken"]) for row in flow] == [
        ("all runs", 80, 40),
        ("a", 40, 0),
        ("b", 40, 40),
    ]


def test_filters_and_a_balanced_budget_count_in_the_planned_runs():
    plan = make_plan(filters={"replicate": [1, 2], "problem_id": ["p1", "p2"]})
    study = make_study(analysis_plans=(plan,))
    (test,) = judge_hypotheses(study, *simulate(study, noisy()))
    assert [(g.planned, g.runs, g.pending) for g in test.groups] == [(4, 4, 0)] * 2
    budget = RunBudget(replicates=5, max_runs=20, max_runs_policy="balanced")
    study = make_study(run_budget=budget)
    (test,) = judge_hypotheses(study, *simulate(study, noisy()))
    assert [group.planned for group in test.groups] == [10, 10]


def test_a_finished_study_with_a_balanced_budget_is_no_interim_look(tmp_path):
    budget = {"max_runs": 6, "max_runs_policy": "balanced"}
    run(make_small_study(tmp_path, replicates=4, budget=budget))
    facts = json.loads(CliRunner().invoke(cli, ["report", str(tmp_path), "--json"]).stdout)
    assert (facts["planned"], facts["pending"]) == (6, 0)
    assert facts["deviations"] == ["6 runs left out evenly over the conditions, by max_runs"]


def test_runs_not_done_yet_that_differ_between_groups_are_named():
    study = make_study()
    conditions, results = simulate(study, noisy())
    late = set(rank_arm(conditions, results, "fancy")[:8])
    (test,) = judge_hypotheses(study, conditions, [r for r in results if r.run_id not in late])
    assert any("runs that are not done yet differ" in note for note in test.notes)
    assert test.losses is None


def test_broken_runs_of_a_ledger_are_in_the_report(tmp_path):
    def agent(task):
        if task.factors["x"] == 3:
            raise Broken("no network")
        return {"x": task.factors["x"]}

    run(make_small_study(tmp_path, budget={"retries": 0}), agent)
    done = CliRunner().invoke(cli, ["report", str(tmp_path), "--json"])
    flow = json.loads(done.stdout)["flow"][0]
    assert (flow["planned"], flow["finished"], flow["broken"], flow["pending"]) == (6, 4, 2, 0)
    text = CliRunner().invoke(cli, ["report", str(tmp_path)]).output
    assert "broken" in text


def test_unequal_groups_by_plan_are_named():
    (test,) = judge_hypotheses(study := make_study(), *simulate(study, noisy()))
    assert not any("unequal size by plan" in note for note in test.notes)
    matrix = make_study(
        factors=(Factor("arm", levels=("plain", "fancy")), Factor("size", levels=(1, 2, 3))),
        constraints=[{"constraint_id": "c", "expression": 'arm == "plain" or size == 1'}],
    )
    (test,) = judge_hypotheses(matrix, *simulate(matrix, noisy()))
    assert "the groups are of unequal size by plan: 20 for fancy, 60 for plain" in test.notes


def test_a_successful_run_without_metrics_has_no_value():
    study = make_study()
    conditions, results = simulate(study, noisy(fancy=5.0))
    results = [succeed(results[0].run_spec, {}), *results[1:]]
    (test,) = judge_hypotheses(study, conditions, results)
    assert sum(group.missing for group in test.groups) == 1
