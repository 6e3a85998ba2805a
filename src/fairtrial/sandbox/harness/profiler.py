"""Profiles a Python command by function, and tells which tests reach which functions.

Run by path in the project's Python. The first argument is the job, in JSON:
``{"run": [words after python], "top": folder}``. One JSON object goes to the channel:

    {"seconds": .., "functions": [[path, line, calls, own seconds, total seconds, tests], ...]}

Paths are relative to the top; functions outside of it are left out, those written in C count for
their callers. Threads and processes that the command starts are not profiled. It must run on
Python 3.8.
"""

from __future__ import annotations

import cProfile
import json
import os
import sys
import time
from typing import Any

_now = time.perf_counter


class FunctionProfile:
    """The profile of a command, or of many tests one after the other."""

    def __init__(self, top: str) -> None:
        self.top = os.path.realpath(top)
        self.functions: dict[tuple[str, int], list[Any]] = {}
        self.paths: dict[str, str] = {}
        self.running: Any = None
        self.began = _now()

    def start(self) -> None:
        """Begin a part."""
        self.running = cProfile.Profile(builtins=False)
        try:
            self.running.enable()
        except ValueError:  # another profiler is active
            self.running = None

    def stop(self, *, is_test: bool) -> None:
        """End a part, and add it to the whole."""
        if self.running is None:
            return
        self.running.disable()
        for entry in self.running.getstats():
            code = entry.code
            if isinstance(code, str):
                continue
            path = self.find_path(code.co_filename)
            if path:
                key = (path, code.co_firstlineno)
                counts = self.functions.setdefault(key, [0, 0.0, 0.0, 0])
                counts[0] += entry.callcount
                counts[1] += entry.inlinetime
                counts[2] += entry.totaltime
                counts[3] += int(is_test)
        self.running = None

    def find_path(self, file: str) -> str:
        """Return a file's path from the top; empty if it lies elsewhere."""
        path = self.paths.get(file)
        if path is None:
            real = os.path.realpath(file)
            inside = real.startswith(self.top + os.sep) and "site-packages" not in real
            path = self.paths[file] = os.path.relpath(real, self.top) if inside else ""
        return path

    def report(self) -> dict[str, Any]:
        """Return the report."""
        functions = [[*key, *counts] for key, counts in self.functions.items()]
        return {"seconds": _now() - self.began, "functions": functions}


def run_pytest(profile: FunctionProfile, arguments: list[str]) -> int:
    """Run pytest in this process, and profile each test."""
    import pytest

    class ProfiledTests:
        def pytest_configure(self, config: Any) -> None:
            if hasattr(config.option, "numprocesses"):  # xdist is loaded, and reads these later
                config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_call(self) -> Any:
            profile.start()
            try:
                yield
            finally:
                profile.stop(is_test=True)

    sys.argv[:] = [pytest.__file__, *arguments]
    return int(pytest.main(arguments, plugins=[ProfiledTests()]))


def run_command(profile: FunctionProfile, words: list[str]) -> int:
    """Do what Python does with these arguments."""
    import runpy

    here = os.getcwd()
    first, rest = words[0], words[1:]
    if first == "-m" and rest and rest[0] in ("pytest", "py.test"):
        sys.path.insert(0, here)
        return run_pytest(profile, rest[1:])
    is_file = first not in ("-m", "-c")
    sys.path.insert(0, os.path.dirname(os.path.realpath(first)) if is_file else here)
    profile.start()
    try:
        if is_file:
            sys.argv[:] = words
            runpy.run_path(first, run_name="__main__")
        elif first == "-c":
            sys.argv[:] = ["-c", *rest[1:]]
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv[:] = ["-m", *rest[1:]]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    finally:
        profile.stop(is_test=False)
    return 0


def main() -> int:
    """Run the command, and report even if it fails."""
    job = json.loads(sys.argv[1])
    channel = os.dup(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    os.set_inheritable(channel, False)
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]
    profile = FunctionProfile(job["top"])
    try:
        return run_command(profile, job["run"])
    finally:
        with os.fdopen(channel, "w", encoding="ascii") as stream:
            json.dump(profile.report(), stream)


if __name__ == "__main__":
    sys.exit(main())
