"""Comparisons that no plan declared: the statistics of planned claims, marked exploratory."""

import dataclasses

import pytest
from run_kit import run
from simulated_study_kit import fail, make_claim, make_plan, make_study, noisy, simulate

from fairtrial import ProblemPacket, open_results
from fairtrial.core import StudyError
from fairtrial.study import Factor, OutcomeSpec, RunBudget, judge_hypotheses
from fairtrial.study.report.exploration import explore

SAME = ("estimate", "p_value", "p_adjusted", "interval", "method", "unit", "by_problem", "groups")


def family_of(problem):
    return "easy" if problem in ("p1", "p2", "p3") else "hard"


def in_families(results):
    """Give problems their families, as stored results have them."""
    for result in results:
        spec = result.run_spec
        metadata = {**spec.execution_metadata, "problem_family": family_of(spec.problem_spec_ref)}
        spec = dataclasses.replace(spec, execution_metadata=metadata)
        yield dataclasses.replace(result, run_spec=spec)


def test_a_comparison_has_the_numbers_that_a_planned_claim_would_have():
    study = make_study(problem_ids=tuple(f"p{i}" for i in range(8)))
    conditions, results = simulate(study, noisy(fancy=3.0))
    planned = judge_hypotheses(study, conditions, results)[0]
    bare = dataclasses.replace(study, hypotheses=(), analysis_plans=())
    (test,) = explore(bare, conditions, results, ["arm"]).tests
    assert {name: getattr(test, name) for name in SAME} == {
        name: getattr(planned, name) for name in SAME
    }
    assert planned.verdict == "supported"
    assert (test.verdict, test.verdict_with, test.standing) == (
        "exploratory", "supported", "exploratory",
    )  # fmt: skip
    assert test.why.startswith("no plan declared this comparison")


def test_comparisons_made_together_are_adjusted_together():
    study = make_study(outcomes=(OutcomeSpec("score"), OutcomeSpec("time")))
    value = lambda spec, condition, rng: {"score": rng.gauss(0, 1), "time": rng.gauss(0, 1)}  # noqa: E731
    conditions, results = simulate(study, value)
    both = explore(study, conditions, results, ["arm"], outcomes=["score", "time"])
    alone = explore(study, conditions, results, ["arm"], outcomes=["score"])
    assert [test.family for test in both.tests] == [2, 2]
    assert alone.tests[0].family == 1
    assert alone.tests[0].p_value == both.tests[0].p_value
    assert both.tests[0].p_adjusted >= both.tests[0].p_value


def test_the_plans_of_the_study_set_policy_and_target():
    plan = make_plan(multiple_comparison_policy="bonferroni", generalize="these_problems_only")
    study = make_study(analysis_plans=(plan,), outcomes=(OutcomeSpec("score"), OutcomeSpec("time")))
    value = lambda spec, condition, rng: {"score": rng.gauss(0, 1), "time": rng.gauss(0, 1)}  # noqa: E731
    conditions, results = simulate(study, value)
    tests = explore(study, conditions, results, ["arm"], outcomes=["score", "time"]).tests
    assert {test.policy for test in tests} == {"bonferroni"}
    (claim,) = judge_hypotheses(study, conditions, results)
    assert tests[0].p_value == claim.p_value


def test_groups_of_problems_are_tested_each_by_their_own_runs():
    study = make_study(problem_ids=tuple(f"p{i}" for i in range(1, 7)))

    def value(spec, condition, rng):
        arm = condition.factor_assignments["arm"]
        is_helped = family_of(spec.problem_spec_ref) == "hard" and arm == "fancy"
        return 3.0 * is_helped + rng.gauss(0, 0.1)

    conditions, results = simulate(study, value)
    by_family = explore(study, conditions, in_families(results), ["arm"], by="family")
    assert list(by_family.parts) == ["easy", "hard"]
    easy, hard = (tests[0] for tests in by_family.parts.values())
    assert abs(easy.estimate) < 0.2
    assert hard.estimate == pytest.approx(3.0, abs=0.2)
    assert {group.runs for group in hard.groups} == {15}
    by_problem = explore(study, conditions, results, ["arm"], by="problem")
    assert list(by_problem.parts) == list(study.problem_ids)
    effects = {effect.problem: effect.estimate for effect in by_problem.tests[0].by_problem}
    found = {name: tests[0].estimate for name, tests in by_problem.parts.items()}
    assert found == pytest.approx(effects)
    assert [tests[0].family for tests in by_problem.parts.values()] == [6] * 6


def test_levels_of_another_factor_are_groups():
    arm, size = Factor("arm", levels=("plain", "fancy")), Factor("size", levels=(1, 2))
    study = make_study(factors=(arm, size))

    def value(spec, condition, rng):
        given = condition.factor_assignments
        return given["size"] * (given["arm"] == "fancy") + rng.gauss(0, 0.05)

    conditions, results = simulate(study, value)
    parts = explore(study, conditions, results, ["arm"], by="size").parts
    estimates = {group: tests[0].estimate for group, tests in parts.items()}
    assert estimates == pytest.approx({"1": 1.0, "2": 2.0}, abs=0.1)


def test_agents_and_options_of_agents_are_compared():
    study = make_study(agent_specs=("a", "b"))
    conditions, results = simulate(
        study, lambda spec, condition, rng: (spec.agent_spec_ref == "b") + rng.gauss(0, 0.1)
    )
    (test,) = explore(study, conditions, results, ["agent_id"]).tests
    assert test.difference == "b − a"
    assert test.estimate == pytest.approx(1.0, abs=0.2)


def test_an_undeclared_outcome_of_zeros_and_ones_is_tested_as_rates():
    study = make_study(problem_ids=("p1",), run_budget=RunBudget(replicates=30))
    conditions, results = simulate(
        study, lambda spec, condition, rng: {"score": 0.0, "solved": float(rng.random() < 0.5)}
    )
    (test,) = explore(study, conditions, results, ["arm"], outcomes=["solved"]).tests
    assert "Fisher" in test.method


def test_lost_runs_qualify_a_comparison_too():
    study = make_study(problem_ids=("p1",), run_budget=RunBudget(replicates=30))
    conditions, results = simulate(study, noisy(fancy=1.0))
    by_id = {condition.condition_id: condition for condition in conditions}
    results = [
        fail(result.run_spec)
        if by_id[result.run_spec.condition_id].factor_assignments["arm"] == "fancy"
        and result.run_spec.replicate > 5
        else result
        for result in results
    ]
    (test,) = explore(study, conditions, results, ["arm"]).tests
    assert test.losses is not None
    assert not test.losses.is_harmless


BAD = {
    "factor": ({"variables": ["amr"]}, "'amr' is no factor, block or option of the study; did"),
    "nothing": ({"variables": []}, "needs the name of a factor"),
    "outcome": ({"outcomes": ["scoer"]}, "did you mean 'score'?"),
    "group": ({"by": "famly"}, "did you mean 'family'?"),
    "itself": ({"by": "arm"}, "'arm' is what is compared"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_names_are_refused_with_a_suggestion(case):
    given, says = BAD[case]
    study = make_study()
    conditions, results = simulate(study, noisy())
    variables = given.pop("variables", ["arm"])
    with pytest.raises(StudyError) as caught:
        explore(study, conditions, results, variables, **given)
    assert says in str(caught.value)


def test_without_results_there_is_nothing_to_compare():
    study = make_study()
    conditions, _ = simulate(study, noisy())
    with pytest.raises(StudyError, match="no run has ended yet"):
        explore(study, conditions, [], ["arm"])


def test_results_compare_reads_the_ledger_and_says_what_is_pending(tmp_path):
    from run_kit import make_study as make_small

    problems = {
        name: ProblemPacket(name, "sums", "add", {"term": term}, {}, lambda x: {"score": x})
        for name, term in (("p", 1), ("q", 2), ("r", 3), ("t", 4))
    }
    study = make_small(tmp_path / "out", problem_ids=tuple(problems), hypotheses=(), replicates=1)
    run(study, problem_registry=problems, limit=10)
    comparison = open_results(tmp_path / "out").compare("x", by="family")
    assert list(comparison.parts) == ["sums"]
    assert "2 planned runs are not done yet" in " ".join(comparison.notes)
    text = comparison.to_markdown()
    assert "**Exploratory**" in text
    assert "`score` by `x`, for each family of problems" in text
    assert comparison.to_dict()["exploratory"] is True


def test_claims_of_the_study_stay_as_they_are():
    study = make_study(hypotheses=(make_claim(minimum_effect_of_interest=0.5),))
    conditions, results = simulate(study, noisy(fancy=1.0))
    before = [test.to_dict() for test in judge_hypotheses(study, conditions, results)]
    explore(study, conditions, results, ["arm"], by="problem")
    assert [test.to_dict() for test in judge_hypotheses(study, conditions, results)] == before
