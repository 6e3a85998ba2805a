"""Benchmarks whose inputs repeat: a gain from remembered results alone isn't adopted."""

import anyio
import pytest
from repository_kit import make_repository

from fairtrial.arena import ArenaSettings, Candidate, evaluate_candidates, load_problem

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
INPUTS = """\
def few(rng):
    return [rng.choice([200000, 200001, 200002, 200003])], {}

def many(rng):
    return [rng.randrange(1000)], {}
"""
SUITE = """\
from work import work

def time_work():
    return work(200000)
"""
PROBLEM = """\
problem_id: repeats
family: code
repo: .
editable: [work.py]
check:
  - {function: "work:work", inputs: "checks.py:many", cases: 10}
bench:
  - {name: b, BENCH}
budget_s: 300
"""


@pytest.mark.parametrize(
    "bench",
    ['suite: "benchmarks/bench.py::time_work"', 'call: "work:work", inputs: "checks.py:few"'],
)
def test_only_a_gain_for_inputs_that_are_new_to_a_process_is_adopted(tmp_path, bench):
    files = {
        "work.py": WORK,
        "checks.py": INPUTS,
        "benchmarks/bench.py": SUITE,
        "problem.yaml": PROBLEM.replace("BENCH", bench),
    }
    top = make_repository(tmp_path / "p", files)
    candidates = [
        Candidate("remembers", files={"work.py": MEMO}),
        Candidate("computes less", files={"work.py": FASTER}),
    ]
    settings = ArenaSettings(timing="each", audit=False, unsandboxed=True, lock_folder=tmp_path)

    async def evaluate():
        problem = load_problem(top / "problem.yaml")
        return await evaluate_candidates(problem, candidates, settings=settings)

    remembers, computes = (item.measurement for item in anyio.run(evaluate).judgements)
    assert remembers.estimate.ratio > 2
    assert not remembers.adopt
    assert any("each input once" in veto for veto in remembers.vetoes), remembers.vetoes
    assert computes.adopt, computes.vetoes
    assert [check.is_unseen for check in computes.total_checks] == [False, True]
