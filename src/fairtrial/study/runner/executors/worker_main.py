"""A worker process, from the inside: takes one assignment after the other until it is ended.

It leaves by `os._exit` only: what it was forked with (the ledger's connection, open files, exit
handlers) is its parent's, and none of its business.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, TextIO

from fairtrial.study.model.runs import Assignment, FailureKind, Outcome
from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.event_limit import Emitter
from fairtrial.study.runner.executors.frames import (
    DONE,
    EVENT,
    KEPT,
    MOST_FRAME_BYTES,
    NOTE,
    READY,
    dump_kept,
    dump_outcome,
    load_assignment,
    make_frame,
    split_request,
)
from fairtrial.study.runner.executors.output_capture import is_open
from fairtrial.study.runner.executors.process_state import Surroundings

CHUNK = 64 * 1024
LOOK_S = 0.25
PR_SET_PDEATHSIG = 1
_inherited: list[Any] = []
"""Streams of the parent: if they went away here, what they hold would be printed twice."""


def work_forked(
    work: Work,
    parent: int,
    request: int,
    reply: int,
    stdout: int,
    stderr: int,
    not_ours: Iterable[int],
) -> NoReturn:
    """The life of a forked worker; `not_ours` are the parent's ends of pipes."""
    try:
        os.setsid()
        gc.freeze()  # never look at what is the parent's
        for number in not_ours:
            os.close(number)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, place in ((null, 0), (stdout, 1), (stderr, 2)):
            os.dup2(number, place)
            os.close(number)
        _settle(parent)
        _serve(work, _Channel(request, reply))
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(1)


def main(arguments: list[str]) -> NoReturn:
    """The life of a worker that was started afresh; its first request is the work itself."""
    try:
        parent, request, reply = map(int, arguments)
        _settle(parent)
        channel = _Channel(request, reply)
        _serve(pickle.loads(channel.receive()), channel)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(1)


def _settle(parent: int) -> None:
    """Make this process a worker: it dies with its parent, and prints into its pipes."""
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to deal with
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _inherited.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _open_output(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _open_output(2)  # type: ignore[misc]
    faulthandler.enable(2)
    with suppress(OSError):
        # Where memory runs out, a worker is to go, not the study.
        Path("/proc/self/oom_score_adj").write_text("500")


def _open_output(number: int) -> TextIOWrapper:
    # By line: what was printed before a crash is what one wants to read.
    return open(number, "w", 1, "utf-8", "backslashreplace", closefd=False)


def _die_with(parent: int) -> None:
    """End when the parent does; on Linux, to be exact, when its thread that started us does."""
    try:
        is_set = (
            sys.platform == "linux"
            and ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
        )
    except (OSError, AttributeError):
        is_set = False
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(1)
    if not is_set:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


class _Channel:
    """The worker's ends of its pipes."""

    def __init__(self, request: int, reply: int) -> None:
        self._request, self._reply = request, reply
        self._rest = bytearray()
        self._lock = threading.Lock()

    def receive(self) -> bytes:
        """The next request; without a parent there is none, and the process ends."""
        while (found := split_request(self._rest)) is None:
            data = os.read(self._request, CHUNK)
            if not data:
                os._exit(0)
            self._rest += data
        content, end = found
        del self._rest[:end]
        return content

    def send(self, kind: int, content: bytes = b"") -> None:
        """Tell the parent something; agents may have threads that emit."""
        frame = make_frame(kind, content)
        with self._lock:
            sent = os.write(self._reply, frame)
            while sent < len(frame):
                sent += os.write(self._reply, memoryview(frame)[sent:])


class _Notes:
    """The way of one run's journal entries to the study, and of its word that they are durable.

    One at a time: the next request that comes down after a note is its answer. If there is no
    parent any more, `receive` ends the process.
    """

    def __init__(self, channel: _Channel) -> None:
        self._channel, self._process = channel, os.getpid()
        self._lock = threading.Lock()
        self._count = 0
        self._is_closed = False

    def __call__(self, data: bytes) -> None:
        """Send an entry, and wait until it is durable."""
        if os.getpid() != self._process:
            raise RuntimeError("a run's journal is kept by the process that the run began in")
        with self._lock:
            if self._is_closed:
                raise RuntimeError("a journal entry comes too late: the run is over")
            self._count += 1
            self._channel.send(NOTE, data)
            # An answer that nobody waited for (a signal's handler raised) may come before it.
            while self._channel.receive() != dump_kept(self._count):
                pass

    def close(self) -> None:
        """The run has ended; what is under way is waited for."""
        with self._lock:
            self._is_closed = True


def _next_assignment(channel: _Channel) -> Assignment:
    while (content := channel.receive()).startswith(KEPT):
        pass
    return load_assignment(content)


def _serve(work: Work, channel: _Channel) -> NoReturn:
    process, stdout, stderr = os.getpid(), sys.stdout, sys.stderr
    surroundings = Surroundings(of_worker=True)
    channel.send(READY)
    while True:
        assignment = _next_assignment(channel)
        emitter, notes = Emitter(lambda data: channel.send(EVENT, data)), _Notes(channel)
        outcome = _attempt(work, assignment, emitter, notes)
        if os.getpid() != process:
            os._exit(0)  # an agent forked, and this is not the one that was asked
        notes.close()
        emitter.close()
        surroundings.restore()
        stdout, stderr = _flush(stdout, 1), _flush(stderr, 2)
        sys.stdout, sys.stderr = stdout, stderr
        channel.send(DONE, dump_outcome(assignment, outcome))


def _attempt(work: Work, assignment: Assignment, emitter: Emitter, notes: _Notes) -> Outcome:
    began = time.monotonic()
    try:
        outcome = work.attempt(assignment, emitter, notes)
    except KeyboardInterrupt:  # the agent's own: a real one is ignored here
        took_s = time.monotonic() - began
        return work.fail(assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", took_s)
    if len(outcome.body) > MOST_FRAME_BYTES // 2:
        size, most = len(outcome.body) // 1024**2, MOST_FRAME_BYTES // 2 // 1024**2
        message = f"the result has {size} MB, more than the {most} MB that can be kept"
        return work.fail(assignment, FailureKind.UNWRITABLE, message, outcome.latency_s)
    return outcome


def _flush(stream: TextIO, number: int) -> TextIO:
    """Put what was printed into the pipe; a stream that an agent closed is opened anew."""
    with suppress(OSError, ValueError):
        stream.flush()
    return stream if is_open(stream) else _open_output(number)
