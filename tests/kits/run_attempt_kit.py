"""Single run attempts for tests: bind an agent and a problem, return the outcome."""

from typing import Any, NamedTuple

from fairtrial.study import Condition, ProblemPacket, Study
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.executors import Assignment, Outcome, unpack
from fairtrial.study.runner.bindings import bind
from fairtrial.study.runner.run_attempt import StudyWork

CONDITION = Condition("cond-1", {"x": 3, "style": "plain"}, {"day": "monday"})
PACKET = ProblemPacket("gap", "search", "find the gap", {"size": 9}, {}, lambda answer: 0.5)


class Ran(NamedTuple):
    outcome: Outcome
    body: dict[str, Any]
    events: list[dict[str, Any]]


def study_of(**fields):
    names = {"agent_specs": ["agent"], "problem_ids": ["gap"]}
    return Study.from_dict({"study_id": "s", "title": "t", **names, **fields})


def work_for(agent, problem=PACKET, *, outcomes=(), **settings):
    bindings = bind(study_of(), [CONDITION], {"agent": agent}, {"gap": problem})
    return StudyWork(bindings, outcomes=outcomes, **settings)


def work_for_runner(runner, **settings):
    return StudyWork(bind(study_of(), [CONDITION], condition_runner=runner), **settings)


def assignment(study=None, condition=CONDITION, execution_index=0, attempt=1):
    plan = RunPlan(study or study_of(), [condition])
    return Assignment(execution_index, attempt, plan.spec(execution_index), condition)


def do(work, given=None):
    sent = []
    outcome = work.attempt(given or assignment(), sent.append)
    return Ran(outcome, unpack(outcome.body), [unpack(data) for data in sent])


def run(agent, problem=PACKET, **settings):
    """One run of an agent on a problem."""
    return do(work_for(agent, problem, **settings))
