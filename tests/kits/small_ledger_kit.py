"""Ledgers for tests, written directly with given outcomes, without running anything."""

import json

from fairtrial import Factor, RunBudget, Study, build_design
from fairtrial.study import RunStatus
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.executors import Assignment, Emitted, FailureKind, Finished, Outcome, pack
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.ledger.writer import open_ledger

STARTED = "2026-01-02T03:04:05.678+00:00"


def make_small_study(levels=(1, 2), replicates=2, **fields):
    fields.setdefault("factors", (Factor("x", levels=tuple(levels)),))
    fields.setdefault("agent_specs", ("a",))
    fields.setdefault("problem_ids", ("p",))
    fields.setdefault("run_budget", RunBudget(replicates=replicates))
    return Study("s", "A small study", **fields)


def body(**fields):
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
        **fields,
    }


def evaluation(value, name="score", **fields):
    return {
        "evaluator_id": "judge",
        "metric_name": name,
        "metric_value": value,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": {},
        **fields,
    }


def success(**fields):
    return RunStatus.SUCCESS, None, body(**fields), ()


def failure(kind=FailureKind.EXCEPTION, status=RunStatus.FAILED, **fields):
    fields.setdefault("error_info", "ValueError: no")
    return status, kind, body(**{"outputs": {}, "metrics": {"latency_s": 0.5}, **fields}), ()


def emitting(*events, **fields):
    return RunStatus.SUCCESS, None, body(**fields), events


def event(event_type="step", text="", **fields):
    return {
        "timestamp": STARTED,
        "event_type": event_type,
        "text": text,
        "actor_id": "agent",
        "meta": {},
        **fields,
    }


class LedgerLab:
    """A ledger with a plan and an open session, to which results are added."""

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

    def add(self, plan_index, outcome_parts=None, attempt=1):
        """Add the outcome of a run by its plan index; by default a plain success."""
        status, kind, fields, events = outcome_parts or success()
        execution_index = list(self.order).index(plan_index)
        spec = self.plan.spec(plan_index)
        for item in events:
            self.ledger.add_event(Emitted(execution_index, attempt, pack(item)))
        outcome = Outcome(
            status, kind, fields["metrics"].get("cost_usd", 0.0), 7, 0.5, pack(fields)
        )
        assignment = Assignment(execution_index, attempt, spec, self.plan.condition_at(plan_index))
        self.ledger.add_result(assignment, Finished(execution_index, attempt, outcome))

    def run(self, **special):
        """Add all runs that are not skipped; `run0=...` is the outcome at plan index 0."""
        for plan_index in range(len(self.plan)):
            if not self.plan.is_skipped(plan_index):
                self.add(plan_index, special.get(f"run{plan_index}"))
        self.ledger.commit()
        return self

    @property
    def reader(self):
        self.ledger.commit()
        return LedgerReader(self.ledger.connection, self.ledger.path)

    def close(self):
        self.ledger.end_session(STARTED, "done")
        self.ledger.close()
