"""A pytest plug-in that reports the outcome of each test to the parent process.

It reports on the descriptor that $FAIRTRIAL_CHANNEL names, one JSON object a line:

    {"opened": pytest's version, "overrode": [options that would have hidden results]}
    {"collected": [ids]}
    {"uncollected": id, "outcome": "failed" or "skipped", "message": text}
    {"started": id}
    {"finished": id, "outcome": text, "seconds": number, "message": text, "left": .., "right": ..}
    {"loaded": [files]}
    {"closed": exit status}

If $FAIRTRIAL_ONLY names a descriptor, only the tests that are listed there are run.

It runs in the candidate's own process, so a malicious candidate can forge the report. It must run
on Python 3.8 and pytest 6. PYTEST_DONT_REWRITE: it holds no assertions.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterable

import pytest
from fairtrial_pytest_failures import (  # type: ignore[import-not-found]
    MAX_MESSAGE_CHARS,
    FailureDescriber,
    shorten,
)
from fairtrial_pytest_selection import (  # type: ignore[import-not-found]  # by path, like this file
    read_names,
    select_tests,
)

MAX_ID_CHARS, MAX_LATER_CHARS = 800, 300
MAX_FULL_MESSAGES = 100
"""How many failures are reported in full; later messages are cut to `MAX_LATER_CHARS`."""
PER_LINE = 200
HIGH_DESCRIPTOR = 200
"""The channel is moved here: some tests close all descriptors below a small number."""


class Channel:
    """The descriptor to report on. Functions of `os` are bound early, since tests patch `os`."""

    def __init__(self, number: int) -> None:
        self.number = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR)
        os.close(number)
        self.write, self.fstat, self.getpid = os.write, os.fstat, os.getpid
        self.select, self.dumps = select.select, json.dumps
        self.owner = os.getpid()
        self.identity = self._identify()

    def _identify(self) -> tuple[int, int]:
        status = self.fstat(self.number)
        return status.st_dev, status.st_ino

    def send(self, **report: object) -> None:
        """Write one line; does nothing if the descriptor was replaced, or has no reader."""
        if self.getpid() != self.owner:
            return  # a process that a test has forked
        data = memoryview(self.dumps(report).encode("ascii") + b"\n")
        try:
            if self._identify() != self.identity:
                return
            while data:
                try:
                    data = data[self.write(self.number, data) :]
                except BlockingIOError:
                    self.select([], [self.number], [])
        except OSError:
            return


def open_channel() -> Channel | None:
    """Open the channel, and remove it from the environment, so that tests don't pass it on."""
    number = os.environ.pop("FAIRTRIAL_CHANNEL", "")
    try:
        return Channel(int(number)) if number else None
    except (OSError, ValueError):
        return None


def name_test(node_id: str) -> str:
    """Return a test's id; of a very long one the beginning and a hash."""
    if len(node_id) <= MAX_ID_CHARS:
        return node_id
    digest = hashlib.sha256(node_id.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{node_id[:MAX_ID_CHARS]}...{digest}"


class SessionReporter:
    """Reports the tests of one session, in its main process."""

    def __init__(self, channel: Channel, overrode: list[str]) -> None:
        self.channel = channel
        self.phases: dict[str, list[Any]] = {}
        self.retried: set[str] = set()
        self.message_count = 0
        self.collected = False
        self.loaded: set[str] = set()
        channel.send(opened=pytest.__version__, overrode=overrode)

    def _send_names(self, kind: str, names: Iterable[str]) -> None:
        rest = list(names)
        for start in range(0, len(rest), PER_LINE):
            self.channel.send(**{kind: rest[start : start + PER_LINE]})

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._send_names("collected", [name_test(item.nodeid) for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        if not self.collected:
            self.collected = True
            self._send_names("collected", [name_test(node_id) for node_id in ids])

    def pytest_collectreport(self, report: Any) -> None:
        if report.passed:
            return
        message = report.longrepr
        if isinstance(message, tuple):  # of a skip: path, line, reason
            message = message[-1]
        self.channel.send(
            uncollected=name_test(report.nodeid),
            outcome=report.outcome,
            message=shorten(str(message), self._count_message()),
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.channel.send(started=name_test(nodeid))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "rerun":
            self.retried.add(report.nodeid)
        elif report.when == "setup" and report.nodeid in self.retried:
            # A rerun from the start, which replaces the earlier result.
            self.retried.remove(report.nodeid)
            self.phases.pop(report.nodeid, None)
        self.phases.setdefault(report.nodeid, []).append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._finish(nodeid)

    def _finish(self, node_id: str) -> None:
        reports = self.phases.pop(node_id, [])
        if not reports or node_id in self.retried:
            return
        outcome, cause = summarize_reports(reports)
        line: dict[str, Any] = {
            "finished": name_test(node_id),
            "outcome": outcome,
            "seconds": round(sum(getattr(report, "duration", 0.0) for report in reports), 6),
        }
        if cause is not None:
            fields = getattr(cause, "fairtrial", {})
            message = fields.get("message") or str(cause.longrepr)
            if outcome == "skipped" and isinstance(cause.longrepr, tuple):
                message = str(cause.longrepr[-1])
            line["message"] = shorten(message, self._count_message())
            if "left" in fields:
                line.update(left=fields["left"], right=fields["right"])
        self.channel.send(**line)

    def _count_message(self) -> int:
        """Count one more message; returns how long it may be."""
        self.message_count += 1
        return MAX_MESSAGE_CHARS if self.message_count <= MAX_FULL_MESSAGES else MAX_LATER_CHARS

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", None) or {}
        self.loaded.update(output.get("fairtrial_loaded", ()))

    # First, since some projects call os._exit in this hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        # Tests that were cut short by pytest.exit, or by the end of their xdist worker.
        for node_id in list(self.phases):
            self._finish(node_id)
        self.loaded.update(LIST_IMPORTS())
        self._send_names("loaded", sorted(self.loaded))
        self.channel.send(closed=int(exitstatus))


class WorkerReporter:
    """Reports the loaded modules of an xdist worker to its controller, which reports the tests."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def pytest_sessionfinish(self) -> None:
        self.config.workeroutput["fairtrial_loaded"] = sorted(LIST_IMPORTS())


def summarize_reports(reports: list[Any]) -> tuple[str, Any]:
    """Return the outcome of a test from the reports of its phases, and the decisive report."""
    for report in reports:
        if report.failed:
            return ("error" if report.when in ("setup", "teardown") else "failed"), report
    # The report of a subtest has a context; the test itself continues after it.
    own = [report for report in reports if not hasattr(report, "context")]
    for report in own:
        if report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), report
    if any(hasattr(report, "wasxfail") for report in own):
        return "xpassed", None
    if {report.when for report in own} >= {"setup", "call", "teardown"}:
        return "passed", None
    return "incomplete", None


def record_imports() -> Callable[[], list[str]]:
    """Begin to record imported files; see `import_record`, which is not on the module path."""
    file = Path(__file__).resolve().parent.parent / "import_record.py"
    namespace: dict[str, Any] = {"__name__": "_fairtrial_import_record"}
    exec(compile(file.read_bytes(), str(file), "exec"), namespace)
    begin: Callable[[], Callable[[], list[str]]] = namespace["record_imports"]
    return begin()


def override_options(config: Any) -> list[str]:
    """Turn off options that would hide results; returns their names."""
    overrode = []
    for name, off in (("maxfail", 0), ("stepwise", False), ("stepwise_skip", False)):
        if getattr(config.option, name, off):
            setattr(config.option, name, off)
            overrode.append(name)
    return overrode


LIST_IMPORTS = record_imports()
CHANNEL = open_channel()
"""Opened on import, before any file of the project is loaded."""
ONLY = read_names()
"""The tests to run; None for all. Read on import, since pytest replaces standard input later."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Register the reporter of this session, or of an xdist worker."""
    overrode = override_options(config)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerReporter(config), "fairtrial-worker")
    elif CHANNEL is not None:
        config.pluginmanager.register(SessionReporter(CHANNEL, overrode), "fairtrial-reporter")
    config.pluginmanager.register(FailureDescriber(), "fairtrial-describer")
    select_tests(config, ONLY, name_test)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Move pytest's cache out of the project; turning it off would make `--lf` an error."""
    cache: Any = getattr(session.config, "cache", None)
    if hasattr(cache, "_cachedir"):
        cache._cachedir = Path(tempfile.gettempdir()) / "fairtrial-pytest-cache"
