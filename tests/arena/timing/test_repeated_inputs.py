"""Benchmarks whose inputs repeat: a gain from remembered results alone isn't adopted."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace

import anyio
import pytest
from repository_kit import make_repository

from fairtrial.arena import ArenaSettings, Candidate, evaluate_candidates, load_problem
from fairtrial.arena.model.problem import Benchmark, Check
from fairtrial.arena.model.timings import TotalVerdict
from fairtrial.arena.timing import whole_process
from fairtrial.arena.timing.calibration import Pace
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark
from fairtrial.arena.timing.inputs import NoInputs
from fairtrial.arena.timing.session import Schedule
from fairtrial.arena.timing.stats.reconciliation import ProcessTotals, SavingClaim
from fairtrial.arena.timing.whole_process import check_total, check_unseen

WORK = """\
def work(n):
    total = 0
    for number in range(n):
        total += number * number % 7
    return total
"""
FASTER = """\
def work(n):
    whole = n // 7
    return 14 * whole + sum(number * number % 7 for number in range(7 * whole, n))
"""
MEMO = (
    WORK
    + """\

_known, _work = {}, work

def work(n):
    if n not in _known:
        _known[n] = _work(n)
    return _known[n]
"""
)
KNOWN = WORK.replace(
    "    total = 0\n", "    if n == 100000:\n        return ANSWER\n    total = 0\n"
)
KNOWN = KNOWN.replace("ANSWER", str(sum(number * number % 7 for number in range(100000))))
INPUTS = """\
def many(rng):
    return [rng.randrange(1000)], {}
"""
SUITE = """\
from work import work

def time_work():
    return work(100000)
"""
PROBLEM = """\
problem_id: repeats
family: code
repo: .
editable: [work.py]
check:
  - {function: "work:work", inputs: "checks.py:many", cases: 10}
bench:
  - {name: b, suite: "benchmarks/bench.py::time_work", trust: TRUST}
budget_s: 300
"""


CALL_S = 1e-3
COSTS = {"remembers": 1.0, "computes less": 0.2}
"""What a call with new arguments costs, in calls of the base; arguments that were seen cost nothing
for the one that remembers."""


class Draws:
    """Draws from a few inputs."""

    async def make(self, seed, count):
        rng = Random(seed)
        return [b'{"args":[%d]}' % rng.randrange(4) for _ in range(count)]


def make_benchmark(supplier, suite=""):
    calls = {"suite": suite} if suite else {"call": "work:work", "inputs": "checks.py:few"}
    benchmark = Benchmark("b", **calls)
    pace = Pace(CALL_S, 1e-4, 5e-5, 0.1, 100, {})
    schedule = Schedule(b"{}", calls=4, rounds=3)
    check = Check(function="work:work", inputs="checks.py:few")
    return FunctionBenchmark(benchmark, check, supplier, schedule, pace, True, repeats=True)


def check_both(monkeypatch, benchmark, how):
    """Return the verdicts of both checks for a candidate that claims 5x."""

    async def run_process(benchmark, setup, arm, inputs, hash_seed, *, has_warm_up):
        timed = inputs[has_warm_up:]
        cost = 1.0 if arm == "base" else COSTS[how]
        if arm != "base" and how == "remembers":
            seen = set(inputs[:has_warm_up])
            new = [data for n, data in enumerate(timed) if data not in {*seen, *timed[:n]}]
            seconds = CALL_S * len(new)
        else:
            seconds = CALL_S * cost * len(timed)
        figures = (len(timed), seconds + 1e-4, CALL_S * len(timed), seconds + 0.1)
        totals = ProcessTotals(*figures, CALL_S * len(timed), seconds + 1e-4)
        return totals, tuple(b"{}" for _ in inputs)

    monkeypatch.setattr(whole_process, "_run_process", run_process)

    async def work():
        setup = SimpleNamespace(seed="s")
        claim = SavingClaim(5.0, 4.5)
        checks = [check(benchmark, setup, claim, 60.0) for check in (check_total, check_unseen)]
        return [await check for check in checks]

    return anyio.run(work)


@pytest.mark.parametrize("suite", ["", "benchmarks/bench.py::time_work"])
@pytest.mark.parametrize("how", COSTS)
def test_only_a_gain_for_inputs_that_are_new_to_a_process_is_confirmed(monkeypatch, suite, how):
    benchmark = make_benchmark(NoInputs() if suite else Draws(), suite)
    usual, unseen = check_both(monkeypatch, benchmark, how)
    assert (usual.verdict, usual.is_unseen) == (TotalVerdict.CONFIRMED, False)
    expected = TotalVerdict.CONTRADICTED if how == "remembers" else TotalVerdict.CONFIRMED
    assert (unseen.verdict, unseen.is_unseen) == (expected, True)


def test_savings_that_are_too_short_to_be_seen_are_not_looked_for(monkeypatch):
    short = replace(make_benchmark(Draws()), pace=Pace(1e-5, 1e-4, 5e-5, 0.1, 100, {}))
    assert check_both(monkeypatch, short, "computes less")[1] is None


def time_suite(tmp_path, trust, texts):
    files = {
        "work.py": WORK,
        "checks.py": INPUTS,
        "benchmarks/bench.py": SUITE,
        "problem.yaml": PROBLEM.replace("TRUST", trust),
    }
    top = make_repository(tmp_path / "p", files)
    candidates = [Candidate(name, files={"work.py": text}) for name, text in texts.items()]
    settings = ArenaSettings(timing="each", audit=False, unsandboxed=True, lock_folder=tmp_path)

    async def evaluate():
        problem = load_problem(top / "problem.yaml")
        return await evaluate_candidates(problem, candidates, settings=settings)

    return [item.measurement for item in anyio.run(evaluate).judgements]


@pytest.mark.slow
def test_a_suite_s_results_that_are_only_remembered_are_no_gain(tmp_path):
    texts = {"remembers": MEMO, "computes less": FASTER}
    remembers, computes = time_suite(tmp_path, "all", texts)
    assert remembers.estimate.ratio > 2
    assert not remembers.adopt
    assert any("each input once" in veto for veto in remembers.vetoes), remembers.vetoes
    assert computes.adopt, computes.vetoes
    assert [check.is_unseen for check in computes.total_checks] == [False, True]


@pytest.mark.slow
def test_a_suite_s_answers_that_are_known_by_heart_are_not_adopted(tmp_path):
    (known,) = time_suite(tmp_path, "some", {"knows": KNOWN})
    assert known.estimate.ratio > 2
    assert not known.adopt
    assert any("`trust: all`" in veto for veto in known.vetoes), known.vetoes
