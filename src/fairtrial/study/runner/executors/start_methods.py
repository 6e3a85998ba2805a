"""How a worker process comes into being: forked, or started afresh."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator

from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.frames import make_request
from fairtrial.study.runner.executors.pickling import Luggage
from fairtrial.study.runner.executors.pipes import Pipes
from fairtrial.study.runner.executors.worker_main import work_forked
from fairtrial.study.runner.executors.worker_process import Child

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from fairtrial.study.runner.executors.worker_main import main; main(sys.argv[1:])"
)


def fork_child(work: Work, not_theirs: Iterable[int]) -> Child:
    """A worker that is a copy of this process; `not_theirs` are files that it must not hold.

    To be called with signals held: a handler of the parent's must not run in the worker.
    """
    pipes = Pipes()
    parent = os.getpid()
    for stream in (sys.stdout, sys.stderr):  # or the worker might print what is left in them
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    try:
        with warnings.catch_warnings():
            # It is our own code that runs in the child, and it takes no lock of another thread's.
            warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)
            pid = os.fork()
    except OSError:
        pipes.close()
        raise
    if not pid:
        work_forked(
            work,
            parent,
            pipes.request_out,
            pipes.reply_in,
            pipes.stdout_in,
            pipes.stderr_in,
            (*pipes.parents(), *not_theirs),
        )
    pipes.close(pipes.reply_in, pipes.stdout_in, pipes.stderr_in)
    return Child(pid, pipes, None)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """No signal is handled meanwhile; a worker that is started meanwhile sees to its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def spawn_child(luggage: Luggage) -> Child:
    """A worker that starts afresh."""
    pipes = Pipes()
    optimised = ["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []
    path = json.dumps(luggage.path, default=str)
    numbers = (os.getpid(), pipes.request_out, pipes.reply_in)
    try:
        process = subprocess.Popen(
            [sys.executable, *optimised, "-c", _BOOT, path, *map(str, numbers)],
            stdin=subprocess.DEVNULL,
            stdout=pipes.stdout_in,
            stderr=pipes.stderr_in,
            pass_fds=(pipes.request_out, pipes.reply_in),
            start_new_session=True,
        )
    except OSError:
        pipes.close()
        raise
    pipes.close(pipes.reply_in, pipes.stdout_in, pipes.stderr_in)
    child = Child(process.pid, pipes, process)
    child.unsent += make_request(luggage.work)
    return child
