"""Shared by the tests of the ledger: small studies, plans and results."""

import json
import subprocess
import sys
import textwrap

from fairtrial import Factor, RunBudget, Study, build_design
from fairtrial.study import RunStatus
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.executors import Assignment, Emitted, Finished, Outcome, pack
from fairtrial.study.ledger import study_fingerprint
from fairtrial.study.ledger.writer import open_ledger

SOUND = "SELECT * FROM pragma_integrity_check"


def make_study(levels=3, replicates=2, **fields):
    budget = fields.pop("run_budget", RunBudget(replicates=replicates))
    factors = fields.pop("factors", [Factor("x", levels=list(range(levels)))])
    return Study("s", "A study", factors=factors, run_budget=budget, **fields)


def make_plan(study=None, **fields):
    study = study or make_study(**fields)
    return RunPlan(study, list(build_design(study)))


def body(execution_index=0, **fields):
    content = {
        "outputs": {"turn": execution_index},
        "metrics": {"score": execution_index / 2},
        "evaluations": [{"metric_name": "m", "metric_value": execution_index}],
        "trace_refs": [],
        "artifact_refs": [],
        "error_info": None,
        "traceback": None,
        "provenance": {},
        "execution_metadata": {},
        "started_at": "2024-05-01T10:00:00.000+00:00",
    }
    return pack({**content, **fields})


def outcome(
    execution_index=0, status="success", kind=None, cost=0.5, tokens=3, latency=1.5, **fields
):
    return Outcome(RunStatus(status), kind, cost, tokens, latency, body(execution_index, **fields))


def write_plan(ledger, plan, order=None):
    order = plan.order() if order is None else order
    study = plan.study
    facts = {
        "study": json.dumps(study.to_dict()),
        "print": json.dumps(study_fingerprint(study, plan.conditions)),
    }
    ledger.write_plan(facts, plan.conditions, order)
    return order


def begin(folder, plan=None):
    """A ledger with a plan and a session, ready for runs."""
    plan = plan or make_plan()
    ledger = open_ledger(folder)
    order = write_plan(ledger, plan)
    ledger.begin_session({"executor": "serial", "host": "here", "started_at": "now"})
    return ledger, plan, order


def add(ledger, plan, order, execution_index, attempt=1, events=(), **fields):
    plan_index = order[execution_index]
    for data in events:
        ledger.add_event(Emitted(execution_index, attempt, pack(data)))
    assignment = Assignment(
        execution_index, attempt, plan.spec(plan_index), plan.condition_at(plan_index)
    )
    printed = {name: fields.pop(name) for name in ("stdout", "stderr") if name in fields}
    ledger.add_result(
        assignment,
        Finished(execution_index, attempt, outcome(execution_index, **fields), **printed),
    )


def finished(folder, plan=None, **fields):
    """A folder with the ledger of a finished study; gives the plan."""
    ledger, plan, order = begin(folder, plan)
    for execution_index in range(len(order)):
        add(ledger, plan, order, execution_index, **fields)
    ledger.end_session("later", "done")
    ledger.close()
    return plan


def run_script(script, *arguments, **options):
    """Run Python code in a process of its own; gives what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout
