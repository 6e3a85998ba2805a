"""The executor `async`, and clients that async agents share under `threads`."""

import asyncio
import threading
import time

import pytest
from run_kit import make_study, read_table, run, stable_tables

from fairtrial import Broken, ProblemPacket, RunBudget, open_results

MANY = 300
WAIT_S = 30.0


def test_many_runs_wait_at_once_in_one_thread(tmp_path):
    waiting, threads, everybody = [], set(), []

    async def agent(task):
        threads.add(threading.get_ident())
        waiting.append(task)
        if len(waiting) == MANY:
            for event in everybody:
                event.set()
        else:
            event = asyncio.Event()
            everybody.append(event)
            await asyncio.wait_for(event.wait(), WAIT_S)
        return {"x": 1}

    study = make_study(tmp_path, range(MANY), 1)
    results = run(study, agent, executor="async", parallelism=MANY)
    assert {str(result.status) for result in results} == {"success"}
    assert (len(waiting), len(threads)) == (MANY, 1)


def test_tables_are_those_of_other_executors(tmp_path):
    async def agent(task):
        await asyncio.sleep(0)
        if task.rng.random() < 0.3:
            raise ValueError(f"unlucky {task.rng.random()}")
        task.emit("drawn", "a number", number=task.rng.random())
        return {"output": {"x": task.rng.random()}, "metrics": {"cost_usd": 0.1}}

    for executor in ("serial", "async"):
        run(make_study(tmp_path / executor, range(20)), agent, executor=executor)
    serial, ours = (stable_tables(tmp_path / name) for name in ("serial", "async"))
    assert ours == serial


@pytest.mark.parametrize("executor", ["async", "threads"])
def test_an_async_client_of_the_module_works_in_all_runs(tmp_path, executor):
    lock = None
    loops = set()

    async def agent(task):
        nonlocal lock
        loops.add(asyncio.get_running_loop())
        if lock is None:
            lock = asyncio.Condition()  # bound to the first loop that waits for it
        async with lock:
            await asyncio.wait_for(asyncio.shield(asyncio.sleep(0.001)), WAIT_S)
        return {"x": 1}

    study = make_study(tmp_path, range(16), 1)
    results = run(study, agent, executor=executor, parallelism=8)
    assert {result.error_info for result in results} == {None}
    assert len(loops) == 1


@pytest.mark.parametrize("executor", ["async", "threads"])
def test_what_async_agents_print_stays_with_their_run(tmp_path, executor):
    async def agent(task):
        for _ in range(3):
            print("level", task.factors["x"])
            await asyncio.sleep(0)
        return {"x": 1}

    run(make_study(tmp_path, range(10), 1), agent, executor=executor, parallelism=10)
    with open_results(tmp_path) as results:
        printed = {result.stdout for result in results}
    assert printed == {f"level {x}\n" * 3 for x in range(10)}


def test_sync_agents_and_evaluators_hold_nobody_back(tmp_path):
    together = threading.Barrier(4)

    def score(x):
        together.wait(WAIT_S)
        return {"score": x}

    def agent(task):
        together.wait(WAIT_S)
        return {"x": task.factors["x"]}

    problem = ProblemPacket("p", "sums", "add", {}, {}, score)
    study = make_study(tmp_path, range(4), 1)
    results = run(study, agent, problem, executor="async", parallelism=4)
    assert {result.error_info for result in results} == {None}
    scores = [result.evaluator_outputs[0]["metric_value"] for result in results]
    assert scores == [0, 1, 2, 3]


def test_async_evaluators_run_in_the_same_loop(tmp_path):
    loops = set()

    async def agent(task):
        loops.add(asyncio.get_running_loop())
        return {"x": 1}

    async def score(x):
        loops.add(asyncio.get_running_loop())
        return {"score": x}

    problem = ProblemPacket("p", "sums", "add", {}, {}, score)
    run(make_study(tmp_path, (1, 2), 1), agent, problem, executor="async", parallelism=2)
    assert len(loops) == 1


def test_a_run_past_its_time_is_cancelled_where_it_waits(tmp_path):
    cancelled = threading.Event()

    async def agent(task):
        try:
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return {"x": 1}

    study = make_study(tmp_path, (1,), 1, budget={"timeout_s": 0.1})
    (result,) = run(study, agent, executor="async", parallelism=1)
    assert (str(result.status), str(result.failure_kind)) == ("failed", "timeout")
    assert cancelled.wait(WAIT_S)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
@pytest.mark.parametrize("executor", ["async", "threads"])
def test_whatever_an_agent_raises_costs_one_run(tmp_path, executor, error):
    async def agent(task):
        await asyncio.sleep(0)
        if task.factors["x"] == 1:
            raise error
        return {"x": 1}

    results = run(make_study(tmp_path, (1, 2, 3), 1), agent, executor=executor, parallelism=3)
    assert [str(result.status) for result in results] == ["failed", "success", "success"]


@pytest.mark.parametrize("executor", ["async", "threads"])
def test_tasks_that_a_run_left_are_cancelled_and_those_of_others_are_not(tmp_path, executor):
    ended, left = [], []

    async def forget(number):
        try:
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            ended.append(number)
            raise

    async def agent(task):
        own = asyncio.create_task(asyncio.sleep(0.05, "mine"))
        left.append(asyncio.create_task(forget(task.factors["x"])))
        await asyncio.sleep(0.01 * task.factors["x"])
        return {"x": await own}

    study = make_study(tmp_path, (0, 1, 2), 1, outcomes=())
    problem = ProblemPacket("p", "sums", "add", {}, {}, lambda x: {"score": 1})
    results = run(study, agent, problem, executor=executor, parallelism=3)
    assert [result.outputs["x"] for result in results] == ["mine"] * 3
    assert sorted(ended) == [0, 1, 2]


def test_broken_runs_are_retried_and_journals_are_kept(tmp_path):
    async def agent(task):
        earlier = [entry.data for entry in task.journal.entries()]
        if not earlier:
            await asyncio.to_thread(task.journal.append, "answer", {"n": 7}, cost_usd=0.5)
            raise Broken("again")
        return {"x": earlier[0]["n"]}

    study = make_study(tmp_path, (1, 2), 1, budget={"retries": 1})
    results = run(study, agent, executor="async", parallelism=2, retry_wait_s=0.001)
    assert [result.outputs["x"] for result in results] == [7, 7]
    assert {row["attempt"] for row in read_table(tmp_path, "runs.csv")} == {"2"}


def test_it_takes_many_runs_at_once_by_default(tmp_path):
    most, now = 0, 0

    async def agent(task):
        nonlocal most, now
        now += 1
        most = max(most, now)
        until = time.monotonic() + 0.2
        while most < 50 and time.monotonic() < until:
            await asyncio.sleep(0.001)
        now -= 1
        return {"x": 1}

    study = make_study(tmp_path, range(60), 1, run_budget=RunBudget())
    run(study, agent, executor="async")
    assert most >= 50
