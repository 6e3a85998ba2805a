"""Controlling a running study: the control file, signals, and progress."""

import io
import os
import re
import signal
from collections import Counter
from itertools import pairwise

import pytest

from fairtrial.core import LabError
from fairtrial.sandbox import HostBusy, HostLock
from fairtrial.study.runner import control
from fairtrial.study.runner.control import ControlFile, Interrupts, request, requested
from fairtrial.study.runner.progress import Progress, ProgressCounts, spell_rate, spell_time


def test_a_request_is_seen_and_can_be_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "POLL_S", 0.0)
    file = ControlFile(tmp_path)
    assert file.current_request() is None
    request(tmp_path, "pause")
    assert file.current_request() == requested(tmp_path) == "pause"
    request(tmp_path, None)
    assert file.current_request() is None
    request(tmp_path, None)


def test_a_request_of_an_earlier_time_is_void(tmp_path):
    request(tmp_path, "cancel")
    assert ControlFile(tmp_path).current_request() is None


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
    counts = ProgressCounts(total=1000, clock=clock)
    counts.add_sample()
    assert counts.rate is None
    for _ in range(200):  # 200 s at 1/s, then 60 s at 5/s
        clock.now += 1
        counts.success += 1
        counts.add_sample()
    assert counts.rate == pytest.approx(1.0)
    for _ in range(61):
        clock.now += 1
        counts.success += 5
        counts.add_sample()
    assert counts.rate == pytest.approx(5.0, rel=0.1)
    assert counts.eta_s == pytest.approx((1000 - counts.done) / counts.rate)


def test_a_clock_that_stands_still_gives_no_rate():
    clock = Clock()
    counts = ProgressCounts(total=10, clock=clock)
    counts.add_sample()
    counts.success = 5
    assert counts.rate is None
    assert counts.line() == "5/10 runs"


def test_unknown_estimates_are_left_out():
    clock = Clock()
    counts = ProgressCounts(total=180, cost_usd=0.00278, is_part=True, clock=clock)
    counts.add_sample()
    clock.now += 2
    counts.success = 6
    counts.add_sample()
    assert counts.line() == "6/180 runs, 3.0/s, $0.0028"  # a pilot: not all 180 are to come
    counts.is_paused = True
    assert counts.line() == "6/180 runs, paused, $0.0028"
    assert counts.line(is_over=True) == "6/180 runs, $0.0028"


def test_a_log_gets_plain_lines_now_and_then_and_one_at_the_end():
    clock, stream = Clock(), io.StringIO()
    counts = ProgressCounts(total=100, clock=clock)
    progress = Progress("lines", counts, stream)
    counts.add_sample()
    for _ in range(25):
        clock.now += 1
        counts.success += 1
        progress.update()
    counts.failed, counts.cost_usd = 2, 0.5
    progress.close()
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == ["10/100 runs", "20/100 runs", "27/100 runs"]
    assert "2 failed" in lines[-1]
    assert "$0.50" in lines[-1]
    assert "\x1b" not in stream.getvalue()


def test_no_progress_is_shown_if_it_is_turned_off():
    stream = io.StringIO()
    progress = Progress("none", ProgressCounts(total=1), stream)
    progress.update()
    progress.close()
    assert stream.getvalue() == ""


def test_a_remark_stands_at_the_end_while_there_is_one():
    clock, stream, remarks = Clock(), io.StringIO(), ["", "waiting", "waiting", ""]
    counts = ProgressCounts(total=3, clock=clock, remark=lambda: remarks[0])
    progress = Progress("lines", counts, stream)
    for _ in range(4):
        progress.update_remark()  # too soon
        clock.now += 10
        progress.update_remark()
        remarks.pop(0)
        remarks = remarks or ["at the end"]
    progress.close()
    assert stream.getvalue().splitlines() == ["0/3 runs, waiting"] * 2 + ["0/3 runs"]


def test_the_host_lock_is_checked_once_a_second(monkeypatch):
    clock, holders = Clock(), [7, None]
    monkeypatch.setattr(HostLock, "find_timing_process", lambda self, own_pid: holders.pop(0))
    elsewhere = HostBusy(clock=clock)
    current_request = "waiting: another fairtrial is timing (process 7)"
    assert elsewhere() == elsewhere() == current_request
    clock.now += 1
    assert elsewhere() == ""
    assert holders == []


def test_a_lock_that_can_not_be_used_is_no_remark(monkeypatch):
    def find_timing_process(self, own_pid):
        raise LabError("no lock here")

    monkeypatch.setattr(HostLock, "find_timing_process", find_timing_process)
    assert HostLock().describe_timing_process() == ""


class Screen(io.StringIO):
    def isatty(self):
        return True

    def rows(self):
        """What is to be seen in the end: lines that were erased are gone."""
        rows, here = [""], 0
        for code, text in re.findall(r"\x1b\[([0-9;?]*[A-Za-z])|([^\x1b]+)", self.getvalue()):
            if code == "2K":
                rows[here] = ""
            elif code.endswith("A"):
                here -= int(code[:-1] or 1)
            for part in re.findall(r"\n|\r|[^\n\r]+", text):
                if part == "\n":
                    here += 1
                    rows += [""] * (here + 1 - len(rows))
                elif part != "\r":
                    rows[here] += part
        return [row for row in rows if row.strip()]


def test_a_progress_bar_is_hidden_for_messages_and_redrawn(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Screen()
    counts = ProgressCounts(total=2)
    progress = Progress("bar", counts, stream)
    with progress.hidden_bar():
        stream.write("told\n")
    counts.success = 1
    progress.close()
    message, bar = stream.rows()  # and no bar that is dead above it
    assert message == "told"
    assert bar.endswith("1/2 runs")


def test_runs_that_are_done_again_are_yet_to_be_done():
    clock = Clock()
    counts = ProgressCounts(
        total=12, success=8, failed=4, reruns=Counter(failed=4), is_reruns_only=True, clock=clock
    )
    counts.add_sample()
    assert counts.line() == "8/12 runs, 4 to be run again"
    for status in ("success", "success", "failed"):
        clock.now += 2
        counts.count(status, "failed")
    assert (counts.done, counts.failed) == (11, 2)
    assert counts.line() == "11/12 runs, 1 to be run again, 1 failed, 30.0/min, 0:02 left"
    assert counts.line(is_over=True) == "12/12 runs, 2 failed"  # it keeps the result that it had


def test_few_long_runs_have_a_calm_rate():
    clock, under_way = Clock(), [0.0, 0.0]
    counts = ProgressCounts(total=20, clock=clock, under_way=lambda: under_way)
    counts.add_sample()
    rates, left = [], []
    while clock.now < 400:  # two at once, each for a minute, and one of them ends a bit later
        clock.now += 1
        for index, began in enumerate(under_way):
            if clock.now - began >= 60 + index:
                counts.add_duration(clock.now - began)
                counts.count("success")
                under_way[index] = clock.now
        counts.add_sample()
        rates.append(counts.rate)
        left.append(counts.eta_s)
    assert rates[100] is None  # two have ended, and two are under way: that isn't much
    known_rates = [rate for rate in rates if rate is not None]
    first = rates.index(known_rates[0])
    assert first < 125
    assert len(known_rates) == len(rates) - first  # it doesn't come and go
    assert {spell_rate(rate) for rate in known_rates} <= {"1.9/min", "2.0/min"}
    rest = [seconds for seconds in left if seconds is not None]
    assert max(now - before for before, now in pairwise(rest)) < 15
    assert rest[-1] == pytest.approx(20 * 30 - 400, abs=20)


def test_the_rate_of_long_runs_is_that_of_several_of_them():
    clock = Clock()
    counts = ProgressCounts(total=100, clock=clock)
    counts.add_sample()
    rates = []
    for _ in range(10):
        for seconds in (10, 10, 10, 210):  # a minute each, on average
            for _ in range(seconds):
                clock.now += 1
                counts.add_sample()
                rates.append(counts.rate)
            counts.count("success")
    assert all(0.5 < 60 * rate < 2.0 for rate in rates[12 * 60 :])


def test_runs_that_take_longer_than_all_others_slow_the_rate():
    clock = Clock()
    counts = ProgressCounts(total=10, clock=clock, under_way=lambda: [3.0])
    counts.add_sample()
    for _ in range(3):
        clock.now += 1
        counts.add_duration(1)
        counts.count("success")
    clock.now = 4
    assert counts.rate == pytest.approx(1.0)
    clock.now = 40
    assert counts.rate == pytest.approx(0.1)  # 4 in 40 s, if it ended now
    assert counts.line() == "3/10 runs, 6.0/min, 1:00 left"
    counts.total = 4
    assert counts.line() == "3/4 runs, 6.0/min"  # it is late: nobody knows


def test_from_fewer_runs_than_are_under_way_nothing_is_foretold():
    clock = Clock()
    counts = ProgressCounts(total=100, clock=clock, under_way=lambda: [0.0] * 8)
    counts.add_sample()
    clock.now = 10
    counts.success = 7  # the quick ones come first
    assert counts.line() == "7/100 runs"
    counts.success = 8
    assert counts.line() == "8/100 runs, 48.0/min, 1:55 left"


def test_rates_and_times_are_spelt_for_people():
    assert spell_rate(25.06) == "25.1/s"
    assert spell_rate(0.05) == "3.0/min"
    assert spell_rate(1 / 60) == spell_rate(0.99 / 60) == "1.0/min"
    assert spell_rate(0.001) == "3.6/h"
    assert [spell_time(s) for s in (5, 65, 3723, 90000)] == [
        "0:05",
        "1:05",
        "1:02:03",
        "1 day 1:00:00",
    ]


def test_an_ignored_hangup_signal_stays_ignored():
    """`nohup fairtrial run ...` goes on when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interrupts.count == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
