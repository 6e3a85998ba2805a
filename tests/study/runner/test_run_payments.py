"""What runs have paid counts for the study, however they end: failed, tried again, killed, stopped.

An agent says what it paid for as it puts it into its journal.
"""

import os
import signal
import threading
from dataclasses import replace

import pytest
from run_kit import make_study, read_table, run

from fairtrial import AgentOutput, Broken, RunBudget
from fairtrial.study.agents.journal import Journal
from fairtrial.study.executors import Executor, Finished, Noted
from fairtrial.study.runner.control import request

EXECUTORS = ("serial", "threads", "processes")
WAIT_S = 60.0
EACH = {"cost_usd": 0.25, "input_tokens": 100, "output_tokens": 10}


def pay(task):
    """Something is paid for; how much the whole run has paid by now."""
    task.journal.append("reply", {}, **EACH)
    return len(task.journal.entries())


def pays_and_fails(task):
    pay(task)
    raise ValueError("it was for nothing")


def small(folder, runs=1, **budget):
    return make_study(folder, levels=range(runs), replicates=1, budget=budget)


def spent(results):
    summary = results.reader.summary()
    return summary.cost_usd, summary.tokens


def spending_columns(folder):
    """What the table of runs says that each has cost."""
    names = ("status", "cost_usd", "input_tokens", "output_tokens")
    return [tuple(row[name] for name in names) for row in read_table(folder, "runs.csv")]


# -- a journal by itself --


def test_a_journal_knows_what_was_paid_for_before_and_now():
    kept = []
    Journal((), kept.append).append("reply", {"text": "x" * 10_000}, **EACH)
    journal = Journal(kept)
    journal.append("verdict", {})
    journal.append("reply", {}, cost_usd=None, input_tokens=7)
    assert journal.paid() == ((0.25, 100, 10), (0.0, 7, 0))
    assert [tuple(entry.paid) for entry in journal.entries()][1:] == [(0, 0, 0), (0, 7, 0)]


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf"), "1"])
def test_a_price_that_is_none_is_refused(cost):
    journal = Journal()
    with pytest.raises(ValueError, match=r"cost_usd must be a number of 0 or more"):
        journal.append("reply", {}, cost_usd=cost)
    assert journal.entries() == ()


# -- runs that fail --


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failed_run_counts_the_costs_in_its_journal(tmp_path, executor):
    study = small(tmp_path, 4, max_cost_usd=0.5)
    results = run(study, pays_and_fails, executor=executor)
    assert (len(results), results.stopped) == (2, "budget")
    assert spent(results) == (0.5, 220)
    assert spending_columns(tmp_path) == [("failed", "0.25", "100", "10")] * 2
    assert [result.cost for result in results] == [0.25, 0.25]
    # Going on, it is still spent.
    assert len(run(study, pays_and_fails, executor=executor, resume=True)) == 2
    more = replace(study, run_budget=RunBudget(max_tokens=330))
    results = run(more, pays_and_fails, executor=executor, resume=True)
    assert (len(results), results.stopped, spent(results)) == (3, "budget", (0.75, 330))


def test_a_failed_output_may_leave_out_its_cost_or_add_to_it(tmp_path):
    def agent(task):
        pay(task)
        metrics = {"cost_usd": 1.0} if task.factors["x"] else {}
        return AgentOutput(metrics=metrics, success=False, error="no")

    results = run(small(tmp_path, 2), agent)
    assert spending_columns(tmp_path) == [
        ("failed", "0.25", "100", "10"),
        ("failed", "1.0", "100", "10"),
    ]
    assert spent(results) == (1.25, 220)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_each_attempt_counts_what_it_paid_and_the_run_all_of_it(tmp_path, executor):
    def agent(task):
        if pay(task) < 3:
            raise Broken("again")
        return {"x": 0}

    study = small(tmp_path, retries=2)
    run(study, agent, executor=executor, retry_wait_s=0.001)
    results = run(study, agent, resume=True)  # which has nothing to do, and nothing to add
    assert spent(results) == (0.75, 330)
    assert spending_columns(tmp_path) == [("success", "0.75", "300", "30")]
    attempts = results.reader.attempts(0)
    assert [(attempt.status, attempt.cost_usd) for attempt in attempts] == [("broken", 0.25)] * 2


@pytest.mark.parametrize("tells", ["all of it", "its own"])
def test_what_an_earlier_attempt_paid_is_not_counted_again(tmp_path, tells):
    def agent(task):
        known = pay(task)
        if known == 1:
            raise ValueError
        times = known if tells == "all of it" else 1
        return AgentOutput({"x": 0}, metrics={name: times * EACH[name] for name in EACH})

    study = small(tmp_path)
    assert spent(run(study, agent)) == (0.25, 110)
    results = run(study, agent, resume=True, retry="failed")
    assert [result.status for result in results] == ["success"]
    assert spent(results) == (0.5, 220)


def test_retries_end_when_the_money_does(tmp_path):
    def agent(task):
        pay(task)
        raise Broken("again")

    study = small(tmp_path, retries=9, max_cost_usd=0.7)
    results = run(study, agent, retry_wait_s=0.001)
    assert (results.stopped, spent(results)) == ("budget", (0.75, 330))


# -- runs that are ended --


@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGKILL, "broken"), (signal.SIGSEGV, "failed")]
)
def test_a_worker_that_dies_has_paid(tmp_path, number, how):
    def agent(task):
        pay(task)
        pay(task)
        os.kill(os.getpid(), number)

    study = small(tmp_path, 3, retries=0, max_cost_usd=1.0)
    results = run(study, agent, executor="processes")
    assert (len(results), results.stopped, spent(results)) == (2, "budget", (1.0, 440))
    assert spending_columns(tmp_path) == [(how, "0.5", "200", "20")] * 2


def test_what_a_worker_paid_before_it_died_is_counted(tmp_path):
    def agent(task):
        if not task.journal.entries():
            pay(task)
            raise Broken("again")
        os.kill(os.getpid(), signal.SIGSEGV)

    study = small(tmp_path, retries=1)
    results = run(study, agent, executor="processes", retry_wait_s=0.001)
    assert (spending_columns(tmp_path), spent(results)) == (
        [("failed", "0.25", "100", "10")],
        (0.25, 110),
    )


class OneByOne(Executor):
    """An executor that asks for more while its first run has paid and is still under way."""

    name, is_reproducible, is_isolated = "one-by-one", True, False

    def execute(self, work, feed, slots):
        notes, given = [], feed()
        outcome = work.attempt(given, len, notes.append)
        for data in notes:
            yield Noted(given.execution_index, given.attempt, data)
        assert feed() is None, "there is no money for another"
        yield Finished(given.execution_index, given.attempt, outcome)


def test_what_is_under_way_keeps_others_from_starting(tmp_path):
    def agent(task):
        return {"x": pay(task)}

    results = run(small(tmp_path, 3, max_cost_usd=0.25), agent, executor=OneByOne())
    assert (len(results), results.stopped, spent(results)) == (1, "budget", (0.25, 110))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_run_that_is_cancelled_has_paid(tmp_path, executor):
    study, over = small(tmp_path, 2, max_cost_usd=0.25), threading.Event()

    def agent(task):
        pay(task)
        request(tmp_path, "cancel")
        over.wait(WAIT_S)

    results = run(study, agent, executor=executor)
    over.set()
    assert (len(results), results.stopped, spent(results)) == (0, "cancelled", (0.25, 110))
    results = run(study, agent, executor=executor, resume=True)
    assert (len(results), results.stopped) == (0, "budget")


def cut_off(study, agent, **settings):
    """kill -9 of the whole study, in a process of its own."""
    child = os.fork()
    if not child:
        try:
            run(study, agent, **settings)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_study_that_is_killed_remembers_what_was_paid(tmp_path, executor):
    study, killer = small(tmp_path, 2), os.getpid()

    def agent(task):
        study_pid = os.getpid() if executor == "serial" else os.getppid()
        if pay(task) < 3:
            assert study_pid != killer
            os.kill(study_pid, signal.SIGKILL)
            signal.pause()
        return {"x": 0}

    cut_off(study, agent, executor=executor)
    mean = replace(study, run_budget=RunBudget(max_cost_usd=0.25))
    results = run(mean, agent, executor=executor, resume=True)
    assert (len(results), results.stopped, spent(results)) == (0, "budget", (0.25, 110))
    cut_off(study, agent, executor=executor, resume=True)
    results = run(study, agent, executor=executor, resume=True, limit=1)
    assert [(result.status, result.attempt, result.cost) for result in results] == [
        ("success", 3, 0.75)
    ]
    assert spent(results) == (0.75, 330)
    assert [item.attempt for item in results.reader.attempts(0)] == [1, 2]
