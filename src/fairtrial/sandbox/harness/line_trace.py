"""Which lines of some files are run, how often, and how long they take: told by Python itself.

The time of a line is that of all it runs but for lines of these same files, which have their own.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from typing import Any

# Kept before anybody can replace them.
_now, _ident = time.perf_counter, threading.get_ident
START = os.getcwd()
"""Where relative names of files begin."""


class Tally:
    """Hits and seconds by line."""

    def __init__(self, files: list[str]) -> None:
        self.numbers = {os.path.realpath(file): number for number, file in enumerate(files)}
        self.known: dict[str, int] = {}
        self.found: dict[tuple[int, int], list[Any]] = {}
        self.threads: dict[int, list[Any]] = {}

    def number(self, file: str) -> int:
        """Which of the files it is; below 0 for any other."""
        found = self.known.get(file)
        if found is None:
            place = os.path.realpath(os.path.join(START, file))
            found = self.known[file] = self.numbers.get(place, -1)
        return found

    def charge(self) -> list[Any]:
        """Add the time since the last event of this thread to the line it was in."""
        now = _now()
        thread = self.threads.get(_ident())
        if thread is None:
            thread = self.threads[_ident()] = [[], now]
        elif thread[0]:
            thread[0][-1][1] += now - thread[1]
        return thread

    def enter(self) -> None:
        thread = self.charge()
        stack = thread[0]
        stack.append(stack[-1] if stack else [0, 0.0])  # until its first line is known
        thread[1] = _now()

    def reach(self, number: int, line: int) -> None:
        now = _now()
        thread = self.threads.get(_ident())  # as in `charge`: this is done most of all
        if thread is None:
            thread = self.threads[_ident()] = [[], now]
        entry = self.found.get((number, line))
        if entry is None:
            entry = self.found[number, line] = [0, 0.0]
        entry[0] += 1
        stack = thread[0]
        if stack:
            stack[-1][1] += now - thread[1]
            stack[-1] = entry
        else:  # its function was entered before anybody looked
            stack.append(entry)
        thread[1] = _now()

    def leave(self) -> None:
        thread = self.charge()
        if thread[0]:
            thread[0].pop()
        thread[1] = _now()  # last of all, so that our own time is nobody's


class Tracing:
    """Feeds a tally by `sys.settrace`."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.hook = self.begin  # one object, to be known again

    def begin(self, frame: Any, event: str, arg: object) -> Any:
        if self.tally.number(frame.f_code.co_filename) < 0:
            return None
        self.tally.enter()
        return self.follow

    def follow(self, frame: Any, event: str, arg: object) -> Any:
        if event == "line":
            self.tally.reach(self.tally.known[frame.f_code.co_filename], frame.f_lineno)
        elif event == "return":
            self.tally.leave()
        return self.follow

    def start(self) -> None:
        threading.settrace(self.hook)
        sys.settrace(self.hook)

    def go_on(self) -> None:
        """Take our place again, if somebody has taken it."""
        if sys.gettrace() is not self.hook:
            self.tally.threads.pop(_ident(), None)
            self.start()

    def stop(self) -> str:
        """Ends it; says whether somebody else did before."""
        is_ours = sys.gettrace() is self.hook
        sys.settrace(None)
        threading.settrace(None)
        return "" if is_ours else "another tracer took our place, or the stack was too deep for us"


class Monitoring:
    """Feeds a tally by `sys.monitoring`, which leaves all other code at its full speed."""

    def __init__(self, tally: Tally, timed: bool) -> None:
        self.tally, self.timed = tally, timed
        self.monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self.tool = next(each for each in (2, 3, 4) if self.monitoring.get_tool(each) is None)

    def start(self) -> None:
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

    def go_on(self) -> None:
        """Nobody can take our place here."""

    def stop(self) -> str:
        self.monitoring.set_events(self.tool, 0)
        return ""

    def enter(self, code: Any, _offset: int, *rest: object) -> Any:
        if self.tally.number(code.co_filename) >= 0:
            self.tally.enter()
            return None
        # What is thrown into a generator comes with an exception; that can't be turned off.
        return None if rest else self.monitoring.DISABLE

    def leave(self, code: Any, _offset: int, _result: object) -> Any:
        if self.tally.number(code.co_filename) < 0:
            return self.monitoring.DISABLE
        self.tally.leave()
        return None

    def unwind(self, code: Any, _offset: int, _error: object) -> None:
        if self.tally.number(code.co_filename) >= 0:  # can't be turned off, either
            self.tally.leave()

    def line(self, code: Any, line: int) -> Any:
        number = self.tally.number(code.co_filename)
        if number >= 0:
            self.tally.reach(number, line)
        # Where only the first time counts, there is no second.
        return None if number >= 0 and self.timed else self.monitoring.DISABLE


def make_tracer(tally: Tally, *, timed: bool) -> Any:
    """What this Python has."""
    return Monitoring(tally, timed) if hasattr(sys, "monitoring") else Tracing(tally)


def find_executable(file: str) -> list[int]:
    """The lines of a file that have code of their own, as this Python compiles it."""
    import dis

    try:
        with open(file, "rb") as source:
            waiting: list[Any] = [compile(source.read(), file, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return []
    lines: set[int] = set()
    while waiting:
        code = waiting.pop()
        lines.update(line for _, line in dis.findlinestarts(code) if line)
        waiting += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return sorted(lines)
