"""Single runs for tests: an agent and a problem, bound, and what came of one attempt."""

from typing import Any, NamedTuple

from fairtrial.study import Assignment, Condition, Outcome, ProblemPacket, Study, unpack
from fairtrial.study.design.run_plan import RunPlan
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


def assignment(study=None, condition=CONDITION, turn=0, attempt=1):
    plan = RunPlan(study or study_of(), [condition])
    return Assignment(turn, attempt, plan.spec(turn), condition)


def do(work, given=None):
    sent = []
    outcome = work.attempt(given or assignment(), sent.append)
    return Ran(outcome, unpack(outcome.body), [unpack(data) for data in sent])


def run(agent, problem=PACKET, **settings):
    """One run of an agent on a problem."""
    return do(work_for(agent, problem, **settings))
