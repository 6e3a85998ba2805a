"""Worker processes: what they survive, what they leave behind, how they start."""

import contextlib
import ctypes
import gc
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from fairtrial import Study, run_study
from fairtrial.core import LabError, StudyError
from fairtrial.core.plugins import load_reference
from fairtrial.sandbox.harness import processes
from fairtrial.study import RunStatus
from fairtrial.study.executors import Emitted, FailureKind, Finished, pack, unpack
from fairtrial.study.ledger.lock import OwnerLock
from fairtrial.study.runner.executors import (
    start_methods as starting,
    worker_main as worker,
    worker_pool as crew,
)
from fairtrial.study.runner.executors.pickling import check_reachable
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.testing.executor_driver import ListFeed, execute, is_alive, run_all
from fairtrial.testing.executor_work import ScriptedWork, assign, event, read_body

FORK, SPAWN = Processes("fork"), Processes("spawn")
METHODS = pytest.mark.parametrize("executor", [FORK, SPAWN], ids=["fork", "spawn"])
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Workers that were killed are waited for, however busy the machine is."""
    monkeypatch.setattr(crew, "END_S", PATIENCE_S)


class Calls(ScriptedWork):
    """Work whose deed `call` is a function of the test's."""

    def __init__(self, function):
        self.function = function

    def call(self, emit, **arguments):
        return self.function(emit, **arguments)


def call(function, *deeds, slots=1, executor=FORK, **arguments):
    """What comes of one call of `function` in a worker, and of the deeds after it."""
    feed = ListFeed([assign(0, "call", **arguments), *deeds])
    reports = execute(executor, feed, slots, Calls(function))
    return {report.execution_index: report for report in reports if isinstance(report, Finished)}


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.002)


def tell_pid(emit, pid):
    emit(pack(event(pid=pid)))


# -- a worker and its parent --

PARENT = """
import sys
from fairtrial.study.runner.executors import worker_main as worker
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.study.ledger.lock import OwnerLock
from fairtrial.study.ledger.packing import unpack
from fairtrial.testing.executor_work import ScriptedWork, assign
from fairtrial.testing.executor_driver import ListFeed
from pathlib import Path

method, watched, folder = sys.argv[1:]
if watched == "watched":
    worker.PR_SET_PDEATHSIG = 9999  # no such option: as on a system without it
with OwnerLock(Path(folder)):
    feed = ListFeed(assign(turn, "await_file", path="/nowhere/at/all") for turn in range(2))
    for report in Processes(method).execute(ScriptedWork(), feed, 2):
        if report is not None:
            print(unpack(report.data)["meta"]["pid"], flush=True)
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "fork watched"])
def test_workers_die_with_their_parent_and_hold_no_lock(tmp_path, how):
    method, _, watched = how.partition(" ")
    command = [sys.executable, "-c", PARENT, method, watched, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(is_alive, workers))
        parent.kill()
        parent.wait()
        with OwnerLock(tmp_path):  # at once, whether they are gone yet or not
            wait_until(lambda: not any(map(is_alive, workers)))


class Connection(sqlite3.Connection):
    """One that can be found again."""


def test_a_worker_leaves_its_parents_database_alone(tmp_path):
    gc.disable()  # here, so that the worker is the one that could close what is garbage
    try:
        connection = sqlite3.connect(tmp_path / "x", isolation_level=None, factory=Connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.itself = connection
        reference = weakref.ref(connection)
        del connection
        finished = call(lambda emit: (gc.collect() and None) or reference() is not None, assign(1))
        assert read_body(finished[0])["returned"] is True
        connection = reference()
        connection.execute("COMMIT")
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
    finally:
        gc.enable()


def test_what_the_parent_was_about_to_print_is_printed_once(tmp_path):
    script = """
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.testing.executor_work import ScriptedWork, assign
from fairtrial.testing.executor_driver import ListFeed
print("once", end="")
old = __import__("sys").stdout
class Old(ScriptedWork):
    def old(self, emit):
        old.write("more")
        old.flush()
feed = ListFeed([assign(0, "old")])
reports = [report for report in Processes("fork").execute(Old(), feed, 1) if report]
assert reports[0].stdout == b"more", reports
"""
    buffered = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", script]
    process = subprocess.run(command, stdout=subprocess.PIPE, env=buffered, check=True)
    assert process.stdout == b"once"


@METHODS
def test_a_signal_for_the_terminals_programs_is_not_for_workers(executor, tmp_path):
    go = tmp_path / "go"
    feed = ListFeed([assign(0, "await_file", path=str(go))])
    for report in execute(executor, feed, 1):
        if isinstance(report, Emitted):
            pid = unpack(report.data)["meta"]["pid"]
            assert os.getpgid(pid) == pid
            assert os.getsid(pid) == pid
            os.kill(pid, signal.SIGINT)
            go.touch()
        elif report is not None:
            assert report.outcome.status is RunStatus.SUCCESS


def test_it_works_beside_threads_and_outside_the_main_one():  # and warns nobody, spec 19
    results = []
    done = threading.Event()
    idler = threading.Thread(target=done.wait)
    idler.start()
    thread = threading.Thread(target=lambda: results.append(run_all(FORK, [assign(0), assign(1)])))
    thread.start()
    thread.join()
    done.set()
    idler.join()
    assert {report.outcome.status for report in results[0].values()} == {RunStatus.SUCCESS}


# -- deaths --


@METHODS
def test_kill_9_of_a_worker_breaks_its_run_and_no_other(executor, tmp_path):
    go = tmp_path / "go"
    deeds = [assign(execution_index, "await_file", path=str(go)) for execution_index in range(3)]
    feed = ListFeed([*deeds, assign(3)])
    finished, pids = {}, {}
    for report in execute(executor, feed, 3):
        if isinstance(report, Emitted):
            pids[report.execution_index] = unpack(report.data)["meta"]["pid"]
            if len(pids) == 3:
                os.kill(pids[1], signal.SIGKILL)
        elif report is not None:
            finished[report.execution_index] = report
            if report.execution_index == 1:
                go.touch()
    assert next(iter(finished)) == 1
    assert finished[1].outcome.status is RunStatus.BROKEN
    assert finished[1].outcome.failure_kind is FailureKind.KILLED
    assert {finished[execution_index].outcome.status for execution_index in (0, 2, 3)} == {
        RunStatus.SUCCESS
    }


class PacedFeed(ListFeed):
    """Waits for the test to say that it may go on."""

    may_go_on = False

    def __call__(self):
        if self.call_count < 2 or self.may_go_on:
            return super().__call__()
        return 0.01


@METHODS
def test_death_of_idle_workers_costs_nothing(executor, monkeypatch):
    # Two die at once, more than may die before their first run.
    monkeypatch.setattr(crew, "MAX_FAILED_STARTS", 1)
    feed = PacedFeed([assign(execution_index) for execution_index in range(4)])
    finished = {}
    for report in execute(executor, feed, 2):
        if isinstance(report, Finished):
            finished[report.execution_index] = report
            if len(finished) == 2:
                pids = {read_body(report)["pid"] for report in finished.values()}
                assert len(pids) == 2
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                wait_until(lambda dead=pids: not any(map(is_alive, dead)))
                feed.may_go_on = True
    assert len(finished) == 4
    assert {report.outcome.status for report in finished.values()} == {RunStatus.SUCCESS}
    assert all(
        read_body(finished[execution_index])["pid"] not in pids for execution_index in (2, 3)
    )


def test_a_worker_is_used_again_and_replaced_only_where_needed():
    deeds = [assign(execution_index) for execution_index in range(10)]
    pids = [read_body(report)["pid"] for report in run_all(FORK, deeds, 2).values()]
    assert len(set(pids)) <= 2
    assert os.getpid() not in pids


def start_sleeper(emit, then):
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        tell_pid(emit, sleeper.pid)
        if then == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if then == "leave":
            os._exit(0)


@pytest.mark.parametrize("then", ["crash", "leave", "hang", "close"])
def test_what_a_worker_has_started_ends_with_it(then):
    sleepers = []
    for limit_s in (0.3, 3.0, 30.0):  # on a busy machine it may not come that far
        limits = {"timeout_s": limit_s} if then == "hang" else {}
        feed = ListFeed([assign(0, "call", then=then, **limits)])
        reports = execute(FORK, feed, 1, Calls(start_sleeper))
        for report in reports:
            if isinstance(report, Emitted):
                sleepers.append(unpack(report.data)["meta"]["pid"])
                if then == "close":
                    break
        reports.close()
        if sleepers:
            break
    (sleeper,) = sleepers
    wait_until(lambda: not is_alive(sleeper))


def fork_and_live_on(emit):
    """A process of the agent's keeps the worker's pipes open after its death."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()  # out of reach of the worker's group
        os.write(write, b"x")
        time.sleep(600)
        os._exit(0)
    os.read(read, 1)  # till it is out of reach
    tell_pid(emit, child)
    os._exit(7)


def test_a_death_is_seen_though_another_process_holds_the_pipes():
    feed = ListFeed([assign(0, "call"), assign(1)])
    finished, orphan = {}, None
    try:
        for report in execute(FORK, feed, 1, Calls(fork_and_live_on)):
            if isinstance(report, Emitted):
                orphan = unpack(report.data)["meta"]["pid"]
            elif report is not None:
                finished[report.execution_index] = report
        assert is_alive(orphan)
    finally:
        if orphan is not None:
            os.kill(orphan, signal.SIGKILL)
    assert read_body(finished[0]) == "left the process with exit code 7"
    assert finished[1].outcome.status is RunStatus.SUCCESS


def test_an_agent_that_forks_and_comes_back_twice_counts_once():
    doubles = []

    def fork_or_wait(emit, then):
        if then == "fork":
            doubles.append(os.fork())
        else:
            os.waitpid(doubles[0], 0)  # till it has come back, and gone

    finished = call(fork_or_wait, assign(1, "call", then="wait"), then="fork")
    assert {report.outcome.status for report in finished.values()} == {RunStatus.SUCCESS}


def test_a_worker_that_is_stopped_is_ended_when_its_time_is_up():
    finished = call(lambda emit: os.kill(os.getpid(), signal.SIGSTOP), assign(1), timeout_s=0.2)
    assert finished[0].outcome.failure_kind is FailureKind.TIMEOUT
    assert finished[1].outcome.status is RunStatus.SUCCESS


def test_a_segfault_leaves_its_trace():
    finished = call(lambda emit: ctypes.string_at(0))
    assert finished[0].outcome.failure_kind is FailureKind.CRASH
    assert b"Segmentation fault" in finished[0].stderr
    assert b"test_executor_processes.py" in finished[0].stderr


def test_the_trace_is_kept_after_a_flood():
    def flood(emit):
        sys.stderr.write("x" * 1_000_000)
        ctypes.string_at(0)

    stderr = call(flood)[0].stderr
    assert len(stderr) < 100_000
    assert b"more bytes]" in stderr
    assert b"Segmentation fault" in stderr


# -- mischief --


def open_files():
    """The numbers of open files, and what each of them is: numbers are given anew."""
    targets = {}
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that the folder was read by
            targets[int(path.name)] = str(path.readlink())
    return targets


def pipes_of_worker(others):
    """The pipes of this process but those that it had from elsewhere."""
    return {
        number: name
        for number, name in open_files().items()
        if name.startswith("pipe:") and name not in others and number > 2
    }


def test_garbage_in_the_pipe_costs_one_run():
    others = set(open_files().values())

    def write_garbage(emit):
        for number in pipes_of_worker(others):
            with contextlib.suppress(OSError):
                os.write(number, b"garbage " * 10)
        time.sleep(60)

    finished = call(write_garbage, assign(1))
    assert finished[0].outcome.failure_kind is FailureKind.CRASH
    assert "wrote into the pipe" in read_body(finished[0])
    assert finished[1].outcome.status is RunStatus.SUCCESS


def test_a_closed_pipe_costs_one_run(monkeypatch):
    monkeypatch.setattr(crew, "CLOSED_PIPE_S", 0.05)
    others = set(open_files().values())

    def close_all(emit):
        for number in pipes_of_worker(others):
            os.close(number)
        time.sleep(60)

    finished = call(close_all, assign(1))
    assert finished[0].outcome.failure_kind is FailureKind.CRASH
    assert "closed the pipe" in read_body(finished[0])
    assert finished[1].outcome.status is RunStatus.SUCCESS


@pytest.mark.parametrize("spoil", ["close", "detach"])
def test_the_next_run_can_print_whatever_this_one_did_to_its_output(spoil):
    def ruin(emit):
        print("first", end="")
        getattr(sys.stdout, spoil)()
        sys.stderr = None

    finished = call(ruin, assign(1, "print", out="out", err="err"))
    assert finished[0].outcome.status is RunStatus.SUCCESS
    assert finished[0].stdout == b"first"
    assert (finished[1].stdout, finished[1].stderr) == (b"out", b"err")


@METHODS
def test_output_of_c_code_and_of_programs_is_kept(executor, capfd):
    finished = call(print_from_below, assign(1), executor=executor)
    assert finished[0].stdout == b"c out\nprogram out\n"
    assert finished[0].stderr == b"c err\n"
    assert finished[1].stdout == b""
    assert capfd.readouterr() == ("", "")


def print_from_below(emit):
    os.write(1, b"c out\n")
    os.write(2, b"c err\n")
    subprocess.run(["echo", "program out"], check=True)


def test_there_is_nothing_to_read_from_the_terminal():
    assert read_body(call(lambda emit: sys.stdin.read())[0])["returned"] == ""


# -- sizes --


@METHODS
def test_large_assignments_and_results_cross(executor):
    text = "x" * 3_000_000
    finished = run_all(
        executor, [assign(execution_index, told=text) for execution_index in range(4)]
    )
    assert all(read_body(report)["returned"] == {"told": text} for report in finished.values())


def test_a_result_beyond_all_measure_is_unwritable(monkeypatch):
    monkeypatch.setattr(worker, "MAX_FRAME_BYTES", 10_000)
    finished = call(lambda emit: "x" * 20_000, assign(1))
    assert finished[0].outcome.failure_kind is FailureKind.UNWRITABLE
    assert finished[1].outcome.status is RunStatus.SUCCESS


# -- starting --


def test_closures_reach_a_forked_worker():
    secret = object()
    assert read_body(call(lambda emit: repr(secret))[0])["returned"] == repr(secret)


def test_what_cant_reach_a_fresh_worker_is_said_before_anything_runs():
    class Local:
        pass

    def inner():
        pass

    feed = ListFeed([assign(0)])
    with pytest.raises(StudyError) as raised:
        next(iter(SPAWN.execute(Calls([lambda: 0, inner, Local()]), feed, 1)))
    assert feed.call_count == 0
    text = str(raised.value)
    assert len(raised.value.mistakes) == 3
    for words in ("<lambda>", ".inner", ".Local", Path(__file__).name, "--executor serial"):
        assert words in text
    assert "module:callable" in text


def test_functions_of_the_main_program_cant_reach_a_fresh_worker(monkeypatch):
    monkeypatch.setattr(print_from_below, "__module__", "__main__")
    with pytest.raises(StudyError, match=r"print_from_below.*can't reach a worker"):
        check_reachable(Calls(print_from_below))


def test_what_cant_be_pickled_is_named():
    with pytest.raises(StudyError, match="lock"):
        check_reachable(Calls(threading.Lock()))
    check_reachable(Calls(print_from_below))


def test_a_condition_that_cant_cross_is_named():
    with pytest.raises(StudyError, match="cond-0"):
        run_all(FORK, [assign(0, told=threading.Lock())])


def test_a_fresh_worker_finds_modules_in_the_studys_own_folder(tmp_path):
    (tmp_path / "own_agents.py").write_text("def agent(emit):\n    return 'mine'\n")
    agent = load_reference("own_agents:agent", tmp_path)
    assert str(tmp_path) not in sys.path
    assert read_body(call(agent, executor=SPAWN)[0])["returned"] == "mine"


def test_workers_that_never_start_end_the_study(tmp_path, monkeypatch):
    monkeypatch.setattr(crew, "MAX_FAILED_STARTS", 2)
    module = tmp_path / "fickle_agents.py"
    module.write_text("def agent(emit):\n    return 'mine'\n")
    agent = load_reference("fickle_agents:agent", tmp_path)
    module.write_text("raise RuntimeError('no luck')\n")
    with pytest.raises(LabError, match=r"exit code 1 \(RuntimeError: no luck\); see that"):
        call(agent, executor=SPAWN)


def test_a_worker_that_is_never_ready_ends_the_study(monkeypatch):
    monkeypatch.setattr("fairtrial.study.runner.executors.worker_process.START_LIMIT_S", 0.05)
    monkeypatch.setattr(worker, "_become_worker", lambda parent: time.sleep(60))
    with pytest.raises(LabError, match="not ready"):
        run_all(FORK, [assign(0)])


def refuse_forks(monkeypatch, after):
    fork, count = os.fork, [0]

    def refuse():
        count[0] += 1
        if count[0] > after:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(starting.os, "fork", refuse)
    monkeypatch.setattr(crew, "REFUSAL_S", 0.0)


def test_with_fewer_processes_than_asked_for_it_continues(monkeypatch):
    refuse_forks(monkeypatch, after=2)
    finished = run_all(FORK, [assign(execution_index) for execution_index in range(20)], 5)
    assert len(finished) == 20
    assert {report.outcome.status for report in finished.values()} == {RunStatus.SUCCESS}


def test_without_any_process_it_says_what_to_do(monkeypatch):
    refuse_forks(monkeypatch, after=0)
    before = open_files()
    with pytest.raises(LabError, match="lower --parallel"):
        run_all(FORK, [assign(0)])
    assert open_files().items() <= before.items()


@METHODS
def test_the_pool_stays_within_the_limit_of_open_files(executor):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(open_files())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 30, hard))
    try:
        finished = run_all(executor, [assign(execution_index) for execution_index in range(30)], 16)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {report.outcome.status for report in finished.values()} == {RunStatus.SUCCESS}


@METHODS
def test_workers_hold_no_pipe_of_each_others(executor):
    arguments = {"others": sorted(open_files().values())}
    runs = (assign(execution_index, "call", **arguments) for execution_index in range(1, 3))
    finished = call(list_pipes, *runs, slots=3, executor=executor, **arguments)
    assert len({read_body(report)["pid"] for report in finished.values()}) == 3
    held = [read_body(report)["returned"] for report in finished.values()]
    assert all(held)
    assert len({name for names in held for name in names}) == sum(map(len, held))


def list_pipes(emit, others):
    return sorted(set(pipes_of_worker(set(others)).values()))


def children():
    """The processes that we started: those that have ended and were not waited for, too."""
    own, children = os.getpid(), set()
    for pid in processes.list_descendants(own):
        with contextlib.suppress(OSError):  # a child's child that has just gone
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
            if int(stat.rpartition(")")[2].split()[1]) == own:
                children.add(pid)
    return children


@METHODS
def test_no_file_and_no_process_is_left(executor):
    files, others = open_files(), children()
    deeds = [assign(execution_index, "leave_at_once", code=1) for execution_index in range(2)]
    finished = run_all(
        executor, [*deeds, *(assign(execution_index) for execution_index in range(2, 6))], 2
    )
    assert open_files().items() <= files.items()
    assert children() <= others
    assert len(finished) == 6


def test_a_program_without_terminal_can_have_workers():
    script = """
import os
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.testing.executor_work import ScriptedWork, assign
from fairtrial.testing.executor_driver import ListFeed
for number in (0, 1, 2):
    os.close(number)
feed = ListFeed([assign(turn, "print", out="out", err="err") for turn in range(3)])
reports = [report for report in Processes("fork").execute(ScriptedWork(), feed, 2) if report]
printed = [(report.stdout, report.stderr) for report in reports]
os._exit(0 if printed == [(b"out", b"err")] * 3 else 3)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_files_named_like_the_standard_library_beside_a_study_do_no_harm(tmp_path):
    for name in ("statistics", "logging", "queue", "random"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not for fairtrial')")
    (tmp_path / "beside_runner.py").write_text("def run(spec, condition):\n    return {'x': 7}\n")
    (tmp_path / "study.yaml").write_text(
        "study_id: s\ntitle: t\nfactors: [{name: x, levels: [1, 2]}]\n"
        f"condition_runner: beside_runner:run\noutput_dir: {tmp_path / 'out'}\n"
    )
    results = run_study(Study.from_yaml(tmp_path / "study.yaml"), executor=SPAWN)
    assert [result.outputs for result in results] == [{"x": 7}] * 2
