"""One run attempt from end to end: metrics, records, and awaitables."""

import asyncio
import functools
import gc
import os
import subprocess
import sys
import threading
import warnings
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from run_attempt_kit import CONDITION, PACKET, assignment, do, run, work_for, work_for_runner

from fairtrial.study import AgentOutput, OutcomeSpec, ProblemPacket, RunOutput
from fairtrial.study.ledger.packing import Body

STANDARD = {
    "latency_s",
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "tool_call_count",
    "step_event_count",
    "unique_actor_count",
}


def test_the_body_of_a_run_is_whole():
    ran = run(lambda task: {"answer": 42})
    assert set(ran.body) == set(Body.__annotations__) - {"host"}  # it is the session's
    assert ran.outcome.status == "success"
    assert ran.outcome.failure_kind is None
    assert ran.body["outputs"] == {"answer": 42}
    assert ran.body["error_info"] is None
    assert ran.body["traceback"] is None
    started = datetime.fromisoformat(ran.body["started_at"])
    assert started.utcoffset().total_seconds() == 0
    assert ran.body["started_at"] == started.isoformat(timespec="milliseconds")


def test_metrics_are_the_agents_own_and_those_of_every_run():
    ran = run(lambda task: {"output": {}, "metrics": {"loops": 3, "curve": [1, 2]}})
    assert set(ran.body["metrics"]) == {"loops", "curve", "primary_outcome"} | STANDARD
    assert ran.body["metrics"]["loops"] == 3
    assert ran.body["metrics"]["curve"] == [1, 2]
    assert ran.body["metrics"]["latency_s"] == ran.outcome.latency_s > 0
    assert (ran.outcome.cost_usd, ran.outcome.tokens) == (0.0, 0)


def test_costs_and_tokens_reach_the_outcome():
    metrics = {"cost_usd": np.float32(0.5), "input_tokens": np.int64(7), "output_tokens": 3}
    ran = run(lambda task: {"metrics": metrics})
    assert (ran.outcome.cost_usd, ran.outcome.tokens) == (0.5, 10)
    assert type(ran.outcome.cost_usd) is float
    assert type(ran.outcome.tokens) is int
    assert ran.body["metrics"]["cost_usd"] == 0.5
    assert run(lambda task: {"metrics": {"total_tokens": 12}}).outcome.tokens == 12


def test_an_agent_that_failed_still_costs_what_it_cost():
    spent = {"cost_usd": 0.5, "input_tokens": 7}
    output = AgentOutput({}, spent, success=False)
    judged = {"evaluator": lambda output: 1 / 0}
    for ran in (run(lambda task: output), run(lambda task: {"metrics": spent}, judged)):
        assert ran.outcome.status == "failed"
        assert (ran.outcome.cost_usd, ran.outcome.tokens) == (0.5, 7)


SCORES = {"evaluator": lambda answer: {"first": 1.0, "second": 2.0}}


@pytest.mark.parametrize(
    ("metrics", "outcomes", "expected"),
    [
        ({}, [], 1.0),  # the first evaluation
        ({"primary_outcome": 9}, [("second", "evaluations")], 9),  # the agent's own
        ({}, [("second", "evaluations")], 2.0),
        ({}, [("second", "runs")], 2.0),
        ({"speed": 5}, [("speed", "runs")], 5),
        ({"second": 5}, [("second", "runs")], 5),
        ({"second": 5}, [("second", "evaluations")], 2.0),
        ({"cost_usd": 5}, [("cost_usd", "runs"), ("second", "evaluations")], 5),
        ({}, [("missing", "runs")], 1.0),
    ],
)
def test_the_primary_outcome_is_found_by_the_rule(metrics, outcomes, expected):
    specs = [
        OutcomeSpec("unimportant"),
        *(OutcomeSpec(name, source_table=table, primary=True) for name, table in outcomes),
    ]
    ran = run(lambda task: {"metrics": metrics}, SCORES, outcomes=specs)
    assert ran.body["metrics"]["primary_outcome"] == expected


def test_without_verdict_and_outcome_there_is_no_primary_outcome():
    assert "primary_outcome" not in run(lambda task: {}, {}).body["metrics"]


def test_metadata_of_the_agent_reach_the_result_and_provenance():
    columns = {
        "model_name": "big",
        "model_provider": "lab",
        "agent_kind": "react",
        "pattern_name": "loop",
        "request_id": "r1",
        "trace_dir": "traces",
        "trace_path": "traces/1.json",
    }
    metadata = {**columns, "temperature": 0.5}
    ran = run(lambda task: {"metadata": metadata, "trace_refs": ["t"]})
    family = {"problem_family": "search"}
    assert ran.body["execution_metadata"] == {
        **columns,
        **family,
        "agent_metadata": {"temperature": 0.5},
    }
    assert ran.body["provenance"] == {**columns, **family, "agent_id": "agent", "problem_id": "gap"}
    assert ran.body["trace_refs"] == ["t"]


def test_metadata_that_the_agent_does_not_give_are_absent():
    ran = run(lambda task: {"metadata": {"model_name": "", "agent_kind": None}})
    assert ran.body["execution_metadata"] == {"problem_family": "search"}
    assert ran.body["provenance"]["model_name"] is None


def test_the_run_times_agent_and_evaluator():
    def wait(answer):
        threading.Event().wait(0.02)
        return 1

    ran = run(lambda task: {}, {"evaluator": wait})
    assert ran.outcome.latency_s >= 0.02


# -- any Problem, and none --


class OwnProblem:
    problem_id, family, brief = "gap", "own", "find it"

    def evaluate(self, output):
        return {"size": len(output)}


def test_a_problem_of_ones_own_judges_the_whole_output():
    def agent(problem, brief):
        return {"answer": 1, "brief": brief, "family": problem.family}

    ran = run(agent, OwnProblem())
    assert ran.body["outputs"] == {"answer": 1, "brief": "find it", "family": "own"}
    assert [(row["metric_name"], row["metric_value"]) for row in ran.body["evaluations"]] == [
        ("size", 3)
    ]
    assert ran.body["execution_metadata"] == {"problem_family": "own"}


# -- condition runners --


def test_a_condition_runner_gets_spec_and_condition():
    def runner(run_spec, condition):
        outputs = {"x": condition.factor_assignments["x"], "seed": run_spec.seed}
        return RunOutput(outputs, {"score": 3, "cost_usd": 0.5})

    given = assignment()
    ran = do(work_for_runner(runner), given)
    assert ran.body["outputs"] == {"x": 3, "seed": given.spec.seed}
    assert ran.body["metrics"]["score"] == 3
    assert ran.outcome.cost_usd == 0.5
    assert set(ran.body["metrics"]) >= STANDARD
    assert ran.body["provenance"] == {"execution_mode": "condition_runner"}


def test_a_condition_runner_may_be_async_and_may_fail():
    async def later(run_spec, condition):
        await asyncio.sleep(0)
        return RunOutput({"a": 1})

    assert do(work_for_runner(later)).body["outputs"] == {"a": 1}
    ran = do(work_for_runner(lambda spec, condition: 1 / 0))
    assert ran.outcome.status == "failed"
    assert ran.body["provenance"] == {"execution_mode": "condition_runner"}


# -- async --


class AsyncCall:
    async def __call__(self, task):
        await asyncio.sleep(0)
        return {"who": "call"}


class AsyncRun:
    async def run(self, seed):
        await asyncio.sleep(0)
        return {"who": "run"}


async def async_agent(task, who="function"):
    await asyncio.sleep(0)
    return {"who": who}


@pytest.mark.parametrize(
    ("agent", "who"),
    [
        (async_agent, "function"),
        (AsyncCall(), "call"),
        (AsyncRun(), "run"),
        (functools.partial(async_agent, who="partial"), "partial"),
        (lambda task: async_agent(task, "lambda"), "lambda"),
    ],
)
def test_async_def_is_awaited_not_recorded_as_a_coroutine(agent, who):
    ran = run(agent)
    assert ran.outcome.status == "success"
    assert ran.body["outputs"] == {"who": who}


class Obliging(dict):
    """A mapping that has every attribute one asks it for, as some libraries' have."""

    def __getattr__(self, name):
        return {}


def test_a_mapping_that_seems_awaitable_is_not_awaited():
    assert run(lambda task: Obliging(answer=1)).body["outputs"] == {"answer": 1}


def test_one_loop_serves_all_runs_of_a_thread():
    async def agent(task):
        return {"loop": id(asyncio.get_running_loop())}

    work = work_for(agent)
    loops = {do(work).body["outputs"]["loop"] for _ in range(3)}
    assert len(loops) == 1


def test_each_thread_has_a_loop_of_its_own_and_closes_it():
    loops = []

    async def agent(task):
        loops.append(asyncio.get_running_loop())
        return {}

    work = work_for(agent)
    gc.collect()  # what others have left is not our affair
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=do, args=(work,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
    assert len({id(loop) for loop in loops}) == 3
    assert all(loop.is_closed() for loop in loops)


def test_a_task_that_the_agent_leaves_behind_ends_with_its_run():
    cancelled = []

    async def linger(task):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(task.run_spec.run_id)
            raise

    async def agent(task):
        agent.left = asyncio.create_task(linger(task))
        await asyncio.sleep(0)
        return {}

    ran = run(agent)
    assert ran.outcome.status == "success"
    assert cancelled == [assignment().spec.run_id]


def test_async_agents_run_where_a_loop_runs_already():  # a notebook
    async def notebook():
        return run(async_agent), run(async_agent)

    first, second = asyncio.run(notebook())
    assert first.body["outputs"] == second.body["outputs"] == {"who": "function"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_worker_makes_a_loop_of_its_own():
    work = work_for(async_agent)
    do(work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # xdist's threads
        pid = os.fork()
    if pid == 0:
        is_right = do(work).body["outputs"] == {"who": "function"}
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert do(work).body["outputs"] == {"who": "function"}


@pytest.mark.parametrize(
    ("raised", "status"), [(ValueError("x"), "failed"), (SystemExit(3), "failed")]
)
def test_an_async_agents_failure_leaves_the_loop_usable(raised, status):
    async def agent(task):
        await asyncio.sleep(0)
        raise raised

    assert run(agent).outcome.status == status
    assert run(async_agent).outcome.status == "success"


# -- nothing heavy in the first run --


def test_the_first_runs_latency_has_no_import_in_it():
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from run_attempt_kit import PACKET, assignment, work_for
async def agent(task):
    return {"answer": 1}
work = work_for(agent)
before = set(sys.modules)
work.attempt(assignment(), lambda data: None)
print(sorted(set(sys.modules) - before))
"""
    here = str(Path(__file__).parents[2] / "kits")
    process = subprocess.run(
        [sys.executable, "-c", code, here], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"


def test_a_packet_and_a_condition_reach_the_agent_unchanged():
    seen = []
    run(lambda task: seen.append((task.problem, task.condition)))
    assert seen[0] == (PACKET, CONDITION)
    assert isinstance(seen[0][0], ProblemPacket)


@pytest.mark.parametrize("section", ["output", "metrics", "metadata"])
def test_whatever_an_agent_returns_is_brought_into_its_plain_form(section):
    values = {"where": Path("a/b"), "seen": {3, 1, 2}, "size": np.int64(4)}
    ran = run(lambda task: {"output": {}, section: values})
    assert ran.outcome.failure_kind is None, ran.body["error_info"]
    kept = {
        "output": ran.body["outputs"],
        "metrics": ran.body["metrics"],
        "metadata": ran.body["execution_metadata"].get("agent_metadata", {}),
    }[section]
    assert {name: kept[name] for name in values} == {"where": "a/b", "seen": [1, 2, 3], "size": 4}


def test_the_output_of_a_condition_runner_is_converted_to_plain_data():
    work = work_for_runner(
        lambda spec, condition: {"output": {}, "metadata": {"model_name": Path("m")}}
    )
    ran = do(work)
    assert ran.outcome.failure_kind is None, ran.body["error_info"]
    assert ran.body["execution_metadata"]["model_name"] == "m"
