"""The task of an agent: its random numbers, its workspace, its events."""

import random
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from run_attempt_kit import CONDITION, PACKET, assignment, do, run, work_for

from fairtrial.study import Task
from fairtrial.study.executors import unpack


def test_a_task_describes_the_run():
    task = Task(PACKET, CONDITION, assignment().spec)
    assert task.problem is PACKET
    assert task.condition is CONDITION
    assert task.factors == {"x": 3, "style": "plain"}
    assert task.seed == task.run_spec.seed == assignment().spec.seed


def test_a_task_can_be_made_by_hand_to_try_an_agent_out():
    task = Task(PACKET, CONDITION, assignment().spec)
    task.emit("step", "goes nowhere")
    assert task.workspace.is_dir()
    task.workspace.rmdir()


def test_the_tasks_random_numbers_come_from_the_runs_seed_alone():
    def agent(task):
        return {"own": [task.rng.random() for _ in range(3)], "same": task.rng is task.rng}

    expected = random.Random(assignment().spec.seed)
    ran = run(agent, seed_globals=False)
    assert ran.body["outputs"]["own"] == [expected.random() for _ in range(3)]
    assert ran.body["outputs"]["same"]


# -- the workspace --


def use_workspace(task):
    folder = task.workspace
    assert folder is task.workspace
    assert list(folder.iterdir()) == []
    (folder / "note.txt").write_text("here")
    return {"folder": str(folder)}


def test_each_attempt_has_a_folder_of_its_own_in_the_output_directory(tmp_path):
    work = work_for(use_workspace, workspaces=tmp_path / "workspaces")
    run_id = assignment().spec.run_id
    folders = []
    # The last one has a number that is taken: the study was killed, and counts anew.
    for attempt, name in ((1, "attempt-1"), (2, "attempt-2"), (1, "attempt-1.2")):
        ran = do(work, assignment(attempt=attempt))
        folders.append(Path(ran.body["outputs"]["folder"]))
        assert folders[-1] == tmp_path / "workspaces" / run_id / name
        assert ran.body["artifact_refs"] == [f"workspaces/{run_id}/{name}"]
    assert all((folder / "note.txt").is_file() for folder in folders)


def test_a_folder_that_nobody_asks_for_is_not_made(tmp_path):
    ran = run(lambda task: {}, workspaces=tmp_path / "workspaces")
    assert list(tmp_path.iterdir()) == []
    assert ran.body["artifact_refs"] == []


def test_without_an_output_directory_the_folder_is_gone_after_the_run():
    seen = []

    def judge(output):
        seen.append(Path(output["folder"]).is_dir())  # the evaluator may still look at it
        return 1.0

    ran = run(use_workspace, {"evaluator": judge})
    assert seen == [True]
    assert not Path(ran.body["outputs"]["folder"]).exists()
    assert ran.body["artifact_refs"] == []


def test_a_relative_output_directory_gives_an_absolute_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run(use_workspace, workspaces=Path("out/workspaces"))
    assert Path(ran.body["outputs"]["folder"]).is_relative_to(tmp_path)


# -- events --


def test_events_have_type_time_and_actor():
    def agent(task):
        task.emit("step", "first", depth=1)
        task.emit("tool_call", "second", actor_id="critic", tool_name="grep", level="tool-call")

    before = datetime.now(UTC).isoformat(timespec="milliseconds")
    ran = run(agent)
    first, second = ran.events
    assert before <= first.pop("timestamp") <= datetime.now(UTC).isoformat(timespec="milliseconds")
    assert first == {
        "event_type": "step",
        "text": "first",
        "actor_id": "agent",
        "meta": {"depth": 1},
    }
    assert (second["actor_id"], second["tool_name"], second["level"], second["meta"]) == (
        "critic",
        "grep",
        "tool-call",
        {},
    )
    metrics = ran.body["metrics"]
    assert (metrics["tool_call_count"], metrics["step_event_count"]) == (1, 2)
    assert metrics["unique_actor_count"] == 2


def test_an_event_is_out_before_the_agent_continues():
    sent = []

    def agent(task):
        task.emit("step")
        return {"seen": len(sent)}

    outcome = work_for(agent).attempt(assignment(), sent.append)
    assert unpack(outcome.body)["outputs"] == {"seen": 1}


def test_what_was_emitted_survives_the_agents_failure():
    ran = run(lambda task: (task.emit("step"), 1 / 0))
    assert ran.outcome.status == "failed"
    assert [event["event_type"] for event in ran.events] == ["step"]


def test_returned_events_come_after_those_that_were_emitted():
    def agent(task):
        task.emit("live")
        return {
            "output": {},
            "events": [
                {"event_type": "later", "run_id": "made up", "meta_json": {"a": 1}, "b": 2},
                {"text": None, "timestamp": datetime(2020, 1, 1, tzinfo=UTC), "step_id": 7},
            ],
        }

    live, later, bare = run(agent).events
    assert (live["event_type"], later["event_type"], bare["event_type"]) == (
        "live",
        "later",
        "event",
    )
    assert later["meta"] == {"a": 1, "b": 2}  # what has no column is kept, the run's id is ours
    assert bare["timestamp"] == "2020-01-01T00:00:00+00:00"
    assert (bare["text"], bare["step_id"]) == ("", "7")


def test_a_run_that_emits_nothing_counts_its_output_as_its_one_step():
    ran = run(lambda task: {"text": "hello"})
    assert ran.events == []
    metrics = ran.body["metrics"]
    assert (metrics["tool_call_count"], metrics["step_event_count"]) == (0, 1)
    assert metrics["unique_actor_count"] == 1
    failed = run(lambda task: 1 / 0).body["metrics"]
    assert (failed["step_event_count"], failed["unique_actor_count"]) == (0, 0)


def test_an_event_that_cannot_be_written_down_breaks_the_run():
    ran = run(lambda task: task.emit("step", tool=object()))
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("broken", "unwritable")
    assert "event 'step': a value of type " in ran.body["error_info"]


def test_an_event_of_an_unknown_level_fails_the_run():
    ran = run(lambda task: task.emit("step", level="galaxy"))
    assert ran.outcome.status == "failed"
    assert (
        "level is one of study, run, trial, step, tool-call, evaluation" in ran.body["error_info"]
    )


def test_events_of_several_threads_are_all_counted_and_none_comes_after_the_end():
    late = []

    def agent(task):
        def work():
            for _ in range(200):
                task.emit("tool_call")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        late.append(task)
        return {}

    ran = run(agent)
    assert len(ran.events) == ran.body["metrics"]["tool_call_count"] == 800
    with pytest.raises(RuntimeError, match="event 'step' comes too late: the run is over"):
        late[0].emit("step")
