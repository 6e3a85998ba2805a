"""Nothing is left on disk or running, however a program with a pool ends."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from pool_kit import make_mixed_repository, memory_folder, read_contents
from repository_kit import write_files

from fairtrial.arena.slots import base
from fairtrial.arena.slots.pool import WorktreePool
from fairtrial.arena.slots.pool_folders import find_pool_folders, remove_orphaned_pools
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot import snapshot

PROGRAM = Path(__file__).parents[2] / "kits" / "pool_program.py"
STAGES = ("snapshot", "lease", "close", "main task")
BETWEEN = ("checkout", "slots", "reset")


@pytest.fixture(scope="module")
def repo():
    with memory_folder() as folder:
        top = make_mixed_repository(folder / "repo")
        write_files(top, {f"many/{n % 20}/{n}.py": f"x = {n}\n" for n in range(100)})
        yield top


@pytest.fixture
def home(monkeypatch):
    with memory_folder() as folder:
        monkeypatch.setenv("FAIRTRIAL_HOME", str(folder))
        yield folder / "arena"


def start(repo, stage, tmp_path):
    return subprocess.Popen(
        [sys.executable, PROGRAM, repo, stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )


def stop(program, number):
    assert program.stdout.readline() == "reached\n", program.stderr.read()
    program.send_signal(number)
    program.communicate(timeout=60)
    return program.returncode


def wait_for_group(program):
    """Until none of the processes that it started is left."""
    end_s = time.monotonic() + 60
    while is_group_left(program.pid):
        assert time.monotonic() < end_s, "something that it started goes on"
        time.sleep(0.01)


def is_group_left(group):
    """Return whether any process of the program runs; zombies may not have been waited for."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone meanwhile
            state, _, its_group = place.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return not Path("/proc/self/stat").exists()


@pytest.mark.parametrize(
    "stage", [*STAGES, *(pytest.param(stage, marks=pytest.mark.slow) for stage in BETWEEN)]
)
def test_signals_leave_nothing_on_disk(repo, home, tmp_path, stage):
    before = read_contents(repo)
    numbers = [signal.SIGINT, signal.SIGKILL]
    if stage != "main task":
        numbers.append(signal.SIGTERM)
    programs = [start(repo, stage, tmp_path) for _ in numbers]
    try:
        with ThreadPoolExecutor() as threads:
            codes = list(threads.map(stop, programs, numbers))
        assert codes[1] == -signal.SIGKILL
        assert stage == "close" or codes[2:] in ([], [0])  # the handler may be gone by then
        for program in programs:
            wait_for_group(program)
        killed = find_pool_folders()
        assert len(killed) <= 1  # the one whose owner could do nothing about it
        assert not any(folder.is_alive for folder in killed)
        assert len(remove_orphaned_pools()[0]) == len(killed)
        assert list(home.iterdir()) == []
        assert list(tmp_path.iterdir()) == []
        assert read_contents(repo) == before
    finally:
        for program in programs:
            program.kill()
            program.communicate()


def test_the_next_start_removes_what_a_killed_one_left_and_leaves_a_live_one_alone(
    repo, home, tmp_path
):
    live, dead = start(repo, "lease", tmp_path), start(repo, "lease", tmp_path)
    try:
        assert live.stdout.readline() == "reached\n"
        assert stop(dead, signal.SIGKILL) == -signal.SIGKILL
        kept = [folder.path for folder in find_pool_folders() if folder.is_alive]
        assert len(kept) == 1
        assert len(list(home.iterdir())) == 2
        before = read_contents(kept[0])

        async def run():
            async with WorktreePool(repo, 1) as pool, pool.acquire():
                return {folder.path for folder in find_pool_folders()} - set(kept)

        assert len(anyio.run(run)) == 1  # the new one
        assert list(home.iterdir()) == kept
        assert read_contents(kept[0]) == before
    finally:
        live.send_signal(signal.SIGINT)
        live.communicate(timeout=60)
    assert list(home.iterdir()) == []


def test_a_task_that_is_cancelled_from_outside_waits_for_its_thread():
    """Ctrl-C cancels the main task by asyncio's own means, which no shield of anyio's holds off."""
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        may_end.wait(60)
        ended.append(True)

    async def run():
        task = asyncio.create_task(in_thread(work))
        while not begun.is_set():
            await asyncio.sleep(0)
        for _ in range(3):
            task.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("module", "work"), [(snapshot, "write_commit"), (base, "_normalize_metadata")]
)
def test_a_thread_that_still_writes_ends_before_a_cancelled_pool_is_removed(
    repo, home, monkeypatch, module, work
):
    begun, may_go_on, written = threading.Event(), threading.Event(), threading.Event()

    def write(*_):
        begun.set()
        may_go_on.wait(60)
        [folder] = home.iterdir()
        (folder / "late").mkdir()
        written.set()

    async def run():
        async def hold():
            async with WorktreePool(repo, 1):
                await anyio.sleep_forever()

        task = asyncio.create_task(hold())
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        gone, _ = await asyncio.wait({task}, timeout=0.2)  # long enough if nothing waited
        may_go_on.set()
        assert not gone
        with pytest.raises(asyncio.CancelledError):
            await task
        assert written.is_set()

    monkeypatch.setattr(module, work, write)
    asyncio.run(run())
    assert list(home.iterdir()) == []


def test_a_pool_that_is_cancelled_from_outside_leaves_nothing_at_any_point(repo, home):
    async def run(steps):
        async def hold():
            async with WorktreePool(repo, 2) as pool, pool.acquire():
                await anyio.sleep_forever()

        task = asyncio.create_task(hold())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for steps in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000):
        asyncio.run(run(steps))
        assert not home.exists() or list(home.iterdir()) == []
