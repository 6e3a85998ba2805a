"""Resources of runs: they limit what runs at once, and never change ids or fingerprints."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from fairtrial import AgentBinding, Factor, ProblemBinding, RunBudget, Study, build_design
from fairtrial.core import LabError, StudyError
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.fingerprint import study_fingerprint
from fairtrial.study.model.resources import count_fitting
from fairtrial.study.runner import machine_room
from fairtrial.study.runner.assignment_feed import AssignmentFeed, StartConditions
from fairtrial.study.runner.executors.ray_cluster import RayCluster, _actor_options
from fairtrial.study.runner.machine_room import MachineRoom, find_needs, run_demand
from fairtrial.study.runner.preparation import dry_run_validate


def make_study(small=None, big=None, problem=None, **given):
    return Study(
        "s",
        "s",
        factors=(Factor("x", levels=(1, 2)),),
        agents={
            "small": AgentBinding("math:floor", resources=small),
            "big": AgentBinding("math:ceil", resources=big),
        },
        problems={"p": ProblemBinding(brief="b", resources=problem)},
        agent_specs=("small", "big"),
        problem_ids=("p",),
        run_budget=RunBudget(replicates=4),
        **given,
    )


def make_feed(study, **totals):
    plan = RunPlan(study, build_design(study))
    return AssignmentFeed(
        plan,
        array("Q", range(len(plan))),
        iter(range(len(plan))),
        conditions=StartConditions(
            find_demand=lambda agent, problem: run_demand(study, agent, problem),
            room=MachineRoom({"cpus": 0.0, "gpus": 0.0, "memory_gb": 0.0, **totals}),
        ),
    )


def test_a_study_without_resources_is_dumped_as_ever():
    data = make_study().to_dict()
    assert "environment" not in data
    assert "resources" not in data["agents"]["small"]
    assert "resources" not in data["problems"]["p"]


def test_resources_survive_the_round_trip_and_leave_the_fingerprint_alone():
    plain, stated = make_study(), make_study({"cpus": 2}, problem={"custom": {"tpu": 1}})
    assert Study.from_dict(stated.to_dict()) == stated
    conditions = build_design(plain)
    assert study_fingerprint(plain, conditions) == study_fingerprint(stated, conditions)


def test_agent_and_problem_run_one_after_the_other_so_the_larger_amount_counts():
    study = make_study({"cpus": 2}, problem={"cpus": 1, "memory_gb": 3})
    assert run_demand(study, "small", "p") == (("cpus", 2.0), ("memory_gb", 3.0))
    assert run_demand(study, "big", "p") == (("cpus", 1.0), ("memory_gb", 3.0))


@given(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=2, max_size=2), st.integers(4, 9))
def test_every_run_is_handed_out_once_and_never_more_than_there_is_room_for(cpus, total):
    study = make_study({"cpus": cpus[0]}, {"cpus": cpus[1]})
    feed, done, under_way = make_feed(study, cpus=total), [], []
    while (item := feed()) is not None:
        if isinstance(item, float):
            done.append(under_way.pop(0))
            feed.finish(done[-1].execution_index)
        else:
            under_way.append(item)
            assert sum(dict(each.demand)["cpus"] for each in under_way) <= total
    assert sorted(item.execution_index for item in done + under_way) == list(range(16))


def test_what_this_machine_can_never_run_is_an_error_before_anything_runs(monkeypatch):
    monkeypatch.setattr(
        machine_room, "measure_machine", lambda: {"cpus": 2.0, "gpus": 0.0, "memory_gb": 8.0}
    )
    (error,) = dry_run_validate(make_study({"gpus": 1})).errors
    assert "needs 1 cpus, 1 gpus; this machine has 2 cpus, 8 memory_gb" in error


def test_an_environment_variable_that_is_not_set_is_an_error_before_anything_runs(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    (error,) = dry_run_validate(make_study(environment=("NO_SUCH_KEY",))).errors
    assert "NO_SUCH_KEY is not set" in error


def test_agents_that_the_study_does_not_use_are_not_checked():
    assert find_needs(replace(make_study({"gpus": 99}), agent_specs=("big",))).demands == ()


def test_bad_resources_are_refused():
    with pytest.raises(StudyError, match="must be 0 or more"):
        make_study({"cpus": -1})
    with pytest.raises(StudyError, match="a resource with a key of its own"):
        make_study({"custom": {"cpus": 1}})


def test_an_actor_asks_ray_for_what_its_runs_need():
    demand = run_demand(
        make_study({"gpus": 0.5, "memory_gb": 2, "custom": {"tpu": 1}}), "small", "p"
    )
    assert _actor_options(demand) == {
        "num_cpus": 1.0,
        "num_gpus": 0.5,
        "memory": 2 * 1024**3,
        "resources": {"tpu": 1.0},
    }


def test_what_no_node_can_ever_run_is_said_at_the_start():
    class Nodes(RayCluster):
        def __init__(self):
            pass

        def _nodes(self):
            return [{"cpus": 4.0, "memory_gb": 8.0}, {"cpus": 2.0, "gpus": 1.0}]

    needs = find_needs(make_study({"gpus": 1, "cpus": 2}))
    Nodes().refuse_impossible(needs.demands)
    assert Nodes().capacity(needs.demands) == 6, "those of the other agent take one CPU each"
    assert Nodes().capacity([run_demand(make_study({"gpus": 1}), "small", "p")]) == 1
    with pytest.raises(LabError, match="no node of the cluster can ever run what needs 3 cpus, 1"):
        Nodes().refuse_impossible(find_needs(make_study({"cpus": 3, "gpus": 1})).demands)


def test_without_a_demand_there_is_always_room():
    assert count_fitting((), {}) == float("inf")
