"""Start a worker process by fork or by spawn."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping

from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.frames import make_request
from fairtrial.study.runner.executors.pickling import PickledWork
from fairtrial.study.runner.executors.pipes import Pipes
from fairtrial.study.runner.executors.worker_main import work_forked
from fairtrial.study.runner.executors.worker_process import WorkerProcess

_BOOT = """
import json, os, sys
path, copies = json.loads(sys.argv.pop(1))
library = os.path.dirname(os.__file__)
first = (library, os.path.join(library, "lib-dynload"))
sys.path[:] = sorted(path, key=lambda folder: folder not in first)
import fairtrial.study.runner.run_attempt
from fairtrial.study.runner.executors.worker_main import main
sys.path[:] = path
main(sys.argv[1:], copies)
"""
"""The standard library comes first while fairtrial is imported: beside a study there may be a file
with the name of one of its modules, such as `statistics.py`."""


def fork_worker(work: Work, parent_files: Iterable[int]) -> WorkerProcess:
    """Return a worker that is a copy of this process, without the file numbers `parent_files`.

    Call it with signals blocked: a signal handler of the parent must not run in the worker.
    """
    pipes = Pipes()
    parent = os.getpid()
    for stream in (sys.stdout, sys.stderr):  # else the worker might print what they buffer
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    try:
        with warnings.catch_warnings():
            # Only our own code runs in the child, and it takes no lock of another thread.
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
            (*pipes.parents(), *parent_files),
        )
    pipes.close(pipes.reply_in, pipes.stdout_in, pipes.stderr_in)
    return WorkerProcess(pid, pipes, None)


@contextlib.contextmanager
def blocked_signals() -> Iterator[None]:
    """Block all signals; a worker that is started meanwhile unblocks its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def spawn_worker(
    pickled: PickledWork, environment: Mapping[str, str] | None = None, folder: str | None = None
) -> WorkerProcess:
    """Return a worker in a new interpreter.

    environment, folder: its environment and working directory; by default those of this process
    """
    pipes = Pipes()
    optimization = ["-" + "O" * sys.flags.optimize] if sys.flags.optimize else []
    places = json.dumps((pickled.path, pickled.copies))
    numbers = (os.getpid(), pipes.request_out, pipes.reply_in)
    try:
        process = subprocess.Popen(
            [sys.executable, *optimization, "-c", _BOOT, places, *map(str, numbers)],
            stdin=subprocess.DEVNULL,
            stdout=pipes.stdout_in,
            stderr=pipes.stderr_in,
            pass_fds=(pipes.request_out, pipes.reply_in),
            start_new_session=True,
            env=environment,
            cwd=folder,
        )
    except OSError:
        pipes.close()
        raise
    pipes.close(pipes.reply_in, pipes.stdout_in, pipes.stderr_in)
    worker = WorkerProcess(process.pid, pipes, process)
    worker.unsent += make_request(pickled.work)
    return worker
