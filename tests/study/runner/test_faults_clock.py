"""A wall clock that goes backwards: times stay sane, and nothing hangs."""

import sys
from datetime import datetime

import pytest
from fault_stage_kit import SEVERAL

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

BACKWARDS = """
import datetime, os, sys, time

began, now = time.monotonic(), time.time()

def backwards():
    "A day in each second, and the wrong way."
    return now - 86400 * (time.monotonic() - began)

class Backwards(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(backwards(), tz)

    @classmethod
    def utcnow(cls):
        return cls.now(datetime.UTC).replace(tzinfo=None)

time.time = backwards
time.time_ns = lambda: int(backwards() * 1e9)
datetime.datetime = Backwards
"""
LONG_S = 600
"""Longer than any run takes, and shorter by far than what this clock makes of one."""


@pytest.mark.parametrize("words", [("--executor", "serial"), ("--parallel", "2")])
def test_a_clock_that_goes_backwards_does_no_harm(stage, words):
    stage.write(options={"wait_s": 0.02}, run_budget={"replicates": 5})
    base = ["run", "study.yaml", "--output", "out", *words]
    for ended in stage.several(
        [*base, "--limit", "5"], [*base, "--resume"], script=BACKWARDS + SEVERAL
    ):
        assert ended.code == 0, ended.err
    rows = stage.table()
    assert len(rows) == 15
    for row in rows:
        assert 0.02 <= float(row["latency_s"]) < LONG_S
        start, end = (datetime.fromisoformat(row[name]) for name in ("start_time", "end_time"))
        assert 0.01 <= (end - start).total_seconds() < LONG_S
    starts = sorted(row["start_time"] for row in rows)
    assert starts[0] < starts[-1]  # the clock did go somewhere
    shown = stage.status()
    assert shown["live"]["rate"] is None or 0 < shown["live"]["rate"] < 1e6
    assert shown["live"]["eta_s"] is None or 0 <= shown["live"]["eta_s"] < 1e6
    told = stage.call("status", stage.output)
    assert "-" not in told.out.replace("out-", "")
