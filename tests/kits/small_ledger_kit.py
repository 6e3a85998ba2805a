"""Ledgers for tests, written without an engine: what each run came to is given."""

import json

from fairtrial import Factor, RunBudget, Study, build_design
from fairtrial.study import (
    Assignment,
    Emitted,
    FailureKind,
    Finished,
    LedgerReader,
    Outcome,
    RunStatus,
    pack,
)
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.writer import open_ledger

STARTED = "2026-01-02T03:04:05.678+00:00"


def small_study(levels=(1, 2), replicates=2, **fields):
    fields.setdefault("factors", (Factor("x", levels=tuple(levels)),))
    fields.setdefault("agent_specs", ("a",))
    fields.setdefault("problem_ids", ("p",))
    fields.setdefault("run_budget", RunBudget(replicates=replicates))
    return Study("s", "A small study", **fields)


def body(**told):
    """A body as a run leaves it; what isn't told is nothing."""
    return {
        "outputs": {"text": "done"},
        "metrics": {"latency_s": 0.5, "cost_usd": 0.25, "input_tokens": 3, "output_tokens": 4},
        "evaluations": [],
        "trace_refs": [],
        "artifact_refs": [],
        "error_info": None,
        "traceback": None,
        "provenance": {},
        "execution_metadata": {},
        "started_at": STARTED,
        **told,
    }


def verdict(value, name="score", **told):
    return {
        "evaluator_id": "judge",
        "metric_name": name,
        "metric_value": value,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": {},
        **told,
    }


def success(**told):
    return RunStatus.SUCCESS, None, body(**told), ()


def failure(kind=FailureKind.EXCEPTION, status=RunStatus.FAILED, **told):
    told.setdefault("error_info", "ValueError: no")
    return status, kind, body(**{"outputs": {}, "metrics": {"latency_s": 0.5}, **told}), ()


def emitting(*events, **told):
    return RunStatus.SUCCESS, None, body(**told), events


def event(event_type="step", text="", **told):
    return {
        "timestamp": STARTED,
        "event_type": event_type,
        "text": text,
        "actor_id": "agent",
        "meta": {},
        **told,
    }


class Lab:
    """A ledger with a plan, and a session that results are added in."""

    def __init__(self, folder, study, conditions=None, provenance=None):
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.ledger = open_ledger(folder)
        self.plan = RunPlan(study, build_design(study) if conditions is None else conditions)
        self.order = self.plan.order()
        self.ledger.write_plan(
            {"study": json.dumps(study.to_dict()), "folder": None, "print": "{}"},
            self.plan.conditions,
            self.order,
        )
        self.begin(provenance)

    def begin(self, provenance=None):
        self.ledger.begin_session(
            {
                "started_at": STARTED,
                "executor": "serial",
                "slots": 1,
                "host": "lab",
                "pid": 7,
                "provenance": json.dumps(provenance or {"host": "lab", "git_sha": None}),
            }
        )

    def add(self, place, came_to=None, attempt=1):
        """What the run at a place came to; a plain success if nothing is said."""
        status, kind, told, events = came_to or success()
        turn = list(self.order).index(place)
        spec = self.plan.spec(place)
        for each in events:
            self.ledger.add_event(Emitted(turn, attempt, pack(each)))
        outcome = Outcome(status, kind, told["metrics"].get("cost_usd", 0.0), 7, 0.5, pack(told))
        assignment = Assignment(turn, attempt, spec, self.plan.condition_at(place))
        self.ledger.add_result(assignment, Finished(turn, attempt, outcome))

    def run(self, **special):
        """All runs that are to happen; `special` tells what came of some, by place."""
        for place in range(len(self.plan)):
            if not self.plan.is_skipped(place):
                self.add(place, special.get(f"run{place}"))
        self.ledger.commit()
        return self

    @property
    def reader(self):
        self.ledger.commit()
        return LedgerReader(self.ledger.connection, self.ledger.path)

    def close(self):
        self.ledger.end_session(STARTED, "done")
        self.ledger.close()
