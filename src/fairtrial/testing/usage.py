"""What a sandbox must measure and limit, as tests; part of `fairtrial.testing.sandboxes`."""

from __future__ import annotations

import gc
import sys

import pytest

from fairtrial.guest.watch import LONGEST_WALL
from fairtrial.model.commands import Ending, Limits
from fairtrial.testing.commands import Scene

MB = 1 << 20
needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


class UsageConformance:
    """The tests of what is used, and how much may be."""

    # -- how much of it there was --

    def test_cpu_time_of_all_counts(self, scene: Scene) -> None:
        done = scene.run("""
if os.fork() == 0:  # waited for
    burn(0.15)
    os._exit(0)
os.wait()
daemon(lambda: burn(0.15))  # killed in the end""")
        assert 0.3 <= done.cpu_s < 3
        assert done.wall_s > 0

    @needs_linux
    def test_memory_of_all_counts_together(self, scene: Scene) -> None:
        done = scene.run(f"""
for _ in range(3):
    daemon(lambda: globals().update(held=bytearray(b'x') * {40 * MB}))
time.sleep(0.2)""")
        assert 120 <= done.peak_rss_mb < 300

    @needs_linux
    def test_memory_that_forks_share_counts_once(self, scene: Scene) -> None:
        done = scene.run(
            f"""
held = bytearray(b'x') * {80 * MB}
for _ in range(5):
    daemon(lambda: None)
time.sleep(0.3)""",
            limits=Limits(memory_mb=250),
        )
        assert (done.ending, done.exit_code) == (Ending.EXITED, 0)
        assert 80 <= done.peak_rss_mb < 200

    def test_a_short_peak_is_seen(self, scene: Scene) -> None:
        assert scene.run(f"bytearray(b'x') * {100 * MB}").peak_rss_mb >= 100

    def test_our_own_memory_does_not_count(self, scene: Scene) -> None:
        held = bytearray(b"x") * (300 * MB)
        assert scene.run("").peak_rss_mb < 100
        assert len(held) == 300 * MB
        del held
        gc.collect()

    # -- limits --

    @pytest.mark.parametrize(
        "program", ["burn(100)", "time.sleep(100)", "daemon(lambda: None); time.sleep(100)"]
    )
    def test_what_takes_too_long_is_ended(self, scene: Scene, program: str) -> None:
        done = scene.run(program, timeout_s=0.3)
        assert (done.ending, done.exit_code, done.signal) == (Ending.TIMEOUT, None, None)
        assert 0.25 < done.wall_s < 10

    def test_many_that_burn_at_once_take_too_long_together(self, scene: Scene) -> None:
        done = scene.run("os.fork(); os.fork(); burn(50)", timeout_s=0.6)
        assert done.ending is Ending.TIMEOUT
        # Where others have the cores, the longest wall time may come first.
        assert done.cpu_s >= 0.5 or done.wall_s >= LONGEST_WALL * 0.6

    @needs_linux
    def test_time_without_a_core_does_not_count(self, scene: Scene) -> None:
        """Four that need a quarter of a second each, on one core, have 0.7 seconds (spec 14)."""
        program = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); burn(0.25)"
        done = scene.run_all([program] * 4, timeout_s=0.7)
        # Where others have that core, too, the longest wall time may come first.
        late = [each for each in done if each.ending is not Ending.EXITED]
        assert all(each.wall_s >= LONGEST_WALL * 0.7 for each in late)

    def test_too_much_memory_is_the_end(self, scene: Scene) -> None:
        done = scene.run(
            f"held = bytearray(b'x') * {300 * MB}; time.sleep(100)", limits=Limits(memory_mb=100)
        )
        assert (done.ending, done.exit_code) == (Ending.MEMORY, None)

    @needs_linux
    def test_too_much_memory_together_is_the_end(self, scene: Scene) -> None:
        done = scene.run(
            f"""
for _ in range(6):
    daemon(lambda: globals().update(held=bytearray(b'x') * {30 * MB}))
time.sleep(100)""",
            limits=Limits(memory_mb=120),
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
