"""Stopping: Ctrl-C, SIGTERM, cancel, pause, fail_fast; and two at once."""

import os
import signal
import subprocess
import sys

import pytest
from fault_stage_kit import is_gone, wait_until

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

EXECUTORS = {
    "serial": ("--executor", "serial"),
    "processes": ("--parallel", 2),
    "threads": ("--executor", "threads", "--parallel", 2),
}
OFTEN = {"live_s": 0.05}
SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}


def start_held(stage, *options, **named):
    """A study of which two runs are done and all others hold on; gives it at that moment."""
    stage.write("held")
    command = stage.start_run(*options, **named)
    wait_until(lambda: len(stage.done()) == 2 and len(stage.calls()) > 2, "a run that waits")
    return command


def assert_stopped(stage, ended, *, kept=2):
    """What holds after every stop: done is kept, what ran left an attempt and stays pending."""
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert "fairtrial resume out" in ended.err
    done = stage.done()
    assert len(done) == len(set(done)) == kept
    cut_off = set(stage.calls()) - set(done)
    attempts = stage.query("SELECT turn, attempt, status, failure_kind FROM attempts")
    assert 0 < len(cut_off) <= len(attempts) <= 2  # one may not have come to its agent yet
    assert {row[1:] for row in attempts} == {(1, "pending", "cancelled")}
    wait_until(lambda: all(map(is_gone, stage.witnesses())), "workers to end")
    assert {row["run_id"] for row in stage.table()} == set(done)


def assert_goes_on(stage, *options):
    """What was cut off is done in a second attempt, and the rest in its first."""
    cut_off = set(stage.calls()) - set(stage.done())
    ((attempts,),) = stage.query("SELECT count(*) FROM attempts")
    stage.message("go")
    ended = stage.run("--resume", *options)
    assert ended.code == 0, ended.err
    assert len(stage.done()) == len(set(stage.done())) == 6
    second = {row["run_id"] for row in stage.table() if row["attempt"] == "2"}
    assert cut_off <= second
    assert len(second) == attempts
    assert {run_id for run_id, number in stage.calls().items() if number == 2} == cut_off


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_interrupt_cancels_what_runs_and_keeps_what_is_done(stage, executor, name):
    command = start_held(stage, *EXECUTORS[executor])
    # As a terminal does it: to the whole group.
    os.killpg(command.pid, SIGNALS[name])
    ended = command.wait()
    assert "interrupted" in ended.err
    assert_stopped(stage, ended)
    assert_goes_on(stage, *EXECUTORS[executor])


def test_a_second_interrupt_leaves_at_once(stage):
    """Without waiting for whatever keeps the first from coming to an end."""
    faults = {"hang_at_end": str(stage.folder / "ending")}
    command = start_held(stage, "--parallel", 2, faults=faults)
    command.kill(signal.SIGINT)
    wait_until((stage.folder / "ending").exists, "it to be stopping")
    command.kill(signal.SIGINT)
    ended = command.wait()
    assert ended.code == 130
    assert "Traceback" not in ended.err
    assert not (stage.output / "runs.csv").exists()  # tables may take long
    assert len(stage.done()) == 2
    assert "not running (interrupted)" in stage.call("status", stage.output).out
    wait_until(lambda: all(map(is_gone, stage.witnesses())), "workers to end")
    stage.message("go")
    assert stage.run("--resume", "--parallel", 2).code == 0
    assert len(stage.table()) == 6


IMPATIENT = """
import atexit, os, signal, sys
from fairtrial.cli import main as module

def press():
    os.kill(os.getpid(), signal.SIGINT)

def echo(*words, **options):
    print(*words, file=sys.stderr, flush=True)
    press()

def run(*words, **options):
    press()

atexit.register(press)  # on the way out, as well
module.click.echo, module.cli.main = echo, run
sys.argv[1:] = []
module.main()
"""


def test_pressing_on_prints_no_traceback_and_ends_as_the_first_did():
    ended = subprocess.run(
        [sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")


AT_WORK = """
import sys, threading
from fairtrial.cli import main as module

def run(*words, **options):
    threading.Thread(target=threading.Event().wait).start()
    if sys.argv[1] == "interrupted":
        raise KeyboardInterrupt

module.GRACE_S, module.cli.main = 0.01, run
module.main()
"""


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("interrupted", 130, "interrupted\n"),
        ("done", 0, "not waiting for 1 thread still running\n"),
    ],
)
def test_an_interrupt_prints_nothing_about_running_threads(how, code, message):
    ended = subprocess.run(
        [sys.executable, "-c", AT_WORK, how],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (code, message)


def test_an_interrupt_gets_past_an_agent_that_swallows_exceptions(stage):
    stage.write("held_back_by_excepts")
    command = stage.start_run("--executor", "serial", cold=True)
    wait_until(stage.witnessed, "a run")
    command.kill(signal.SIGINT)
    assert_stopped(stage, command.wait(), kept=0)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_agent_that_raises_what_ctrl_c_raises_fails_its_run_only(stage, executor):
    stage.write("raises_interrupt")
    ended = stage.run(*EXECUTORS[executor])
    assert ended.code == 5, ended.err
    kinds = sorted(row["failure_kind"] for row in stage.table())
    assert kinds == ["", "", "", "", "exception", "exception"]
    assert {row["error_info"] for row in stage.table()} == {"", "KeyboardInterrupt"}
    assert set(stage.calls().values()) == {1}


@pytest.mark.parametrize("step", range(0, 60, 6))
def test_an_interrupt_between_runs_loses_nothing(stage, step):
    """Serial: it may come while a result is being written down."""
    stage.write(run_budget={"replicates": 4})
    report = stage.folder / "reported"
    faults = {
        "group_runs": 3,
        "signal_at": {"phase": "run", "step": step},
        "report_to": str(report),
    }
    ended = stage.run("--executor", "serial", faults=faults)
    assert ended.code == 130, ended.err
    done = stage.done()
    assert set(report.read_text().split() if report.exists() else []) <= set(done)
    assert stage.query("SELECT count(*) FROM bodies") == [(len(done),)]
    assert set(stage.calls()) == set(done)
    assert stage.run("--resume", "--executor", "serial").code == 0
    assert len(stage.table()) == len(set(stage.done())) == 12
    assert set(stage.calls().values()) == {1}


def test_an_interrupt_just_before_a_run_keeps_it_from_starting(stage):
    stage.write("held_back_by_excepts")  # would never end
    ended = stage.run("--executor", "serial", faults={"signal_at": {"phase": "run", "step": 1}})
    assert ended.code == 130
    assert stage.calls() == {}


@pytest.mark.parametrize("phase", ["start", "export"])
@pytest.mark.parametrize("step", [0, 5, 14, 19])
def test_an_interrupt_before_the_first_run_or_after_the_last_is_no_trouble(stage, phase, step):
    stage.write()
    ended = stage.run("--parallel", 2, faults={"signal_at": {"phase": phase, "step": step}})
    assert ended.code == 130, ended.err
    assert ended.err.endswith("interrupted\n")
    assert len(stage.done()) == (0 if phase == "start" else 6)
    assert stage.run("--resume", "--parallel", 2).code == 0
    assert len(stage.table()) == 6
    assert set(stage.calls().values()) == {1}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_interrupt_ends_an_agent_that_awaits(stage, executor):
    stage.write("awaits")
    command = stage.start_run(*EXECUTORS[executor])
    wait_until(stage.witnessed, "a run")
    command.kill(signal.SIGINT)
    assert_stopped(stage, command.wait(), kept=0)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_cancel_from_another_process_does_what_ctrl_c_does(stage, executor):
    command = start_held(stage, *EXECUTORS[executor])
    asked = stage.call("cancel", stage.output)
    assert asked.code == 0, asked.err
    ended = command.wait()
    assert "cancelled" in ended.err
    assert_stopped(stage, ended)
    assert_goes_on(stage, *EXECUTORS[executor])


def test_cancel_is_heard_however_early(stage):
    stage.write("held")
    ended = stage.run("--parallel", 2, faults={"cancel_at_start": str(stage.output)})
    assert ended.code == 130, ended.err
    assert "cancelled" in ended.err
    stage.message("go")
    assert stage.run("--resume", "--parallel", 2).code == 0  # and once is enough
    assert len(stage.table()) == 6


def test_pause_lets_nothing_new_start_until_it_is_lifted(stage):
    command = start_held(stage, "--parallel", 2, faults=OFTEN)
    wait_until(lambda: (stage.status()["live"] or {}).get("running"), "status to tell what runs")
    wait_until(lambda: len(stage.witnessed()) == 4, "all that was handed out to begin")
    asked = stage.call("pause", stage.output)
    assert asked.code == 0, asked.err
    wait_until(lambda: stage.status()["live"]["paused"], "it to pause")
    before = set(stage.witnessed())
    stage.message("go")
    wait_until(lambda: stage.status()["live"]["running"] == 0, "what runs to be finished")
    paused = stage.status()
    assert paused["is_running"] is True
    assert set(stage.done()) == set(stage.witnessed()) == before
    assert 0 < paused["done"] == len(before) < 6
    asked = stage.call("resume", stage.output)
    assert asked.code == 0, asked.err
    assert command.wait().code == 0
    assert len(stage.table()) == 6
    assert set(stage.calls().values()) == {1}


def test_status_shows_the_current_runs_of_a_running_study(stage):
    command = start_held(stage, "--parallel", 2, faults=OFTEN)
    wait_until(lambda: (stage.status()["live"] or {}).get("running"), "status to tell what runs")
    first = stage.status()
    assert first["done"] == 2
    assert first["is_running"] is True
    assert {run["agent_id"] for run in first["live"]["runs"]} == {"subject"}
    stage.message("go")
    assert command.wait().code == 0
    last = stage.status()
    assert (last["done"], last["pending"], last["is_running"]) == (6, 0, False)
    assert last["live"]["running"] == 0
    assert stage.call("cancel", stage.output).code == 3
    assert stage.call("pause", stage.output).code == 3


def test_fail_fast_stops_at_the_first_failure(stage):
    stage.write("fails", run_budget={"replicates": 2, "fail_fast": True})
    ended = stage.run("--parallel", 6)
    assert ended.code == 5, ended.err
    assert "fail_fast" in ended.err
    rows = stage.table()
    assert [row["failure_kind"] for row in rows if row["status"] == "failed"] == ["exception"]
    cut_off = set(stage.calls()) - set(stage.done())
    attempts = stage.query("SELECT status, failure_kind FROM attempts")
    assert set(attempts) <= {("pending", "cancelled")}
    assert len(cut_off) <= len(attempts)
    wait_until(lambda: all(map(is_gone, stage.witnesses())), "workers to end")
    stage.message("go")
    ended = stage.run("--resume", "--parallel", 6, "--set", "run_budget.fail_fast=false")
    assert ended.code == 5, ended.err
    assert len(stage.table()) == 6
    assert [row["status"] for row in stage.table()].count("failed") == 2


def test_a_second_process_is_refused_at_once_and_the_first_continues(stage):
    command = start_held(stage, "--parallel", 2)
    for words in (("--resume",), (), ("--resume", "--parallel", 2)):
        refused = stage.run(*words)
        assert refused.code == 3
        assert f"process {command.pid}" in refused.err
        assert len(refused.errors) == 1
    stage.message("go")
    assert command.wait().code == 0
    assert len(stage.table()) == 6
    assert set(stage.calls().values()) == {1}


def test_two_that_start_together_run_everything_once(stage):
    stage.write(options={"wait_s": 0.02}, run_budget={"replicates": 8})
    commands = [stage.start_run("--parallel", 2) for _ in range(2)]
    ends = [command.wait() for command in commands]
    assert sorted(end.code for end in ends) == [0, 3], [end.err for end in ends]
    assert set(stage.calls().values()) == {1}
    assert len(stage.table()) == 24


def test_the_lock_of_a_killed_process_is_taken_over_at_once(stage):
    command = start_held(stage, "--parallel", 2)
    command.kill()
    wait_until(lambda: is_gone(command.pid), "it to be dead")
    stage.message("go")
    assert stage.run("--resume", "--parallel", 2).code == 0  # before anybody has waited for it
    assert command.wait().code == -9
    assert len(stage.table()) == 6


def test_a_closed_log_pipe_does_not_end_the_study(stage):
    """A pipe that nobody reads any more is no reason to stop a study."""
    stage.write()
    end, start = os.pipe()
    os.close(end)
    command = stage.start_run("--parallel", 2, cold=True, stderr=start)
    os.close(start)
    assert command.wait().code == 0
    assert len(stage.table()) == 6
