"""The host lock: shared and exclusive leases, across processes and users, without starvation."""

import contextlib
import contextvars
import fcntl
import gc
import math
import os
import random
import signal
import stat
import sys
import tempfile
import threading
import time
import traceback
from itertools import pairwise
from pathlib import Path

import anyio
import anyio._backends._asyncio  # a child that changed its user may not be able to read it
import pytest
from hypothesis import given, settings, strategies as st

from fairtrial.core import LabError
from fairtrial.core.events import HostWaitEnded, HostWaitStarted
from fairtrial.sandbox import HostLock, host_lock, shared_files
from fairtrial.sandbox.host_lock import BELL, GATE, MAIN

LONG_S = 60.0
"""After this time a test counts as hung."""
HOLDER = """
import sys, anyio
from pathlib import Path
from fairtrial.sandbox.host_lock import HostLock

async def hold(side, folder, **options):
    async with getattr(HostLock(Path(folder)), side)(**options):
        print("held", flush=True)
        {meanwhile}
        await anyio.sleep_forever()

{before}
anyio.run(lambda: hold(sys.argv[1], sys.argv[2]{options}))
"""
ROUNDS = """
import random, sys, time, anyio
from pathlib import Path
from fairtrial.sandbox.host_lock import HostLock

folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

async def main():
    print("here", flush=True)
    rng, lock = random.Random(seed), HostLock(folder)
    async def one():
        for _ in range(rounds):
            side = "exclusive" if rng.random() < 0.3 else "shared"
            async with getattr(lock, side)():
                began = time.monotonic_ns()
                await anyio.sleep(rng.random() * 0.003)
                print(side, began, time.monotonic_ns(), flush=True)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)

anyio.run(main)
"""
STREAM = """
import sys, time, anyio
from pathlib import Path
from fairtrial.sandbox.host_lock import HostLock

async def main():
    lock = HostLock(Path(sys.argv[1]))
    async def one():
        while True:
            async with lock.shared():
                print(time.monotonic_ns(), flush=True)
                await anyio.sleep(0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(one)

anyio.run(main)
"""


class Child:
    """A forked process that runs some code, with all imports done.

    stdout: what it prints
    """

    def __init__(self, code, *arguments):
        read, write = os.pipe()
        self.pid, self._is_over = os.fork(), False
        if self.pid == 0:
            try:
                os.dup2(write, 1)
                sys.stdout = os.fdopen(1, "w")
                sys.argv = ["", *map(str, arguments)]
                # Nothing of the task that we may be in, or of its leases.
                contextvars.Context().run(exec, code, {})
                os._exit(0)
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(1)
        os.close(write)
        self.stdout = os.fdopen(read)

    def kill(self):
        if not self._is_over:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        if not self._is_over:
            os.waitpid(self.pid, 0)
            self._is_over = True


@contextlib.contextmanager
def started(code, *arguments):
    child = Child(code, *arguments)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def holder(folder, side, *, before="", meanwhile="", options=""):
    code = HOLDER.format(before=before, meanwhile=meanwhile, options=options)
    return started(code, side, folder)


@contextlib.contextmanager
def holding(folder, side, **how):
    with holder(folder, side, **how) as child:
        assert child.stdout.readline() == "held\n"
        yield child


def run(main):
    async def bounded():
        with anyio.fail_after(LONG_S):
            await main()

    anyio.run(bounded)


def wait_for_s(lease):
    """Return how long a timing process has waited for a shared lease; None if none waits."""
    wait = lease._read_wait()
    return None if wait is None else wait[0]


async def until(condition):
    while not condition():
        await anyio.sleep(0.001)


def is_free(folder):
    """Return whether an exclusive lease can be taken at once."""
    return all(_can_lock(folder / name) for name in (GATE, MAIN))


def _can_lock(path):
    with shared_files.open_shared_file(path) as handle:
        return handle.lock(fcntl.LOCK_EX)


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_shared_and_exclusive_leases_of_many_processes_never_overlap(tmp_path):
    with contextlib.ExitStack() as stack:
        with shared_files.open_shared_file(tmp_path / GATE) as gate:  # until all of them are there
            assert gate.lock(fcntl.LOCK_EX)
            codes = [started(ROUNDS, tmp_path, seed, 25) for seed in range(4)]
            children = [stack.enter_context(code) for code in codes]
            assert [child.stdout.readline() for child in children] == ["here\n"] * 4
        outputs = [child.stdout.read() for child in children]
    leases = sorted(
        (int(began), int(ended), side, number)
        for number, output in enumerate(outputs)
        for side, began, ended in map(str.split, output.splitlines())
    )
    assert len(leases) == 4 * 2 * 25
    assert any(a[1] > b[0] for a, b in pairwise(leases)), "nothing to see"
    shared_end = exclusive_end = 0
    for began, ended, side, _ in leases:
        assert began >= exclusive_end
        if side == "exclusive":
            assert began >= shared_end
            exclusive_end = ended
        else:
            shared_end = max(shared_end, ended)


def test_a_stream_of_shared_leases_does_not_starve_the_exclusive_side(tmp_path, monkeypatch):
    spans, closed, begun = [], [], []
    write_note = host_lock._write_note  # right after the gate is closed
    monkeypatch.setattr(
        host_lock,
        "_write_note",
        lambda *told: closed.append(time.monotonic_ns()) or write_note(*told),
    )

    async def main():
        lock = HostLock(tmp_path)
        for _ in range(8):
            async with lock.exclusive():
                spans.append((closed[-1], time.monotonic_ns()))
            for child in children:
                see_it_begin_again(child, time.monotonic_ns())

    def see_it_begin_again(child, since_ns):
        begun.append(int(child.stdout.readline()))
        while begun[-1] < since_ns:
            begun.append(int(child.stdout.readline()))

    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(started(STREAM, tmp_path)) for _ in range(4)]
        for child in children:
            child.stdout.readline()
        run(main)
        for child in children:
            child.kill()
        for child in children:
            begun += [int(line) for line in child.stdout if line.endswith("\n")]
    for shut, granted in spans:
        # Eight ask again and again; those may tell of it then who had come in before.
        assert sum(shut < moment < granted for moment in begun) <= 8
    assert sum(spans[0][0] < moment < spans[-1][1] for moment in begun) > 8, "there was no stream"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3)), max_size=12))
def test_any_order_of_requests_is_served_and_never_both_sides_at_once(requests):
    inside = []

    async def one(lock, is_exclusive, delay, stay):
        for _ in range(delay):
            await anyio.sleep(0)
        async with lock.exclusive() if is_exclusive else lock.shared():
            inside.append(is_exclusive)
            for _ in range(stay):
                assert inside == [True] or not any(inside)
                await anyio.sleep(0)
            inside.remove(is_exclusive)

    async def main():
        lock = HostLock(Path(folder))
        async with anyio.create_task_group() as tasks:
            for request in requests:
                tasks.start_soon(one, lock, *request)

    with tempfile.TemporaryDirectory() as folder:
        run(main)
        assert is_free(Path(folder))


def test_cancelling_at_any_instant_loses_nothing(tmp_path):
    rng = random.Random(7)
    inside = []

    async def one(lock, is_exclusive, patience_s):
        with anyio.move_on_after(patience_s):
            async with lock.exclusive() if is_exclusive else lock.shared():
                inside.append(is_exclusive)
                assert inside == [True] or not any(inside)
                try:
                    await anyio.sleep(rng.random() * 0.004)
                finally:
                    inside.remove(is_exclusive)

    async def main():
        lock = HostLock(tmp_path)
        gc.collect()  # what others have left
        before = open_descriptors()
        for _ in range(25):
            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(one, lock, rng.random() < 0.4, rng.random() * 0.012)
        assert open_descriptors() <= before
        assert not inside
        async with lock.exclusive():
            pass

    threads = threading.active_count()
    run(main)
    assert threading.active_count() <= threads
    assert is_free(tmp_path)


@pytest.mark.parametrize("side", ["shared", "exclusive"])
def test_the_lock_of_a_killed_process_is_free(tmp_path, side, monkeypatch):
    monkeypatch.setattr(
        host_lock, "MAX_FIFO_WAIT_S", math.inf
    )  # whoever waits is woken, and doesn't look

    async def main():
        with holding(tmp_path, side) as child:

            async def kill():
                await anyio.sleep(0.05)
                child.kill()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill)
                async with HostLock(tmp_path).exclusive() as lease:
                    assert lease.waited_s > 0.04

    run(main)


def test_those_who_wait_for_a_timing_do_nothing_meanwhile(tmp_path, monkeypatch):
    tries = []
    lock_file = shared_files.SharedFile.lock
    monkeypatch.setattr(
        shared_files.SharedFile,
        "lock",
        lambda self, how: tries.append(self.path) or lock_file(self, how),
    )

    async def main():
        lock = HostLock(tmp_path)

        async def wait():
            async with lock.shared() as lease:
                assert lease.waited_s > 0.1

        async with anyio.create_task_group() as tasks, lock.exclusive():
            began_s = time.monotonic()
            for _ in range(5):
                tasks.start_soon(wait)
            await until(lambda: len(tries) >= 2 + 5)
            tries.clear()
            await anyio.sleep(0.2)
            seldom = int(
                (time.monotonic() - began_s) / host_lock.MAX_FIFO_WAIT_S
            )  # 0, unless we were late
            assert len(tries) <= 5 * seldom

    run(main)
    assert is_free(tmp_path)


def test_holders_learn_across_processes_that_they_are_waited_for(tmp_path):
    async def main():
        async with HostLock(tmp_path).shared() as lease:
            assert wait_for_s(lease) is None
            with holder(tmp_path, "exclusive", options=", drain_max_s=float('inf')") as patient:
                await until(lambda: wait_for_s(lease) is not None)
                first_s = wait_for_s(lease)
                await until(lambda: wait_for_s(lease) > first_s)
                assert not lease.is_overdue()
                patient.kill()
                await until(lambda: wait_for_s(lease) is None)
            with holder(tmp_path, "exclusive", options=", drain_max_s=0.1") as hasty:
                await until(lease.is_overdue)
                assert wait_for_s(lease) >= 0.1
                hasty.kill()
                await until(lambda: not lease.is_overdue())
        async with HostLock(tmp_path).exclusive() as lease:
            assert wait_for_s(lease) is None
            assert not lease.is_overdue()

    run(main)


def test_an_unreadable_note_hurries_no_process(tmp_path):
    async def main():
        lock = HostLock(tmp_path)
        async with lock.shared() as lease:
            for note in (b"", b"x y", b"1", b"nan nan", b"\xff" * 64):
                (tmp_path / GATE).write_bytes(note)
                with shared_files.open_shared_fifo(tmp_path / BELL, os.O_RDWR):
                    assert wait_for_s(lease) >= 0.0
                    assert not lease.is_overdue()

    run(main)


def test_a_holder_that_asks_again_is_let_in_even_past_a_closed_gate(tmp_path):
    """Otherwise each would wait for the other."""

    async def main():
        lock = HostLock(tmp_path)

        async def time_something():
            async with lock.exclusive():
                assert inner_ended

        inner_ended = []
        async with anyio.create_task_group() as tasks, lock.shared() as outer:
            tasks.start_soon(time_something)
            await until(lambda: wait_for_s(outer) is not None)
            async with lock.shared() as inner:
                assert wait_for_s(inner) is not None
                with pytest.raises(RuntimeError, match="given back"):
                    await lock.exclusive().__aenter__()
            inner_ended.append(True)
        async with lock.exclusive(), lock.shared() as inner:
            assert inner.is_exclusive
            assert wait_for_s(inner) is None

    run(main)
    assert is_free(tmp_path)


def test_the_inner_of_two_leases_may_stay_longer(tmp_path):
    async def main():
        lock = HostLock(tmp_path)
        outer, inner = lock.shared(), lock.shared()
        await outer.__aenter__()
        await inner.__aenter__()
        await outer.__aexit__(None, None, None)
        assert not is_free(tmp_path)
        await inner.__aexit__(None, None, None)
        assert is_free(tmp_path)

    run(main)


def test_tasks_that_a_holder_starts_have_to_wait_like_others(tmp_path):
    async def main():
        lock = HostLock(tmp_path)
        order = []

        async def work():
            async with lock.shared():
                order.append("shared")

        async with anyio.create_task_group() as tasks, lock.exclusive():
            tasks.start_soon(work)
            await anyio.sleep(0.02)
            order.append("exclusive")
        assert order == ["exclusive", "shared"]

    run(main)


def test_two_event_loops_of_one_process_keep_each_other_out(tmp_path):
    lock = HostLock(tmp_path)
    inside, faults = [], []

    async def main():
        for number in range(60):
            is_exclusive = number % 3 == 0
            async with lock.exclusive() if is_exclusive else lock.shared():
                inside.append(is_exclusive)
                await anyio.sleep(0)
                if any(inside) and len(inside) > 1:
                    faults.append(list(inside))
                inside.remove(is_exclusive)

    threads = [threading.Thread(target=run, args=(main,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert is_free(tmp_path)


FORK = """
import os, signal
def leave_child():
    child = os.fork()
    if child == 0:
        signal.pause()
    print(child, flush=True)
"""
SPAWN = """
import subprocess
def leave_child():
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    print(child.pid, flush=True)
"""


@pytest.mark.parametrize("way", [FORK, SPAWN], ids=["forked", "spawned"])
def test_children_of_a_holder_inherit_nothing(tmp_path, way):
    async def main():
        with holding(tmp_path, "exclusive", before=way, meanwhile="leave_child()") as parent:
            child = int(parent.stdout.readline())
            try:
                parent.kill()
                parent.wait()
                async with HostLock(tmp_path).exclusive():
                    os.kill(child, 0)  # it is still there, and holds nothing
            finally:
                os.kill(child, signal.SIGKILL)

    run(main)


def test_a_forked_child_that_unwinds_leaves_its_parents_lock_alone(tmp_path):
    with shared_files.open_shared_file(tmp_path / MAIN) as handle:
        assert handle.lock(fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            try:
                stranger = os.open(os.devnull, os.O_RDONLY)  # it gets the number that is free now
                handle.__exit__()
                os.fstat(stranger)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert not _can_lock(tmp_path / MAIN)
    assert _can_lock(tmp_path / MAIN)


@pytest.fixture
def public_folder():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def as_nobody(action):
    """Return whether an ordinary user's process completes `action`."""
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            action()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("who_is_first", ["root", "nobody"])
def test_other_users_share_the_lock_whoever_came_first(public_folder, who_is_first):
    async def take():
        lock = HostLock(public_folder)
        async with lock.exclusive():
            pass
        async with lock.shared():
            pass

    before = os.umask(0o077)
    try:
        if who_is_first == "root":
            run(take)
        assert as_nobody(lambda: run(take))
        run(take)
    finally:
        os.umask(before)
    owners = {(public_folder / name).stat().st_uid for name in (GATE, MAIN, BELL)}
    assert owners == {0 if who_is_first == "root" else 65534}

    async def conflict():
        async with HostLock(public_folder).shared():
            assert as_nobody(lambda: exit_unless(not _can_lock(public_folder / MAIN)))

    run(conflict)


def exit_unless(fact):
    if not fact:
        raise AssertionError


@pytest.mark.parametrize("name", [GATE, MAIN, BELL])
@pytest.mark.parametrize("trap", ["link", "mode", "folder", "other kind"])
def test_a_lock_path_that_is_no_regular_file_is_refused_and_left_unchanged(tmp_path, name, trap):
    precious = tmp_path / "precious"
    precious.write_text("untouched")
    precious.chmod(0o644)
    path = tmp_path / name
    if trap == "link":
        precious.chmod(0o666)
        path.symlink_to(precious)
    elif trap == "mode":
        os.link(precious, path)
    elif trap == "folder":
        path.mkdir()
    elif name == BELL:
        path.touch()
        path.chmod(0o666)
    else:
        os.mkfifo(path)
        path.chmod(0o666)

    async def main():
        async with HostLock(tmp_path).exclusive():
            pass

    with pytest.raises(LabError, match="have its owner remove it"):
        run(main)
    assert precious.read_text() == "untouched"
    assert stat.S_IMODE(precious.stat().st_mode) == (0o666 if trap == "link" else 0o644)


def test_a_folder_that_is_not_there_is_reported(tmp_path):
    async def main():
        async with HostLock(tmp_path / "missing").shared():
            pass

    with pytest.raises(LabError, match=r"missing, and they can't be made there: No such file"):
        run(main)


def test_files_that_were_cleaned_away_are_made_anew_by_those_who_wait(tmp_path):
    async def main():
        lock = HostLock(tmp_path)

        async def work():
            async with lock.shared():
                working.set()
                await anyio.sleep_forever()

        working = anyio.Event()
        async with anyio.create_task_group() as tasks:
            async with lock.exclusive():
                tasks.start_soon(work)
                await anyio.sleep(0.01)
                for name in (GATE, MAIN, BELL):
                    (tmp_path / name).unlink()
            await working.wait()
            assert not _can_lock(tmp_path / MAIN)
            tasks.cancel_scope.cancel()

    run(main)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((GATE, MAIN, BELL))


def test_files_in_use_stay_young_enough_not_to_be_cleaned_away(tmp_path):
    async def main():
        lock = HostLock(tmp_path)
        async with lock.shared():
            pass
        for name in (GATE, MAIN, BELL):
            os.utime(tmp_path / name, (0, 0))
        async with lock.shared():
            pass

    run(main)
    for name in (GATE, MAIN, BELL):
        assert (tmp_path / name).stat().st_mtime > 0


# -- whom we wait for --


def test_another_process_that_times_is_named_and_this_one_is_not(tmp_path):
    lock = HostLock(tmp_path)
    assert lock.find_timing_process() is None
    with holding(tmp_path, "shared"):
        assert lock.find_timing_process() is None
    with holding(tmp_path, "exclusive") as child:
        # A child of ours is one of us; seen from elsewhere it is somebody else.
        assert lock.find_timing_process() is None
        assert lock.find_timing_process(child.pid) is None
        assert lock.find_timing_process(own_pid=1 << 30) == child.pid

    async def main():
        async with lock.exclusive():
            assert lock.find_timing_process() is None

    run(main)


def test_a_note_without_a_process_is_one_of_an_older_version(tmp_path):
    with holding(tmp_path, "exclusive"):
        os.truncate(tmp_path / GATE, host_lock.NOTE_BYTES)
        assert HostLock(tmp_path).find_timing_process(own_pid=1 << 30) is None


def test_a_long_wait_is_reported_with_its_cause_and_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(host_lock, "NOTIFY_AFTER_S", 0.0)
    monkeypatch.setattr(host_lock, "MAX_FIFO_WAIT_S", 0.001)
    monkeypatch.setattr(host_lock, "_is_descendant", lambda pid, ours: pid == ours)
    said = []
    lock = HostLock(tmp_path, said.append)

    async def main():
        with holding(tmp_path, "exclusive") as child:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):  # each waits, and one tells
                    tasks.start_soon(enter)
                await until(lambda: said)
                child.kill()
        assert said == [HostWaitStarted(child.pid), HostWaitEnded()]

    async def enter():
        async with lock.shared():
            pass

    run(main)


def test_a_wait_for_timing_in_the_same_process_is_not_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(host_lock, "NOTIFY_AFTER_S", 0.0)
    said, looked = [], []
    lock = HostLock(tmp_path, said.append)
    monkeypatch.setattr(
        lock, "find_timing_process", lambda: looked.append(1) or HostLock.find_timing_process(lock)
    )

    async def main():
        async with anyio.create_task_group() as tasks, lock.exclusive():
            tasks.start_soon(enter)
            await until(lambda: looked)
        assert said == []

    async def enter():
        async with lock.shared():
            pass

    run(main)
