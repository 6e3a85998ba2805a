"""Large reports are judged in a process of their own, which can be stopped."""

import time

import anyio
import pytest
from calls_kit import SORT, Slots

from fairtrial.arena import Reason
from fairtrial.arena.checks import judge_process
from fairtrial.arena.checks.judge_process import SMALL_BYTES, count_differing, judge_bounded

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
