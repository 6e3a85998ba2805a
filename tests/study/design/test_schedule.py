"""Planned runs: agents, problems, replicates, and the order of execution."""

import itertools
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial import (
    AgentBinding,
    Block,
    Condition,
    Constraint,
    DesignSpec,
    Factor,
    ProblemBinding,
    RunBudget,
    SeedPolicy,
    Study,
    StudyError,
    build_design,
    plan_runs,
)
from fairtrial.study import execution_order
from fairtrial.study.design import count_runs, runs as schedule
from fairtrial.study.model.identity import run_id_maker
from fairtrial.study.report import summarize_plan


def study_of(**changes):
    base = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(1, 2, 3)),),
        agent_specs=("a", "b"),
        problem_ids=("p", "q"),
        run_budget=RunBudget(replicates=2),
    )
    return replace(base, **changes)


def planned(study):
    return list(plan_runs(study, build_design(study)))


def test_plan_order_is_conditions_replicates_agents_problems():
    study = study_of()
    conditions = build_design(study)
    expected = list(
        itertools.product([c.condition_id for c in conditions], (1, 2), ("a", "b"), ("p", "q"))
    )
    runs = list(plan_runs(study, conditions))
    got = [(r.condition_id, r.replicate, r.agent_spec_ref, r.problem_id) for r in runs]
    assert got == expected
    assert count_runs(study, conditions) == len(expected)


def test_a_run_carries_its_id_its_seed_and_where_it_came_from():
    study = study_of(seed_policy=SeedPolicy(base_seed=5))
    run = planned(study)[0]
    assert run.run_id == run_id_maker("s", run.condition_id, "a", "p")(1)
    assert run.seed == study.seed_policy.derive_seed("s", run.condition_id, 1, "a:p")
    assert run.execution_metadata == {
        "agent_id": "a",
        "problem_id": "p",
        "condition_fingerprint": '{"blocks":{},"factors":{"x":1}}',
    }


@pytest.mark.parametrize("name", ["agent_id", "agent", "agent_spec"])
def test_a_factor_may_name_the_agent(name):
    runs = planned(study_of(factors=(Factor(name, levels=("m", "n")),)))
    assert {run.agent_spec_ref for run in runs} == {"m", "n"}
    assert len(runs) == 2 * 2 * 2


@pytest.mark.parametrize("name", ["problem_id", "problem"])
def test_a_factor_may_name_the_problem(name):
    runs = planned(study_of(factors=(Factor(name, levels=(1, 2)),)))
    assert {run.problem_id for run in runs} == {"1", "2"}


def test_agent_id_counts_before_agent_when_a_study_has_both():
    factors = (Factor("agent", levels=("x",)), Factor("agent_id", levels=("y",)))
    assert {run.agent_spec_ref for run in planned(study_of(factors=factors))} == {"y"}


def test_without_names_there_are_a_default_agent_and_a_default_problem():
    run = planned(study_of(agent_specs=(), problem_ids=()))[0]
    assert (run.agent_spec_ref, run.problem_id) == ("default-agent", "default-problem")


def test_bound_names_stand_in_for_lists_that_are_not_given():
    study = study_of(
        agent_specs=(),
        problem_ids=(),
        agents={"m": AgentBinding("pkg:m"), "n": AgentBinding("pkg:n")},
        problems={"z": ProblemBinding(use="zed")},
    )
    runs = planned(study)
    assert {(run.agent_spec_ref, run.problem_id) for run in runs} == {("m", "z"), ("n", "z")}


def test_a_condition_runner_has_neither_agent_nor_problem():
    study = study_of(condition_runner="m:f")
    run = planned(study)[0]
    assert (run.agent_spec_ref, run.problem_spec_ref, run.problem_id) == (None, None, "")
    assert run.run_id == run_id_maker("s", run.condition_id, None, None)(1)
    assert run.seed == study.seed_policy.derive_seed("s", run.condition_id, 1, "None:None")


def test_inadmissible_conditions_are_never_planned():
    study = study_of(constraints=(Constraint("c", "", expression="x != 2"),))
    excluded = [c.condition_id for c in build_design(study) if not c.admissible]
    assert len(excluded) == 1
    assert not {run.condition_id for run in planned(study)} & set(excluded)


def test_replicates_of_a_design_without_rows_multiply_those_of_the_budget():
    study = study_of(design_spec=DesignSpec(replicates=3))
    assert len(planned(study)) == 3 * (2 * 3) * 2 * 2
    assert max(run.replicate for run in planned(study)) == 6


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_more_replicates_or_levels_keep_every_run_id_and_seed(levels, replicates, more):
    small = study_of(
        factors=(Factor("x", levels=tuple(range(levels))),),
        run_budget=RunBudget(replicates=replicates),
    )
    large = study_of(
        factors=(Factor("x", levels=tuple(range(levels + more))),),
        run_budget=RunBudget(replicates=replicates + more),
    )
    before = {run.run_id: run.seed for run in planned(small)}
    after = {run.run_id: run.seed for run in planned(large)}
    assert before.items() <= after.items()


def test_a_name_that_is_listed_twice_is_refused():
    with pytest.raises(StudyError, match=r"agent_specs\[1\]: 'a' is listed twice"):
        plan_runs(study_of(agent_specs=("a", "a")), [])


def test_a_condition_that_is_given_twice_is_refused():
    condition = Condition("cond-1", {"x": 1})
    with pytest.raises(StudyError, match="is planned twice"):
        plan_runs(study_of(), [condition, condition])


def test_two_runs_that_hash_to_one_id_are_an_error_that_says_which(monkeypatch):
    study = study_of()
    conditions = build_design(study)
    schedule.refuse_collisions(study, conditions)
    real = schedule.run_id_numbers
    monkeypatch.setattr(schedule, "run_id_numbers", lambda *parts: (n >> 44 for n in real(*parts)))
    real_maker = schedule.run_id_maker
    monkeypatch.setattr(
        schedule, "run_id_maker", lambda *parts: lambda n: real_maker(*parts)(n)[:5]
    )
    with pytest.raises(StudyError) as caught:
        schedule.refuse_collisions(study, conditions)
    assert "by chance" in str(caught.value)
    assert "change study_id" in str(caught.value)
    assert str(caught.value).count("replicate") == 2
    with pytest.raises(StudyError, match="by chance"):
        summarize_plan(study)  # what `fairtrial plan` shows


def test_any_number_of_runs_can_be_counted():
    study = study_of(run_budget=RunBudget(replicates=10**30))
    assert count_runs(study, build_design(study)) == 12 * 10**30


def test_a_million_runs_are_planned_lazily_in_little_memory():
    study = study_of(
        factors=(Factor("x", levels=tuple(range(1000))),),
        agent_specs=(),
        problem_ids=(),
        run_budget=RunBudget(replicates=1000),
    )
    conditions = build_design(study)
    assert count_runs(study, conditions) == 1_000_000
    runs = plan_runs(study, conditions)
    next(runs)
    tracemalloc.start()
    try:
        for _ in itertools.islice(runs, 20_000):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def test_execution_order_is_a_seeded_permutation_of_the_plan():
    study = study_of()
    conditions = build_design(study)
    order = list(execution_order(study, conditions))
    assert sorted(order) == list(range(count_runs(study, conditions)))
    assert order == list(execution_order(study, conditions))
    assert order != sorted(order)
    other = replace(study, seed_policy=SeedPolicy(base_seed=1))
    assert order != list(execution_order(other, conditions))


def test_execution_finishes_a_block_before_the_next_with_an_order_of_its_own_in_each():
    study = study_of(blocks=(Block("site", levels=("u", "v")),), run_budget=RunBudget(replicates=4))
    conditions = build_design(study)
    runs = list(plan_runs(study, conditions))
    block_of = {c.condition_id: c.block_assignments["site"] for c in conditions}
    factors_of = {c.condition_id: c.factor_assignments["x"] for c in conditions}
    ordered = [runs[place] for place in execution_order(study, conditions)]
    blocks = [block_of[run.condition_id] for run in ordered]
    assert blocks == sorted(blocks)
    half = len(ordered) // 2
    first, second = (
        [(factors_of[r.condition_id], r.replicate, r.agent_spec_ref, r.problem_id) for r in part]
        for part in (ordered[:half], ordered[half:])
    )
    assert sorted(first) == sorted(second)
    assert first != second


def test_replicates_do_not_sit_side_by_side_in_time():
    study = study_of(run_budget=RunBudget(replicates=50))
    conditions = build_design(study)
    runs = list(plan_runs(study, conditions))
    ordered = [runs[place].condition_id for place in execution_order(study, conditions)]
    neighbors = sum(one == two for one, two in itertools.pairwise(ordered)) / (len(ordered) - 1)
    assert neighbors < 0.45  # in plan order it is nearly 1, by chance a third


def test_the_numbers_that_are_compared_are_the_digits_of_the_run_ids():
    study = study_of(agent_specs=("ä", "b"), run_budget=RunBudget(replicates=3))
    conditions = build_design(study)
    names = [(c.condition_id, itertools.product(("ä", "b"), ("p", None))) for c in conditions]
    numbers = list(schedule.run_id_numbers(study.study_id, names, range(1, 4)))
    makers = [
        schedule.run_id_maker(study.study_id, c.condition_id, agent, problem)
        for c in conditions
        for agent, problem in itertools.product(("ä", "b"), ("p", None))
    ]
    assert numbers == [int(make(n)[4:], 16) for make in makers for n in range(1, 4)]
