"""The init process under stress: dying parents, failing starts, limits without control groups."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from fairtrial.core import LabError
from fairtrial.sandbox import (
    Command,
    Ending,
    Limits,
    Mount,
    Plain,
    View,
    bubblewrap,
    cgroup,
    cold_start as cold,
    init_process as child,
    launch_server,
    run_command,
)
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.harness import init, process_list, processes
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.selection import FULL_SANDBOXES, try_sandbox
from fairtrial.testing.sandbox_commands import CommandRunner

SANDBOXES = [Plain(), *(each for each in FULL_SANDBOXES if not try_sandbox(each))]
MB = 1 << 20
every_sandbox = pytest.mark.parametrize("sandbox", SANDBOXES, ids=lambda each: each.name)


def await_true(condition, within_s=60):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


@pytest.fixture
def runner(sandbox, tmp_path):
    folder = tmp_path / "slot"
    folder.mkdir()
    return CommandRunner(sandbox, folder)


# -- the parent --


@every_sandbox
def test_all_commands_end_when_the_parent_process_is_killed(runner, tmp_path):
    """Processes in other sessions end, too, and private home and temporary folders are removed."""
    temp = tmp_path / "temp"
    temp.mkdir()
    program = textwrap.dedent(f"""
        import anyio
        from pathlib import Path
        from fairtrial.sandbox.{runner.sandbox.name} import {type(runner.sandbox).__name__} as Kind
        from fairtrial.testing.sandbox_commands import CommandRunner
        runner = CommandRunner(Kind(), Path({str(runner.folder)!r}))
        runner.run("daemon(lambda: hold('a')); hold('b'); time.sleep(1000)")
    """)
    env = {**os.environ, "TMPDIR": str(temp)}
    with subprocess.Popen([sys.executable, "-c", program], env=env) as parent:
        await_true(lambda: (runner.folder / "b").exists() and runner.is_locked("b"))
        parent.kill()
    await_true(lambda: not runner.is_locked("a") and not runner.is_locked("b"))
    await_true(lambda: not list(temp.iterdir()))
    cgroup.remove_orphaned_groups()  # as the next start does


KEYS = """
import ctypes, platform
add, control = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(platform.machine(), (-1, -1))
libc = ctypes.CDLL(None)
def has(name): return libc.syscall(control, 10, -3, b"user", name, 0) > 0
def leave(name): return libc.syscall(add, b"user", name, b"x", 1, -3) > 0
"""


@every_sandbox
def test_commands_have_a_keyring_of_their_own(runner):
    """The session's keyring holds the user's secrets, and would be shared between commands."""
    deeds = KEYS + "print(has(b'secret'), has(b'left'), leave(b'left'))"
    program = KEYS + textwrap.dedent(f"""
        from pathlib import Path
        from fairtrial.sandbox.{runner.sandbox.name} import {type(runner.sandbox).__name__} as Kind
        from fairtrial.testing.sandbox_commands import CommandRunner
        runner = CommandRunner(Kind(), Path({str(runner.folder)!r}))
        if libc.syscall(control, 1, None) < 0 or not leave(b"secret"):
            raise SystemExit(77)
        for _ in range(2):
            print(runner.run({deeds!r}).stdout.text.strip())
    """)
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if told.returncode == 77:
        pytest.skip("there are no keyrings here")
    assert told.stdout.split() == ["False", "False", "True"] * 2, told


@every_sandbox
def test_a_forked_process_that_holds_our_pipes_does_not_hang_us(runner, monkeypatch):
    """Such as a worker that another thread forks while a command is started."""
    launch_server.forget_server()
    read, write = os.pipe()
    real = subprocess.Popen
    forked = []

    def fork_first(*arguments, **options):
        forked.append(os.fork())
        if forked[0] == 0:
            os.read(read, 1)
            os._exit(0)
        monkeypatch.setattr(subprocess, "Popen", real)
        return real(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", fork_first)
    began = time.monotonic()
    try:
        assert runner.get_output("print('done')") == "done\n"
        assert time.monotonic() - began < 60  # it is overdue, and cancelled, after minutes
    finally:
        os.write(write, b"!")
        os.waitpid(forked[0], 0)
        os.close(read)
        os.close(write)


@every_sandbox
def test_a_parent_that_ignores_its_children_is_served_as_well(runner):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert runner.run("sys.exit(3)").exit_code == 3
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_trio_serves_as_well_if_it_is_there(tmp_path):
    pytest.importorskip("trio")
    command = CommandRunner(Plain(), tmp_path).command("sys.exit(3)")
    assert anyio.run(run_command, command, backend="trio").exit_code == 3


# -- what fails on our side --


@pytest.mark.parametrize("launcher", ["/bin/false", "/no/such/bwrap"])
def test_a_launcher_that_fails_is_our_failure(tmp_path, monkeypatch, launcher):
    monkeypatch.setattr(bubblewrap, "_bwrap", lambda: launcher)
    with pytest.raises(LabError, match="bubblewrap sandbox could not be started"):
        CommandRunner(Bubblewrap(), tmp_path).run("")


def test_the_error_output_of_a_launcher_is_reported(tmp_path, monkeypatch):
    script = tmp_path / "bwrap"
    script.write_text("#!/bin/sh\necho no permission >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_bwrap", lambda: str(script))
    with pytest.raises(LabError, match="no permission"):
        CommandRunner(Bubblewrap(), tmp_path).run("")


@every_sandbox
def test_an_init_that_cannot_start_is_our_failure(runner, monkeypatch, tmp_path):
    launch_server.forget_server()
    for module in (cold, launch_server):
        monkeypatch.setattr(module, "own_python", lambda: "/bin/false")
    with pytest.raises(LabError, match=f"{runner.sandbox.name} sandbox could not be started"):
        runner.run("")


def test_a_control_group_that_cannot_be_joined_is_our_failure(tmp_path, monkeypatch):
    file = tmp_path / "join"
    file.touch()
    (tmp_path / "slot").mkdir()
    group = child.ControlGroup((Path("/dev/full"),))
    monkeypatch.setattr(child, "limited_group", lambda limits: contextlib.nullcontext(group))
    with pytest.raises(LabError, match="control group"):
        CommandRunner(Plain(), tmp_path / "slot").run("")


def test_our_init_joins_its_control_groups_first(tmp_path, monkeypatch):
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.touch()
    group = child.ControlGroup(tuple(files))
    monkeypatch.setattr(child, "limited_group", lambda limits: contextlib.nullcontext(group))
    told = CommandRunner(Plain(), tmp_path).get_output(
        "print(os.getppid(), os.environ.get('JOINS'))"
    )
    assert [file.read_text() for file in files] == [told.split()[0]] * 2


def test_plain_cannot_show_a_folder_elsewhere(tmp_path):
    view = View(readable=(Mount(tmp_path, Path("/elsewhere")),))
    with pytest.raises(LabError, match="/elsewhere"):
        CommandRunner(Plain(), tmp_path).run("", view=view)


def test_in_plain_a_command_that_ends_our_init_has_ended_itself(tmp_path):
    done = CommandRunner(Plain(), tmp_path).run(
        "hold('a'); os.kill(os.getppid(), 9); time.sleep(100)"
    )
    assert (done.ending, done.signal) == (Ending.SIGNALLED, signal.SIGKILL)
    await_true(lambda: not CommandRunner(Plain(), tmp_path).is_locked("a"))


@pytest.mark.slow
def test_in_plain_a_command_that_stops_our_init_is_outwaited(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "_END_TIMEOUT_S", 0.5)
    monkeypatch.setattr(child, "_STEP_S", 0.05)
    code = "import signal; hold('a'); os.kill(os.getppid(), signal.SIGSTOP); time.sleep(100)"
    with anyio.from_thread.start_blocking_portal() as portal:
        running = portal.start_task_soon(
            run_command, CommandRunner(Plain(), tmp_path).command(code, timeout_s=1.0)
        )
        done = running.result(timeout=60)  # for ever, if nobody minded
    assert (done.ending, done.signal) == (Ending.SIGNALLED, signal.SIGKILL)
    await_true(lambda: not CommandRunner(Plain(), tmp_path).is_locked("a"))


@pytest.mark.parametrize("timeout_s", [0.001, 1000.0])
def test_an_init_that_does_not_poll_is_waited_for_until_it_reports(
    tmp_path, monkeypatch, timeout_s
):
    """On an overloaded machine; a command that had its time counts as timed out then."""

    async def outwait(timeout_s, scope):
        while not (tmp_path / "a").exists():
            await anyio.sleep(0.01)
        scope.cancel()

    limits = child._make_limits
    monkeypatch.setattr(
        child, "_make_limits", lambda command: {**limits(command), "timeout_s": 1000.0}
    )
    monkeypatch.setattr(child, "_cancel_when_overdue", outwait)
    runner = CommandRunner(Plain(), tmp_path)
    if timeout_s < 1:
        done = runner.run("hold('a'); time.sleep(1000)", timeout_s=timeout_s)
        assert (done.ending, done.exit_code, done.signal) == (Ending.TIMEOUT, None, None)
    else:
        with pytest.raises(LabError, match="too busy"):
            runner.run("hold('a'); time.sleep(1000)", timeout_s=timeout_s)
    assert not runner.is_locked("a")


def test_when_a_full_sandbox_is_ended_from_outside_that_is_our_failure(tmp_path):
    sandbox = SANDBOXES[-1]
    if sandbox.shortfalls:
        pytest.skip("there is no full sandbox here")
    runner = CommandRunner(sandbox, tmp_path)

    async def end_it():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_launcher)
            await sandbox.run(
                runner.command("daemon(lambda: hold('a')); hold('b'); time.sleep(99)")
            )

    runner.run("pass")  # starts the launch server
    before = set(processes.list_descendants(0))  # servers, also other tests'

    async def kill_launcher():
        while not (tmp_path / "b").exists() or not runner.is_locked("b"):
            await anyio.sleep(0.01)
        # What is around our init is found before it, whatever their numbers are.
        _, inner, *_ = (pid for pid in processes.list_descendants(0) if pid not in before)
        os.kill(inner, signal.SIGKILL)

    with pytest.raises(BaseExceptionGroup) as caught:
        anyio.run(end_it)
    assert caught.group_contains(LabError, match="ended from outside")
    assert not runner.is_locked("a")


# -- watching alone: no control groups --


@pytest.fixture
def ungrouped(monkeypatch):
    monkeypatch.setattr(child, "limited_group", lambda limits: contextlib.nullcontext(None))


@every_sandbox
@pytest.mark.usefixtures("ungrouped")
@pytest.mark.parametrize(
    ("program", "ending"),
    [
        (f"held = bytearray(b'x') * {200 * MB}; time.sleep(99)", Ending.MEMORY),
        (
            f"for _ in range(6): daemon(lambda: globals().update(a=bytearray(b'x') * {30 * MB}))\n"
            "time.sleep(99)",
            Ending.MEMORY,
        ),
        ("for _ in range(12): daemon(lambda: None)\ntime.sleep(99)", Ending.PROCESSES),
    ],
    ids=["memory", "memory together", "processes"],
)
def test_limits_hold_without_control_groups(runner, program, ending):
    done = runner.run(program, limits=Limits(memory_mb=100, processes=8))
    assert done.ending is ending
    assert (done.exit_code, done.signal) == (None, None)


@pytest.mark.usefixtures("ungrouped")
@pytest.mark.parametrize("sandbox", SANDBOXES[1:], ids=lambda each: each.name)
def test_files_in_memory_count_without_control_groups(runner):
    program = f"""
for folder in ('/tmp', '/dev/shm', '/var/tmp', os.environ['HOME']):
    open(folder + '/large', 'wb').write(bytes({40 * MB}))
time.sleep(99)"""
    assert runner.run(program, limits=Limits(memory_mb=100)).ending is Ending.MEMORY


@every_sandbox
def test_what_the_kernel_had_to_stop_is_stopped_as_a_whole(runner, monkeypatch):
    """The kernel kills one process, and the others might wait for it until their timeout."""

    class Full(child.ControlGroup):
        def exceeded(self):
            return Ending.MEMORY if (runner.folder / "b").exists() else None

        def peak_rss_mb(self):
            return 123.0

    group = Full(())
    monkeypatch.setattr(child, "limited_group", lambda limits: contextlib.nullcontext(group))
    done = runner.run("daemon(lambda: hold('a')); hold('b'); time.sleep(1000)")
    assert (done.ending, done.exit_code, done.signal) == (Ending.MEMORY, None, None)
    assert done.peak_rss_mb == 123.0
    assert not runner.is_locked("a")


@every_sandbox
@pytest.mark.parametrize(("count", "ending"), [(2, Ending.MEMORY), (12, Ending.PROCESSES)])
def test_too_many_processes_are_reported_as_such_when_they_take_all_memory(
    runner, monkeypatch, count, ending
):
    class Full(child.ControlGroup):
        def exceeded(self):
            return Ending.MEMORY if (runner.folder / "b").exists() else None

    group = Full(())
    monkeypatch.setattr(child, "limited_group", lambda limits: contextlib.nullcontext(group))
    program = f"for _ in range({count}): daemon(lambda: None)\nhold('b'); time.sleep(1000)"
    assert runner.run(program, limits=Limits(processes=8)).ending is ending


# -- its parts --


def supervise(start, **limits):
    """Supervise a function in a forked child, like a warm server; returns the report."""
    read, write = os.pipe()
    life, alive = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # What is forked from us is as large as we are.
            bounds = {"timeout_s": 20, "memory_mb": 10**6, "processes": 9, "file_mb": 9, **limits}
            init.supervise(start, bounds, report=write, life=life, is_first=False)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    lines = os.read(read, 9999).splitlines()
    os.close(read)
    os.close(life)
    os.close(alive)
    return json.loads(lines[-1])


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (7, 7)])
def test_a_function_can_be_supervised(returned, code):
    report = supervise(lambda: returned)
    assert (report["ending"], report["exit_code"]) == ("exited", code)


def start_sleepers(count):
    """Spawn processes; forking this large process would take longer."""
    for _ in range(count):
        os.posix_spawn("/bin/sh", ["sh", "-c", "exec sleep 1000"], {"PATH": os.defpath})


@pytest.mark.parametrize(("count", "ending"), [(2, "signalled"), (12, "processes")])
def test_who_is_killed_while_there_are_too_many_was_killed_for_that(count, ending):
    """The kernel may kill parts of a fork bomb before the limits are first checked."""

    def multiply():
        start_sleepers(count)
        os.kill(os.getpid(), signal.SIGKILL)

    assert supervise(multiply, poll_s=1000)["ending"] == ending


def test_a_command_that_ends_our_init_at_once_has_been_started(monkeypatch):
    """The init process may be killed before it could report."""
    ours, tell = os.getpid(), init._send

    def tell_late(report, line):
        if os.getppid() == ours:
            time.sleep(1000)
        tell(report, line)

    monkeypatch.setattr(init, "_send", tell_late)
    assert supervise(lambda: os.kill(os.getppid(), signal.SIGKILL)).keys() == {"started"}


def let_use(monkeypatch, seconds, at_least=1):
    """Pretend that trees of this many processes have used this much more CPU time."""
    real = processes.measure_usage

    def look(pids):
        seen = real(pids)
        seen.cpu_s += seconds if len(seen.pids) >= at_least else 0
        return seen

    monkeypatch.setattr(processes, "measure_usage", look)


def test_too_many_that_take_too_long_are_too_many(monkeypatch):
    """On busy cores both limits may be exceeded at the first check."""

    def multiply():
        start_sleepers(9)
        time.sleep(1000)

    let_use(monkeypatch, 21, at_least=10)
    assert supervise(multiply, timeout_s=20, processes=9)["ending"] == "processes"


def test_more_cpu_time_than_there_is_time_is_too_much(monkeypatch):
    """On several cores, CPU time runs out long before wall time."""
    let_use(monkeypatch, 201)
    report = supervise(lambda: time.sleep(1000), timeout_s=200)
    assert (report["ending"], report["exit_code"]) == ("timeout", None)
    assert report["wall_s"] < 100


def test_a_wait_for_a_core_counts_once_whenever_the_kernel_reports_it(monkeypatch):
    """The kernel reports a wait when it is over, perhaps many checks later."""
    clock, told = SimpleNamespace(now=0.0), {}
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(processes, "_read", lambda path: b"0 %d 0" % told[path.split("/")[2]])
    waiting = processes.CoreWait()

    def look(now, **waited_s):
        clock.now = now
        told.update({name: int(1e9 * seconds) for name, seconds in waited_s.items()})
        waiting.update(dict.fromkeys(waited_s, 1))
        return waiting.total_s

    assert look(1, one=0.5, two=0.25) == 0.5
    assert [look(now, one=0.5, two=0.25) for now in (2, 3, 4)] == [0.5] * 3
    assert look(5, one=3.5, two=0.25) == 3.5  # since 2
    assert look(6, one=3.5, two=5.0) == 5.25  # since 1.25, in part beside the other
    assert look(7, one=99.0, two=5.0) == 7  # never more than there was


def test_whatever_keeps_it_from_running_there_is_an_end(monkeypatch):
    monkeypatch.setattr(processes.CoreWait, "update", lambda self, _: setattr(self, "total_s", 1e9))
    report = supervise(lambda: time.sleep(1000), timeout_s=0.05)
    assert report["ending"] == "timeout"
    assert 0.2 <= report["wall_s"] < 100


def test_a_function_that_raises_has_failed():
    def fail():
        os.close(2)
        raise KeyError

    assert supervise(fail)["exit_code"] == 1


def test_where_the_kernel_lists_no_children_parents_are_asked(tmp_path):
    before = set(processes.list_descendants(0))  # other tests' servers
    with subprocess.Popen(["sh", "-c", "sleep 100 & sleep 100; :"]) as shell:
        try:
            await_true(lambda: len(set(processes.list_descendants(0)) - before) == 3)
            found = set(processes._list_descendants_by_parent()) - before
            assert found == set(processes.list_descendants(0)) - before
        finally:
            for pid in set(processes.list_descendants(0)) - before:
                os.kill(pid, signal.SIGKILL)
        shell.wait()


def test_the_list_of_ps_gives_the_same_without_proc():
    """As on macOS: a process group, and its descendants."""
    before = set(processes.list_descendants(0))
    shell = subprocess.Popen(["sh", "-c", "sleep 100 & sleep 100; :"], start_new_session=True)
    try:
        await_true(lambda: len(set(processes.list_descendants(0)) - before) == 3)
        assert (
            set(process_list.list_descendants(shell.pid))
            == set(processes.list_descendants(0)) - before
        )
        seen = process_list.measure_usage(process_list.list_descendants(shell.pid))
        assert len(seen.pids) == 3
        assert seen.rss_bytes > 0
        shell.kill()
        shell.wait()
        assert len(process_list.list_descendants(shell.pid)) == 2, "orphans are still known"
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:01.50", 1.5), ("01:02:03", 3723), ("2-00:00:01", 172_801)]
)
def test_times_of_the_systems_list_are_read(text, seconds):
    assert process_list._parse_seconds(text) == seconds


def test_run_command_uses_the_plain_sandbox_by_default(tmp_path):
    command = Command(("/bin/sh", "-c", "echo $HOME"), tmp_path, {"PATH": os.defpath})
    plain = anyio.run(run_command, command)
    assert plain.stdout.text.startswith("/")
    if not try_sandbox(Namespaces()):
        full = anyio.run(run_command, Command(("/bin/pwd",), Path("/")), Namespaces())
        assert full.stdout.text == "/\n"
