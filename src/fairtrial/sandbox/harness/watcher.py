"""Enforcement of a command's limits by polling, and ending of its process tree."""

from __future__ import annotations

import os
import resource
import select
import time

from . import kernel

TYPE_CHECKING = False  # typing takes longer to import than many commands to run
if TYPE_CHECKING:
    import signal
    from typing import Any, Mapping, Sequence

    from . import processes
else:
    import _signal as signal  # `signal` adds enum only, which is slow to import, too

    if kernel.IS_LINUX:
        from . import processes
    else:
        from . import process_list as processes

POLL_S = 0.02
MAX_WALL_FACTOR = 4.0
"""A command's wall time may be this many times its time limit if it has to wait for cores."""
_COST_FACTOR = 20
"""The pause between two checks is at least this many times as long as a check."""
_END_TIMEOUT_S = 10.0
_MB = 1 << 20


class CommandWatch:
    """Watches one command, from its start to the end of its last process.

    main: the command's first process
    limits, is_first, private: see `init.supervise`
    used_before_s: CPU time that the control group counted beside this process before the command
    """

    def __init__(
        self,
        main: int,
        limits: Mapping[str, Any],
        is_first: bool,
        private: Sequence[str],
        used_before_s: float = 0.0,
    ) -> None:
        self._main, self._limits, self._is_first = main, limits, is_first
        self._private, self._used_before_s = private, used_before_s
        self._pause_s = limits.get("poll_s", POLL_S)
        self._core_wait = processes.CoreWait()
        self._list_tree = processes.list_others if is_first else processes.list_descendants
        self._began = time.monotonic()
        self._ended = 0.0
        self._peak_bytes = 0
        self._exceeded = ""
        self._status: int | None = None

    def run(self, life: int, wake: int) -> bool:
        """Watch until the command ends or exceeds a limit; returns False if `life` was closed."""
        poller = select.poll()
        poller.register(life, select.POLLIN)
        poller.register(wake, select.POLLIN)
        due = self._began + self._pause_s / 2
        while self._reap() and not self._exceeded:
            ready = poller.poll(max(0.0, due - time.monotonic()) * 1000 + 0.5)
            if any(descriptor == life for descriptor, _ in ready):
                self._exceeded = "stopped"
                break
            if ready:
                _drain(wake)
            # Reap first, so that a command that has just ended isn't measured once more.
            if time.monotonic() >= due and self._reap():
                used_s = time.process_time()
                self._check_limits()
                cost_s = time.process_time() - used_s
                due = time.monotonic() + max(self._pause_s, min(_COST_FACTOR * cost_s, 0.5))
        self._ended = time.monotonic()
        is_wanted = self._exceeded != "stopped"
        if not is_wanted or self._was_killed():
            self._check_process_count()
        return is_wanted

    def _reap(self) -> bool:
        """Reap all processes that have ended; returns whether the command itself still runs."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return self._status is None
            self._record_exit(pid, status, usage)

    def _record_exit(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        unit = 1024 if kernel.IS_LINUX else 1
        self._peak_bytes = max(self._peak_bytes, usage.ru_maxrss * unit)
        if pid == self._main:
            self._status = status

    def _check_limits(self) -> None:
        """Measure what the tree uses, and compare it with the limits."""
        usage = processes.measure_usage(self._list_tree(self._main))
        self._core_wait.update(usage.threads)
        wall_s = time.monotonic() - self._began
        limit_s = self._limits["timeout_s"]
        if len(usage.pids) > self._limits["processes"]:  # first: so many also take too long
            self._exceeded = "processes"
        elif (
            usage.cpu_s + _get_reaped_cpu_s() > limit_s
            or wall_s - self._core_wait.total_s > limit_s
            or wall_s > MAX_WALL_FACTOR * limit_s
        ):
            self._exceeded = "timeout"
        elif self._measure_memory(usage) > self._limits["memory_mb"] * _MB:
            self._exceeded = "memory"

    def _was_killed(self) -> bool:
        return self._status is not None and os.WTERMSIG(self._status) == signal.SIGKILL

    def _check_process_count(self) -> None:
        """Check whether a command that was killed had too many processes.

        The kernel may have run out of memory because of them.
        """
        usage = processes.measure_usage(self._list_tree(self._main))
        if len(usage.pids) > self._limits["processes"]:
            self._exceeded = "processes"

    def _measure_memory(self, usage: processes.TreeUsage) -> int:
        """Return the bytes that the tree holds.

        Shared pages are divided among processes only if it matters, since that is slow to measure.
        """
        in_files = sum(map(_get_used_bytes, self._private))
        held = usage.rss_bytes
        threshold = min(self._peak_bytes, self._limits["memory_mb"] * _MB)
        if len(usage.pids) > 1 and held + in_files > threshold:
            held = processes.measure_proportional_bytes(usage.pids)
        self._peak_bytes = max(self._peak_bytes, held + in_files)
        return held + in_files

    def end_all(self) -> None:
        """Kill all processes that are left, and return when they have ended."""
        deadline = time.monotonic() + _END_TIMEOUT_S
        while True:
            self._kill_all()
            try:
                while True:
                    pid, status, usage = os.wait4(-1, 0 if self._is_first else os.WNOHANG)
                    if pid == 0:
                        break
                    self._record_exit(pid, status, usage)
            except ChildProcessError:
                if kernel.IS_LINUX or not self._list_tree(self._main):
                    return
            if time.monotonic() > deadline:  # another user's by now, and can't be killed
                return
            time.sleep(0.001)

    def _kill_all(self) -> None:
        if self._is_first:
            _kill(-1)  # all of the namespace but this process
            return
        for pid in self._list_tree(self._main):
            _kill(pid)

    def make_report(self, began: float) -> str:
        """Return the report as JSON.

        began: when the command was started
        """
        code = number = "null"
        if self._status is not None and not self._exceeded:
            if os.WIFEXITED(self._status):
                code = str(os.WEXITSTATUS(self._status))
            else:
                number = str(os.WTERMSIG(self._status))
        ending = self._exceeded or ("signalled" if code == "null" else "exited")
        # Without json, whose import takes longer than many commands.
        return (
            f'{{"ending": "{ending}", "exit_code": {code}, "signal": {number}, '
            f'"wall_s": {self._ended - began!r}, "cpu_s": {_get_reaped_cpu_s()!r}, '
            f'"own_cpu_s": {self._used_before_s + time.process_time()!r}, '
            f'"peak_rss_mb": {self._peak_bytes / _MB!r}}}\n'
        )


def _get_reaped_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _get_used_bytes(folder: str) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
