"""Trusted programs without a sandbox: their output, and their end when the caller is cancelled."""

import gc
import os
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from fault_stage_kit import is_gone, wait_until

from fairtrial.sandbox import run_trusted


def run(*command, **more):
    more = {"cwd": Path.cwd(), "env": dict(os.environ), **more}
    return anyio.run(lambda: run_trusted(command, **more))


def test_output_and_end_of_a_program_are_returned():
    code = "import sys; print(sys.stdin.read()); print('no', file=sys.stderr); sys.exit(3)"
    done = run(sys.executable, "-c", code, stdin=b"given")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"given\n", b"no\n")


def test_a_program_that_reads_nothing_breaks_no_pipe():
    assert run("true", stdin=b"x" * 10**6).returncode == 0


def test_more_than_a_pipe_holds_on_both_sides():
    code = "import sys; sys.stderr.write('e' * 10**6); sys.stdout.write('o' * 10**6)"
    done = run(sys.executable, "-c", code)
    assert (len(done.stdout), len(done.stderr)) == (10**6, 10**6)


def test_one_that_is_not_there_is_reported():
    with pytest.raises(FileNotFoundError):
        run("no-such-program")


def test_what_the_program_has_started_goes_with_it(tmp_path):
    told = tmp_path / "pid"

    async def start():
        async with anyio.create_task_group() as tasks:
            command = ["sh", "-c", f"sleep 1000 & echo $! > {told}.new; mv {told}.new {told}; wait"]
            given = {"cwd": tmp_path, "env": dict(os.environ)}
            tasks.start_soon(partial(run_trusted, command, **given))
            while not told.exists():
                await anyio.sleep(0.005)
            tasks.cancel_scope.cancel()

    anyio.run(start)
    wait_until(lambda: is_gone(int(told.read_text())), "what it has started to end")


def test_a_caller_cancelled_at_any_instant_leaves_no_child_and_no_warning(caplog, monkeypatch):
    lost, started = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    gc.collect()  # what others have left is not ours
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    real = anyio.open_process

    async def open_process(*words, **more):
        process = await real(*words, **more)
        started.append(process.pid)
        return process

    monkeypatch.setattr(anyio, "open_process", open_process)

    async def start(seconds):
        with anyio.move_on_after(seconds):
            await run_trusted(["sleep", "1000"], cwd=Path.cwd(), env=dict(os.environ))

    for step in range(40):
        anyio.run(start, step * 0.0001)
    gc.collect()
    assert lost == []
    assert caplog.records == []
    assert started
    for pid in started:
        with pytest.raises(ChildProcessError):  # it was waited for
            os.waitpid(pid, os.WNOHANG)
