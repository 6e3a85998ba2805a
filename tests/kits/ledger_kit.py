"""What the tests of the ledger share: small studies, plans, and runs that came to something."""

import json
import subprocess
import sys
import textwrap

from fairtrial import Factor, RunBudget, Study, build_design
from fairtrial.study import Assignment, Emitted, Finished, Outcome, RunStatus, pack, study_print
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.writer import open_ledger

SOUND = "SELECT * FROM pragma_integrity_check"


def make_study(levels=3, replicates=2, **fields):
    budget = fields.pop("run_budget", RunBudget(replicates=replicates))
    factors = fields.pop("factors", [Factor("x", levels=list(range(levels)))])
    return Study("s", "A study", factors=factors, run_budget=budget, **fields)


def make_plan(study=None, **fields):
    study = study or make_study(**fields)
    return RunPlan(study, list(build_design(study)))


def body(turn=0, **fields):
    told = {
        "outputs": {"turn": turn},
        "metrics": {"score": turn / 2},
        "evaluations": [{"metric_name": "m", "metric_value": turn}],
        "trace_refs": [],
        "artifact_refs": [],
        "error_info": None,
        "traceback": None,
        "provenance": {},
        "execution_metadata": {},
        "started_at": "2024-05-01T10:00:00.000+00:00",
    }
    return pack({**told, **fields})


def outcome(turn=0, status="success", kind=None, cost=0.5, tokens=3, latency=1.5, **fields):
    return Outcome(RunStatus(status), kind, cost, tokens, latency, body(turn, **fields))


def write_plan(ledger, plan, order=None):
    order = plan.order() if order is None else order
    study = plan.study
    facts = {
        "study": json.dumps(study.to_dict()),
        "print": json.dumps(study_print(study, plan.conditions)),
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


def add(ledger, plan, order, turn, attempt=1, events=(), **fields):
    place = order[turn]
    for data in events:
        ledger.add_event(Emitted(turn, attempt, pack(data)))
    assignment = Assignment(turn, attempt, plan.spec(place), plan.condition_at(place))
    printed = {name: fields.pop(name) for name in ("stdout", "stderr") if name in fields}
    ledger.add_result(assignment, Finished(turn, attempt, outcome(turn, **fields), **printed))


def finished(folder, plan=None, **fields):
    """A folder with the ledger of a finished study; gives the plan."""
    ledger, plan, order = begin(folder, plan)
    for turn in range(len(order)):
        add(ledger, plan, order, turn, **fields)
    ledger.end_session("later", "done")
    ledger.close()
    return plan


def run_script(script, *arguments, **options):
    """Run Python code in a process of its own; gives what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout
