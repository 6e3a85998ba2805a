"""Small studies to run, and their tables without what differs from one time to the next."""

import csv
import random
from pathlib import Path

import numpy as np
import yaml

from fairtrial import Factor, OutcomeSpec, ProblemPacket, RunBudget, Study, run_study

VOLATILE = {
    "runs.csv": ("start_time", "end_time", "latency_s", "executor", "host"),
    "events.csv": ("timestamp",),
}
"""Columns that tell when, where and for how long."""
TABLES = ("conditions.csv", "runs.csv", "events.csv", "evaluations.csv")
PACKET = ProblemPacket("p", "sums", "add", {"term": 10}, {}, lambda x: {"score": x})


def make_study(folder, levels=(1, 2, 3), replicates=2, **fields):
    budget = fields.pop("budget", {})
    fields.setdefault("factors", (Factor("x", levels=tuple(levels)),))
    fields.setdefault("agent_specs", ("a",))
    fields.setdefault("problem_ids", ("p",))
    fields.setdefault("outcomes", (OutcomeSpec("score", "evaluations", primary=True),))
    fields.setdefault("run_budget", RunBudget(replicates=replicates, **budget))
    return Study("s", "A small study", output_dir=folder, **fields)


def add(task):
    """An agent whose answers are easily foretold."""
    return {"x": task.factors["x"] + task.problem.payload["term"]}


def draw(task):
    """An agent that draws random numbers wherever it can, tells of them, and now and then fails."""
    numbers = [random.random(), float(np.random.random()), task.rng.random()]
    task.emit("drawn", f"{numbers[0]:.6f}", number=numbers[1])
    if task.rng.random() < 0.2:
        raise ValueError(f"{numbers[2]:.6f}")
    return {"output": {"x": sum(numbers), "numbers": numbers}, "metrics": {"first": numbers[0]}}


def run(study, agent=add, problem=PACKET, **settings):
    """`run_study` with every agent and problem of the study bound to these."""
    return run_study(
        study,
        **{
            "agent_bindings": dict.fromkeys(study.agent_specs, agent),
            "problem_registry": dict.fromkeys(study.problem_ids, problem),
            **settings,
        },
    )


def read_table(folder, name):
    with (Path(folder) / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stable_tables(folder):
    """The tables as they must come out every time: header and cells, but for the volatile ones."""
    tables = {}
    for name in TABLES:
        with (Path(folder) / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        kept = [i for i, column in enumerate(rows[0]) if column not in VOLATILE.get(name, ())]
        tables[name] = [[row[i] for i in kept] for row in rows]
    study = yaml.safe_load((Path(folder) / "study.yaml").read_text("utf-8"))
    tables["study"] = {key: study[key] for key in study if key != "output_dir"}
    return tables
