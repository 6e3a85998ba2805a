"""Optimizing from Python: objects in, events and a result out; the host program is left alone."""

import asyncio
import os
import signal
import sys
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from optimize_kit import MODULE, WORKING, OptimizeSite, SimBench

from fairtrial import (
    Candidate,
    LabError,
    Proposer,
    Reply,
    StudyError,
    compare_candidates,
    compare_candidates_sync,
    evaluate_candidates_sync,
    load_problem,
    measure_candidate,
    measure_candidate_sync,
    optimize_code,
    optimize_code_sync,
)
from fairtrial.arena import Arena, ArenaSettings, events as arena_events
from fairtrial.core import events
from fairtrial.optimize import events as optimize_events
from fairtrial.sandbox import host_lock

OPTIONS = {"unsandboxed": not WORKING, "audit": False, "lineages": 1}
SETTINGS = ArenaSettings(unsandboxed=not WORKING, audit=False, timing="none")
FASTER = {"src/mod.py": MODULE.format(8, 8)}


@pytest.fixture
def problem(tmp_path, monkeypatch):
    """A small problem; its clock is simulated."""
    site = OptimizeSite(tmp_path, None)
    for name, value in {**site.variables(), "KIT_FOLDER": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)

    @asynccontextmanager
    async def bench(arena):
        yield SimBench()

    monkeypatch.setattr(host_lock, "HOST_FOLDER", site.locks)
    monkeypatch.setattr(Arena, "bench", bench)
    return site.top / "problem.yaml"


class Client:
    """Answers a question; stands for a connection, which no file can hold."""

    def __init__(self):
        self.lock, self.asked = threading.Lock(), 0

    async def ask(self, question):
        self.asked += 1
        await asyncio.sleep(0)
        return FASTER


@dataclass(frozen=True)
class Asking(Proposer):
    """A proposer with a client in it."""

    client: Client

    async def propose(self, brief, request):
        text = (await self.client.ask(brief.task))["src/mod.py"]
        candidate = Candidate(f"answer-{request.step}", files={"src/mod.py": text})
        return Reply((candidate,))


def test_a_proposer_with_a_client_in_it_is_asked_and_its_best_is_confirmed(problem):
    client, seen = Client(), []

    async def main():
        return await optimize_code(problem, Asking(client), emit=seen.append, **OPTIONS)

    result = asyncio.run(main())
    assert result.best == "0.0"
    assert result.estimate.low > 3
    assert "range(8)" in result.patch
    assert client.asked >= 1
    kinds = {type(event) for event in seen}
    assert {
        events.PhaseStarted,
        optimize_events.CandidateEntered,
        arena_events.CheckStarted,
        arena_events.CandidateJudged,
    } <= kinds


def test_a_closure_may_propose_in_code_that_is_not_async(problem):
    asked, threads = [], set()

    def propose(brief, request):
        asked.append(request.kind)
        return FASTER

    def receive(event):
        threads.add(threading.current_thread())

    result = optimize_code_sync(load_problem(problem), propose, emit=receive, **OPTIONS)
    assert result.best == "0.0"
    assert asked
    assert threads == {threading.current_thread()}


def test_it_works_while_an_event_loop_runs_as_in_a_notebook(problem):
    async def cell():
        return optimize_code_sync(problem, lambda brief, request: FASTER, **OPTIONS).best

    assert asyncio.run(cell()) == "0.0"


def describe_process():
    return {
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "out": (sys.stdout, sys.stderr, sys.excepthook, threading.excepthook),
        "folder": Path.cwd(),
        "variables": dict(os.environ),
        "cores": os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else (),
    }


def test_five_at_once_in_one_process_leave_their_host_alone(problem, capfd):
    before, during = [], []

    def note(event):
        if isinstance(event, arena_events.CandidateJudged):
            during.append(describe_process())

    async def one(number):
        async def propose(brief, request):
            return FASTER if request.step == 0 else None

        return await optimize_code(problem, propose, seed=number, emit=note, **OPTIONS)

    async def main():
        ticks, done = 0, asyncio.Event()
        before.append(describe_process())  # asyncio has its own handler for interrupts by now

        async def tick():
            nonlocal ticks
            while not done.is_set():
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        results = await asyncio.gather(*map(one, range(5)))
        done.set()
        await ticking
        during.append(describe_process())
        return results, ticks, asyncio.all_tasks() - {asyncio.current_task()}

    results, ticks, left = asyncio.run(main())
    assert [result.best for result in results] == ["0.0"] * 5
    assert ticks > 5  # the host's own tasks went on
    assert left == set()
    assert len(during) > 5
    assert all(state == before[0] for state in during)
    assert capfd.readouterr() == ("", "")


def test_a_cancelled_one_cleans_up(problem, tmp_path):
    async def main():
        asked = asyncio.Event()

        async def propose(brief, request):
            asked.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(optimize_code(problem, propose, **OPTIONS))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [*(tmp_path / "cache").rglob("problem.yaml")] == []


class EnoughError(Exception):
    """The caller wants no more."""


def test_what_the_receiver_of_events_raises_cancels_a_synchronous_one(problem, tmp_path):
    def stop(event):
        if isinstance(event, optimize_events.CandidateEntered):
            raise EnoughError

    with pytest.raises(EnoughError):
        optimize_code_sync(problem, lambda brief, request: FASTER, emit=stop, **OPTIONS)
    assert [*(tmp_path / "cache").rglob("problem.yaml")] == []
    assert not [thread for thread in threading.enumerate() if "portal" in thread.name]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"proposer": 3}, "proposer: expected a Proposer, a function or a name"),
        ({"proposer": "codemods"}, "there is no proposer 'codemods'"),
        ({"max_candidate": 3}, "did you mean 'max_candidates'"),
        ({"proposer": len, "proposer_options": {"a": 1}}, "has its options already"),
        ({"patience": "one"}, "patience: expected a whole number"),
    ],
)
def test_mistakes_are_named_before_anything_runs(problem, given, why):
    with pytest.raises(StudyError, match=why):
        optimize_code_sync(problem, **given)


def test_a_problem_that_is_none_is_refused_with_what_to_pass():
    for call in (optimize_code_sync, lambda given: evaluate_candidates_sync(given, [])):
        with pytest.raises(StudyError, match="expected a CodeProblem or the path of a problem"):
            call({"problem_id": "p"})


def test_a_failing_network_is_an_error_and_no_result(problem):
    async def propose(brief, request):
        raise LabError("the network is down")

    with pytest.raises(LabError, match="the network is down"):
        optimize_code_sync(problem, propose, **OPTIONS)


def test_candidates_are_evaluated_compared_and_measured_in_both_forms(problem):
    faster, wrong = Candidate("faster", files=FASTER), Candidate("wrong", diff="--- garbage")
    evaluated = evaluate_candidates_sync(problem, [faster, wrong], settings=SETTINGS)
    assert [str(one.verdict) for one in evaluated.judgements] == ["passed", "rejected"]
    measured = measure_candidate_sync(problem, faster, settings=SETTINGS)
    assert measured.measurement.verdict == "faster"
    assert asyncio.run(measure_candidate(problem, wrong, settings=SETTINGS)).rejection is not None
    pair = compare_candidates_sync(problem, wrong, "base", settings=SETTINGS)
    again = asyncio.run(compare_candidates(problem, wrong, "base", settings=SETTINGS))
    assert pair.first.verdict == again.first.verdict == "rejected"
