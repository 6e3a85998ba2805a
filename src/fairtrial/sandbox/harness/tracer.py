"""Runs something and tells which lines of some files were run, how often, and how long they took.

Run by path in the project's Python, never where anything is judged or timed. The first line of
stdin is the order, as JSON; all after it is what the command reads:

    {"files": [paths], "compile": [numbers of those whose executable lines are asked for],
     "timed": whether times are wanted, "limit_s": when to give up, and
     "run": ["-m", "pytest", ...], or [file, ...], or ["-c", text, ...]; or
     "calls": what a worker is told (see `worker`), "spend_s": when to call no more,
     "count": how many calls, "forks": whether there may be a second process}

One line of JSON goes to the channel: ``lines`` ([file's number, line, hits, seconds] each), how
many calls were ``done``, ``seconds`` in all, ``plain_s`` (the same calls without us), the
``executable`` lines by file, ``status``, and in ``trouble`` what makes it incomplete.

The code shares this process and can forge all of this: it decides nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import threading
import time
import types
from typing import Any, Callable, NoReturn

_package: Any = types.ModuleType("_fairtrial_harness")  # a name that nobody else has
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import call_worker, codec, line_trace, timed_worker  # type: ignore[import-not-found]  # noqa: E402

# Kept before anybody can replace them.
_now, _exit, _getpid = time.perf_counter, os._exit, os.getpid
_write, _dumps = os.write, json.dumps
HIGH_DESCRIPTOR = 200
"""Tests that close the first so many descriptors don't mean ours."""
START = os.getcwd()


class Session:
    """One order: what is run, and the report of it."""

    def __init__(self, order: dict[str, Any], channel: int) -> None:
        self.order = order
        self.channel = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
        os.close(channel)
        self.owner = os.getpid()
        self.tally = line_trace.Tally(order["files"])
        self.tracer = line_trace.make_tracer(self.tally, timed=order["timed"])
        self.began = _now()
        self.report: dict[str, Any] = {"done": 0, "plain_s": None, "status": 0, "trouble": []}
        self.telling = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self.give_up, daemon=True).start()
        self.began = _now()
        self.tracer.start()

    def tell(self, trouble: str = "") -> None:
        """Send the report; once, and in this process alone."""
        if _getpid() != self.owner or not self.telling.acquire(False):
            return
        found = [[*place, *entry] for place, entry in list(self.tally.found.items())]
        self.report["trouble"] += [trouble] if trouble else []
        report = {**self.report, "lines": found}
        report.setdefault("seconds", _now() - self.began)
        report["executable"] = {
            str(number): line_trace.find_executable(self.order["files"][number])
            for number in self.order["compile"]
        }
        data = _dumps(report).encode("ascii") + b"\n"
        try:
            while data:
                data = data[_write(self.channel, data) :]
        except OSError:
            return

    def give_up(self) -> None:
        """In a thread of its own: what is known by then is better than nothing."""
        threading.Event().wait(self.order["limit_s"])
        self.tell("it was stopped after {:g} s".format(self.order["limit_s"]))
        _exit(0)

    def leave(self, status: int = 0) -> NoReturn:
        """In the place of `os._exit`: projects call it when their tests are done."""
        self.tell()
        _exit(status)


class Shadow:
    """A fork from before we look on, which does the same calls afterwards: what we cost."""

    def __init__(self, call: Callable[[int], float]) -> None:
        go, self.go = os.pipe()
        self.told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.go)
                count = int(os.read(go, 32) or b"0")
                os.write(tell, repr(sum(map(call, range(count)))).encode())
            finally:
                _exit(0)
        os.close(go)
        os.close(tell)

    def measure(self, count: int, limit_s: float) -> float | None:
        os.write(self.go, str(count).encode())
        is_there = select.select([self.told], [], [], limit_s)[0]
        said = os.read(self.told, 64) if is_there else b""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        return float(said) if said else None


def run_calls(session: Session, job: dict[str, Any]) -> None:
    """Call a function with its inputs, one after the other."""
    order, report, cases = session.order, session.report, job["cases"]
    if not order["timed"]:
        session.start()
        function, view = call_worker.find(job["function"]), None
        if job["view"]:
            view = call_worker.find(job["view"])
        output, caps = call_worker.Output(job["output_bytes"]), codec.Caps(*job["caps"])
        for case in cases:
            call_worker.try_case(function, view, case, caps, output)
            report["done"] += 1
        return
    work = timed_worker.Work(job)
    inputs = [codec.dump(case).encode("ascii") for case in cases]

    def call(place: int) -> float:
        work.take(inputs[place])
        began = _now()
        work.go()
        return _now() - began

    try:
        shadow: Shadow | None = Shadow(call) if order["forks"] else None
    except Exception:  # a warning may be one
        shadow = None
    session.start()
    count, spend_s = order["count"], order["spend_s"]
    seconds = 0.0
    while report["done"] < (count or len(inputs)):
        seconds += call(report["done"])
        report["done"] += 1
        if not count and _now() - session.began >= spend_s:
            break
    report["seconds"] = seconds
    trouble = session.tracer.stop()
    report["trouble"] += [trouble] if trouble else []
    if shadow is not None:
        report["plain_s"] = shadow.measure(report["done"], max(1.0, 2 * spend_s))


def run_pytest(session: Session, arguments: list[str]) -> int:
    """All tests in this process, and nobody else who traces."""
    import pytest

    class Alone:
        def pytest_configure(self, config: Any) -> None:
            if hasattr(config.option, "numprocesses"):  # xdist is there, and looks at these later
                config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []

        def pytest_collection(self) -> None:
            session.tracer.go_on()  # coverage's own tracer begins before

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self) -> None:
            session.tracer.go_on()

    sys.argv[:] = [pytest.__file__, *arguments]
    return int(pytest.main(arguments, plugins=[Alone()]))


def run_command(session: Session, words: list[str]) -> None:
    """What Python would do with these arguments."""
    import runpy

    first, rest = words[0], words[1:]
    is_file = first not in ("-m", "-c")
    folder = os.path.dirname(os.path.realpath(first)) if is_file else START
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    if is_file:
        sys.argv[:] = words
        runpy.run_path(first, run_name="__main__")
    elif first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        namespace = {"__name__": "__main__", "__builtins__": __builtins__}
        exec(compile(rest[0], "<string>", "exec", dont_inherit=True), namespace)
    elif rest[0] in ("pytest", "py.test"):
        raise SystemExit(run_pytest(session, rest[1:]))
    else:
        sys.argv[:] = ["-m", *rest[1:]]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)


def take_order() -> dict[str, Any]:
    """The order; what comes after it is put where the command will look for it."""
    with open(0, "rb", closefd=False) as stdin:
        first, _, rest = stdin.read().partition(b"\n")
    folder = os.environ.get("TMPDIR") or "/tmp"
    path = os.path.join(folder, f"fairtrial-stdin-{os.getpid()}")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    with open(file, "wb", closefd=False) as copy:
        copy.write(rest)
    os.lseek(file, 0, 0)
    os.dup2(file, 0)
    os.close(file)
    order: dict[str, Any] = json.loads(first)
    return order


def main() -> NoReturn:
    """Do as ordered, tell, leave."""
    order = take_order()
    session = Session(order, int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    os._exit = session.leave
    try:
        if "calls" in order:
            run_calls(session, order["calls"])
        else:
            session.start()
            run_command(session, order["run"])
    except SystemExit as stop:
        code = stop.code
        session.report["status"] = code if isinstance(code, int) else int(code is not None)
    except BaseException as stop:
        session.report["status"] = 1
        session.report["trouble"].append(f"it raised {type(stop).__name__}: {stop}"[:500])
    if "seconds" not in session.report:
        trouble = session.tracer.stop()
        session.report["trouble"] += [trouble] if trouble else []
    session.leave(0)


if __name__ == "__main__":
    main()
