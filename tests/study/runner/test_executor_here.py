"""The executors `serial` and `threads`: captured output, and how runs end."""

import io
import subprocess
import sys
import threading

import pytest

from fairtrial.core import LabError
from fairtrial.study import RunStatus
from fairtrial.study.executors import Emitted, FailureKind, Finished, pack
from fairtrial.study.runner.executors.serial import Serial
from fairtrial.study.runner.executors.threads import Threads
from fairtrial.testing.executor_driver import ListFeed, execute, run_all
from fairtrial.testing.executor_work import ScriptedWork, assign, event

BOTH = pytest.mark.parametrize("executor", [Serial(), Threads()], ids=["serial", "threads"])


class Calls(ScriptedWork):
    """Work whose deed `call` is a function of the test's."""

    def __init__(self, function):
        self.function = function

    def call(self, emit, **arguments):
        return self.function(emit, **arguments)


def call(executor, function, *deeds, **arguments):
    feed = ListFeed([assign(0, "call", **arguments), *deeds])
    reports = execute(executor, feed, 1, Calls(function))
    return {report.execution_index: report for report in reports if isinstance(report, Finished)}


# -- what runs print --


@BOTH
def test_the_callers_own_text_reaches_the_terminal(executor, capsys):
    feed = ListFeed(
        assign(execution_index, "print", out="run", err="run") for execution_index in range(3)
    )
    for report in execute(executor, feed, 1):
        if report is not None:
            print("caller")
    assert capsys.readouterr() == ("caller\n" * 3, "")


@BOTH
def test_streams_are_put_back(executor):
    before = sys.stdout, sys.stderr
    run_all(executor, [assign(0, "print", out="a", err="b"), assign(1, "leave", code=1)])
    assert (sys.stdout, sys.stderr) == before


@BOTH
def test_output_by_other_ways_of_python_is_kept(executor):
    def show(emit):
        sys.stdout.reconfigure(errors="strict")
        sys.stdout.buffer.write(b"bytes \xff\n")
        sys.stdout.buffer.write(memoryview(b"view\n"))
        sys.stdout.writelines(["lines\n"])
        print("flushed", flush=True)
        sys.stderr.write("\udcff")
        assert sys.stdout.encoding == "utf-8"
        assert not sys.stdout.isatty()

    report = call(executor, show)[0]
    assert report.outcome.status is RunStatus.SUCCESS, report
    assert report.stdout == b"bytes \xff\nview\nlines\nflushed\n"
    assert report.stderr == b"\\udcff"


@BOTH
@pytest.mark.parametrize("spoil", ["close", "detach"])
def test_the_next_run_can_print_whatever_this_one_did_to_its_output(executor, spoil):
    def ruin(emit):
        print("first", end="")
        getattr(sys.stdout, spoil)()

    finished = call(executor, ruin, assign(1, "print", out="out", err="err"))
    assert finished[0].stdout == b"first"
    assert (finished[1].stdout, finished[1].stderr) == (b"out", b"err")


@BOTH
def test_a_program_can_be_given_stdout(executor, capfd):
    report = call(executor, lambda emit: subprocess.run(["true"], stdout=sys.stdout).returncode)[0]
    assert report.outcome.status is RunStatus.SUCCESS


@BOTH
def test_it_does_without_a_terminal(executor, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    finished = run_all(executor, [assign(0, "print", out="out", err="err")])
    assert (finished[0].stdout, finished[0].stderr) == (b"out", b"err")
    assert sys.stdout is None


def test_other_threads_print_where_they_would(capsys):
    def show(emit):
        print("mine")
        thread = threading.Thread(target=lambda: print("theirs"))
        thread.start()
        thread.join()

    assert call(Threads(), show)[0].stdout == b"mine\n"
    assert capsys.readouterr().out == "theirs\n"


def test_a_stream_that_was_replaced_meanwhile_stays(monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    mine = io.StringIO()
    for report in execute(Threads(), ListFeed([assign(0)]), 1):
        if report is not None:
            sys.stdout = mine
    assert sys.stdout is mine


# -- how runs end --


def test_ctrl_c_passes_through_a_run_in_this_process():
    before = sys.stdout
    reports = Serial().execute(ScriptedWork(), ListFeed([assign(0, "interrupt"), assign(1)]), 1)
    with pytest.raises(KeyboardInterrupt):
        list(reports)
    assert sys.stdout is before


def test_a_thread_past_its_time_is_left_alone_and_replaced():
    for limit_s in (0.1, 1.0, 10.0):  # on a busy machine it may not come to print
        said, heard = let_linger(limit_s)
        assert heard == [(Finished, 0), (Finished, 1), (Emitted, 2), (Finished, 2)]
        if said == b"slow\n":
            break
    assert said == b"slow\n"


def let_linger(limit_s):
    """What a run printed before its time was over, and all reports of it and of those after it."""
    go, gone, heard = threading.Event(), threading.Event(), []

    def linger(emit):
        print("slow")
        go.wait(60)
        emit(pack(event("too late")))
        print("too late")
        gone.set()

    feed = ListFeed([assign(0, "call", timeout_s=limit_s), assign(1), assign(2, "emit", count=1)])
    for report in execute(Threads(), feed, 1, Calls(linger)):
        if report is not None:
            heard.append((type(report), report.execution_index))
        if isinstance(report, Finished) and report.execution_index == 0:
            assert report.outcome.failure_kind is FailureKind.TIMEOUT
            said = report.stdout
            go.set()
            assert gone.wait(60)
    return said, heard


def test_busy_neighbours_dont_keep_a_thread_from_its_time():
    go = threading.Event()

    class Endless(ListFeed):
        """Has another run as long as the slow one goes on."""

        def __call__(self):
            if not self.waiting and (0, 1) in self.running:
                self.waiting.append(assign(self.call_count + 1))
            return super().__call__()

    for limit_s in (0.1, 1.0, 10.0):  # on a busy machine the neighbours do little
        feed = Endless([assign(0, "call", timeout_s=limit_s)])
        reports = execute(Threads(), feed, 2, Calls(lambda emit: go.wait(60)))
        finished = [report for report in reports if isinstance(report, Finished)]
        (late,) = (report for report in finished if report.execution_index == 0)
        assert late.outcome.failure_kind is FailureKind.TIMEOUT
        if len(finished) > 10:
            break
    go.set()
    assert len(finished) > 10


def test_64_runs_wait_together():
    barrier = threading.Barrier(64)
    feed = ListFeed(assign(execution_index, "call") for execution_index in range(128))
    reports = execute(Threads(), feed, 64, Calls(lambda emit: barrier.wait(60) and None))
    finished = [report for report in reports if isinstance(report, Finished)]
    assert len(finished) == 128
    assert {report.outcome.status for report in finished} == {RunStatus.SUCCESS}


def test_threads_end_with_the_study():
    others = threading.enumerate()  # another test may have left some that sleep
    run_all(Threads(), [assign(execution_index) for execution_index in range(10)], 4)
    threads = [thread for thread in threading.enumerate() if thread not in others]
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def refuse_threads(monkeypatch, after):
    start, count = threading.Thread.start, [0]

    def refuse(thread):
        count[0] += 1
        if count[0] > after:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_with_fewer_threads_than_asked_for_it_continues(monkeypatch):
    refuse_threads(monkeypatch, after=2)
    assert (
        len(run_all(Threads(), [assign(execution_index) for execution_index in range(20)], 5)) == 20
    )


def test_without_any_thread_it_says_so(monkeypatch):
    refuse_threads(monkeypatch, after=0)
    with pytest.raises(LabError, match="no thread can be started"):
        run_all(Threads(), [assign(0)])


def test_a_bug_in_a_worker_thread_is_raised_in_the_main_thread():
    class Faulty(ScriptedWork):
        def attempt(self, assignment, emit, note=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(execute(Threads(), ListFeed([assign(0)]), 1, Faulty()))


def test_output_of_an_abandoned_thread_is_discarded(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back after the test
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def linger(emit):
        begun.set()
        go_on.wait(30)
        print("too late")
        over.set()

    reports = execute(Threads(), ListFeed([assign(0, "call")]), 1, Calls(linger))
    next(reports)
    assert begun.wait(30)
    reports.close()
    go_on.set()
    assert over.wait(30)
    print("mine")
    assert capsys.readouterr().out == "mine\n"
