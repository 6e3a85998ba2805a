"""Large reports are judged in a process of their own, which can be stopped."""

import threading
import time

import anyio
import pytest
from calls_kit import SORT, Slots

from fairtrial.arena import Reason
from fairtrial.arena.checks import judge_process
from fairtrial.arena.checks.comparison_rules import MOST_STEPS, ComparisonRules
from fairtrial.arena.checks.judge_process import SMALL_BYTES, count_differing, judge_bounded
from fairtrial.arena.checks.value_comparison import compare

MAKER = """
    def make(rng):
        return ([rng.random() for _ in range(5)],), {}
"""


def test_a_report_is_judged_alike_in_a_thread_and_in_a_process(tmp_path, monkeypatch):
    slots = Slots(tmp_path, {"tools.py": SORT, "bench/inputs.py": MAKER})
    prepared = slots.prepare(aliasing="any")
    near = "def sort(items): return sorted(item * (1 + 1e-13) for item in items)"
    wrong = "def sort(items): return sorted(item + 1 for item in items)"
    in_thread = slots.judge(prepared, tools=wrong).rejection
    monkeypatch.setattr(judge_process, "SMALL_BYTES", 0)
    assert slots.judge(prepared, tools=near).rejection is None
    assert slots.judge(prepared, tools=wrong).rejection == in_thread


def test_a_report_beyond_the_limits_rejects_its_candidate():
    rejection = anyio.run(judge_bounded, "check[1]", SMALL_BYTES + 1, bytearray, 2**40)
    assert rejection.reason == Reason.DIFFERENT
    assert "could not be compared within" in rejection.message


def compare_for_long(ended):
    items = [{"$": "set", "items": [number + 0.5]} for number in range(250)]
    other = [{"$": "set", "items": [number + 0.5 + 1e-12]} for number in range(250)]
    try:
        for _ in range(10_000):
            pair = ({"$": "set", "items": part} for part in (items, other))
            compare(*pair, ComparisonRules(rel_tol=1e-9), "result")
            if ComparisonRules().budget.stopping.is_set():
                return
    finally:
        ended.set()


def test_a_comparison_in_a_thread_ends_when_it_is_cancelled():
    ended = threading.Event()

    async def cancel():
        with anyio.move_on_after(0.3) as scope:
            await judge_bounded("check[1]", 10, compare_for_long, ended)
        return scope.cancelled_caught

    assert anyio.run(cancel)
    assert ended.wait(30)


def make_ring(length):
    objects = [
        {"$": "object", "type": "m.Node", "id": n + 1, "state": {"next": {"$": "ref", "to": n}}}
        for n in range(1, length)
    ]
    first = {
        "$": "object",
        "type": "m.Node",
        "id": 1,
        "state": {"next": {"$": "ref", "to": length}},
    }
    return {"$": "graph", "root": {"$": "ref", "to": 1}, "objects": [first, *objects]}


def test_rings_of_different_lengths_are_not_compared_forever():
    rules = ComparisonRules()
    assert compare(make_ring(300), make_ring(300), rules).count == 0
    (difference,) = compare(make_ring(2999), make_ring(3001), rules).first
    assert difference.actual == "objects that refer to each other in too many ways"
    assert rules.budget.steps > MOST_STEPS - 1_000_000


def test_copies_may_stand_for_an_object_that_is_shared():
    node = {"$": "object", "type": "m.Node", "state": {"value": 1}}
    shared = [{**node, "id": 1}, *({"$": "ref", "to": 1} for _ in range(5000))]
    assert compare(shared, [dict(node) for _ in range(5001)], ComparisonRules()).count == 0


def test_judging_ends_when_it_is_cancelled():
    async def cancel():
        began = time.monotonic()
        with anyio.move_on_after(0.5):
            await judge_bounded("check[1]", SMALL_BYTES + 1, time.sleep, 600)
        return time.monotonic() - began

    assert anyio.run(cancel) < 300


@pytest.mark.parametrize(
    ("lines", "expected", "size"),
    [((), (), 0), ((b"a",), (b"a",), 0), ((b"a", b"bb"), (b"a", b"c"), 3), ((b"a",), (), 0)],
)
def test_only_lines_that_are_not_the_expected_ones_are_parsed(lines, expected, size):
    assert count_differing(lines, expected) == size
