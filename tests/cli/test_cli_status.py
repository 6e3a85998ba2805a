"""`fairtrial status`, `pause` and `cancel`, used from another process than the study's."""

import io
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_kit import AGENTS, STUDY, SUMMARY
from run_kit import make_study, run as run_small

from fairtrial import LedgerError, ProblemBinding, Study
from fairtrial.arena import Check, CodeProblem
from fairtrial.cli import optimize, optimize_study, status as status_module
from fairtrial.cli.output import fold_command
from fairtrial.cli.resume_command import resume_command
from fairtrial.core import events
from fairtrial.optimize.code_problem import BoundCode
from fairtrial.sandbox import host_lock as quiet
from fairtrial.study.ledger import LedgerReader, Summary
from fairtrial.study.ledger.lock import OwnerLock
from fairtrial.study.ledger.writer import open_ledger
from fairtrial.study.runner import StudyStatus, control, progress

WAITING = """
import pathlib, time

def wait(task):
    until = time.monotonic() + 60
    while not pathlib.Path("go").exists() and time.monotonic() < until:
        time.sleep(0.005)
    return {"output": {"x": 1}, "metrics": {"cost_usd": 0.25, "output_tokens": 5}}
"""
# The command, with progress and status updated more often than once a second.
COMMAND = """
import sys
from fairtrial.cli import status
from fairtrial.cli.main import main
from fairtrial.study.runner import run_loop
run_loop.LIVE_S = status.WATCH_S = 0.05
main(sys.argv[1:])
"""
PATIENCE_S = 60.0
LEDGERS = ("done/ledger.sqlite", "out/ledger.sqlite")


@pytest.fixture
def study(write):
    write(AGENTS, "my_agents.py")
    write(WAITING, "waiting.py")

    def study(use="my_agents:add", **fields):
        return write({**STUDY, "agents": {"a": use}, **fields})

    return study


@pytest.fixture
def status(run):
    def status(folder="out"):
        code, out, _ = run("status", folder, "--json")
        assert code == 0
        return json.loads(out)

    return status


def wait_until(read, condition):
    """Call `read` until its result meets the condition; returns the result."""
    until = time.monotonic() + PATIENCE_S
    while not condition(answer := read()):
        assert time.monotonic() < until, answer
        time.sleep(0.02)
    return answer


@pytest.fixture
def running(study, tmp_path, status):
    """Start a study in another process, with two runs under way."""
    started = []

    def running(*options, **fields):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "run", study("waiting:wait", **fields), *options],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        wait_until((tmp_path / "out/ledger.sqlite").exists, bool)
        wait_until(lambda: is_laid(tmp_path), bool)
        return process

    yield running
    for process in started:
        process.kill()
        process.communicate()


def is_laid(folder):
    try:
        reader = LedgerReader.open(folder / "out")
    except LedgerError:
        return False
    try:
        return reader.fact("live") is not None
    finally:
        reader.close()


def test_the_status_of_a_finished_study(run, study, status):
    run("run", study())
    code, out, _ = run("status", "out")
    assert code == 0
    assert out.splitlines() == ["s: finished", "  done     6 of 6 runs", "  success  6"]
    summary = status()
    assert set(summary) == SUMMARY | {"study_id", "go_on", "lock"}
    assert (summary["study_id"], summary["is_running"], summary["done"]) == ("s", False, 6)
    assert summary["go_on"] is None
    assert run("status", "out", "--watch")[1] == out


def test_the_status_of_a_pilot_with_failures_costs_and_skipped_runs(run, study):
    budget = {"replicates": 2, "max_runs": 4, "max_runs_policy": "balanced"}
    run("run", study("my_agents:cost", run_budget=budget), "--limit", 3)
    _, out, _ = run("status", "out")
    assert out.splitlines() == [
        "s: not running",
        "  done     3 of 4 runs",
        "  success  3",
        "  skipped  2",
        "  cost     $1.50",
        "  tokens   21",
        "  resume   fairtrial resume out",
    ]
    run("run", study("my_agents:fail"), "--output", "failed")
    _, out, _ = run("status", "failed")
    assert out.splitlines()[2:] == ["  failed   6", "    exception: 6"]


def test_the_status_of_a_study_that_stopped_early_says_why(run, study, status):
    budget = {"replicates": 2, "max_cost_usd": 1.0}
    run("run", study("my_agents:cost", run_budget=budget))
    _, out, _ = run("status", "out")
    assert out.startswith("s: not running (a budget is used up)\n")
    command = "fairtrial resume out --set run_budget.max_cost_usd=..."
    assert out.splitlines()[-1] == f"  resume   {command}"
    assert status()["go_on"] == command


def test_a_killed_study_shows_its_resume_command_and_resumes_with_its_settings(
    run, running, status
):
    process = running("--parallel", "2")
    wait_until(status, lambda summary: summary["live"]["running"] == 2)
    process.kill()
    process.wait()
    _, out, _ = run("status", "out")
    lines = out.splitlines()
    assert lines[0] == "s: not running (its process was killed)"
    assert lines[-1] == "  resume   fairtrial resume out"
    Path("go").touch()
    code, _, err = run("resume", "out", "--limit", 1)
    assert code == 0
    assert err.startswith("resuming with --parallel 2, as last time\n")
    last = status()["last_session"]
    assert (last["executor"], last["slots"]) == ("processes", 2)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--agent", "patches", "--option", "folder=some where", "--no-repair", "--seed", "-3"],
        [
            "--lineages",
            "2",
            "--parallel-candidates",
            "3",
            "--max-candidates",
            "4",
            "--max-cost",
            "0",
        ],
        [
            *("--agent", "command", "--option", 'argv=["sh", "-c", "exit \'1\'"]'),
            *("--option", 'note="4"', "--option", "number=4", "--option", "empty="),
            *("--option", "text=null and void", "--option", "none=null", "--unsandboxed"),
            *("--max-cost", "1e-7", "--max-seconds", "90"),
        ],
    ],
)
def test_an_optimization_is_resumed_by_its_own_command(words, tmp_path):
    def study_of(words):
        given = dict(optimize.command.make_context("optimize", [*words]).params)
        options = optimize_study.get_options(given)
        return optimize_study.make_study(given["problem"], "sort", options, given["seed"]), given[
            "output"
        ]

    study, _ = study_of([str(tmp_path / "my sort.yaml"), *words])
    summary = SimpleNamespace(last_session={"ended_how": None})
    arguments = shlex.split(resume_command(tmp_path / "out put", study, summary))
    assert arguments[:3] == ["fairtrial", "optimize", str(tmp_path / "my sort.yaml")]
    assert study_of(arguments[2:]) == (study, tmp_path / "out put")


def test_a_long_command_is_folded_between_words_such_that_a_shell_takes_it(monkeypatch):
    command = shlex.join(["fairtrial", "optimize", "a b.yaml", *["--option", "x='y z'"] * 3])
    monkeypatch.setenv("COLUMNS", "40")
    assert fold_command(command, "  resume   ") == f"  resume   {command}"  # into a file
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = fold_command(command, "  resume   ")
    assert max(map(len, shown.splitlines())) <= 40
    assert len(shown.splitlines()) > 2
    assert shlex.split(shown.replace("\\\n", ""))[1:] == shlex.split(command)


def test_the_status_of_failures_stands_below_their_number(run, study):
    run("run", study("my_agents:fail_at_2"))
    _, out, _ = run("status", "out")
    assert out.splitlines()[2:] == ["  success  4", "  failed   2", "    exception: 2"]


def test_runs_that_are_repeated_count_as_pending(capsys, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(status_module.time, "time", lambda: now)
    live = {
        "again": {"failed": 4},
        "settled": {"success": 8, "failed": 0, "broken": 0},
        "running": 2,
        "eta_s": 90.0,
        "reported_at": now - 30,
    }
    counts = {"success": 9, "failed": 3}  # committed since then
    summary = Summary(counts, {"exception": 3}, 12, 0, 0, 0.0, 0, live, None, True)
    study = Study("s", "t")
    status_module._print(StudyStatus(study, summary, {"pid": 7, "host": "here"}))
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        "s: running (process 7 on here)",
        "done     8 of 12 runs",
        "success  8",
        "again    4 (so far 4 failed)",
        "running  2",
        "left     1:00",
    ]
    status_module._print(StudyStatus(study, summary, None))
    assert "done     12 of 12 runs" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["status", "pause", "cancel"])
def test_a_folder_without_a_study_is_exit_3(run, study, command):
    path = study()
    code, out, err = run(command, ".")
    assert (code, out) == (3, "")
    assert "holds no study" in err
    assert run(command, path)[0] == 3
    code, _, err = run(command, "nowhere")
    assert code == 3
    assert "there is no folder nowhere" in err
    code, out, _ = run(command, "nowhere", "--json")
    assert code == 3
    assert json.loads(out)["ok"] is False


@pytest.mark.parametrize("command", ["pause", "cancel"])
def test_a_study_that_does_not_run_can_be_neither_paused_nor_cancelled(run, study, command):
    run("run", study())
    code, _, err = run(command, "out")
    assert code == 3
    assert "nothing runs in out" in err
    assert not Path("out/control").exists()


def test_a_running_study_can_be_watched_paused_continued_and_cancelled(run, running, status):
    process = running("--parallel", "2")
    summary = wait_until(status, lambda summary: summary["live"]["running"] == 2)
    assert (summary["is_running"], summary["go_on"]) == (True, None)
    assert (summary["done"], summary["pending"]) == (0, 6)
    _, out, _ = run("status", "out")
    lines = out.splitlines()
    assert lines[0].startswith(f"s: running (process {process.pid} on ")
    assert lines[1:3] == ["  done     0 of 6 runs", "  running  2"]
    assert [line.split()[2:] for line in lines[3:]] == [["a", "on", "p"]] * 2
    shown = json.loads(run("show", "out", summary["live"]["runs"][0]["run_id"], "--json")[1])
    assert (shown["status"], shown["attempt"]) == ("running", 1)

    # A second process may not write here.
    code, _, err = run("resume", "out")
    assert code == 3
    assert f"out is in use by process {process.pid}" in err

    # Paused: the two are finished, and no other is started.
    code, out, _ = run("pause", "out", "--json")
    assert (code, json.loads(out)["asked"]) == (0, "pause")
    wait_until(status, lambda summary: summary["live"]["paused"])
    Path("go").touch()
    summary = wait_until(
        status, lambda summary: summary["done"] == 2 and not summary["live"]["running"]
    )
    assert summary["cost_usd"] == 0.5
    _, out, _ = run("status", "out")
    assert "running, paused" in out
    assert "rate" not in out
    assert "left" not in out
    Path("go").unlink()

    code, _, err = run("resume", "out")
    assert code == 0
    assert "out continues, in the process that was paused" in err
    wait_until(status, lambda summary: summary["live"]["running"] == 2)

    code, _, err = run("cancel", "out")
    assert code == 0
    assert "fairtrial resume out" in err
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "2 of 6 runs done: 2 success" in out
    assert "4 runs to go" in err
    summary = status()
    assert summary["is_running"] is False
    assert summary["last_session"]["ended_how"] == "cancelled"
    assert not Path("out/control").exists()


def test_watching_ends_with_the_study(run, running, tmp_path):
    process = running()
    watching = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "status", "out", "--watch"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    first = watching.stdout.readline()
    assert first.startswith("s: running (process ")
    Path("go").touch()
    rest = watching.communicate(timeout=PATIENCE_S)[0]
    assert "s: finished\n  done     6 of 6 runs\n" in rest
    assert process.wait(PATIENCE_S) == 0


def test_a_study_that_has_just_been_started_is_waited_for(run, study, monkeypatch):
    assert run("run", study(), "--output", "done")[0] == 0
    Path("out").mkdir()
    steps = iter([lambda: open_ledger(Path("out")).close(), lambda: shutil.copy(*LEDGERS)])
    # Its own clock only: threads that other tests have left may sleep, too. It stands still, as the
    # wait has a limit.
    clock = SimpleNamespace(sleep=lambda _: next(steps)(), monotonic=lambda: 0.0, time=time.time)
    monkeypatch.setattr("fairtrial.study.runner.study_status.time", clock)
    with OwnerLock(Path("out")):
        code, out, _ = run("status", "out")
    assert code == 0
    assert out.startswith("s: running (process ")
    assert run("status", "out")[1].startswith("s: finished")


def test_a_study_in_this_process_shows_its_current_run_and_can_be_cancelled(run, running, status):
    """Runs execute one at a time, in the process that runs the study."""
    process = running("--executor", "serial", "--no-progress")
    summary = wait_until(status, lambda summary: summary["live"]["running"] == 1)
    assert summary["live"]["runs"][0]["agent_id"] == "a"
    assert run("cancel", "out")[0] == 0
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "cancelled" in err
    assert "0 of 6 runs done: none" in out
    summary = status()
    assert (summary["done"], summary["pending"]) == (0, 6)


@pytest.mark.parametrize("interrupts", [signal.default_int_handler, signal.SIG_IGN])
def test_a_run_in_this_thread_is_cancelled_whether_or_not_interrupts_are_ignored(
    tmp_path, monkeypatch, interrupts
):
    """Processes that a shell starts in the background ignore interrupts."""
    monkeypatch.setattr(control, "POLL_S", 0.0)
    ended = []

    def agent(task):
        control.request(tmp_path / "out", "cancel")
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            time.sleep(0.005)
        ended.append(task)
        return {"x": 1}

    before = signal.signal(signal.SIGINT, interrupts)
    try:
        results = run_small(make_study(tmp_path / "out"), agent)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (results.stopped, len(results), ended) == ("cancelled", 0, [])


# -- while another fairtrial times --


TIMING = """
import sys, anyio
from pathlib import Path
from fairtrial.sandbox.host_lock import HostLock

async def hold():
    async with HostLock(Path(sys.argv[1])).exclusive():
        print("held", flush=True)
        await anyio.sleep_forever()

anyio.run(hold)
"""


class JudgesNothing(BoundCode):
    def evaluate(self, output):
        return None


CODING = JudgesNothing(CodeProblem("p", check=(Check(command=("true",)),)))
"""A problem that a study takes for a code problem, and that judges nothing."""


@pytest.fixture
def timing_pid(tmp_path, monkeypatch):
    """Hold the host lock in another process, with a lock folder of this test; returns its pid."""
    folder = tmp_path / "host"
    folder.mkdir()
    monkeypatch.setattr(quiet, "HOST_FOLDER", folder)
    monkeypatch.setattr(quiet, "_is_descendant", lambda pid, ours: pid == ours)
    process = subprocess.Popen(
        [sys.executable, "-c", TIMING, folder], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process.pid
    process.kill()
    process.communicate()


def test_a_run_that_has_to_wait_says_for_whom(timing_pid, tmp_path, monkeypatch, capsys):
    """Also if the run occupies the thread that shows the progress."""
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0.0)
    message = f"0/1 runs, {events.HostWaitStarted(timing_pid).text}\n"
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)

    def agent(task):
        wait_until(stream.getvalue, lambda text: message in text)
        return {"x": 1}

    study = make_study(tmp_path / "out", (1,), 1, outcomes=())
    (result,) = run_small(study, agent, CODING, show_progress=True)
    assert result.status == "success"


def test_the_status_of_a_study_of_code_says_that_the_machine_is_taken(timing_pid, run, tmp_path):
    study = Study(
        "s", "t", problems={"p": ProblemBinding(use="code")}, problem_ids=("p",), agent_specs=("a",)
    )
    message = f"  {events.HostWaitStarted(timing_pid).text}"
    folder = tmp_path / "out"
    run_small(replace(study, output_dir=folder), lambda task: {"x": 1}, CODING)
    assert message not in run("status", "out")[1]
    with OwnerLock(folder):
        assert message in run("status", "out")[1].splitlines()


def test_a_study_bound_in_python_is_resumed_from_python(run, tmp_path):
    study = make_study(tmp_path / "out", (1, 2), 1)
    run_small(study, limit=1)
    code, out, _ = run("status", "out")
    assert code == 0
    assert "run_study(study, resume=True" in out
    assert "fairtrial resume" not in out
    assert json.loads(run("status", "out", "--json")[1])["go_on"] is None
