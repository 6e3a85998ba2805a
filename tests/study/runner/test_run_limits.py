"""What ends a run or a study early: retries, limits of agents, fail_fast, budgets."""

import itertools
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from run_kit import PACKET, add, make_study, read_table, run

from fairtrial import AgentBinding, Broken, ProblemPacket, RunBudget, RunStatus
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.runner import control, run as running_module, run_loop
from fairtrial.study.runner.assignment_feed import AssignmentFeed
from fairtrial.study.runner.control import ControlFile, request

WAIT_S = 60.0
"""How long something may take that ought to happen at once."""


@pytest.fixture
def hold_time(monkeypatch):
    """Let no time pass for retries and limits until something is so; or far too long has passed."""

    def hold_time(is_so):
        began = time.monotonic()

        def clock():
            now = time.monotonic()
            return now if is_so() or now > began + WAIT_S else began

        monkeypatch.setattr(running_module, "AssignmentFeed", partial(AssignmentFeed, clock=clock))

    return hold_time


def statuses(results):
    return [result.status.value for result in results]


def attempts_at(results, plan_index):
    return results.reader.attempts(results.reader.execution_indexes[plan_index])


# -- retries --


class Unlucky:
    """Breaks so many times for each run, then works; notes when it was called for which."""

    def __init__(self, times):
        self.times, self.calls = times, []

    def __call__(self, task):
        self.calls.append((task.run_spec.run_id, time.monotonic()))
        if Counter(run_id for run_id, _ in self.calls)[task.run_spec.run_id] <= self.times:
            task.emit("tried")
            raise Broken("rate limit")
        return add(task)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_run_that_breaks_is_tried_again_and_its_attempts_are_kept(tmp_path, executor):
    agent = Unlucky(2)
    study = make_study(tmp_path, levels=(1, 2), replicates=1)
    results = run(study, agent, executor=executor, parallelism=2, retry_wait_s=0.01)
    assert statuses(results) == ["success", "success"]
    assert [result.attempt for result in results] == [3, 3]
    assert len(agent.calls) == 6
    for plan_index in (0, 1):
        attempts = attempts_at(results, plan_index)
        assert [attempt.attempt for attempt in attempts] == [1, 2]
        assert {attempt.status for attempt in attempts} == {RunStatus.BROKEN}
        assert {attempt.details["error_info"] for attempt in attempts} == {"Broken: rate limit"}
    assert [row["attempt"] for row in read_table(tmp_path, "runs.csv")] == ["3", "3"]
    assert {row["event_type"] for row in read_table(tmp_path, "events.csv")} == {"assistant_output"}


def test_the_wait_before_a_retry_doubles(tmp_path):
    agent = Unlucky(3)
    study = make_study(tmp_path, levels=(1,), replicates=1, budget={"retries": 3})
    run(study, agent, retry_wait_s=0.02)
    times = [at for _, at in agent.calls]
    for number, wait_s in enumerate([0.02, 0.04, 0.08]):
        assert times[number + 1] - times[number] >= wait_s


def test_a_run_that_waits_to_be_tried_again_holds_no_other_up(tmp_path, hold_time):
    called = []
    hold_time(lambda: len(set(called)) == 6)

    def agent(task):
        called.append(task.run_spec.run_id)
        if called.count(called[0]) == 1 and task.run_spec.run_id == called[0]:
            raise Broken("later")
        return add(task)

    results = run(make_study(tmp_path), agent, retry_wait_s=0.01)
    assert statuses(results) == ["success"] * 6
    assert called[-1] == called[0]
    assert len(set(called[:6])) == 6


def test_when_all_retries_are_used_up_the_run_is_broken_and_comes_again_on_resume(tmp_path):
    agent = Unlucky(3)
    study = make_study(tmp_path, levels=(1,), replicates=1, budget={"retries": 1})
    results = run(study, agent, retry_wait_s=0.01)
    assert [(result.status, result.failure_kind, result.attempt) for result in results] == [
        ("broken", "broken", 2)
    ]
    assert read_table(tmp_path, "runs.csv")[0]["failure_kind"] == "broken"
    results = run(study, agent, resume=True, retry_wait_s=0.01)
    assert [(result.status, result.attempt) for result in results] == [("success", 4)]
    assert [attempt.attempt for attempt in attempts_at(results, 0)] == [1, 2, 3]


def test_a_result_that_cannot_be_written_down_is_not_tried_again_at_once(tmp_path):
    called = []

    def agent(task):
        called.append(task)
        return {"x": object()}

    packet = replace(PACKET, evaluator=None)
    results = run(make_study(tmp_path, levels=(1,), replicates=1), agent, packet)
    assert [(result.status, result.failure_kind) for result in results] == [
        ("broken", "unwritable")
    ]
    assert len(called) == 1


# -- limits of agents --


def test_an_agent_at_its_limit_waits_and_others_continue(tmp_path):
    running, most, lock = Counter(), Counter(), threading.Lock()
    together = threading.Barrier(3)

    def agent(task):
        name = task.run_spec.agent_spec_ref
        with lock:
            running[name] += 1
            most[name] = max(most[name], running[name])
        if name == "b":
            together.wait(WAIT_S)  # three at once, though the other agent has runs to come
        else:
            time.sleep(0.005)
        with lock:
            running[name] -= 1
        return add(task)

    study = make_study(
        tmp_path,
        agent_specs=("a", "b"),
        agents={"a": AgentBinding("m:f", max_parallel=2)},
    )
    results = run(study, agent, executor="threads", parallelism=5)
    assert statuses(results) == ["success"] * 12
    assert most["a"] <= 2
    assert most["b"] >= 3  # or more: there is no limit to them, once the other agent is done


def test_a_limited_agent_that_breaks_is_still_tried_again(tmp_path):
    agents = {"a": AgentBinding("m:f", max_parallel=1)}
    study = make_study(tmp_path, agents=agents)
    results = run(study, Unlucky(1), executor="threads", parallelism=3, retry_wait_s=0.001)
    assert statuses(results) == ["success"] * 6
    assert [result.attempt for result in results] == [2] * 6


def test_starts_are_spread_over_the_minute(tmp_path, hold_time):
    starts = {"a": [], "b": []}

    def agent(task):
        starts[task.run_spec.agent_spec_ref].append(time.monotonic())
        return add(task)

    rate = 3000
    agents = {"a": AgentBinding("m:f", max_per_minute=rate)}
    study = make_study(tmp_path, agent_specs=("a", "b"), agents=agents)
    began = time.monotonic()
    hold_time(lambda: len(starts["b"]) == 6)
    run(study, agent, executor="threads", parallelism=6)
    _, *others = sorted(starts["a"])
    for number, start in enumerate(others, 1):
        assert start - began >= number * 60 / rate
    assert len(others) == 5
    assert max(starts["b"]) < others[0]  # those without a limit didn't wait for the others


# -- fail_fast --


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_fail_fast_starts_nothing_after_the_first_failure(tmp_path, error):
    called = []

    def agent(task):
        called.append(task)
        if len(called) == 3:
            raise error("no")
        return add(task)

    study = make_study(tmp_path, budget={"fail_fast": True})
    results = run(study, agent)
    assert (len(called), len(results), results.stopped) == (3, 3, "failure")
    assert sorted(statuses(results)) == ["failed", "success", "success"]
    assert len(read_table(tmp_path, "runs.csv")) == 3
    (session,) = results.reader.sessions.values()
    assert session["ended_how"] == "failure"


@pytest.mark.parametrize("executor", ["processes", "threads"])
def test_fail_fast_cancels_what_runs_and_leaves_it_pending(tmp_path, executor):
    others = tmp_path / "others"
    others.mkdir()
    over = threading.Event()

    def agent(task):
        if task.factors["x"] != 1:
            (others / task.run_spec.run_id).touch()
            over.wait(WAIT_S)
        until = time.monotonic() + WAIT_S
        while len(list(others.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.002)
        raise ValueError("no")

    study = make_study(tmp_path / "out", replicates=1, budget={"fail_fast": True})
    began = time.monotonic()
    results = run(study, agent, executor=executor, parallelism=3)
    assert time.monotonic() - began < WAIT_S
    over.set()
    assert (statuses(results), results.stopped) == (["failed"], "failure")
    for plan_index in (1, 2):
        (attempt,) = attempts_at(results, plan_index)
        assert (attempt.status, attempt.failure_kind) == ("pending", "cancelled")
    assert results.reader.summary().pending == 2
    results = run(replace(study, run_budget=RunBudget()), resume=True)
    assert statuses(results) == ["failed", "success", "success"]
    assert [result.attempt for result in results] == [1, 2, 2]


# -- budgets --


def costing(usd=0.0, tokens=0):
    def agent(task):
        metrics = {"cost_usd": usd, "input_tokens": tokens}
        return {"output": {"x": 1}, "metrics": metrics}

    return agent


@pytest.mark.parametrize(
    ("budget", "agent", "expected"),
    [
        ({"max_cost_usd": 1.0}, costing(usd=0.4), 2),
        ({"max_cost_usd": 1.2}, costing(usd=0.4), 3),
        ({"max_tokens": 1000}, costing(tokens=300), 3),
        ({"max_tokens": 1000, "max_cost_usd": 0.1}, costing(usd=0.1, tokens=1), 1),
    ],
)
def test_a_budget_stops_the_study_once_it_is_used_up(tmp_path, budget, agent, expected):
    study = make_study(tmp_path, budget=budget)
    results = run(study, agent)
    assert (len(results), results.stopped) == (expected, "budget")
    # It is the study's, not the session's: going on means to raise it.
    results = run(study, agent, resume=True)
    assert (len(results), results.stopped) == (expected, "budget")
    results = run(make_study(tmp_path), agent, resume=True)
    assert (len(results), results.stopped) == (6, None)


def test_what_is_under_way_when_the_budget_ends_is_finished(tmp_path):
    together, numbers = threading.Barrier(3), itertools.count()

    def agent(task):
        if next(numbers) == 0:  # the first run is alone: nobody knows what one costs
            return costing(usd=0.125)(task)
        together.wait(WAIT_S)
        return costing(usd=1.0)(task)

    study = make_study(tmp_path, budget={"max_cost_usd": 1.0})
    results = run(study, agent, executor="threads", parallelism=3)
    assert (len(results), results.stopped) == (4, "budget")
    assert results.reader.summary().cost_usd == 3.125


def test_a_budget_that_the_last_run_uses_up_ended_nothing(tmp_path):
    study = make_study(tmp_path, budget={"max_cost_usd": 6.0})
    results = run(study, costing(usd=1.0))
    assert (len(results), results.stopped) == (6, None)
    assert run(study, costing(usd=1.0), resume=True).stopped is None


def test_attempts_that_broke_cost_what_they_cost(tmp_path):
    """The judge is down, but the agent has been paid."""

    def judge(answer):
        raise Broken("the judge is down")

    packet = ProblemPacket("p", "f", "b", {}, {}, judge)
    study = make_study(tmp_path, budget={"max_cost_usd": 2.0, "retries": 9})
    results = run(study, costing(usd=1.0), packet, retry_wait_s=0.001)
    assert results.stopped == "budget"
    assert results.reader.summary().cost_usd == 2.0


# -- time --


@pytest.mark.parametrize("executor", ["processes", "threads"])
def test_a_run_past_its_time_has_failed_and_no_other_has(tmp_path, executor):
    release = threading.Event()

    def agent(task):
        if task.factors["x"] == 2:
            release.wait(WAIT_S)
        return add(task)

    for limit_s in (0.2, 2, 20):  # on a busy machine the others may need longer
        study = make_study(tmp_path / str(limit_s), budget={"timeout_s": float(limit_s)})
        began = time.monotonic()
        results = run(study, agent, executor=executor, parallelism=3)
        assert time.monotonic() - began < WAIT_S
        if statuses(results).count("success") == 4:
            break
    release.set()
    assert statuses(results) == [*["success"] * 2, *["failed"] * 2, *["success"] * 2]
    assert [result.failure_kind for result in results][2:4] == ["timeout", "timeout"]
    assert [result.attempt for result in results] == [1] * 6
    assert f"took longer than {limit_s} s" in results[2].error_info


# -- from outside --


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_a_cancelled_study_stops_in_the_midst_of_a_run(tmp_path, executor):
    over = threading.Event()

    def agent(task):
        request(tmp_path, "cancel")
        over.wait(WAIT_S)
        return add(task)

    study = make_study(tmp_path)
    began = time.monotonic()
    results = run(study, agent, executor=executor, parallelism=1)
    assert time.monotonic() - began < WAIT_S
    over.set()
    assert (len(results), results.stopped) == (0, "cancelled")
    assert len(run(study, resume=True)) == 6


def test_a_paused_study_starts_nothing_until_it_may_continue(tmp_path, monkeypatch):
    monkeypatch.setattr(run_loop, "LIVE_S", 0.0)
    for module in (run_loop, control):  # it looks after each run
        monkeypatch.setattr(module, "POLL_S", 0.0)
    looks, called, seen = [], [], []
    current_request = ControlFile.current_request

    def look(self):
        looks.append(current_request(self))
        return looks[-1]

    monkeypatch.setattr(ControlFile, "current_request", look)

    def is_paused():
        live = summary_of(tmp_path).live
        return live is not None and live["paused"] and not live["running"]

    def watch():
        wait_until(is_paused)
        enough = len(looks) + 5
        wait_until(lambda: len(looks) >= enough)
        seen.extend([len(called), summary_of(tmp_path).done])
        request(tmp_path, None)

    watcher = threading.Thread(target=watch)

    def agent(task):
        called.append(task)
        if len(called) == 2:
            request(tmp_path, "pause")
            watcher.start()
        return add(task)

    results = run(make_study(tmp_path), agent, executor="serial")
    watcher.join()
    assert seen == [2, 2]
    assert looks.count("pause") >= 5
    assert (len(results), results.stopped) == (6, None)


def test_an_interrupt_is_raised_after_cleaning_up_and_names_the_resume_command(tmp_path):
    called = []

    def agent(task):
        called.append(task)
        if len(called) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(WAIT_S)
        return add(task)

    study = make_study(tmp_path)
    with pytest.raises(KeyboardInterrupt, match="resume=True"):
        run(study, agent)
    assert len(read_table(tmp_path, "runs.csv")) == 2
    assert len(run(study, resume=True)) == 6


def wait_until(is_so):
    """Wait for a condition; for what can be seen afterwards, if it never comes."""
    until = time.monotonic() + WAIT_S
    while not is_so() and time.monotonic() < until:
        time.sleep(0.002)


def summary_of(folder):
    reader = LedgerReader.open(folder)
    try:
        return reader.summary()
    finally:
        reader.close()
