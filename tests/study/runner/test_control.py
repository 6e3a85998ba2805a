"""Stopping from outside: the control file, signals, and how far it is (spec 22, 23)."""

import io
import os
import re
import signal
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest

from fairtrial.core import LabError
from fairtrial.sandbox import HostBusy as Elsewhere, say_who_times
from fairtrial.study import request, requested, spell_rate, spell_time
from fairtrial.study.runner import control
from fairtrial.study.runner.control import ControlFile, Interrupts
from fairtrial.study.runner.progress import Progress, Tally


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
    told = "waiting: another fairtrial is timing (process 7)"
    assert elsewhere() == elsewhere() == told
    clock.now += 1
    assert elsewhere() == ""
    assert found == []


def test_a_lock_that_can_not_be_used_is_no_remark():
    def who_times(ours):
        raise LabError("no lock here")

    assert say_who_times(SimpleNamespace(who_times=who_times)) == ""


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


def test_a_bar_gives_way_to_what_is_told_and_comes_back(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Screen()
    tally = Tally(total=2)
    progress = Progress("bar", tally, stream)
    with progress.aside():
        stream.write("told\n")
    tally.success = 1
    progress.close()
    told, bar = stream.rows()  # and no bar that is dead above it
    assert told == "told"
    assert bar.endswith("1/2 runs")


def test_runs_that_are_done_again_are_yet_to_be_done():
    clock = Clock()
    tally = Tally(
        total=12, success=8, failed=4, again=Counter(failed=4), is_only_again=True, clock=clock
    )
    tally.note_time()
    assert tally.line() == "8/12 runs, 4 to be run again"
    for status in ("success", "success", "failed"):
        clock.now += 2
        tally.count(status, "failed")
    assert (tally.done, tally.failed) == (11, 2)
    assert tally.line() == "11/12 runs, 1 to be run again, 1 failed, 30.0/min, 0:02 left"
    assert tally.line(is_over=True) == "12/12 runs, 2 failed"  # it keeps the result that it had


def test_few_long_runs_have_a_calm_rate():
    clock, under_way = Clock(), [0.0, 0.0]
    tally = Tally(total=20, clock=clock, under_way=lambda: under_way)
    tally.note_time()
    rates, left = [], []
    while clock.now < 400:  # two at once, each for a minute, and one of them ends a bit later
        clock.now += 1
        for place, began in enumerate(under_way):
            if clock.now - began >= 60 + place:
                tally.note_duration(clock.now - began)
                tally.count("success")
                under_way[place] = clock.now
        tally.note_time()
        rates.append(tally.rate)
        left.append(tally.eta_s)
    assert rates[100] is None  # two have ended, and two are under way: that isn't much
    told = [each for each in rates if each is not None]
    assert rates.index(told[0]) < 125
    assert len(told) == len(rates) - rates.index(told[0])  # it doesn't come and go
    assert {spell_rate(each) for each in told} <= {"1.9/min", "2.0/min"}
    rest = [each for each in left if each is not None]
    assert max(now - before for before, now in pairwise(rest)) < 15
    assert rest[-1] == pytest.approx(20 * 30 - 400, abs=20)


def test_the_rate_of_long_runs_is_that_of_several_of_them():
    clock = Clock()
    tally = Tally(total=100, clock=clock)
    tally.note_time()
    rates = []
    for _ in range(10):
        for seconds in (10, 10, 10, 210):  # a minute each, on average
            for _ in range(seconds):
                clock.now += 1
                tally.note_time()
                rates.append(tally.rate)
            tally.count("success")
    assert all(0.5 < 60 * rate < 2.0 for rate in rates[12 * 60 :])


def test_runs_that_take_longer_than_all_others_slow_the_rate():
    clock = Clock()
    tally = Tally(total=10, clock=clock, under_way=lambda: [3.0])
    tally.note_time()
    for _ in range(3):
        clock.now += 1
        tally.note_duration(1)
        tally.count("success")
    clock.now = 4
    assert tally.rate == pytest.approx(1.0)
    clock.now = 40
    assert tally.rate == pytest.approx(0.1)  # 4 in 40 s, if it ended now
    assert tally.line() == "3/10 runs, 6.0/min, 1:00 left"
    tally.total = 4
    assert tally.line() == "3/4 runs, 6.0/min"  # it is late: nobody knows


def test_from_fewer_runs_than_are_under_way_nothing_is_foretold():
    clock = Clock()
    tally = Tally(total=100, clock=clock, under_way=lambda: [0.0] * 8)
    tally.note_time()
    clock.now = 10
    tally.success = 7  # the quick ones come first
    assert tally.line() == "7/100 runs"
    tally.success = 8
    assert tally.line() == "8/100 runs, 48.0/min, 1:55 left"


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
