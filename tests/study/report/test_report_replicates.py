"""pass@k and the like: one value for the replicates of a problem, and flaky problems."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given, strategies as st
from simulated_study_kit import level, make_plan, make_study, simulate

from fairtrial.study import (
    Factor,
    OutcomeSpec,
    RunBudget,
    build_design,
    full_report,
    judge_hypotheses,
    validate_study,
)
from fairtrial.study.report.replicate_values import combine

ARM = Factor("arm", levels=("plain", "fancy"))


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8), st.data())
def test_values_are_the_mean_over_every_choice_of_runs(values, data):
    count = data.draw(st.integers(1, len(values)))
    choices = list(combinations(values, count))
    assert combine(f"pass@{count}", values) == pytest.approx(fmean(map(max, choices)))
    assert combine(f"pass^{count}", values) == pytest.approx(fmean(map(min, choices)))


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=8), st.data())
def test_the_worst_is_the_mean_of_the_lowest_over_every_choice(values, data):
    count = data.draw(st.integers(1, len(values)))
    lowest = fmean(map(min, combinations(values, count)))
    assert combine(f"worst@{count}", values) == pytest.approx(lowest, abs=1e-9)
    assert combine(f"worst@{len(values) + 1}", values) != combine("mean", values)


def passing(rule, replicates=4, problems=12, **fields):
    return make_study(
        problem_ids=tuple(f"p{number}" for number in range(problems)),
        factors=(ARM,),
        run_budget=RunBudget(replicates=replicates),
        analysis_plans=(make_plan("difference_in_means"),),
        outcomes=(OutcomeSpec("score", primary=True, over_replicates=rule, **fields),),
    )


def sometimes(spec, condition, rng):
    """Fancy passes in one or two of four runs, depending on the problem; plain never."""
    passes = 1 + int(spec.problem_id[1:]) % 2
    return float(level(condition) == "fancy" and spec.replicate <= passes)


@pytest.mark.parametrize(
    ("rule", "difference"),
    [("pass@1", 0.375), ("pass@2", 2 / 3), ("pass^2", 1 / 12), ("mean", 0.375)],
)
def test_hypotheses_are_tested_on_one_value_for_each_problem(rule, difference):
    study = passing(rule)
    (test,) = judge_hypotheses(study, *simulate(study, sometimes))
    assert abs(test.estimate) == pytest.approx(difference)
    assert len(test.by_problem) == 12


def test_more_replicates_of_one_problem_are_no_more_evidence():
    study = passing("pass@2", replicates=30, problems=1)
    (test,) = judge_hypotheses(study, *simulate(study, sometimes))
    assert test.p_value is None


def test_rules_that_need_more_replicates_are_refused():
    (mistake,) = validate_study(passing("pass@5"))[:1]
    assert mistake.startswith("outcomes[0].over_replicates: pass@5 takes 5 replicates")
    with pytest.raises(ValueError, match="expected mean, pass@3"):
        passing("best of 3")


def test_problems_that_pass_and_fail_are_listed():
    study = passing("", problems=3)
    conditions, results = simulate(
        study, lambda spec, condition, rng: float(spec.problem_id == "p1" and spec.replicate > 1)
    )
    report = full_report(study, conditions, results)
    section = report[report.index("## Flaky problems") :]
    assert "In 2 of 6 cases" in section
    assert "| `p1` " in section
    assert "6 of 8" in section
    assert "`p2`" not in section.split("##")[2]
    steady = simulate(study, lambda spec, condition, rng: 1.0)
    assert "Flaky" not in full_report(study, *steady)
    assert build_design(study)
