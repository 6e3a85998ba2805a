"""Counting of executed lines in some files, and of the time they take, by Python's own tracing.

The time of a line includes everything it calls, except lines of these same files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from typing import Any

# Bound early, before other code can replace them.
_now, _ident = time.perf_counter, threading.get_ident
START = os.getcwd()
"""The folder to which relative file names refer."""


class LineCounts:
    """Hits and seconds by line.

    lines: [hits, seconds] by file index and line number
    file_indexes: index of each file name that was seen; below 0 for files that are not counted
    threads: for each thread, the stack of entries of `lines`, and the time of its last event
    """

    def __init__(self, files: list[str]) -> None:
        self.numbers = {os.path.realpath(file): number for number, file in enumerate(files)}
        self.file_indexes: dict[str, int] = {}
        self.lines: dict[tuple[int, int], list[Any]] = {}
        self.threads: dict[int, list[Any]] = {}

    def find_file_index(self, file: str) -> int:
        """Return the index of a file; below 0 if it isn't counted."""
        index = self.file_indexes.get(file)
        if index is None:
            path = os.path.realpath(os.path.join(START, file))
            index = self.file_indexes[file] = self.numbers.get(path, -1)
        return index

    def charge(self) -> list[Any]:
        """Add the time since this thread's last event to its current line; returns its entry."""
        now = _now()
        thread = self.threads.get(_ident())
        if thread is None:
            thread = self.threads[_ident()] = [[], now]
        elif thread[0]:
            thread[0][-1][1] += now - thread[1]
        return thread

    def enter(self) -> None:
        """Record that a function was entered."""
        thread = self.charge()
        stack = thread[0]
        stack.append(stack[-1] if stack else [0, 0.0])  # until its first line is known
        thread[1] = _now()

    def count_line(self, index: int, line: int) -> None:
        """Record that a line was reached."""
        now = _now()
        thread = self.threads.get(_ident())  # repeats `charge`, since this runs most often
        if thread is None:
            thread = self.threads[_ident()] = [[], now]
        entry = self.lines.get((index, line))
        if entry is None:
            entry = self.lines[index, line] = [0, 0.0]
        entry[0] += 1
        stack = thread[0]
        if stack:
            stack[-1][1] += now - thread[1]
            stack[-1] = entry
        else:  # its function was entered before the start of tracing
            stack.append(entry)
        thread[1] = _now()

    def leave(self) -> None:
        """Record that a function was left."""
        thread = self.charge()
        if thread[0]:
            thread[0].pop()
        thread[1] = _now()  # last, so that the time of tracing counts for no line


class SettraceTracer:
    """Counts lines by means of `sys.settrace`."""

    def __init__(self, counts: LineCounts) -> None:
        self.counts = counts
        self.hook = self.begin  # one object, so that `is` recognizes it

    def begin(self, frame: Any, event: str, arg: object) -> Any:
        """Handle a call; returns the local trace function of frames that are counted."""
        if self.counts.find_file_index(frame.f_code.co_filename) < 0:
            return None
        self.counts.enter()
        return self.follow

    def follow(self, frame: Any, event: str, arg: object) -> Any:
        """Handle the events of a frame."""
        if event == "line":
            self.counts.count_line(
                self.counts.file_indexes[frame.f_code.co_filename], frame.f_lineno
            )
        elif event == "return":
            self.counts.leave()
        return self.follow

    def start(self) -> None:
        """Start tracing, in new threads as well."""
        threading.settrace(self.hook)
        sys.settrace(self.hook)

    def resume(self) -> None:
        """Start tracing again if another tracer has replaced this one."""
        if sys.gettrace() is not self.hook:
            self.counts.threads.pop(_ident(), None)
            self.start()

    def stop(self) -> str:
        """Stop tracing; returns what went wrong if it had been stopped before."""
        is_active = sys.gettrace() is self.hook
        sys.settrace(None)
        threading.settrace(None)
        return "" if is_active else "another tracer replaced this one, or the stack was too deep"


class MonitoringTracer:
    """Counts lines by means of `sys.monitoring`, which doesn't slow down other code."""

    def __init__(self, counts: LineCounts, timed: bool) -> None:
        self.counts, self.timed = counts, timed
        self.monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self.tool = next(tool for tool in (2, 3, 4) if self.monitoring.get_tool(tool) is None)

    def start(self) -> None:
        """Start monitoring."""
        events = self.monitoring.events
        hooks: dict[int, Any] = {events.LINE: self.line}
        if self.timed:
            for event in (events.PY_START, events.PY_RESUME, events.PY_THROW):
                hooks[event] = self.enter
            for event in (events.PY_RETURN, events.PY_YIELD):
                hooks[event] = self.leave
            hooks[events.PY_UNWIND] = self.unwind
        self.monitoring.use_tool_id(self.tool, "fairtrial")
        for event, hook in hooks.items():
            self.monitoring.register_callback(self.tool, event, hook)
        self.monitoring.set_events(self.tool, sum(hooks))

    def resume(self) -> None:
        """Do nothing: other tools can't replace this one."""

    def stop(self) -> str:
        """Stop monitoring."""
        self.monitoring.set_events(self.tool, 0)
        return ""

    def enter(self, code: Any, _offset: int, *rest: object) -> Any:
        """Handle the start of a function, or its resumption."""
        if self.counts.find_file_index(code.co_filename) >= 0:
            self.counts.enter()
            return None
        # A throw into a generator passes an exception; that event can't be disabled.
        return None if rest else self.monitoring.DISABLE

    def leave(self, code: Any, _offset: int, _result: object) -> Any:
        """Handle a return or yield."""
        if self.counts.find_file_index(code.co_filename) < 0:
            return self.monitoring.DISABLE
        self.counts.leave()
        return None

    def unwind(self, code: Any, _offset: int, _error: object) -> None:
        """Handle an exception that leaves a function; this event can't be disabled, either."""
        if self.counts.find_file_index(code.co_filename) >= 0:
            self.counts.leave()

    def line(self, code: Any, line: int) -> Any:
        """Handle a line; without times, only its first execution is reported."""
        index = self.counts.find_file_index(code.co_filename)
        if index >= 0:
            self.counts.count_line(index, line)
        return None if index >= 0 and self.timed else self.monitoring.DISABLE


def make_tracer(counts: LineCounts, *, timed: bool) -> Any:
    """Return the fastest tracer that this Python has.

    timed: whether times and all hits are wanted, not only which lines were run
    """
    return MonitoringTracer(counts, timed) if hasattr(sys, "monitoring") else SettraceTracer(counts)


def find_executable_lines(file: str) -> list[int]:
    """Return the executable lines of a file, as this Python compiles it; none if it can't."""
    import dis

    try:
        with open(file, "rb") as source:
            pending: list[Any] = [compile(source.read(), file, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return []
    lines: set[int] = set()
    while pending:
        code = pending.pop()
        lines.update(line for _, line in dis.findlinestarts(code) if line)
        pending += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return sorted(lines)
