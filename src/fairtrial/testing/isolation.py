"""Conformance tests for the isolation of full sandboxes; see `fairtrial.testing.sandboxes`."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fairtrial.core import LabError
from fairtrial.sandbox import Ending, Limits, Mount, Sandbox, View
from fairtrial.testing.resource_usage import MB
from fairtrial.testing.sandbox_commands import CommandRunner
from fairtrial.testing.sandboxes import SandboxConformance

# All known ways to change something outside of the slot; each prints a line if it succeeds, and
# does no lasting harm then.
ATTACKS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)

def same(path):
    with open(path, "rb") as file:
        text = file.read()
    with open(path, "wb") as file:
        file.write(text)

def attack(action, *arguments):
    if tried(action, *arguments):
        print(getattr(action, "__name__", action), *arguments)

REMOUNT_BIND = 32 | 4096
private = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/dev/pts", os.environ["HOME"]}
mounts = [line.split()[1] for line in open("/proc/self/mounts")]
folders = {"/", *("/" + name for name in os.listdir("/")), *mounts, *sys.argv[1:]}
for folder in sorted(folders - private - {os.getcwd()}):
    attack(os.mkdir, folder + "/made")
    attack(os.chmod, folder, os.stat(folder).st_mode & 0o7777)  # does no harm if it works
    if not folder.startswith("/dev/"):  # devices that can be written to may be touched
        attack(os.utime, folder)
    for flags in (REMOUNT_BIND, 32, 32 | 4096 | 2):
        attack(call, "mount", None, folder.encode(), None, ctypes.c_ulong(flags), None)
    attack(call, "umount2", folder.encode(), 2)
for path in ("/etc/passwd", "/etc/hosts", "/usr/bin/env", *sys.argv[1:]):
    attack(os.open, path, os.O_WRONLY | os.O_APPEND)
    attack(os.link, path, "linked")
    attack(os.chmod, path, os.stat(path).st_mode & 0o7777)
for path in ("/proc/sys/vm/swappiness", "/proc/sys/kernel/core_pattern", "/proc/sys/fs/file-max",
             "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/hostname"):
    attack(same, path)
for path in ("/proc/sysrq-trigger", "/proc/1/mem", "/proc/1/oom_score_adj", "/proc/1/uid_map"):
    attack(os.open, path, os.O_WRONLY)
for name in ("/proc/1/cwd", "/proc/1/root", "/proc/1/map_files"):
    attack(os.listdir, name)
for number in range(64):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        attack(os.open, "/proc/1/fd/%d" % number, flags)
for path in ("/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/kcore", "/dev/mem"):
    attack(lambda: open(path, "rb").read(1))
attack(os.mknod, "disk", 0o60666, os.makedev(8, 0))
attack(os.chroot, ".")
attack(os.setuid, 0)
attack(os.setgroups, [0])
for flags in (0x10000000, 0x00020000, 0x10020000, 0x40000000, 0x20000000):
    attack(call, "unshare", flags)
attack(call, "mount", b"none", b".", b"tmpfs", 0, None)
attack(call, "sethostname", b"mine", 4)
attack(call, "ptrace", 16, 1, None, None)
attack(call, "ptrace", 0x4206, 1, None, None)
attack(call, "setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)
"""


class FullSandboxConformance(SandboxConformance):
    """The tests of full sandboxes, in addition to those of all sandboxes.

    protects_devices: whether it keeps root from changing the modes of the machine's own devices
    """

    protects_devices = True

    def test_a_full_sandbox_has_no_shortfalls_except_for_devices(self, sandbox: Sandbox) -> None:
        assert (sandbox.shortfalls == ()) == self.protects_devices
        assert sandbox.relocates

    # -- changes --

    def test_only_the_slot_can_be_changed(self, runner: CommandRunner, tmp_path: Path) -> None:
        shown = tmp_path / "shown"
        shown.mkdir()
        (shown / "file").write_text("as it was")
        view = View(readable=(Mount(shown, shown),))
        command = runner.command(ATTACKS, view=view)
        import anyio

        argv = (*command.argv, str(shown), str(shown / "file"))
        result = anyio.run(
            runner.sandbox.run,
            type(command)(argv, command.cwd, command.env, command.view, timeout_s=60),
        )
        lines = result.stdout.text.splitlines()
        successes = [line for line in lines if self.protects_devices or " /dev/" not in line]
        assert (successes, result.exit_code) == ([], 0), result.stderr.text
        assert (shown / "file").read_text() == "as it was"
        assert [path.name for path in shown.iterdir()] == ["file"]

    def test_files_written_in_the_slot_remain_afterwards(self, runner: CommandRunner) -> None:
        runner.get_output("open('made', 'w').write('by it'); os.chmod('made', 0o755)")
        made = runner.folder / "made"
        assert (made.read_text(), made.stat().st_mode & 0o777) == ("by it", 0o755)
        assert made.owner() == runner.folder.owner()

    def test_a_command_has_no_capabilities_and_can_gain_none(self, runner: CommandRunner) -> None:
        output = runner.get_output(
            "print(*(l for l in open('/proc/self/status') if l[:3] in 'Cap NoN'))"
        )
        fields = dict(line.split(":") for line in output.split("\n") if ":" in line)
        assert {name.strip(): value.strip() for name, value in fields.items()} == {
            **{f"Cap{kind}": "0" * 16 for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")},
            "NoNewPrivs": "1",
        }

    # -- visible files and processes --

    def test_a_folder_mounted_elsewhere_is_not_visible_at_its_own_path(
        self, runner: CommandRunner, tmp_path: Path
    ) -> None:
        real, seen = tmp_path / "real", Path("/somewhere/else entirely")
        real.mkdir()
        (real / "file").write_text("text")
        output = runner.get_output(
            f"print(os.getcwd(), open('file').read(), os.path.exists({str(real)!r}))",
            view=View(writable=(Mount(real, seen),)),
            cwd=seen,
        )
        assert output == f"{seen} text False\n"

    def test_nothing_outside_of_the_view_is_visible(
        self, runner: CommandRunner, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("secret")
        output = runner.get_output(f"""
print(os.path.exists({str(tmp_path / "secret")!r}))
shown = [line.split()[1] for line in open("/proc/self/mounts")]
for place in ({str(Path.home())!r}, "/root", "/home", "/var", "/run", "/srv", "/mnt", "/media"):
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in shown]
        print(*(os.path.join(folder, name) for name in files), end="")""")
        assert output == "False\n"

    def test_later_mounts_cover_earlier_ones(self, runner: CommandRunner, tmp_path: Path) -> None:
        """A read-only folder is mounted in the slot where a candidate has left a link."""
        inner = tmp_path / "environment"
        inner.mkdir()
        (inner / "file").write_text("the true one")
        (runner.folder / "trap").mkdir()
        (runner.folder / "trap" / "file").write_text("another")
        (runner.folder / "inner").symlink_to("trap")
        output = runner.get_output(
            """
print(open('inner/file').read(), tried(open, 'inner/new', 'w'), tried(os.rmdir, 'inner'),
      tried(os.rename, 'inner', 'x'), os.path.islink('inner'))""",
            view=View(over=(Mount(inner, runner.folder / "inner"),)),
        )
        assert output == "the true one False False False False\n"

    def test_a_single_file_can_be_shown(self, runner: CommandRunner, tmp_path: Path) -> None:
        file = tmp_path / "one file"
        file.write_text("text")
        shown = (Mount(file, runner.folder / "a" / "b"), Mount(file, Path("/c/d")))
        output = runner.get_output(
            "print(open('a/b').read(), open('/c/d').read())", view=View(over=shown)
        )
        assert output == "text text\n"

    def test_a_missing_path_in_the_view_is_an_error(
        self, runner: CommandRunner, tmp_path: Path
    ) -> None:
        gone = tmp_path / "gone"
        with pytest.raises(LabError, match="gone"):
            runner.run("", view=View(readable=(Mount(gone, gone),)))

    def test_other_processes_are_not_visible(self, runner: CommandRunner) -> None:
        output = runner.get_output(f"""
print(sorted(map(int, filter(str.isdigit, os.listdir('/proc')))) == [1, os.getpid()],
      os.getppid(), tried(os.kill, {os.getpid()}, 0))""")
        assert output == "True 1 False\n"

    def test_a_command_runs_as_an_ordinary_user(self, runner: CommandRunner) -> None:
        output = runner.get_output(
            "import pwd; print(os.getuid(), pwd.getpwuid(os.getuid()).pw_dir)"
        )
        home = runner.get_output("print(os.environ['HOME'])")
        assert output.split()[0] != "0"
        assert output.split()[1] == home.strip()

    def test_the_usual_devices_work(self, runner: CommandRunner) -> None:
        output = runner.get_output("""
import pty
open('/dev/null', 'w').write('x')
print(len(open('/dev/urandom', 'rb').read(4)), open('/dev/zero', 'rb').read(1), flush=True)
open('/dev/stdout', 'w').write('there\\n')
os.close(pty.openpty()[0])
descriptor = os.open('/dev/shm/shared', os.O_RDWR | os.O_CREAT)
print(os.write(descriptor, b'x'))""")
        assert output == "4 b'\\x00'\nthere\n1\n"

    # -- network and signals --

    def test_a_command_has_no_network_but_its_own_loopback(self, runner: CommandRunner) -> None:
        with socket.socket() as listening, socket.socket(socket.AF_UNIX) as abstract:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            name = f"\0fairtrial-{os.getpid()}-{id(runner)}"
            abstract.bind(name)
            abstract.listen()
            output = runner.get_output(f"""
import socket
reach = lambda kind, place: tried(socket.socket(kind).connect, place)
print([name for _, name in socket.if_nameindex()], reach(socket.AF_UNIX, {name!r}),
      reach(socket.AF_INET, ('127.0.0.1', {listening.getsockname()[1]})),
      reach(socket.AF_INET, ('192.0.2.1', 80)), end=' ')
own = socket.create_server(('localhost', 0))
print(reach(socket.AF_INET, own.getsockname()))""")
        assert output == "['lo'] False False False True\n"

    def test_a_command_can_use_the_network_if_that_is_allowed(self, runner: CommandRunner) -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            output = runner.get_output(
                "import socket; place = ('127.0.0.1', int(sys.stdin.read()));"
                "print(tried(socket.create_connection, place), os.path.exists('/etc/resolv.conf'))",
                stdin=str(listening.getsockname()[1]).encode(),
                limits=Limits(network=True),
            )
        assert output == f"True {Path('/etc/resolv.conf').exists()}\n"

    def test_a_command_cannot_end_its_supervisor(self, runner: CommandRunner) -> None:
        result = runner.run("""
import signal
for number in sorted(signal.valid_signals()):
    tried(os.kill, 1, number)
time.sleep(0.1)
sys.exit(4)""")
        assert (result.ending, result.exit_code) == (Ending.EXITED, 4)

    # -- limits --

    def test_a_fork_bomb_is_stopped(self, runner: CommandRunner) -> None:
        result = runner.run(
            """
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)""",
            limits=Limits(processes=20),
            timeout_s=30,
        )
        assert result.ending is Ending.PROCESSES

    def test_files_in_a_memory_file_system_count_as_memory(self, runner: CommandRunner) -> None:
        result = runner.run(
            f"""
for folder in ('/tmp', '/dev/shm', '/var/tmp', os.environ['HOME']):
    open(folder + '/large', 'wb').write(bytes({20 * MB}))
time.sleep(100)""",
            limits=Limits(memory_mb=60),
        )
        assert result.ending is Ending.MEMORY

    def test_each_memory_file_system_has_a_size_limit(self, runner: CommandRunner) -> None:
        program = f"""
for folder in ('/tmp', '/dev/shm', '/var/tmp', os.environ['HOME']):
    status = os.statvfs(folder)
    assert status.f_blocks * status.f_frsize <= {100 * MB}, folder"""
        runner.get_output(program, limits=Limits(memory_mb=100))

    # -- ways from one command to another --

    def test_commands_share_no_memory_and_no_socket_names(self, runner: CommandRunner) -> None:
        leave = """
open("/dev/shm/left", "w").write("by another")
open("/tmp/left", "w").write("by another")
import socket
listener = socket.socket(socket.AF_UNIX)
listener.bind(b"\\0fairtrial-meeting")
listener.listen()
open("ready", "w").close()
deadline = time.monotonic() + 20
while not os.path.exists("seen") and time.monotonic() < deadline:
    time.sleep(0.01)
print("left")
"""
        look = """
import socket
deadline = time.monotonic() + 20
while not os.path.exists("ready") and time.monotonic() < deadline:
    time.sleep(0.01)
caller = socket.socket(socket.AF_UNIX)
print(os.path.exists("/dev/shm/left"), os.path.exists("/tmp/left"),
      tried(caller.connect, b"\\0fairtrial-meeting"), os.path.exists("ready"))
open("seen", "w").close()
"""
        first, second = runner.run_all([leave, look])
        assert first.stdout.text.split() == ["left"], first.stderr.text
        assert second.stdout.text.split() == ["False", "False", "False", "True"]

    def test_processes_of_another_command_can_t_be_reached_by_number(
        self, runner: CommandRunner
    ) -> None:
        wait = """
open("ready", "w").close()
deadline = time.monotonic() + 20
while not os.path.exists("seen") and time.monotonic() < deadline:
    time.sleep(0.01)
print("alive", os.getpid())
"""
        reach = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
deadline = time.monotonic() + 20
while not os.path.exists("ready") and time.monotonic() < deadline:
    time.sleep(0.01)
own = {os.getpid(), 1}
buffer = ctypes.create_string_buffer(64)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 64)
for number in set(range(2, 400)) - own:
    for reached in (
        tried(os.kill, number, 0),
        tried(os.pidfd_open, number) if hasattr(os, "pidfd_open") else False,
        libc.ptrace(16, number, None, None) == 0,
        tried(os.open, f"/proc/{number}/mem", os.O_RDWR),
        libc.process_vm_writev(number, vector, 1, vector, 1, 0) >= 0,
    ):
        if reached:
            print("reached", number)
for reached in (
    libc.ptrace(16, 1, None, None) == 0,
    libc.process_vm_writev(1, vector, 1, vector, 1, 0) >= 0,
    libc.process_vm_readv(1, vector, 1, vector, 1, 0) >= 0,
    libc.syscall(438, libc.syscall(434, 1, 0), 1, 0) >= 0,  # a descriptor of pid 1
):
    if reached:
        print("reached 1")
print("done")
open("seen", "w").close()
"""
        first, second = runner.run_all([wait, reach])
        assert second.stdout.text.split() == ["done"], second.stdout.text + second.stderr.text
        assert first.stdout.text.split()[0] == "alive"

    def test_a_signal_to_everybody_reaches_nobody_outside(self, runner: CommandRunner) -> None:
        wait = "open('ready', 'w').close(); time.sleep(1.0); print('alive')"
        kill = """
import signal
deadline = time.monotonic() + 20
while not os.path.exists("ready") and time.monotonic() < deadline:
    time.sleep(0.01)
tried(os.kill, -1, signal.SIGKILL)
print("sent")
"""
        first, second = runner.run_all([wait, kill])
        assert first.stdout.text.split() == ["alive"], (first.ending, first.signal)
        assert second.stdout.text.split() == ["sent"]

    def test_a_process_can_t_reset_its_peak_of_memory(self, runner: CommandRunner) -> None:
        program = """
def reset():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

print(tried(reset))
"""
        assert runner.get_output(program).split() == ["False"]
