"""The program of a worker process: takes one assignment after the other until it is ended.

It exits by `os._exit` only: what it was forked with (the ledger's connection, open files, exit
handlers) belongs to its parent and must not be closed or run here.
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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, TextIO

from fairtrial.study.model.runs import Assignment, FailureKind, Outcome
from fairtrial.study.problems.moved_paths import use_copies
from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.event_limit import LimitedEmitter
from fairtrial.study.runner.executors.frames import (
    DONE,
    DURABLE,
    ENTRY,
    EVENT,
    MAX_FRAME_BYTES,
    READY,
    dump_durable,
    dump_outcome,
    load_assignment,
    make_frame,
    split_request,
)
from fairtrial.study.runner.executors.output_capture import is_open
from fairtrial.study.runner.executors.process_state import ProcessState

CHUNK = 64 * 1024
PARENT_POLL_S = 0.25
PR_SET_PDEATHSIG = 1
_inherited: list[Any] = []
"""Streams of the parent: if they were collected here, what they buffer would be printed twice."""


def work_forked(
    work: Work,
    parent: int,
    request: int,
    reply: int,
    stdout: int,
    stderr: int,
    parent_files: Iterable[int],
) -> NoReturn:
    """Run a forked worker; it closes `parent_files`, the parent's ends of pipes."""
    try:
        os.setsid()
        gc.freeze()  # never collect objects of the parent
        for number in parent_files:
            os.close(number)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((null, 0), (stdout, 1), (stderr, 2)):
            os.dup2(number, target)
            os.close(number)
        _become_worker(parent)
        _serve(work, _Channel(request, reply))
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(1)


def main(arguments: list[str], copies: tuple[str, Sequence[str]]) -> NoReturn:
    """Run a spawned worker; its first request is the pickled work.

    copies: the arguments of `use_copies`
    """
    try:
        use_copies(*copies)
        parent, request, reply = map(int, arguments)
        _become_worker(parent)
        channel = _Channel(request, reply)
        _serve(pickle.loads(channel.receive()), channel)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(1)


def _become_worker(parent: int) -> None:
    """Turn this process into a worker: it dies with its parent and prints into its pipes."""
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _inherited.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _open_output(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _open_output(2)  # type: ignore[misc]
    faulthandler.disable()  # a library, such as Ray, may have put its handlers over those
    faulthandler.enable(2)
    with suppress(OSError):
        # If memory runs out, the kernel should kill a worker, not the study.
        Path("/proc/self/oom_score_adj").write_text("500")


def _open_output(number: int) -> TextIOWrapper:
    # Line buffered, so that what was printed before a crash isn't lost.
    return open(number, "w", 1, "utf-8", "backslashreplace", closefd=False)


def _die_with(parent: int) -> None:
    """Exit when the parent does; on Linux, when the thread of it that started this process does."""
    try:
        is_set = (
            sys.platform == "linux"
            and ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
        )
    except (OSError, AttributeError):
        is_set = False
    if os.getppid() != parent:  # it died before prctl was called
        os._exit(1)
    if not is_set:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(1)


class _Channel:
    """The worker's ends of its pipes."""

    def __init__(self, request: int, reply: int) -> None:
        self._request, self._reply = request, reply
        self._rest = bytearray()
        self._lock = threading.Lock()

    def receive(self) -> bytes:
        """Return the next request; exits the process if the parent is gone."""
        while (request := split_request(self._rest)) is None:
            data = os.read(self._request, CHUNK)
            if not data:
                os._exit(0)
            self._rest += data
        content, end = request
        del self._rest[:end]
        return content

    def send(self, kind: int, content: bytes = b"") -> None:
        """Send a frame to the parent; locked, since threads of an agent may emit events."""
        frame = make_frame(kind, content)
        with self._lock:
            sent = os.write(self._reply, frame)
            while sent < len(frame):
                sent += os.write(self._reply, memoryview(frame)[sent:])


class _JournalSender:
    """Sends the journal entries of one run to the study and waits until they are durable.

    One at a time: the request that follows an entry confirms it. If the parent is gone, `receive`
    exits the process.
    """

    def __init__(self, channel: _Channel) -> None:
        self._channel, self._process = channel, os.getpid()
        self._lock = threading.Lock()
        self._count = 0
        self._is_closed = False

    def __call__(self, data: bytes) -> None:
        """Send an entry and wait until it is durable; RuntimeError if the run is over."""
        if os.getpid() != self._process:
            raise RuntimeError("a run's journal is kept by the process that the run began in")
        with self._lock:
            if self._is_closed:
                raise RuntimeError("a journal entry comes too late: the run is over")
            self._count += 1
            self._channel.send(ENTRY, data)
            # The answer to an earlier entry may come first, if a signal handler raised meanwhile.
            while self._channel.receive() != dump_durable(self._count):
                pass

    def close(self) -> None:
        """Refuse further entries; waits for one that is being sent."""
        with self._lock:
            self._is_closed = True


def _next_assignment(channel: _Channel) -> Assignment:
    while (content := channel.receive()).startswith(DURABLE):
        pass
    return load_assignment(content)


def _serve(work: Work, channel: _Channel) -> NoReturn:
    """Run assignments forever."""
    process, stdout, stderr = os.getpid(), sys.stdout, sys.stderr
    state = ProcessState(of_worker=True)
    channel.send(READY)
    while True:
        assignment = _next_assignment(channel)
        emitter, journal = (
            LimitedEmitter(lambda data: channel.send(EVENT, data)),
            _JournalSender(channel),
        )
        outcome = _attempt(work, assignment, emitter, journal)
        if os.getpid() != process:
            os._exit(0)  # this is a child that the agent has forked
        journal.close()
        emitter.close()
        state.restore()
        stdout, stderr = _flush(stdout, 1), _flush(stderr, 2)
        sys.stdout, sys.stderr = stdout, stderr
        channel.send(DONE, dump_outcome(assignment, outcome))


def _attempt(
    work: Work, assignment: Assignment, emitter: LimitedEmitter, journal: _JournalSender
) -> Outcome:
    began = time.monotonic()
    try:
        outcome = work.attempt(assignment, emitter, journal)
    except KeyboardInterrupt:  # raised by the agent: the signal is ignored here
        took_s = time.monotonic() - began
        return work.fail(assignment, FailureKind.EXCEPTION, "KeyboardInterrupt", took_s)
    if len(outcome.body) > MAX_FRAME_BYTES // 2:
        size, limit = len(outcome.body) // 1024**2, MAX_FRAME_BYTES // 2 // 1024**2
        message = f"the result has {size} MB, more than the {limit} MB that can be kept"
        return work.fail(assignment, FailureKind.UNWRITABLE, message, outcome.latency_s)
    return outcome


def _flush(stream: TextIO, number: int) -> TextIO:
    """Flush a stream and return it; open a new one if the agent has closed it."""
    with suppress(OSError, ValueError):
        stream.flush()
    return stream if is_open(stream) else _open_output(number)
