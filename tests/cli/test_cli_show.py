"""`fairtrial show`: one run, with all that is known of it."""

import json

import pytest
import run_kit
from cli_kit import AGENTS, STUDY

from fairtrial import open_results
from fairtrial.study import agents

FLAKY = """

def flaky(task):
    import fairtrial
    seen = pathlib.Path(f"seen-{task.run_spec.run_id}")
    print("hello from", task.factors["x"])
    task.emit("thought", "hm", depth=2)
    if not seen.exists():
        seen.touch()
        raise fairtrial.Broken("busy")
    if task.factors["x"] == 2:
        raise ValueError("not today")
    return {"x": float("nan")}
"""


@pytest.fixture
def runs(run, tmp_path, monkeypatch):
    """A study of runs that broke once; those at x = 2 failed then. Returns ids by x."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flaky_agents.py").write_text(AGENTS + FLAKY)
    study = {
        **STUDY,
        "agents": {"a": "flaky_agents:flaky"},
        "problems": {"p": {"brief": "b", "evaluator": "flaky_agents:score"}},
        "run_budget": {"replicates": 1},
    }
    (tmp_path / "study.json").write_text(json.dumps(study))
    monkeypatch.setattr("fairtrial.study.runner.assignment_feed.LONGEST_WAIT_S", 0.0)
    assert run("run", "study.json")[0] == 5
    rows = json.loads(run("show", "out", "run-", "--json")[1] or "{}")
    assert rows["ok"] is False
    with open_results("out") as results:
        conditions = {c.condition_id: c.factor_assignments["x"] for c in results.conditions}
        return {conditions[r.run_spec.condition_id]: r.run_id for r in results}


def test_a_failed_run_shows_its_traceback_output_events_and_earlier_attempts(run, runs):
    code, out, _ = run("show", "out", runs[2])
    assert code == 0
    for part in (
        "status        failed",
        "failure kind  exception",
        "ValueError: not today",
        'factors       {"x":2}',
        "hello from 2",
        "Traceback (most recent call last)",
        "thought  hm",
        "attempt 1",
        "Broken: busy",
    ):
        assert part in out, part


def test_the_beginning_of_an_id_is_enough_and_json_has_it_all(run, runs):
    code, out, _ = run("show", "out", runs[1][:10], "--json")
    run_facts = json.loads(out)
    assert code == 0
    assert (run_facts["run_id"], run_facts["status"], run_facts["attempt"]) == (
        runs[1],
        "success",
        2,
    )
    assert run_facts["events"][0]["meta"] == {"depth": 2}
    assert run_facts["attempts"][0]["failure_kind"] == "broken"
    assert run("show", "out", runs[1].removeprefix("run-"))[0] == 0


def test_an_unknown_or_ambiguous_id_is_reported(run, runs):
    code, _, err = run("show", "out", "run-nonsense")
    assert (code, "there is no run 'run-nonsense'" in err) == (2, True)
    code, _, err = run("show", "out", "run-")
    assert (code, "several runs begin with 'run-'" in err) == (2, True)


def test_a_run_that_is_still_to_come_is_shown_as_pending(run, runs):
    run("run", "study.json", "--output", "pilot", "--limit", "1")
    pending = 0
    for run_id in runs.values():
        _, out, _ = run("show", "pilot", run_id)
        pending += "status        pending" in out
    assert pending == 2


def test_a_conversation_is_printed_as_one_and_other_events_with_their_metadata(run, tmp_path):
    def agent(task):
        task.record(agents.message_event("user", "2 + 2?"))
        task.record(agents.model_call_event("kit-1", input_tokens=9, output_tokens=5, seconds=0.5))
        task.record(agents.message_event("assistant", "4"))
        task.emit("noted", "a step", unit="meters")
        return {"x": 4}

    result = run_kit.run(run_kit.make_study(tmp_path / "out", (1,), 1), agent)[0]
    code, text, _ = run("show", tmp_path / "out", result.run_id)
    assert code == 0
    call = "[kit-1, 9 tokens in, 5 tokens out, 0.5 s]"
    assert f"  user\n    2 + 2?\n  {call}\n  assistant\n    4\n" in text
    assert "a step" in text
    assert '"unit":"meters"' in text.replace(" ", "")
