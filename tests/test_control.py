"""Stopping from outside: the control file, signals, and how far it is (spec 22, 23)."""

import io
import os
import signal
from types import SimpleNamespace

import pytest

from fairtrial.engine import control
from fairtrial.engine.control import ControlFile, Interrupts, request, requested
from fairtrial.engine.elsewhere import Elsewhere, say_who_times
from fairtrial.engine.progress import Progress, Tally, spell_rate, spell_time
from fairtrial.errors import LabError


def test_a_request_is_seen_and_can_be_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "LOOK_S", 0.0)
    file = ControlFile(tmp_path)
    assert file.told() is None
    request(tmp_path, "pause")
    assert file.told() == requested(tmp_path) == "pause"
    request(tmp_path, None)
    assert file.told() is None
    request(tmp_path, None)


def test_a_request_of_an_earlier_time_is_void(tmp_path):
    request(tmp_path, "cancel")
    assert ControlFile(tmp_path).told() is None


def test_a_control_file_that_is_no_text_asks_for_nothing(tmp_path):
    (tmp_path / "control").write_bytes(b"\xff\xfe\x00")
    assert requested(tmp_path) is None


def test_the_first_signal_is_noted_and_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts(raise_at_once=False) as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.count == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_where_runs_happen_in_this_thread_the_first_signal_raises():
    with Interrupts(raise_at_once=True) as interrupts, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert interrupts.count == 1


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_rate_and_time_left_are_those_of_the_last_minute():
    clock = Clock()
    tally = Tally(total=1000, clock=clock)
    tally.note_time()
    assert tally.rate is None
    for _ in range(200):  # 200 s at 1/s, then 60 s at 5/s
        clock.now += 1
        tally.success += 1
        tally.note_time()
    assert tally.rate == pytest.approx(1.0)
    for _ in range(61):
        clock.now += 1
        tally.success += 5
        tally.note_time()
    assert tally.rate == pytest.approx(5.0, rel=0.1)
    assert tally.eta_s == pytest.approx((1000 - tally.done) / tally.rate)


def test_a_clock_that_stands_still_gives_no_rate():
    clock = Clock()
    tally = Tally(total=10, clock=clock)
    tally.note_time()
    tally.success = 5
    assert tally.rate is None
    assert tally.line() == "5/10 runs"


def test_what_can_not_be_foretold_is_left_out():
    clock = Clock()
    tally = Tally(total=180, cost_usd=0.00278, is_part=True, clock=clock)
    tally.note_time()
    clock.now += 2
    tally.success = 6
    tally.note_time()
    assert tally.line() == "6/180 runs, 3.0/s, $0.0028"  # a pilot: not all 180 are to come
    tally.is_paused = True
    assert tally.line() == "6/180 runs, paused, $0.0028"
    assert tally.line(is_over=True) == "6/180 runs, $0.0028"


def test_a_log_gets_plain_lines_now_and_then_and_one_at_the_end():
    clock, stream = Clock(), io.StringIO()
    tally = Tally(total=100, clock=clock)
    progress = Progress("lines", tally, stream)
    tally.note_time()
    for _ in range(25):
        clock.now += 1
        tally.success += 1
        progress.update()
    tally.failed, tally.cost_usd = 2, 0.5
    progress.close()
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["10/100 runs", "20/100 runs", "27/100 runs"]
    assert "2 failed" in lines[-1]
    assert "$0.50" in lines[-1]
    assert "\x1b" not in stream.getvalue()


def test_nothing_is_said_when_told_so():
    stream = io.StringIO()
    progress = Progress("none", Tally(total=1), stream)
    progress.update()
    progress.close()
    assert stream.getvalue() == ""


def test_a_remark_stands_at_the_end_while_there_is_one():
    clock, stream, remarks = Clock(), io.StringIO(), ["", "waiting", "waiting", ""]
    tally = Tally(total=3, clock=clock, remark=lambda: remarks[0])
    progress = Progress("lines", tally, stream)
    for _ in range(4):
        progress.update_remark()  # too soon
        clock.now += 10
        progress.update_remark()
        remarks.pop(0)
        remarks = remarks or ["at the end"]
    progress.close()
    assert stream.getvalue().splitlines() == ["0/3 runs, waiting"] * 2 + ["0/3 runs"]


def test_that_the_machine_is_taken_is_looked_for_once_a_second(tmp_path):
    clock, found = Clock(), [7, None]
    lock = SimpleNamespace(who_times=lambda ours: found.pop(0))
    elsewhere = Elsewhere(lock, clock)
    told = "waiting for the machine: another fairtrial is timing (process 7)"
    assert elsewhere() == elsewhere() == told
    clock.now += 1
    assert elsewhere() == ""
    assert found == []


def test_a_lock_that_can_not_be_used_is_no_remark():
    def who_times(ours):
        raise LabError("no lock here")

    assert say_who_times(SimpleNamespace(who_times=who_times)) == ""


def test_a_bar_gives_way_to_what_is_told_and_comes_back():
    stream = io.StringIO()
    tally = Tally(total=2)
    progress = Progress("bar", tally, stream)
    with progress.aside():
        stream.write("<told>\n")
    tally.success = 1
    progress.close()
    before, _, after = stream.getvalue().partition("<told>\n")
    assert before.endswith("\n")
    assert "0/2 runs" in before
    assert "1/2 runs" in after


def test_rates_and_times_are_spelt_for_people():
    assert spell_rate(25.06) == "25.1/s"
    assert spell_rate(0.05) == "3.0/min"
    assert spell_rate(0.001) == "3.6/h"
    assert [spell_time(s) for s in (5, 65, 3723, 90000)] == [
        "0:05",
        "1:05",
        "1:02:03",
        "1 day 1:00:00",
    ]


def test_a_closed_terminal_that_somebody_ignores_stays_ignored():
    """`nohup fairtrial run ...` goes on when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interrupts.count == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
