"""A worker process, from the outside: its pipes, what it is at, how it ended."""

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
from fairtrial.study.runner.executors.frames import FrameBuffer, dump_kept, make_request
from fairtrial.study.runner.executors.output_capture import Kept
from fairtrial.study.runner.executors.pipes import Pipe, Pipes

CHUNK = 64 * 1024
"""As much as a pipe holds: all that was written before a moment is read after it in one go."""
START_LIMIT_S = 120.0
LOST = -1
"""The status of a process that somebody else has waited for."""


class Child:
    """One worker process.

    The parent keeps the end that requests come out of, as well: what is left in the pipe when the
    worker has died tells whether it had taken its assignment.
    """

    def __init__(self, pid: int, pipes: Pipes, process: subprocess.Popen[bytes] | None) -> None:
        self.pid, self.pipes, self._process = pid, pipes, process
        self.stdout, self.stderr = Kept(), Kept()
        self.frames = FrameBuffer()
        self.unsent = bytearray()
        self.assignment: Assignment | None = None
        self.began = 0.0
        self.deadline = math.inf
        self.is_ready = self.is_pushing = self.has_served = self.is_closed = False
        self.cut_off_at: float | None = None
        self._status: int | None = None
        self._request_size = 0
        self._notes = 0

    # -- assignments --

    def assign(self, assignment: Assignment, content: bytes, now: float) -> None:
        """Put an assignment on its way; its time begins when the worker is there to take it."""
        request = make_request(content)
        self._request_size = len(request)
        self._notes = 0
        self.assignment = assignment
        self.unsent += request
        if self.is_ready:
            self.begin(now)
        else:
            self.deadline = now + START_LIMIT_S

    def begin(self, now: float) -> None:
        """The worker is at its assignment from now on."""
        limit_s = None if self.assignment is None else self.assignment.timeout_s
        self.began = now
        self.deadline = math.inf if limit_s is None else now + limit_s

    def acknowledge(self) -> None:
        """Put it on its way that the next of the assignment's notes is durable."""
        self._notes += 1
        self.unsent += make_request(dump_kept(self._notes))

    def release(self) -> Assignment:
        """The worker is done with its assignment."""
        assignment = self.assignment
        assert assignment is not None
        self.assignment, self.deadline = None, math.inf
        return assignment

    def push(self) -> bool:
        """Send what the pipe takes; whether that was all."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                sent = os.write(self.pipes.request, self.unsent)
                del self.unsent[:sent]
        return not self.unsent

    def has_taken(self) -> bool:
        """Whether the worker, which has died, had got as far as reading its assignment."""
        unread = array.array("i", [0])
        fcntl.ioctl(self.pipes.request_out, termios.FIONREAD, unread)
        return self.is_ready and unread[0] + len(self.unsent) < self._request_size

    # -- pipes --

    def read_reply(self) -> bytes | None:
        """What has come up; empty at the end, None if there is nothing right now."""
        try:
            return os.read(self.pipes.reply, CHUNK)
        except BlockingIOError:
            return None

    def read_output(self, pipe: Pipe) -> bool:
        """Keep some of what was printed; whether there may be more, ever."""
        is_stdout = pipe is Pipe.STDOUT
        try:
            data = os.read(self.pipes.stdout if is_stdout else self.pipes.stderr, CHUNK)
        except BlockingIOError:
            return True
        (self.stdout if is_stdout else self.stderr).add(data)
        return bool(data)

    def drain(self) -> None:
        """Read what was printed up to now."""
        for number, kept in ((self.pipes.stdout, self.stdout), (self.pipes.stderr, self.stderr)):
            left = CHUNK
            with contextlib.suppress(BlockingIOError):
                while left > 0 and (data := os.read(number, left)):
                    kept.add(data)
                    left -= len(data)

    def close(self) -> None:
        """Let go of all pipes."""
        self.is_closed = True
        self.pipes.close()

    # -- life and death --

    def kill(self) -> None:
        """End the worker and all that it has started, at once."""
        if self._status is None:  # else its number may be somebody else's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)
            self.kill_group()

    def kill_group(self) -> None:
        """End what the worker has started; once it has died, to be called at once or not at all."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """How it ended, as `waitpid` tells; None while it lives."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, LOST
            if pid:
                self._status = status
                if status != LOST:
                    self.kill_group()
                if self._process is not None:
                    self._process.returncode = 0  # it is waited for; else this would warn
        return self._status


def tell_death(status: int) -> tuple[FailureKind, str]:
    """What a worker's status says of the run that it was at."""
    if status == LOST:
        return FailureKind.KILLED, "the worker process is gone, and nobody knows how it ended"
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
