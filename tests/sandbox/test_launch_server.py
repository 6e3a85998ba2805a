"""Commands in namespaces are forked from a launch server, and can't tell."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from fairtrial.sandbox import launch_server
from fairtrial.sandbox.harness import processes
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.selection import try_sandbox
from fairtrial.testing.sandbox_commands import CommandRunner

pytestmark = pytest.mark.skipif(bool(try_sandbox(Namespaces())), reason="no namespaces here")


@pytest.fixture
def runner(tmp_path):
    return CommandRunner(Namespaces(), tmp_path)


def find_servers():
    """Return the servers of this process, without what they have forked."""

    def is_server(pid):
        try:
            parent = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1]
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        return int(parent) == os.getpid() and b"launch_server.py" in command

    return [pid for pid in processes.list_descendants(os.getpid()) if is_server(pid)]


def test_all_commands_share_one_server(runner):
    for number in range(3):
        assert runner.run(f"sys.exit({number})").exit_code == number
    assert len(find_servers()) == 1


def test_commands_run_when_the_server_was_killed(runner):
    runner.run("pass")
    for pid in find_servers():
        os.kill(pid, signal.SIGKILL)
    assert [runner.run("sys.exit(4)").exit_code for _ in range(2)] == [4, 4]


def test_commands_run_when_there_can_be_no_server(runner, monkeypatch):
    launch_server.forget_server()
    monkeypatch.setattr(launch_server, "own_python", lambda: "/nowhere/python")
    assert runner.run("sys.exit(5)").exit_code == 5
    monkeypatch.setattr(launch_server, "own_python", lambda: "/bin/false")
    assert runner.run("sys.exit(6)").exit_code == 6


def test_commands_see_nothing_that_an_earlier_one_left_in_its_process(runner):
    """Each is forked from the server, whose memory, folder, mask and signals stay as they were."""
    runner.run("os.umask(0o777); os.chdir('/'); signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    deed = "print(oct(os.umask(0)), os.getcwd(), signal.getsignal(signal.SIGTERM))"
    shown = runner.get_output(f"import signal; {deed}")
    assert shown.split() == ["0o22", str(runner.folder), "0"] or "SIG_DFL" in shown


def test_commands_hold_no_descriptor_of_the_server(runner):
    runner.run("pass")
    assert runner.get_output("print(sorted(os.listdir('/proc/self/fd')))") == (
        "['0', '1', '2', '3']\n"  # the last one is the folder that is being listed
    )


def test_a_forked_process_has_a_server_of_its_own(runner):
    runner.run("pass")
    servers = find_servers()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            done = runner.run("sys.exit(7)")
            code = 0 if done.exit_code == 7 and set(find_servers()).isdisjoint(servers) else 2
        finally:
            launch_server.forget_server()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert find_servers() == servers
    assert runner.run("sys.exit(8)").exit_code == 8


@pytest.mark.parametrize("ending", ["pass", "os.kill(os.getpid(), 9)"])
def test_the_server_ends_with_its_owner(tmp_path, ending):
    program = textwrap.dedent(f"""
        import os
        from pathlib import Path
        from fairtrial.sandbox.harness import processes
        from fairtrial.sandbox.namespaces import Namespaces
        from fairtrial.testing.sandbox_commands import CommandRunner
        CommandRunner(Namespaces(), Path({str(tmp_path)!r})).run("pass")
        print(*processes.list_descendants(os.getpid()), flush=True)
        {ending}
    """)
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    pids = list(map(int, told.stdout.split()))
    assert pids, told
    deadline = time.monotonic() + 60
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X")
