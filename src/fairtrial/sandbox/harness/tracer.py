"""Runs a command or calls a function, and reports the executed lines, their hits and times.

Run by path in the project's Python, never where candidates are judged or timed. The first line of
stdin is the order, as JSON; the rest is the command's standard input:

    {"files": [paths], "compile": [indexes of files whose executable lines are wanted],
     "timed": whether times are wanted, "limit_s": time limit, and either
     "run": ["-m", "pytest", ...], or [file, ...], or ["-c", text, ...]; or
     "calls": a job as of `call_worker`, "spend_s": when to stop calling,
     "count": how many calls, "forks": whether a second process may be forked}

One line of JSON goes to the channel: ``lines`` ([file index, line, hits, seconds] each), how many
calls were ``done``, ``seconds`` in all, ``plain_s`` (the same calls without tracing), the
``executable`` lines by file, ``status``, and in ``trouble`` why the report is incomplete.

The code shares this process and can forge the report, so no decision depends on it.
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

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import call_worker, codec, line_trace, timed_worker  # type: ignore[import-not-found]  # noqa: E402

# Bound early, before other code can replace them.
_now, _exit, _getpid = time.perf_counter, os._exit, os.getpid
_write, _dumps = os.write, json.dumps
HIGH_DESCRIPTOR = 200
"""The channel is moved here: some tests close all descriptors below a small number."""
START = os.getcwd()


class TraceSession:
    """One traced run, and its report.

    order: see the module's docstring
    channel: the descriptor to report on
    """

    def __init__(self, order: dict[str, Any], channel: int) -> None:
        self.order = order
        self.channel = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
        os.close(channel)
        self.owner = os.getpid()
        self.counts = line_trace.LineCounts(order["files"])
        self.tracer = line_trace.make_tracer(self.counts, timed=order["timed"])
        self.began = _now()
        self.report: dict[str, Any] = {"done": 0, "plain_s": None, "status": 0, "trouble": []}
        self.report_lock = threading.Lock()

    def start(self) -> None:
        """Start tracing, and the thread that enforces the time limit."""
        threading.Thread(target=self.give_up, daemon=True).start()
        self.began = _now()
        self.tracer.start()

    def send_report(self, trouble: str = "") -> None:
        """Send the report; only once, and only in this process.

        trouble: why the report is incomplete
        """
        if _getpid() != self.owner or not self.report_lock.acquire(False):
            return
        lines = [[*location, *entry] for location, entry in list(self.counts.lines.items())]
        self.report["trouble"] += [trouble] if trouble else []
        report = {**self.report, "lines": lines}
        report.setdefault("seconds", _now() - self.began)
        report["executable"] = {
            str(number): line_trace.find_executable_lines(self.order["files"][number])
            for number in self.order["compile"]
        }
        data = _dumps(report).encode("ascii") + b"\n"
        try:
            while data:
                data = data[_write(self.channel, data) :]
        except OSError:
            return

    def give_up(self) -> None:
        """In a thread: report what is known when the time limit is reached, and exit."""
        threading.Event().wait(self.order["limit_s"])
        self.send_report("it was stopped after {:g} s".format(self.order["limit_s"]))
        _exit(0)

    def leave(self, status: int = 0) -> NoReturn:
        """Report and exit; replaces `os._exit`, which some projects call after their tests."""
        self.send_report()
        _exit(status)


class UntracedFork:
    """A fork from before tracing, which repeats the calls without it, to measure its overhead.

    call: makes the call with a given index, and returns its seconds
    """

    def __init__(self, call: Callable[[int], float]) -> None:
        count_end, self.count_pipe = os.pipe()
        self.result_pipe, result_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.count_pipe)
                count = int(os.read(count_end, 32) or b"0")
                os.write(result_end, repr(sum(map(call, range(count)))).encode())
            finally:
                _exit(0)
        os.close(count_end)
        os.close(result_end)

    def measure(self, count: int, limit_s: float) -> float | None:
        """Return the seconds of the first calls; None if they take longer than the limit."""
        os.write(self.count_pipe, str(count).encode())
        is_ready = select.select([self.result_pipe], [], [], limit_s)[0]
        result = os.read(self.result_pipe, 64) if is_ready else b""
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        return float(result) if result else None


def run_calls(session: TraceSession, job: dict[str, Any]) -> None:
    """Call a function with its inputs, one after the other.

    job: as of `call_worker`, or of `timed_worker` if times are wanted
    """
    order, report, cases = session.order, session.report, job["cases"]
    if not order["timed"]:
        session.start()
        called = call_worker.load_called(job)
        output, caps = call_worker.CapturedStdout(job["output_bytes"]), codec.Caps(*job["caps"])
        for case in cases:
            call_worker.run_case(called, case, caps, output)
            report["done"] += 1
        return
    batch = timed_worker.CallBatch(job)
    inputs = [codec.dump_encoded(case).encode("ascii") for case in cases]

    def call(index: int) -> float:
        batch.load_inputs(inputs[index])
        began = _now()
        batch.run()
        return _now() - began

    try:
        untraced: UntracedFork | None = UntracedFork(call) if order["forks"] else None
    except Exception:  # such as a warning about threads, turned into an error
        untraced = None
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
    if untraced is not None:
        report["plain_s"] = untraced.measure(report["done"], max(1.0, 2 * spend_s))


def run_pytest(session: TraceSession, arguments: list[str]) -> int:
    """Run pytest with all tests in this process, and without other tracers."""
    import pytest

    class SingleProcess:
        def pytest_configure(self, config: Any) -> None:
            if hasattr(config.option, "numprocesses"):  # xdist is loaded, and reads these later
                config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []

        def pytest_collection(self) -> None:
            session.tracer.resume()  # coverage has started its own tracer

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self) -> None:
            session.tracer.resume()

    sys.argv[:] = [pytest.__file__, *arguments]
    return int(pytest.main(arguments, plugins=[SingleProcess()]))


def run_command(session: TraceSession, words: list[str]) -> None:
    """Do what Python does with these arguments."""
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


def read_order() -> dict[str, Any]:
    """Read the order from stdin, and replace stdin by the rest."""
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
    """Run the order, report, and exit."""
    order = read_order()
    session = TraceSession(order, int(os.environ.pop("FAIRTRIAL_CHANNEL")))
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
