"""A worker process as the study sees it: its pipes, its assignment, its exit status."""

from __future__ import annotations

import array
import contextlib
import fcntl
import math
import os
import signal
import subprocess
import termios

from fairtrial.study.model.runs import Assignment, FailureKind
from fairtrial.study.runner.executors.frames import FrameBuffer, dump_durable, make_request
from fairtrial.study.runner.executors.output_capture import BoundedOutput
from fairtrial.study.runner.executors.pipes import Pipe, Pipes

CHUNK = 64 * 1024
"""The capacity of a pipe: one read returns all that was written before."""
START_LIMIT_S = 120.0
UNKNOWN_EXIT = -1
"""The status of a process that other code has waited for."""


class WorkerProcess:
    """One worker process.

    The study also keeps the reading end of the request pipe: what is left in it when the worker
    has died shows whether the worker had read its assignment.
    """

    def __init__(self, pid: int, pipes: Pipes, process: subprocess.Popen[bytes] | None) -> None:
        self.pid, self.pipes, self._process = pid, pipes, process
        self.stdout, self.stderr = BoundedOutput(), BoundedOutput()
        self.frames = FrameBuffer()
        self.unsent = bytearray()
        self.assignment: Assignment | None = None
        self.began = 0.0
        self.deadline = math.inf
        self.is_ready = self.is_write_pending = self.has_finished_a_run = self.is_closed = False
        self.pipe_closed_at: float | None = None
        self._status: int | None = None
        self._request_size = 0
        self._confirmed_entries = 0

    # -- assignments --

    def assign(self, assignment: Assignment, content: bytes, now: float) -> None:
        """Queue an assignment; its time limit counts from when the worker is ready."""
        request = make_request(content)
        self._request_size = len(request)
        self._confirmed_entries = 0
        self.assignment = assignment
        self.unsent += request
        if self.is_ready:
            self.start_clock(now)
        else:
            self.deadline = now + START_LIMIT_S

    def start_clock(self, now: float) -> None:
        """Start the time limit of the assignment."""
        limit_s = None if self.assignment is None else self.assignment.timeout_s
        self.began = now
        self.deadline = math.inf if limit_s is None else now + limit_s

    def confirm_entry(self) -> None:
        """Queue the confirmation that the next journal entry of the assignment is durable."""
        self._confirmed_entries += 1
        self.unsent += make_request(dump_durable(self._confirmed_entries))

    def release_assignment(self) -> Assignment:
        """Return the assignment and mark the worker as free."""
        assignment = self.assignment
        assert assignment is not None
        self.assignment, self.deadline = None, math.inf
        return assignment

    def write_requests(self) -> bool:
        """Write as much as the pipe takes; returns whether that was everything."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                sent = os.write(self.pipes.request, self.unsent)
                del self.unsent[:sent]
        return not self.unsent

    def has_read_assignment(self) -> bool:
        """Return whether a worker that has died had read its assignment."""
        unread = array.array("i", [0])
        fcntl.ioctl(self.pipes.request_out, termios.FIONREAD, unread)
        return self.is_ready and unread[0] + len(self.unsent) < self._request_size

    # -- pipes --

    def read_reply(self) -> bytes | None:
        """Return what the worker has written; empty at the end, None if there is nothing now."""
        try:
            return os.read(self.pipes.reply, CHUNK)
        except BlockingIOError:
            return None

    def read_output(self, pipe: Pipe) -> bool:
        """Read some of what was printed; returns whether the pipe is still open."""
        is_stdout = pipe is Pipe.STDOUT
        try:
            data = os.read(self.pipes.stdout if is_stdout else self.pipes.stderr, CHUNK)
        except BlockingIOError:
            return True
        (self.stdout if is_stdout else self.stderr).add(data)
        return bool(data)

    def drain(self) -> None:
        """Read what was printed so far."""
        for number, output in ((self.pipes.stdout, self.stdout), (self.pipes.stderr, self.stderr)):
            remaining = CHUNK
            with contextlib.suppress(BlockingIOError):
                while remaining > 0 and (data := os.read(number, remaining)):
                    output.add(data)
                    remaining -= len(data)

    def close(self) -> None:
        """Close all pipes."""
        self.is_closed = True
        self.pipes.close()

    # -- exit --

    def kill(self) -> None:
        """Kill the worker and the processes that it has started."""
        if self._status is None:  # else its pid may have been reused
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
            self.kill_group()

    def kill_group(self) -> None:
        """Kill the processes that the worker has started; not long after it has died."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Return its status as `waitpid` does; None while it runs."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, UNKNOWN_EXIT
            if pid:
                self._status = status
                if status != UNKNOWN_EXIT:
                    self.kill_group()
                if self._process is not None:
                    self._process.returncode = 0  # else Popen would warn that it was not waited for
        return self._status


def describe_exit(status: int) -> tuple[FailureKind, str]:
    """Return the failure kind and message for a run whose worker exited with this status."""
    if status == UNKNOWN_EXIT:
        return FailureKind.KILLED, "the worker process is gone, and how it ended is unknown"
    if os.WIFEXITED(status):
        return FailureKind.EXIT, f"left the process with exit code {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    if number == signal.SIGKILL:
        return (
            FailureKind.KILLED,
            "the worker process was killed from outside (SIGKILL): out of memory, or kill -9",
        )
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return FailureKind.CRASH, f"the process died of {name}"
