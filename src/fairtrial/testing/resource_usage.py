"""Conformance tests for the resources that a sandbox measures and limits.

Part of `fairtrial.testing.sandboxes`.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from fairtrial.sandbox import MAX_WALL_FACTOR, Ending, Limits
from fairtrial.testing.sandbox_commands import CommandRunner

MB = 1 << 20
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

PIN = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"


@contextmanager
def busy_core(others: int) -> Iterator[None]:
    """Keep the core of `PIN` busy with this many other processes during the block."""
    with ExitStack() as stack:
        for _ in range(others):
            # With a limit, in case the test is killed.
            spin = ["/bin/sh", "-c", "ulimit -t 60; while :; do :; done"]
            # Each in its own session: some kernels divide cores among sessions.
            process = stack.enter_context(subprocess.Popen(spin, start_new_session=True))
            stack.callback(process.kill)
            os.sched_setaffinity(process.pid, [min(os.sched_getaffinity(0))])
        yield


class UsageConformance:
    """The tests of measured resources and of limits."""

    # -- what is measured --

    def test_cpu_time_of_all_processes_is_added_up(self, runner: CommandRunner) -> None:
        result = runner.run("""
if os.fork() == 0:  # waited for
    burn(0.1)
    os._exit(0)
os.wait()
daemon(lambda: burn(0.1))  # killed in the end""")
        assert 0.2 <= result.cpu_s < 3
        assert result.wall_s > 0

    @needs_linux
    def test_memory_of_all_processes_is_added_up(self, runner: CommandRunner) -> None:
        for stay_s in (0.1, 1.0, 10.0):  # on a busy machine a short time may not be measured
            result = runner.run(f"""
for _ in range(3):
    daemon(lambda: globals().update(held=bytearray(b'x') * {25 * MB}))
time.sleep({stay_s})""")
            if result.peak_rss_mb >= 75:
                break
        assert 75 <= result.peak_rss_mb < 200

    @needs_linux
    def test_memory_that_forks_share_counts_once(self, runner: CommandRunner) -> None:
        result = runner.run(
            f"""
held = bytearray(b'x') * {50 * MB}
for _ in range(5):
    daemon(lambda: None)
time.sleep(0.2)""",
            limits=Limits(memory_mb=180),
        )
        assert (result.ending, result.exit_code) == (Ending.EXITED, 0)
        assert 50 <= result.peak_rss_mb < 150

    def test_a_short_memory_peak_is_measured(self, runner: CommandRunner) -> None:
        assert runner.run(f"bytearray(b'x') * {60 * MB}").peak_rss_mb >= 60

    def test_memory_of_the_parent_process_does_not_count(self, runner: CommandRunner) -> None:
        held = bytearray(b"x") * (150 * MB)
        assert runner.run("").peak_rss_mb < 100
        assert len(held) == 150 * MB
        del held
        gc.collect()

    # -- limits --

    @pytest.mark.parametrize(
        "program", ["burn(100)", "time.sleep(100)", "daemon(lambda: None); time.sleep(100)"]
    )
    def test_a_command_that_takes_too_long_is_ended(
        self, runner: CommandRunner, program: str
    ) -> None:
        result = runner.run(program, timeout_s=0.2)
        assert (result.ending, result.exit_code, result.signal) == (Ending.TIMEOUT, None, None)
        assert 0.15 < result.wall_s < 90

    def test_cpu_time_of_concurrent_processes_counts_against_one_limit(
        self, runner: CommandRunner
    ) -> None:
        """Each of four would come to its end in the 0.4 seconds that they have in all."""
        result = runner.run(
            f"""
{PIN if sys.platform.startswith("linux") else ""}
for _ in range(3):
    if os.fork() == 0:
        burn(0.28)
        os._exit(0)
burn(0.28)
for _ in range(3):
    os.wait()""",
            timeout_s=0.4,
        )
        assert result.ending is Ending.TIMEOUT

    @needs_linux
    def test_time_spent_waiting_for_a_core_does_not_count(self, runner: CommandRunner) -> None:
        """With five other processes on its core, half a second of wall time is not a timeout."""
        with busy_core(others=5):
            result = runner.run(
                f"""
{PIN}
began = time.monotonic()
while time.monotonic() - began < 0.65 and time.process_time() < 0.4:
    sum(range(1000))""",
                timeout_s=0.5,
            )
        assert result.wall_s > 0.5, "it had the core for itself"
        # Where many others have that core, too, the longest wall time may come first.
        assert result.ending is Ending.EXITED or result.wall_s >= MAX_WALL_FACTOR * 0.5

    def test_a_command_that_uses_too_much_memory_is_ended(self, runner: CommandRunner) -> None:
        result = runner.run(
            f"held = bytearray(b'x') * {150 * MB}; time.sleep(100)", limits=Limits(memory_mb=60)
        )
        assert (result.ending, result.exit_code) == (Ending.MEMORY, None)

    @needs_linux
    def test_processes_that_together_use_too_much_memory_are_ended(
        self, runner: CommandRunner
    ) -> None:
        result = runner.run(
            f"""
for _ in range(6):
    daemon(lambda: globals().update(held=bytearray(b'x') * {20 * MB}))
time.sleep(100)""",
            limits=Limits(memory_mb=80),
        )
        assert result.ending is Ending.MEMORY

    def test_a_command_that_starts_too_many_processes_is_ended(self, runner: CommandRunner) -> None:
        result = runner.run(
            """
for _ in range(12):
    daemon(lambda: None)
time.sleep(100)""",
            limits=Limits(processes=8),
        )
        assert result.ending is Ending.PROCESSES

    def test_a_file_can_not_grow_beyond_its_limit(self, runner: CommandRunner) -> None:
        result = runner.run(f"open('large', 'wb').write(bytes({3 * MB}))", limits=Limits(file_mb=1))
        assert result.exit_code != 0
        assert (runner.folder / "large").stat().st_size <= MB
