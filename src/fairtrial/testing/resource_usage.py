"""What a sandbox must measure and limit, as tests; part of `fairtrial.testing.sandboxes`."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from fairtrial.sandbox import LONGEST_WALL, Ending, Limits
from fairtrial.testing.sandbox_commands import Scene

MB = 1 << 20
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

PIN = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"


@contextmanager
def busy_core(others: int) -> Iterator[None]:
    """So many processes that do nothing but use the core that `PIN` takes."""
    with ExitStack() as stack:
        for _ in range(others):
            # Not for ever, should we be killed.
            spin = ["/bin/sh", "-c", "ulimit -t 60; while :; do :; done"]
            # A session each: some kernels share cores out among these.
            process = stack.enter_context(subprocess.Popen(spin, start_new_session=True))
            stack.callback(process.kill)
            os.sched_setaffinity(process.pid, [min(os.sched_getaffinity(0))])
        yield


class UsageConformance:
    """The tests of what is used, and how much may be."""

    # -- how much of it there was --

    def test_cpu_time_of_all_counts(self, scene: Scene) -> None:
        done = scene.run("""
if os.fork() == 0:  # waited for
    burn(0.1)
    os._exit(0)
os.wait()
daemon(lambda: burn(0.1))  # killed in the end""")
        assert 0.2 <= done.cpu_s < 3
        assert done.wall_s > 0

    @needs_linux
    def test_memory_of_all_counts_together(self, scene: Scene) -> None:
        for stay_s in (0.1, 1.0, 10.0):  # on a busy machine nobody may look in a short time
            done = scene.run(f"""
for _ in range(3):
    daemon(lambda: globals().update(held=bytearray(b'x') * {25 * MB}))
time.sleep({stay_s})""")
            if done.peak_rss_mb >= 75:
                break
        assert 75 <= done.peak_rss_mb < 200

    @needs_linux
    def test_memory_that_forks_share_counts_once(self, scene: Scene) -> None:
        done = scene.run(
            f"""
held = bytearray(b'x') * {50 * MB}
for _ in range(5):
    daemon(lambda: None)
time.sleep(0.2)""",
            limits=Limits(memory_mb=180),
        )
        assert (done.ending, done.exit_code) == (Ending.EXITED, 0)
        assert 50 <= done.peak_rss_mb < 150

    def test_a_short_peak_is_seen(self, scene: Scene) -> None:
        assert scene.run(f"bytearray(b'x') * {60 * MB}").peak_rss_mb >= 60

    def test_our_own_memory_does_not_count(self, scene: Scene) -> None:
        held = bytearray(b"x") * (150 * MB)
        assert scene.run("").peak_rss_mb < 100
        assert len(held) == 150 * MB
        del held
        gc.collect()

    # -- limits --

    @pytest.mark.parametrize(
        "program", ["burn(100)", "time.sleep(100)", "daemon(lambda: None); time.sleep(100)"]
    )
    def test_what_takes_too_long_is_ended(self, scene: Scene, program: str) -> None:
        done = scene.run(program, timeout_s=0.2)
        assert (done.ending, done.exit_code, done.signal) == (Ending.TIMEOUT, None, None)
        assert 0.15 < done.wall_s < 90

    def test_many_that_burn_at_once_take_too_long_together(self, scene: Scene) -> None:
        """Each of four would come to its end in the 0.4 seconds that they have in all."""
        done = scene.run(
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
        assert done.ending is Ending.TIMEOUT

    @needs_linux
    def test_time_without_a_core_does_not_count(self, scene: Scene) -> None:
        """Beside five others on one core: half a second is not over after that (spec 14)."""
        with busy_core(others=5):
            done = scene.run(
                f"""
{PIN}
began = time.monotonic()
while time.monotonic() - began < 0.65 and time.process_time() < 0.4:
    sum(range(1000))""",
                timeout_s=0.5,
            )
        assert done.wall_s > 0.5, "it had the core for itself"
        # Where many others have that core, too, the longest wall time may come first.
        assert done.ending is Ending.EXITED or done.wall_s >= LONGEST_WALL * 0.5

    def test_too_much_memory_is_the_end(self, scene: Scene) -> None:
        done = scene.run(
            f"held = bytearray(b'x') * {150 * MB}; time.sleep(100)", limits=Limits(memory_mb=60)
        )
        assert (done.ending, done.exit_code) == (Ending.MEMORY, None)

    @needs_linux
    def test_too_much_memory_together_is_the_end(self, scene: Scene) -> None:
        done = scene.run(
            f"""
for _ in range(6):
    daemon(lambda: globals().update(held=bytearray(b'x') * {20 * MB}))
time.sleep(100)""",
            limits=Limits(memory_mb=80),
        )
        assert done.ending is Ending.MEMORY

    def test_too_many_processes_are_the_end(self, scene: Scene) -> None:
        done = scene.run(
            """
for _ in range(12):
    daemon(lambda: None)
time.sleep(100)""",
            limits=Limits(processes=8),
        )
        assert done.ending is Ending.PROCESSES

    def test_a_file_that_grows_too_large_is_cut_off(self, scene: Scene) -> None:
        done = scene.run(f"open('large', 'wb').write(bytes({3 * MB}))", limits=Limits(file_mb=1))
        assert done.exit_code != 0
        assert (scene.folder / "large").stat().st_size <= MB
