"""Planned looks on the command line: lines of `run`, `status`, `plan`, `show` and `report`."""

import json

import pytest

AGENT = """
import random

def answer(task):
    level = random.Random(task.problem.problem_id).gauss(0, 1)
    effect = 4.0 * (task.factors["style"] == "worked")
    score = level + random.Random(task.seed).gauss(0, 1) + effect
    return {"output": {}, "metrics": {"score": score}}
"""
STUDY = {
    "study_id": "s",
    "title": "Styles",
    "factors": [{"name": "style", "levels": ["plain", "worked"]}],
    "outcomes": [{"name": "score", "primary": True}],
    "hypotheses": [
        {
            "hypothesis_id": "h1",
            "label": "Worked helps",
            "statement": "Worked helps.",
            "independent_vars": ["style"],
            "dependent_vars": ["score"],
            "contrast": {"left": "worked", "right": "plain"},
            "minimum_effect_of_interest": 1.0,
        }
    ],
    "analysis_plans": [
        {
            "analysis_plan_id": "main",
            "hypothesis_ids": ["h1"],
            "tests": ["paired_t"],
            "stopping": {"looks": 4, "spending": "pocock"},
        }
    ],
    "agent_specs": ["a"],
    "agents": {"a": "my_agents:answer"},
    "problem_ids": [f"p{number}" for number in range(12)],
    "problems": {f"p{number}": {"brief": "b"} for number in range(12)},
    "output_dir": "out",
}


@pytest.fixture
def study(write):
    write(AGENT, "my_agents.py")
    return write(STUDY)


def test_run_and_status_show_planned_looks(run, study):
    code, out, err = run("run", study, "--no-progress")
    assert code == 0
    lines = [line for line in err.splitlines() if line.startswith("look ")]
    assert lines[0].startswith("look 1 of 4 (4 problems, 8 runs): h1 ")
    assert "h1 supported" in lines[-1]
    assert "stopped early: the claims are decided" in err
    assert "to go" not in err
    _, out, _ = run("status", "out")
    assert out.splitlines()[0] == "s: stopped early: decided"
    assert "planned looks decided without them" in out
    _, out, _ = run("status", "out", "--json")
    facts = json.loads(out)
    assert facts["decided_early"] + facts["done"] == 24
    assert facts["go_on"] is None


def test_resuming_a_decided_study_does_nothing(run, study):
    run("run", study, "--no-progress")
    _, before, _ = run("status", "out", "--json")
    code, _, err = run("resume", "out", "--no-progress")
    assert code == 0
    assert not [line for line in err.splitlines() if line.startswith("look ")]
    _, after, _ = run("status", "out", "--json")
    assert json.loads(after)["done"] == json.loads(before)["done"]


def test_plan_prints_looks_bounds_and_savings(run, study):
    code, out, _ = run("plan", study)
    assert code == 0
    text = " ".join(out.split())
    assert "looks 4, after 4, 7, 9, 12 problems (8, 14, 18, 24 runs); pocock" in text
    assert "decided if p (two-sided) is below" in text
    assert "% saved) if no claim holds" in text
    assert "at the smallest effects of interest" in text
    _, out, _ = run("plan", study, "--json")
    assert json.loads(out)["looks"]["runs"] == [8, 14, 18, 24]


def test_planned_looks_are_no_deviation(run, study):
    run("run", study, "--no-progress")
    _, out, _ = run("report", "out", "--json")
    facts = json.loads(out)
    assert facts["deviations"] == []
    assert [test["verdict"] for test in facts["tests"]] == ["supported"]
