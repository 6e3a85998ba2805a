"""A study for tests of the command, its module of agents, and the keys of its summary."""

AGENTS = """
import pathlib
from fairtrial import AgentOutput

def add(task, *, term=10):
    print("agents print", task.factors["x"])
    return {"x": task.factors["x"] + term}

def fail(task):
    raise ValueError("not today")

def fail_at_2(task):
    if task.factors["x"] == 2 and not pathlib.Path("mended").exists():
        raise ValueError("not today")
    return {"x": 1}

def cost(task):
    return AgentOutput({"x": 1}, metrics={"cost_usd": 0.5, "input_tokens": 7})

def cancel(task):
    pathlib.Path("out/control").write_text("cancel")
    return {"x": 1}

class Adder:
    def __init__(self, term):
        self.term = term
    def __call__(self, task):
        return {"x": task.factors["x"] + self.term}

def score(x):
    return {"score": x}

def runner(run_spec, condition):
    return {"x": condition.factor_assignments["x"]}

NUMBER = 3
"""
STUDY = {
    "study_id": "s",
    "title": "t",
    "factors": [{"name": "x", "levels": [1, 2, 3]}],
    "agent_specs": ["a"],
    "agents": {"a": "my_agents:add"},
    "problem_ids": ["p"],
    "problems": {"p": {"brief": "add", "evaluator": "my_agents:score"}},
    "run_budget": {"replicates": 2},
    "output_dir": "out",
}
SUMMARY = {
    "counts",
    "failures",
    "planned",
    "skipped",
    "decided_early",
    "left_out",
    "cost_usd",
    "tokens",
    "live",
    "last_session",
    "is_running",
    "done",
    "pending",
}
