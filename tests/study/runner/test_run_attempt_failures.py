"""Every run attempt has an outcome, however it ends: the failure kind and the full record."""

import asyncio

import pytest
from hypothesis import given, strategies as st
from run_attempt_kit import assignment, do, run, work_for

from fairtrial.core import Broken, LabError, MisfitError, StudyError
from fairtrial.study import AgentOutput, OutcomeSpec, RunStatus
from fairtrial.study.executors import FailureKind, unpack
from fairtrial.study.runner.failures import MAX_TRACE_LENGTH


def raising(error):
    def agent(task):
        raise error

    return agent


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Stop(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "status", "kind", "says"),
    [
        (ValueError("bad"), "failed", "exception", "ValueError: bad"),
        (ValueError(), "failed", "exception", "ValueError"),
        (MemoryError(), "failed", "exception", "MemoryError"),
        (RecursionError("deep"), "failed", "exception", "RecursionError: deep"),
        (StudyError("no"), "failed", "exception", "StudyError: no"),
        (asyncio.CancelledError(), "failed", "exception", "CancelledError"),
        (GeneratorExit(), "failed", "exception", "GeneratorExit"),
        (Stop("now"), "failed", "exception", "Stop: now"),
        (
            UnprintableError(),
            "failed",
            "exception",
            "UnprintableError: (its message can't be read)",
        ),
        (SystemExit(3), "failed", "exit", "SystemExit: 3"),
        (SystemExit(0), "failed", "exit", "SystemExit: 0"),
        (SystemExit(), "failed", "exit", "SystemExit"),
        (Broken("rate limit"), "broken", "broken", "Broken: rate limit"),
        (LabError("no worktree"), "broken", "broken", "LabError: no worktree"),
        (MisfitError("no time"), "broken", "broken", "MisfitError: no time"),
        (StudyError("no such"), "failed", "exception", "StudyError: no such"),
        (ExceptionGroup("g", [Broken("a"), Broken("b")]), "broken", "broken", "ExceptionGroup: g"),
        (ExceptionGroup("g", [Broken("a"), ValueError()]), "failed", "exception", "ExceptionGroup"),
    ],
)
def test_whatever_an_agent_raises_is_an_outcome(error, status, kind, says):
    ran = run(raising(error))
    assert ran.outcome.status == status
    assert ran.outcome.failure_kind == kind
    assert ran.body["error_info"].startswith(says)
    assert "in agent" in ran.body["traceback"]
    assert ran.body["outputs"] == {}
    assert ran.body["metrics"]["latency_s"] == ran.outcome.latency_s
    assert ran.body["provenance"]["agent_id"] == "agent"
    assert ran.body["execution_metadata"] == {"problem_family": "search"}


def test_ctrl_c_is_not_the_agents_affair():
    with pytest.raises(KeyboardInterrupt):
        run(raising(KeyboardInterrupt()))


def test_the_traceback_is_the_agents_and_not_ours():
    def dig(depth):
        return 1 / 0 if depth == 0 else dig(depth - 1)

    async def later(task):
        await asyncio.sleep(0)
        return dig(2)

    for agent in (lambda task: dig(2), later):
        trace = run(agent).body["traceback"]
        assert trace.startswith("Traceback (most recent call last):\n")
        assert trace.count("in dig") == 3
        assert trace.endswith("ZeroDivisionError: division by zero\n")
        assert "engine" not in trace
        assert "asyncio" not in trace


def test_a_long_traceback_keeps_its_beginning_and_its_end():
    def agent(task):
        raise ValueError("x" * 100_000 + "the end")

    ran = run(agent)
    assert len(ran.body["traceback"]) < MAX_TRACE_LENGTH + 100
    assert "in agent" in ran.body["traceback"]
    assert ran.body["traceback"].endswith("the end\n")
    assert len(ran.body["error_info"]) <= 2_000


def test_an_error_text_that_utf8_cannot_hold_is_still_recorded():
    ran = run(raising(ValueError("lone \ud800 half")))
    assert ran.outcome.status == "failed"
    assert "lone \\ud800 half" in ran.body["error_info"]


# -- the evaluator --


def test_an_evaluators_failure_keeps_the_output_and_says_whose_it_was():
    def judge(answer):
        raise ValueError("bad shape")

    ran = run(lambda task: {"answer": 42, "metrics": {"loops": 3}}, {"evaluator": judge})
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("failed", "exception")
    assert ran.body["error_info"] == "the evaluator failed: ValueError: bad shape"
    assert "in judge" in ran.body["traceback"]
    assert ran.body["outputs"] == {"answer": 42}
    assert ran.body["metrics"]["loops"] == 3
    assert ran.body["evaluations"] == []


def test_an_evaluator_may_report_a_broken_run():
    ran = run(lambda task: {}, {"evaluator": raising(Broken("no network"))})
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("broken", "broken")


def test_an_agent_that_says_it_failed_is_not_judged():
    judged = []
    run(lambda task: {"output": {}, "success": False}, {"evaluator": judged.append})
    assert judged == []


def test_numbers_that_nobody_can_average_fail_the_run():
    outcomes = [OutcomeSpec("score", source_table="evaluations", primary=True)]
    ran = run(lambda task: {"answer": 1}, {"evaluator": lambda a: [10**400, 1]}, outcomes=outcomes)
    assert ran.outcome.status in ("failed", "success")
    assert [row["metric_value"] for row in ran.body["evaluations"]] == [10**400, 1]


# -- what can't be written down --


@pytest.mark.parametrize(
    ("returned", "place"),
    [
        ({"plan": {"steps": [1, object()]}, "a": 1}, "outputs.plan.steps[1]: "),
        ({"tool": print, "a": 1}, "outputs.tool: "),
        ({"text": "\ud800", "a": 1}, "outputs.text: "),
        ({"a": 1, "metrics": {"model": object()}}, "metrics.model: "),
        ({"a": 1, "metadata": {"client": object()}}, "execution_metadata.agent_metadata.client: "),
    ],
)
def test_a_result_that_cannot_be_written_breaks_the_run_and_says_where(returned, place):
    ran = run(lambda task: returned)
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("broken", "unwritable")
    assert place in ran.body["error_info"]
    assert ran.body["outputs"]["a"] == 1  # what can be kept is kept
    assert ran.body["metrics"]["latency_s"] == ran.outcome.latency_s


def test_a_result_that_holds_itself_breaks_the_run():
    loop = {"a": 1}
    loop["loop"] = loop
    ran = run(lambda task: loop)
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("broken", "unwritable")
    assert ran.body["error_info"].startswith("outputs.loop.loop")


def test_a_failure_stays_a_failure_when_its_output_cannot_be_written():
    ran = run(lambda task: {"answer": object()}, {"evaluator": lambda answer: 1 / 0})
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("failed", "exception")
    assert "ZeroDivisionError" in ran.body["error_info"]
    assert "outputs.answer: " in ran.body["error_info"]


@given(st.integers(1, 3_000))
def test_any_depth_is_written_and_read_back_or_said_to_be_too_deep(depth):
    deep = []
    for _ in range(depth):
        deep = [deep]
    ran = run(lambda task: {"answer": deep}, {})
    assert ran.outcome.status in ("success", "broken")


# -- the worker's end --


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_worker_that_died_leaves_an_outcome(kind):
    work = work_for(lambda task: {})
    outcome = work.fail(assignment(), str(kind), "signal 11 \ud800", 1.5)
    ours = {"broken", "killed", "unwritable", "refused"}
    expected = RunStatus.BROKEN if kind in ours else RunStatus.FAILED
    assert outcome.status == ("pending" if kind == "cancelled" else expected)
    assert outcome.failure_kind is kind
    assert (outcome.latency_s, outcome.cost_usd, outcome.tokens) == (1.5, 0.0, 0)
    body = unpack(outcome.body)
    assert set(body) == set(do(work).body)
    assert body["error_info"] == "signal 11 \\ud800"
    assert body["metrics"] == {"latency_s": 1.5}
    assert body["provenance"]["agent_id"] == "agent"
    assert body["execution_metadata"] == {"problem_family": "search"}
    assert body["started_at"] < do(work).body["started_at"]


def test_only_a_failure_of_the_evaluator_is_marked_as_one():
    def judge(answer):
        raise ValueError("bad shape")

    def claim(task):
        return AgentOutput(success=False, error="the evaluator failed: so it seems")

    assert run(lambda task: {"answer": 1}, {"evaluator": judge}).body["evaluator_failed"]
    assert not run(lambda task: {"answer": 1}, {"evaluator": abs}).body["evaluator_failed"]
    assert not run(lambda task: 1 / 0, {"evaluator": judge}).body["evaluator_failed"]
    assert not run(claim, {"evaluator": judge}).body["evaluator_failed"]
