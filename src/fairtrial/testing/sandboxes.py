"""Conformance tests for sandboxes. Make a subclass in a test file of yours:

::

    from fairtrial.testing.sandboxes import SandboxConformance

    class TestMine(SandboxConformance):
        @pytest.fixture
        def sandbox(self):
            return Mine()

Tests for full sandboxes (without `shortfalls`) are in `fairtrial.testing.isolation`. Needs pytest
and a Unix; some tests need Linux, and are skipped elsewhere.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest

from fairtrial.sandbox import Completed, Ending, Sandbox, wire
from fairtrial.sandbox.harness import kernel, processes
from fairtrial.testing.resource_usage import MB, UsageConformance, needs_linux
from fairtrial.testing.sandbox_commands import CommandRunner
from fairtrial.testing.system_calls import SystemCallConformance

COMMAND_COUNT = 20
"""How many commands run at once: more than most machines have cores."""


class SandboxConformance(UsageConformance, SystemCallConformance):
    """The tests of all sandboxes.

    vanishing_s: how long the sandbox's own last process may take to vanish after a command has
        returned, if another process started it, so that it can't be waited for
    """

    vanishing_s = 0.0

    @pytest.fixture
    def sandbox(self) -> Sandbox:
        """The tested sandbox; override it."""
        raise NotImplementedError

    @pytest.fixture
    def runner(self, sandbox: Sandbox, tmp_path: Path) -> CommandRunner:
        folder = tmp_path / "slot"
        folder.mkdir()
        return CommandRunner(sandbox, folder)

    def test_a_sandbox_has_a_name_and_describes_itself(self, sandbox: Sandbox) -> None:
        assert sandbox.name
        assert isinstance(sandbox.relocates, bool)
        assert all(isinstance(phrase, str) for phrase in sandbox.shortfalls)

    # -- endings --

    @pytest.mark.parametrize("code", [0, 255])
    def test_the_exit_code_is_reported(self, runner: CommandRunner, code: int) -> None:
        result = runner.run(f"sys.exit({code})")
        assert (result.ending, result.exit_code, result.signal) == (Ending.EXITED, code, None)

    @pytest.mark.parametrize("name", ["SIGSEGV", "SIGINT", "SIGKILL"])
    def test_the_signal_is_reported(self, runner: CommandRunner, name: str) -> None:
        result = runner.run(f"""
import signal
signal.signal(signal.{name}, signal.SIG_DFL) if "{name}" != "SIGKILL" else None
os.kill(os.getpid(), signal.{name})""")
        number = int(getattr(signal, name))
        assert (result.ending, result.exit_code, result.signal) == (Ending.SIGNALLED, None, number)

    def test_a_missing_program_is_reported_as_a_failure_of_the_command(
        self, runner: CommandRunner
    ) -> None:
        import anyio

        command = runner.command("")
        for argv in (("no-such-program",), (str(runner.folder / "no"), "x"), (str(runner.folder),)):
            result = anyio.run(runner.sandbox.run, type(command)(argv, command.cwd, command.env))
            assert (result.ending, result.exit_code) == (Ending.EXITED, 127)
            assert argv[0] in result.stderr.text

    def test_signal_handlers_are_in_their_default_state(self, runner: CommandRunner) -> None:
        output = runner.get_output("""
import signal
ours = {signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ}  # Python's own
print([n for n in signal.valid_signals() - ours
       if signal.getsignal(n) not in (signal.SIG_DFL, None)], signal.pthread_sigmask(0, []))""")
        assert output == "[] set()\n"

    # -- input and environment --

    @pytest.mark.parametrize("size", [0, 3 * MB])
    def test_a_command_can_read_its_input_to_the_end(
        self, runner: CommandRunner, size: int
    ) -> None:
        data = os.urandom(size)
        output = runner.get_output(
            "import hashlib; print(hashlib.sha1(sys.stdin.buffer.read()).hexdigest())", stdin=data
        )
        assert output.strip() == hashlib.sha1(data).hexdigest()

    def test_a_command_need_not_read_its_input(self, runner: CommandRunner) -> None:
        assert runner.run("", stdin=bytes(3 * MB)).exit_code == 0

    def test_the_environment_holds_only_the_variables_of_the_command(
        self, runner: CommandRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOME_API_KEY", "secret")
        output = runner.get_output(
            "print(*sorted(os.environ))", env={"MINE": "1", "LC_ALL": "C.UTF-8"}
        )
        assert output.split() == ["HOME", "LC_ALL", "MINE", "PATH", "TEMP", "TMP", "TMPDIR"]

    def test_variables_of_the_dynamic_loader_affect_the_command_only(
        self, runner: CommandRunner
    ) -> None:
        """They could make the init process load a candidate's files."""
        (runner.folder / "libc.so.6").write_bytes(b"no library")
        env = {"LD_LIBRARY_PATH": str(runner.folder), "PYTHONHOME": str(runner.folder)}
        command = runner.command("", env=env)
        import anyio

        argv = ("/bin/sh", "-c", "exit 3")
        result = anyio.run(
            runner.sandbox.run, type(command)(argv, command.cwd, command.env, command.view)
        )
        assert result.exit_code == 127, (
            "the loader should have failed in the command, and there only"
        )

    def test_a_command_starts_in_its_working_folder(self, runner: CommandRunner) -> None:
        inner = runner.folder / "spaces and ümläuts"
        inner.mkdir()
        assert runner.get_output("print(os.getcwd())", cwd=inner).strip() == str(inner)

    def test_home_and_temp_are_new_and_private(self, runner: CommandRunner) -> None:
        program = """
home, temp = os.environ["HOME"], os.environ["TMPDIR"]
assert temp == os.environ["TMP"] == os.environ["TEMP"]
print(home, temp, 'locked' in os.listdir(home) + os.listdir(temp))
for folder in (home, temp):
    os.mkdir(folder + "/locked")
    open(folder + "/locked/file", "w").close()
    os.chmod(folder + "/locked", 0)"""
        first, second = runner.get_output(program), runner.get_output(program)
        for output in (first, second):
            home, temp, is_used = output.split()
            assert is_used == "False", "it is not a new one"
            for folder in (home, temp):
                assert not Path(folder, "locked").exists(), "it was left behind"

    @needs_linux
    def test_a_command_inherits_no_open_descriptors(self, runner: CommandRunner) -> None:
        program = "print(len(os.listdir('/proc/self/fd')) - 1, os.getsid(0) == os.getpid())"
        assert runner.get_output(program) == "3 True\n"
        assert runner.get_output(program, channel_bytes=10) == "4 True\n"

    # -- output --

    def test_output_and_error_output_are_kept_apart(self, runner: CommandRunner) -> None:
        result = runner.run("print('out'); print('err', file=sys.stderr)")
        assert (result.stdout.head, result.stderr.head) == (b"out\n", b"err\n")

    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_the_beginning_and_the_end_of_too_much_output_are_kept(
        self, runner: CommandRunner, stream: str
    ) -> None:
        result = runner.run(
            f"sys.{stream}.write('head' + 'x' * {3 * MB} + 'tail')", output_bytes=1000
        )
        kept = getattr(result, stream)
        assert kept.head.startswith(b"headx")
        assert kept.tail.endswith(b"xtail")
        assert len(kept.head) + len(kept.tail) == 1000
        assert kept.dropped == 3 * MB + 8 - 1000

    def test_output_within_the_limit_is_kept_completely(self, runner: CommandRunner) -> None:
        result = runner.run("sys.stdout.write('x' * 1000)", output_bytes=1000)
        assert (result.stdout.head, result.stdout.tail, result.stdout.dropped) == (
            b"x" * 1000,
            b"",
            0,
        )

    def test_the_channel_carries_bytes(self, runner: CommandRunner) -> None:
        result = runner.run(
            f"os.write(int(os.environ['{wire.CHANNEL_VARIABLE}']), bytes(range(256)) * 100)",
            channel_bytes=25_600,
        )
        assert (result.channel, result.channel_overflowed) == (bytes(range(256)) * 100, False)

    def test_too_much_data_on_the_channel_is_cut_and_does_not_block(
        self, runner: CommandRunner
    ) -> None:
        result = runner.run(
            f"""
channel = open(int(os.environ['{wire.CHANNEL_VARIABLE}']), 'wb')
channel.write(b'first' + bytes({3 * MB}))
channel.close()
print('done')""",
            channel_bytes=8,
        )
        assert (result.channel, result.channel_overflowed) == (b"first\0\0\0", True)
        assert result.stdout.head == b"done\n"

    def test_a_command_without_a_channel_gets_no_channel_variable(
        self, runner: CommandRunner
    ) -> None:
        assert runner.get_output(f"print('{wire.CHANNEL_VARIABLE}' in os.environ)") == "False\n"

    def test_the_report_cannot_be_forged(self, runner: CommandRunner) -> None:
        result = runner.run("""
for number in range(3, 256):
    tried(os.write, number, b'{"ending": "exited", "exit_code": 0, "signal": null, '
          b'"wall_s": 0.0, "cpu_s": 0.0, "peak_rss_mb": 0.0}\\n')
    tried(os.close, number)
sys.exit(5)""")
        assert (result.exit_code, result.wall_s > 0) == (5, True)

    # -- all processes end --

    def test_processes_that_outlive_the_command_are_ended(self, runner: CommandRunner) -> None:
        """Grandchildren in other sessions that hold the output pipes open."""
        result = runner.run("for name in 'abc': daemon(lambda: hold(name))")
        assert result.exit_code == 0
        assert not any(map(runner.is_locked, "abc"))

    def test_processes_that_ignore_signals_are_ended(self, runner: CommandRunner) -> None:
        program = """
import signal
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, signal.SIG_IGN)
daemon(lambda: hold('a'))
time.sleep(100)"""
        for timeout_s in (0.3, 2.0, 10.0):  # on a busy machine it may need longer to start
            assert runner.run(program, timeout_s=timeout_s).ending is Ending.TIMEOUT
            if (runner.folder / "a").exists():
                break
        assert not runner.is_locked("a")

    def test_cancelling_ends_the_command(self, runner: CommandRunner) -> None:
        import anyio

        command = runner.command("daemon(lambda: hold('a')); hold('b'); time.sleep(1000)")
        before = self.list_held_after_first(runner)

        async def cancel_it() -> None:
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(runner.sandbox.run, command)
                    while not (runner.folder / "b").exists() or not runner.is_locked("b"):
                        await anyio.sleep(0.01)
                    tasks.cancel_scope.cancel()

        anyio.run(cancel_it)
        assert not runner.is_locked("a")
        assert not runner.is_locked("b")
        self.assert_holds_no_more_than(before)

    def test_cancelling_at_any_moment_leaves_no_process_and_no_descriptor(
        self, runner: CommandRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import anyio

        temp = tmp_path / "temp"
        temp.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temp))

        command = runner.command("hold('a'); time.sleep(1000)")
        before = self.list_held_after_first(runner)

        async def cancel_them() -> None:
            for moment in range(8):
                with anyio.move_on_after(moment * 0.008):
                    await runner.sandbox.run(command)
                if (runner.folder / "a").exists():
                    assert not runner.is_locked("a")

        anyio.run(cancel_them)
        self.assert_holds_no_more_than(before)
        assert list(temp.iterdir()) == []

    def test_many_commands_can_run_concurrently(self, runner: CommandRunner) -> None:
        before = self.list_held_after_first(runner)
        results = runner.run_all([f"print({number})" for number in range(COMMAND_COUNT)])
        assert [result.stdout.head for result in results] == [
            f"{n}\n".encode() for n in range(COMMAND_COUNT)
        ]
        self.assert_holds_no_more_than(before)

    def test_a_sandbox_can_be_used_from_another_thread(self, runner: CommandRunner) -> None:
        results: list[Completed] = []
        thread = threading.Thread(target=lambda: results.append(runner.run("sys.exit(3)")))
        thread.start()
        thread.join()
        assert [result.exit_code for result in results] == [3]

    def assert_holds_no_more_than(self, before: tuple[set[str], set[int]]) -> None:
        """Assert that no descriptor or child process was added since `before`."""
        deadline = time.monotonic() + self.vanishing_s
        descriptors, pids = self.list_held()
        while pids - before[1] and time.monotonic() < deadline:
            time.sleep(0.01)
            descriptors, pids = self.list_held()
        assert descriptors <= before[0]
        assert pids <= before[1]

    def list_held_after_first(self, runner: CommandRunner) -> tuple[set[str], set[int]]:
        """Return what this process holds after a first command.

        A sandbox may keep one helper for all commands that follow.
        """
        runner.run("pass")
        return self.list_held()

    @staticmethod
    def list_held() -> tuple[set[str], set[int]]:
        """Return this process's open descriptors, and its child processes."""
        gc.collect()
        numbers = set(os.listdir("/dev/fd"))  # noqa: PTH208
        return numbers, set(processes.list_descendants(os.getpid())) if kernel.IS_LINUX else set()
