"""Batches of planned looks: complete blocks, whole problems, unchanged ids and seeds."""

import pytest
from hypothesis import given, settings, strategies as st
from stopping_kit import hypothesis, make_study

from fairtrial import StudyError, validate_study
from fairtrial.study import build_design, execution_order, plan_runs
from fairtrial.study.design.look_schedule import schedule_looks
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.report import summarize_plan


def schedule(**fields):
    study = make_study(**fields)
    return schedule_looks(study, build_design(study))


def test_a_study_without_stopping_has_no_looks():
    assert schedule(stopping=None) is None


def test_looks_add_whole_problems():
    looks = schedule(problems=12, stopping={"looks": 5})
    assert (looks.unit, looks.units) == ("problems", (4, 6, 8, 10, 12))
    assert looks.fractions[-1] == 1


def test_the_first_look_waits_for_min_problems():
    looks = schedule(problems=12, stopping={"looks": 3, "min_problems": 8})
    assert looks.units == (8, 10, 12)


def test_few_problems_are_looked_at_by_replicates():
    looks = schedule(problems=3, replicates=10, stopping={"looks": 5})
    assert (looks.unit, looks.units, looks.clusters) == ("replicates", (2, 4, 6, 8, 10), 3)


def test_claims_about_these_problems_only_are_looked_at_by_replicates():
    plan = {"generalize": "these_problems_only"}
    looks = schedule(problems=12, replicates=10, plan=plan, stopping={"looks": 5})
    assert (looks.unit, looks.units, looks.clusters) == ("replicates", (2, 4, 6, 8, 10), None)
    assert looks.counts == (24, 48, 72, 96, 120)


def test_claims_about_problems_are_looked_at_by_replicates():
    claim = {**hypothesis("h1", "p0", "p1"), "independent_vars": ["problem_id"]}
    looks = schedule(problems=12, replicates=8, hypotheses=[claim], stopping={"looks": 4})
    assert looks.unit == "replicates"


def test_there_are_no_more_looks_than_units():
    assert schedule(problems=6, stopping={"looks": 20}).units == (4, 5, 6)


@given(
    problems=st.integers(1, 15),
    replicates=st.integers(1, 6),
    looks=st.integers(1, 9),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_batches_have_complete_blocks_in_any_study(problems, replicates, looks, seed):
    study = make_study(
        problems=problems,
        replicates=replicates,
        stopping={"looks": looks},
        seed_policy={"base_seed": seed},
    )
    plan = RunPlan(study, build_design(study))
    conditions = {}
    for spec, batch in zip(plan.specs(), plan.batches, strict=True):
        key = (batch, spec.problem_id, spec.replicate)
        conditions.setdefault(key, []).append(spec.condition_id)
    assert {len(ids) for ids in conditions.values()} == {2}
    batches = [plan.batches[index] for index in plan.order()]
    assert batches == sorted(batches)
    assert set(batches) == set(range(1, plan.schedule.looks + 1))
    assert sorted(plan.order()) == list(range(len(plan)))


def test_looks_change_the_order_but_neither_ids_nor_seeds():
    with_looks, without = make_study(), make_study(stopping=None)
    conditions = build_design(without)
    runs = [
        [(spec.run_id, spec.seed) for spec in plan_runs(study, conditions)]
        for study in (with_looks, without)
    ]
    assert runs[0] == runs[1]
    order = execution_order(with_looks, conditions)
    assert sorted(order) == sorted(execution_order(without, conditions))


def test_the_plan_shows_looks_bounds_and_savings():
    claim = hypothesis("h1", "worked", "plain", minimum_effect_of_interest=1.0)
    study = make_study(problems=20, hypotheses=[claim], stopping={"looks": 5})
    looks = summarize_plan(study).looks
    assert looks.runs == (8, 16, 24, 32, 40)
    assert looks.levels == tuple(sorted(looks.levels))
    assert looks.levels[-1] < 0.05
    assert looks.without_effect < 40
    assert looks.with_effect < looks.without_effect
    assert summarize_plan(make_study(stopping=None)).looks is None


def test_more_looks_save_more_runs():
    claim = hypothesis("h1", "worked", "plain", minimum_effect_of_interest=1.5)
    savings = [
        summarize_plan(
            make_study(
                problems=40, hypotheses=[claim], stopping={"looks": looks, "spending": "pocock"}
            )
        ).looks.with_effect
        for looks in (1, 2, 5)
    ]
    assert savings[0] == 80
    assert savings == sorted(savings, reverse=True)


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        (
            {"run_budget": {"max_runs": 10, "max_runs_policy": "balanced"}},
            "run_budget.max_runs",
            "incomplete",
        ),
        ({"stopping": {"min_problems": 30}}, "min_problems", "at most the number of problems, 12"),
        ({"problems": 1}, "looks", "allows only one look"),
        (
            {"hypotheses": [hypothesis("h1", "worked", "plain", kind="exploratory")]},
            "stopping",
            "no claim of the plan can be decided early",
        ),
    ],
)
def test_stopping_that_can_not_work_is_a_mistake(fields, path, message):
    (text,) = validate_study(make_study(**fields))
    assert path in text
    assert message in text


def test_plans_with_different_stopping_are_a_mistake():
    study = make_study()
    data = study.to_dict()
    data["analysis_plans"].append(
        {**data["analysis_plans"][0], "analysis_plan_id": "other", "stopping": None}
    )
    (text,) = validate_study(type(study).from_dict(data))
    assert "analysis_plans[1].stopping" in text
    assert "differs from that of plan 'main'" in text


def test_impossible_numbers_of_looks_are_a_mistake():
    with pytest.raises(StudyError, match=r"looks.*1 or more"):
        make_study(stopping={"looks": 0})
