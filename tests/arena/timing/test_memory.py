"""Peak memory: judged like times, and by gates."""

import os
from dataclasses import replace

import pytest
from gate_kit import judge_statistics, sessions

from fairtrial.arena import Benchmark, Pair, gate
from fairtrial.arena.timing.memory import PeakMeter, judge_memory, pair_peaks
from fairtrial.core import StudyError

PEAKS = {"smaller": 8.0, "larger": 12.0, "equivalent": 10.0}


def measured(candidate_mb, spread=0.001):
    """Sessions whose candidate has this peak, and whose base has 10 MB."""
    return [
        replace(
            session, judged_mb=Pair(10.0, candidate_mb * (1 + spread * (session.number % 3 - 1)))
        )
        for session in (item[0] if isinstance(item, tuple) else item for item in make_sessions())
    ]


def make_sessions():
    judgement = judge_statistics(sessions(0.0))
    return judgement.measurement.sessions


@pytest.mark.parametrize("verdict", PEAKS)
def test_memory_has_a_verdict_in_words(verdict):
    result = judge_memory(measured(PEAKS[verdict]), alpha=0.05, min_effect=0.02)
    assert result.verdict == verdict
    assert result.low <= result.growth <= result.high
    assert verdict in result.text()


def test_later_calls_count_if_the_candidate_needs_more_in_them_than_the_base():
    base = PeakMeter(0, peak_mb=10.0, all_mb=14.0)  # batches of calls keep their results
    alike = PeakMeter(0, peak_mb=5.0, all_mb=9.5)
    assert pair_peaks({"base": base, "candidate": alike}) == Pair(10.0, 5.0)
    hiding = PeakMeter(0, peak_mb=5.0, all_mb=40.0)
    assert pair_peaks({"base": base, "candidate": hiding}) == Pair(14.0, 40.0)
    unknown = PeakMeter(0, peak_mb=5.0)
    assert pair_peaks({"base": base, "candidate": unknown}) == Pair(10.0, 5.0)


def test_the_peak_of_all_calls_is_read_after_the_last():
    meter = PeakMeter(os.getpid())
    meter.begin()
    meter.end()
    room = bytearray(64 * 2**20)
    del room
    meter.finish()
    assert meter.all_mb > meter.peak_mb + 50


def test_noise_leaves_memory_inconclusive():
    result = judge_memory(measured(10.2, spread=0.5), alpha=0.05, min_effect=0.02)
    assert result.verdict == "inconclusive"


def test_memory_is_not_judged_if_a_session_did_not_measure_it():
    some = measured(9.0)
    some[0] = replace(some[0], judged_mb=None)
    assert judge_memory(some, alpha=0.05, min_effect=0.02) is None


@pytest.mark.parametrize(
    ("growth", "max_regression", "has_failed"),
    [(12.0, 0.0, True), (12.0, 0.5, False), (8.0, 0.0, False)],
)
def test_a_gate_fails_for_memory_that_is_shown_to_be_larger(growth, max_regression, has_failed):
    judgement = judge_statistics(sessions(0.0))
    measurement = judgement.measurement
    memory = judge_memory(measured(growth), alpha=0.05, min_effect=0.02)
    timings = (replace(measurement.timings[0], memory=memory),)
    judgement = replace(judgement, measurement=replace(measurement, timings=timings))
    conditions = gate.parse_conditions("larger")
    result = gate.Gate(conditions, max_regression).judge([judgement])
    assert result.has_failed == has_failed


def test_a_benchmark_is_always_timed():
    with pytest.raises(StudyError, match="must name `time`"):
        Benchmark("b", command=("true",), measure=("peak_memory",))
