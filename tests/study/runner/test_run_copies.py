"""What a run changes in its problem and its condition is seen by no other run, and in no table."""

import copy
import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
from run_kit import TABLES, make_study, read_table, run

from fairtrial import Factor, Level, ProblemPacket, RunOutput, Task, build_design, plan_runs
from fairtrial.study.problems import run_copies

LEVELS = (
    Level("cold", {"temperature": 0.5, "stop": ["a"]}),
    Level("hot", {"temperature": 1.0, "stop": ["b"]}),
)
COLUMNS = {"conditions.csv": None, "runs.csv": ("run_id", "status"), "evaluations.csv": None}


def spoil(value):
    """Change every list and mapping inside a value."""
    for item in list(value.values() if isinstance(value, dict) else value):
        if isinstance(item, (dict, list)):
            spoil(item)
    if isinstance(value, dict):
        value["spoiled"] = True
    else:
        value.append("spoiled")


def score(x):
    return {"score": x}


def make_packet():
    payload = {"items": [1, [2]], "n": {"a": 1}}
    return ProblemPacket("p", "f", "b", payload, {"notes": ["x"]}, score)


def read_only(task):
    assert "spoiled" not in str(task.problem.payload) + str(task.problem.metadata)
    assert "spoiled" not in str(task.condition) + str(task.run_spec)
    return {"x": len(task.problem.payload["items"]) + task.factors["model"]["temperature"]}


def spoiler(task):
    output = read_only(task)
    for value in (
        task.problem.payload,
        task.problem.metadata,
        task.condition.factor_assignments,
        task.condition.metadata,
        task.run_spec.execution_metadata,
    ):
        spoil(value)
    return output


def tables(folder):
    return {
        name: [
            {key: row[key] for key in COLUMNS[name] or row if "time" not in key}
            for row in read_table(folder, name)
        ]
        for name in TABLES
        if name in COLUMNS
    }


@pytest.mark.parametrize("executor", ["serial", "threads", "processes"])
def test_what_an_agent_changes_is_seen_by_no_other_run_and_in_no_table(tmp_path, executor):
    folders = {}
    for agent in (spoiler, read_only):
        folders[agent] = tmp_path / agent.__name__
        study = make_study(folders[agent], factors=(Factor("model", levels=LEVELS),), replicates=4)
        packet = make_packet()
        results = run(study, agent, packet, executor=executor, parallelism=2)
        assert [result.error_info for result in results] == [None] * 8
        assert packet == make_packet()
    assert tables(folders[spoiler]) == tables(folders[read_only])


def test_what_a_condition_runner_changes_is_in_no_table(tmp_path):
    def runner(run_spec, condition):
        spoil(condition.factor_assignments)
        return RunOutput({"a": 1})

    study = make_study(tmp_path, agent_specs=(), problem_ids=())
    run(study, condition_runner=runner)
    assert "spoiled" not in Path(tmp_path, "conditions.csv").read_text("utf-8")


def test_what_an_evaluator_changes_in_an_output_is_not_stored(tmp_path):
    def evaluate(answer):
        answer.clear()
        return 1.0

    packet = dataclasses.replace(make_packet(), evaluator=evaluate)
    (result,) = run(make_study(tmp_path, (1,), 1), lambda task: {"answer": [1, 2]}, packet)
    assert result.outputs == {"answer": [1, 2]}


class OwnProblem:
    problem_id, family, brief = "p", "f", "b"

    def __init__(self):
        self.rows, self.lock = [1], object()

    def evaluate(self, output):
        return float(len(self.rows))


def test_lists_of_a_problem_of_the_users_own_class_are_copied_for_each_run(tmp_path):
    problem = OwnProblem()

    def agent(task):
        assert task.problem.lock is problem.lock
        task.problem.rows.append(2)
        return {"rows": len(task.problem.rows)}

    results = run(make_study(tmp_path), agent, problem, executor="serial")
    assert [result.outputs["rows"] for result in results] == [2] * 6
    assert {result.metrics["primary_outcome"] for result in results} == {1.0}


def test_a_payload_that_no_agent_reads_is_not_copied():
    class Large(dict):
        def __deepcopy__(self, memo):
            raise AssertionError("copied")

    packet = ProblemPacket("p", payload=Large())
    assert run_copies.copy_problem(packet).brief == packet.brief


def test_a_view_of_a_packet_behaves_like_the_packet():
    packet = ProblemPacket("p", "f", "b", {"a": [1]}, {"m": 1})
    view = run_copies.copy_problem(packet)
    assert view == packet
    assert isinstance(view, ProblemPacket)
    assert dataclasses.replace(view, brief="c") == dataclasses.replace(packet, brief="c")
    assert dataclasses.asdict(view) == dataclasses.asdict(packet)
    assert copy.deepcopy(view) == packet
    assert pickle.loads(pickle.dumps(view)) == packet
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.brief = "other"


def test_arrays_and_subclasses_of_containers_are_copied_and_other_objects_are_shared():
    class Names(list):
        pass

    shared = object()
    value = {"array": np.arange(3), "names": Names(["a"]), "set": {1}, "object": shared}
    own = run_copies.copy_value(value)
    own["array"][0], own["object"] = 9, own["object"]
    own["names"].append("b")
    own["set"].add(2)
    assert value["array"][0] == 0
    assert (value["names"], value["set"]) == (["a"], {1})
    assert type(own["names"]) is Names
    assert own["object"] is shared


def test_a_value_that_holds_itself_is_shared():
    loop = [[]]
    loop[0].append(loop)
    assert run_copies.copy_value(loop) is loop


def test_a_task_made_by_hand_has_the_problem_that_it_was_given(tmp_path):
    study = make_study(tmp_path)
    (condition, *_), packet = build_design(study), make_packet()
    task = Task(packet, condition, next(iter(plan_runs(study, [condition]))))
    assert task.problem is packet
