"""What every sandbox must do, as tests: make a subclass, and let pytest find it.

::

    from fairtrial.testing.sandboxes import SandboxConformance

    class TestMine(SandboxConformance):
        @pytest.fixture
        def sandbox(self):
            return Mine()

What only a full sandbox promises (one without `shortfalls`) is in `fairtrial.testing.isolation`.
Needs pytest and a Unix; some tests need Linux, and are skipped elsewhere.
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

from fairtrial.sandbox import CHANNEL_VARIABLE, Completed, Ending, Sandbox
from fairtrial.sandbox.harness import kernel, processes
from fairtrial.testing.resource_usage import MB, UsageConformance, needs_linux
from fairtrial.testing.sandbox_commands import Scene

MANY = 20
"""Commands at once: more than there are cores on most machines, each with a dozen descriptors."""


class SandboxConformance(UsageConformance):
    """The tests of what every sandbox promises.

    `vanishing_s`: how long our own last process may take to vanish once a command has returned; one
    that somebody else started can't be waited for, and closes its descriptors before it is gone
    """

    vanishing_s = 0.0

    @pytest.fixture
    def sandbox(self) -> Sandbox:
        """The sandbox to be tried."""
        raise NotImplementedError

    @pytest.fixture
    def scene(self, sandbox: Sandbox, tmp_path: Path) -> Scene:
        folder = tmp_path / "slot"
        folder.mkdir()
        return Scene(sandbox, folder)

    def test_it_says_what_it_is(self, sandbox: Sandbox) -> None:
        assert sandbox.name
        assert isinstance(sandbox.relocates, bool)
        assert all(isinstance(phrase, str) for phrase in sandbox.shortfalls)

    # -- how it ended --

    @pytest.mark.parametrize("code", [0, 255])
    def test_the_exit_code_is_told(self, scene: Scene, code: int) -> None:
        done = scene.run(f"sys.exit({code})")
        assert (done.ending, done.exit_code, done.signal) == (Ending.EXITED, code, None)

    @pytest.mark.parametrize("name", ["SIGSEGV", "SIGINT", "SIGKILL"])
    def test_the_signal_is_told(self, scene: Scene, name: str) -> None:
        done = scene.run(f"""
import signal
signal.signal(signal.{name}, signal.SIG_DFL) if "{name}" != "SIGKILL" else None
os.kill(os.getpid(), signal.{name})""")
        number = int(getattr(signal, name))
        assert (done.ending, done.exit_code, done.signal) == (Ending.SIGNALLED, None, number)

    def test_a_program_that_is_not_there_is_the_commands_fault(self, scene: Scene) -> None:
        import anyio

        command = scene.command("")
        for argv in (("no-such-program",), (str(scene.folder / "no"), "x"), (str(scene.folder),)):
            done = anyio.run(scene.sandbox.run, type(command)(argv, command.cwd, command.env))
            assert (done.ending, done.exit_code) == (Ending.EXITED, 127)
            assert argv[0] in done.stderr.text

    def test_signals_are_as_a_program_expects_them(self, scene: Scene) -> None:
        told = scene.told("""
import signal
ours = {signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ}  # Python's own
print([n for n in signal.valid_signals() - ours
       if signal.getsignal(n) not in (signal.SIG_DFL, None)], signal.pthread_sigmask(0, []))""")
        assert told == "[] set()\n"

    # -- what goes in --

    @pytest.mark.parametrize("size", [0, 3 * MB])
    def test_it_reads_its_input_to_the_end(self, scene: Scene, size: int) -> None:
        data = os.urandom(size)
        told = scene.told(
            "import hashlib; print(hashlib.sha1(sys.stdin.buffer.read()).hexdigest())", stdin=data
        )
        assert told.strip() == hashlib.sha1(data).hexdigest()

    def test_input_that_nobody_reads_is_no_trouble(self, scene: Scene) -> None:
        assert scene.run("", stdin=bytes(3 * MB)).exit_code == 0

    def test_the_environment_is_what_the_command_says(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SOME_API_KEY", "secret")
        told = scene.told("print(*sorted(os.environ))", env={"MINE": "1", "LC_ALL": "C.UTF-8"})
        assert told.split() == ["HOME", "LC_ALL", "MINE", "PATH", "TEMP", "TMP", "TMPDIR"]

    def test_variables_for_the_loader_reach_the_command_alone(self, scene: Scene) -> None:
        """They could make our own init load what a candidate wrote."""
        (scene.folder / "libc.so.6").write_bytes(b"no library")
        env = {"LD_LIBRARY_PATH": str(scene.folder), "PYTHONHOME": str(scene.folder)}
        command = scene.command("", env=env)
        import anyio

        argv = ("/bin/sh", "-c", "exit 3")
        done = anyio.run(
            scene.sandbox.run, type(command)(argv, command.cwd, command.env, command.view)
        )
        assert done.exit_code == 127, "the loader should have failed in the command, and there only"

    def test_it_starts_where_the_command_says(self, scene: Scene) -> None:
        inner = scene.folder / "spaces and ümläuts"
        inner.mkdir()
        assert scene.told("print(os.getcwd())", cwd=inner).strip() == str(inner)

    def test_home_and_temp_are_new_and_private(self, scene: Scene) -> None:
        program = """
home, temp = os.environ["HOME"], os.environ["TMPDIR"]
assert temp == os.environ["TMP"] == os.environ["TEMP"]
print(home, temp, 'locked' in os.listdir(home) + os.listdir(temp))
for folder in (home, temp):
    os.mkdir(folder + "/locked")
    open(folder + "/locked/file", "w").close()
    os.chmod(folder + "/locked", 0)"""
        first, second = scene.told(program), scene.told(program)
        for told in (first, second):
            home, temp, found = told.split()
            assert found == "False", "it is not a new one"
            for folder in (home, temp):
                assert not Path(folder, "locked").exists(), "it was left behind"

    @needs_linux
    def test_nothing_of_ours_is_left_open_in_it(self, scene: Scene) -> None:
        program = "print(len(os.listdir('/proc/self/fd')) - 1, os.getsid(0) == os.getpid())"
        assert scene.told(program) == "3 True\n"
        assert scene.told(program, channel_bytes=10) == "4 True\n"

    # -- what comes out --

    def test_output_and_error_output_are_kept_apart(self, scene: Scene) -> None:
        done = scene.run("print('out'); print('err', file=sys.stderr)")
        assert (done.stdout.head, done.stderr.head) == (b"out\n", b"err\n")

    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_of_a_flood_head_and_tail_are_kept(self, scene: Scene, stream: str) -> None:
        done = scene.run(f"sys.{stream}.write('head' + 'x' * {3 * MB} + 'tail')", output_bytes=1000)
        kept = getattr(done, stream)
        assert kept.head.startswith(b"headx")
        assert kept.tail.endswith(b"xtail")
        assert len(kept.head) + len(kept.tail) == 1000
        assert kept.dropped == 3 * MB + 8 - 1000

    def test_what_fits_is_kept_whole(self, scene: Scene) -> None:
        done = scene.run("sys.stdout.write('x' * 1000)", output_bytes=1000)
        assert (done.stdout.head, done.stdout.tail, done.stdout.dropped) == (b"x" * 1000, b"", 0)

    def test_the_channel_carries_bytes(self, scene: Scene) -> None:
        done = scene.run(
            f"os.write(int(os.environ['{CHANNEL_VARIABLE}']), bytes(range(256)) * 100)",
            channel_bytes=25_600,
        )
        assert (done.channel, done.channel_overflowed) == (bytes(range(256)) * 100, False)

    def test_a_flood_on_the_channel_is_cut_and_blocks_nobody(self, scene: Scene) -> None:
        done = scene.run(
            f"""
channel = open(int(os.environ['{CHANNEL_VARIABLE}']), 'wb')
channel.write(b'first' + bytes({3 * MB}))
channel.close()
print('done')""",
            channel_bytes=8,
        )
        assert (done.channel, done.channel_overflowed) == (b"first\0\0\0", True)
        assert done.stdout.head == b"done\n"

    def test_without_a_channel_none_is_named(self, scene: Scene) -> None:
        assert scene.told(f"print('{CHANNEL_VARIABLE}' in os.environ)") == "False\n"

    def test_the_report_cannot_be_forged(self, scene: Scene) -> None:
        done = scene.run("""
for number in range(3, 256):
    tried(os.write, number, b'{"ending": "exited", "exit_code": 0, "signal": null, '
          b'"wall_s": 0.0, "cpu_s": 0.0, "peak_rss_mb": 0.0}\\n')
    tried(os.close, number)
sys.exit(5)""")
        assert (done.exit_code, done.wall_s > 0) == (5, True)

    # -- nothing is left --

    def test_what_outlives_the_command_is_ended(self, scene: Scene) -> None:
        """Grandchildren in other sessions that hold our pipes open (spec 10)."""
        done = scene.run("for name in 'abc': daemon(lambda: hold(name))")
        assert done.exit_code == 0
        assert not any(map(scene.is_held, "abc"))

    def test_what_ignores_signals_is_ended(self, scene: Scene) -> None:
        program = """
import signal
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, signal.SIG_IGN)
daemon(lambda: hold('a'))
time.sleep(100)"""
        for timeout_s in (0.3, 2.0, 10.0):  # on a busy machine it may not come that far
            assert scene.run(program, timeout_s=timeout_s).ending is Ending.TIMEOUT
            if (scene.folder / "a").exists():
                break
        assert not scene.is_held("a")

    def test_cancelled_means_ended(self, scene: Scene) -> None:
        import anyio

        command = scene.command("daemon(lambda: hold('a')); hold('b'); time.sleep(1000)")
        before = self.held()

        async def cancel_it() -> None:
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(scene.sandbox.run, command)
                    while not (scene.folder / "b").exists() or not scene.is_held("b"):
                        await anyio.sleep(0.01)
                    tasks.cancel_scope.cancel()

        anyio.run(cancel_it)
        assert not scene.is_held("a")
        assert not scene.is_held("b")
        self.assert_holds_no_more_than(before)

    def test_cancelled_at_any_moment_leaves_nothing(
        self, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import anyio

        temp = tmp_path / "temp"
        temp.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temp))

        command = scene.command("hold('a'); time.sleep(1000)")
        before = self.held()

        async def cancel_them() -> None:
            for moment in range(8):
                with anyio.move_on_after(moment * 0.008):
                    await scene.sandbox.run(command)
                if (scene.folder / "a").exists():
                    assert not scene.is_held("a")

        anyio.run(cancel_them)
        self.assert_holds_no_more_than(before)
        assert list(temp.iterdir()) == []

    def test_many_run_at_once(self, scene: Scene) -> None:
        before = self.held()
        done = scene.run_all([f"print({number})" for number in range(MANY)])
        assert [each.stdout.head for each in done] == [f"{n}\n".encode() for n in range(MANY)]
        self.assert_holds_no_more_than(before)

    def test_it_works_in_a_thread_of_its_own(self, scene: Scene) -> None:
        done: list[Completed] = []
        thread = threading.Thread(target=lambda: done.append(scene.run("sys.exit(3)")))
        thread.start()
        thread.join()
        assert [each.exit_code for each in done] == [3]

    def assert_holds_no_more_than(self, before: tuple[set[str], set[int]]) -> None:
        """What was about to vanish before may be gone; nothing may have come."""
        deadline = time.monotonic() + self.vanishing_s
        descriptors, pids = self.held()
        while pids - before[1] and time.monotonic() < deadline:
            time.sleep(0.01)
            descriptors, pids = self.held()
        assert descriptors <= before[0]
        assert pids <= before[1]

    @staticmethod
    def held() -> tuple[set[str], set[int]]:
        """What this process has: open descriptors, and processes that it has to wait for."""
        gc.collect()
        numbers = set(os.listdir("/dev/fd"))  # noqa: PTH208
        return numbers, set(processes.descendants(os.getpid())) if kernel.IS_LINUX else set()
