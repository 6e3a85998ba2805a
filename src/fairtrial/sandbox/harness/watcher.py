"""One command under watch: what it uses, whether it may, and its end."""

from __future__ import annotations

import os
import resource
import select
import time

from . import kernel

TYPE_CHECKING = False  # importing typing takes longer than many a command
if TYPE_CHECKING:
    import signal
    from typing import Any, Mapping, Sequence

    from . import processes
else:
    import _signal as signal  # so does enum, which is all that `signal` adds

    if kernel.IS_LINUX:
        from . import processes
    else:
        from . import process_list as processes

LOOK_EVERY_S = 0.02
LONGEST_WALL = 4.0
"""How many times its time a command may last if others keep it from running."""
_COST_SHARE = 20
"""Looking takes no more than one part in this many of the time."""
_GIVE_UP_S = 10.0
_MB = 1 << 20


class Watch:
    """One command, from its start to the last of its processes."""

    def __init__(
        self, main: int, limits: Mapping[str, Any], is_first: bool, private: Sequence[str]
    ) -> None:
        self._main, self._limits, self._is_first = main, limits, is_first
        self._private = private
        self._pause_s = limits.get("look_every_s", LOOK_EVERY_S)
        self._waiting = processes.Waiting()
        self._family = processes.everyone_else if is_first else processes.descendants
        self._began = time.monotonic()
        self._ended = 0.0
        self._peak_bytes = 0
        self._exceeded = ""
        self._status: int | None = None

    def go_on(self, life: int, wake: int) -> bool:
        """Watch until the command ends or has to; False if `life` has told so."""
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
            # Who has just ended is noticed before we look around: its time is taken below.
            if time.monotonic() >= due and self._reap():
                used_s = time.process_time()
                self._look()
                cost_s = time.process_time() - used_s
                due = time.monotonic() + max(self._pause_s, min(_COST_SHARE * cost_s, 0.5))
        self._ended = time.monotonic()
        is_wanted = self._exceeded != "stopped"
        if not is_wanted or self._was_killed():
            self._count()
        return is_wanted

    def _reap(self) -> bool:
        """Wait for all that have died; whether the command itself still lives."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return self._status is None
            self._note_death(pid, status, usage)

    def _note_death(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        unit = 1024 if kernel.IS_LINUX else 1
        self._peak_bytes = max(self._peak_bytes, usage.ru_maxrss * unit)
        if pid == self._main:
            self._status = status

    def _look(self) -> None:
        """Compare what is used with what may be."""
        seen = processes.look(self._family(self._main))
        self._waiting.look(seen.threads)
        wall_s = time.monotonic() - self._began
        limit_s = self._limits["timeout_s"]
        if len(seen.pids) > self._limits["processes"]:  # first: so many take too long, as well
            self._exceeded = "processes"
        elif (
            seen.cpu_s + _reaped_cpu_s() > limit_s
            or wall_s - self._waiting.total_s > limit_s
            or wall_s > LONGEST_WALL * limit_s
        ):
            self._exceeded = "timeout"
        elif self._measure_memory(seen) > self._limits["memory_mb"] * _MB:
            self._exceeded = "memory"

    def _was_killed(self) -> bool:
        return self._status is not None and os.WTERMSIG(self._status) == signal.SIGKILL

    def _count(self) -> None:
        """Tell what multiplies from what hoards: the kernel may run out of memory for both."""
        seen = processes.look(self._family(self._main))
        if len(seen.pids) > self._limits["processes"]:
            self._exceeded = "processes"

    def _measure_memory(self, seen: processes.Look) -> int:
        """Bytes held now; pages that forked processes share count once where it matters."""
        in_files = sum(map(_used_bytes, self._private))
        held = seen.rss_bytes
        unclear = min(self._peak_bytes, self._limits["memory_mb"] * _MB)
        if len(seen.pids) > 1 and held + in_files > unclear:
            held = processes.proportional_bytes(seen.pids)
        self._peak_bytes = max(self._peak_bytes, held + in_files)
        return held + in_files

    def end_all(self) -> None:
        """Kill what is left, and return when it is gone."""
        deadline = time.monotonic() + _GIVE_UP_S
        while True:
            self._kill_all()
            try:
                while True:
                    pid, status, usage = os.wait4(-1, 0 if self._is_first else os.WNOHANG)
                    if pid == 0:
                        break
                    self._note_death(pid, status, usage)
            except ChildProcessError:
                if kernel.IS_LINUX or not self._family(self._main):
                    return
            if time.monotonic() > deadline:  # somebody else's by now: not ours to end
                return
            time.sleep(0.001)

    def _kill_all(self) -> None:
        if self._is_first:
            _kill(-1)  # all of the namespace but us
            return
        for pid in self._family(self._main):
            _kill(pid)

    def result(self, began: float) -> str:
        """The report, as JSON."""
        code = number = "null"
        if self._status is not None and not self._exceeded:
            if os.WIFEXITED(self._status):
                code = str(os.WEXITSTATUS(self._status))
            else:
                number = str(os.WTERMSIG(self._status))
        ending = self._exceeded or ("signalled" if code == "null" else "exited")
        # By hand: importing json takes longer than many a command.
        return (
            f'{{"ending": "{ending}", "exit_code": {code}, "signal": {number}, '
            f'"wall_s": {self._ended - began!r}, "cpu_s": {_reaped_cpu_s()!r}, '
            f'"peak_rss_mb": {self._peak_bytes / _MB!r}}}\n'
        )


def _reaped_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _used_bytes(folder: str) -> int:
    try:
        told = os.statvfs(folder)
    except OSError:
        return 0
    return (told.f_blocks - told.f_bfree) * told.f_frsize


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
