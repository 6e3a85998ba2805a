"""A pytest plugin that tells the parent, test by test, what came of a run.

It reports on the descriptor that $FAIRTRIAL_CHANNEL names, one JSON object a line:

    {"opened": pytest's version, "overrode": [options that would have hidden results]}
    {"collected": [ids]}
    {"uncollected": id, "outcome": "failed" or "skipped", "message": text}
    {"started": id}
    {"finished": id, "outcome": text, "seconds": number, "message": text, "left": .., "right": ..}
    {"loaded": [files]}
    {"closed": exit status}

Where $FAIRTRIAL_ONLY names a descriptor, only the tests that are listed there are run.

It runs in the candidate's own process: a candidate that means to can forge all of this. Python 3.8
and pytest 6 are the oldest that it must run on. PYTEST_DONT_REWRITE: it holds no assertions.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterable

import pytest
from fairtrial_pytest_only import (  # type: ignore[import-not-found]  # by path, like this file
    choose,
    read_names,
)
from fairtrial_pytest_words import (  # type: ignore[import-not-found]
    LONGEST_MESSAGE,
    START,
    Describer,
    shorten,
)

LONGEST_ID, LONGEST_LATER = 800, 300
MOST_IN_FULL = 100
"""So many failures are told in full; of later ones only the beginning."""
PER_LINE = 200
HIGH_DESCRIPTOR = 200
"""Tests that close the first so many descriptors don't mean ours."""


class Channel:
    """The descriptor we report on. What it is used with is kept, since tests patch `os`."""

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
        """Write one line; nothing if the descriptor is no longer ours or nobody reads."""
        if self.getpid() != self.owner:
            return  # a fork of a test's
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
    """The channel, taken out of the environment: what tests start must not find it."""
    number = os.environ.pop("FAIRTRIAL_CHANNEL", "")
    try:
        return Channel(int(number)) if number else None
    except (OSError, ValueError):
        return None


def name_test(node_id: str) -> str:
    """The id; of a very long one the beginning and a hash."""
    if len(node_id) <= LONGEST_ID:
        return node_id
    digest = hashlib.sha256(node_id.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"{node_id[:LONGEST_ID]}...{digest}"


class Reporter:
    """Follows one session in its main process, and reports."""

    def __init__(self, channel: Channel, overrode: list[str]) -> None:
        self.channel = channel
        self.phases: dict[str, list[Any]] = {}
        self.retried: set[str] = set()
        self.told_in_full = 0
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
        if isinstance(message, tuple):  # of something skipped: path, line, reason
            message = message[-1]
        self.channel.send(
            uncollected=name_test(report.nodeid),
            outcome=report.outcome,
            message=shorten(str(message), self._room()),
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.channel.send(started=name_test(nodeid))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "rerun":
            self.retried.add(report.nodeid)
        elif report.when == "setup" and report.nodeid in self.retried:
            # Another try, from the start; this one counts.
            self.retried.remove(report.nodeid)
            self.phases.pop(report.nodeid, None)
        self.phases.setdefault(report.nodeid, []).append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._finish(nodeid)

    def _finish(self, node_id: str) -> None:
        reports = self.phases.pop(node_id, [])
        if not reports or node_id in self.retried:
            return
        outcome, cause = sum_up(reports)
        line: dict[str, Any] = {
            "finished": name_test(node_id),
            "outcome": outcome,
            "seconds": round(sum(getattr(report, "duration", 0.0) for report in reports), 6),
        }
        if cause is not None:
            told = getattr(cause, "fairtrial", {})
            message = told.get("message") or str(cause.longrepr)
            if outcome == "skipped" and isinstance(cause.longrepr, tuple):
                message = str(cause.longrepr[-1])
            line["message"] = shorten(message, self._room())
            if "left" in told:
                line.update(left=told["left"], right=told["right"])
        self.channel.send(**line)

    def _room(self) -> int:
        self.told_in_full += 1
        return LONGEST_MESSAGE if self.told_in_full <= MOST_IN_FULL else LONGEST_LATER

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", None) or {}
        self.loaded.update(output.get("fairtrial_loaded", ()))

    # First: some projects leave by os._exit in this very hook.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        # Tests that were cut short: by pytest.exit, or with the worker of xdist's that ran them.
        for node_id in list(self.phases):
            self._finish(node_id)
        self.loaded.update(find_loaded())
        self._send_names("loaded", sorted(self.loaded))
        self.channel.send(closed=int(exitstatus))


class WorkerReporter:
    """In a worker of xdist's, whose reports go through its controller: tells what was loaded."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def pytest_sessionfinish(self) -> None:
        self.config.workeroutput["fairtrial_loaded"] = sorted(find_loaded())


def sum_up(reports: list[Any]) -> tuple[str, Any]:
    """One outcome for the reports of all phases of a test, and the report that decided it."""
    for report in reports:
        if report.failed:
            return ("error" if report.when in ("setup", "teardown") else "failed"), report
    # A subtest's report carries its context; the test itself goes on after it.
    own = [report for report in reports if not hasattr(report, "context")]
    for report in own:
        if report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), report
    if any(hasattr(report, "wasxfail") for report in own):
        return "xpassed", None
    if {report.when for report in own} >= {"setup", "call", "teardown"}:
        return "passed", None
    return "incomplete", None


def find_loaded() -> set[str]:
    """The files of all modules."""
    files = set()
    for module in list(sys.modules.values()):
        try:
            # Not getattr: modules that load lazily would load now.
            file = object.__getattribute__(module, "__dict__").get("__file__")
        except Exception:  # anything may lie there
            continue
        if isinstance(file, str) and file:
            files.add(str(START / file))
    return files


def override(config: Any) -> list[str]:
    """Turn off what would hide results; say what that was."""
    overrode = []
    for name, off in (("maxfail", 0), ("stepwise", False), ("stepwise_skip", False)):
        if getattr(config.option, name, off):
            setattr(config.option, name, off)
            overrode.append(name)
    return overrode


CHANNEL = open_channel()
"""Opened on import, which is before any file of the project's is loaded."""
ONLY = read_names()
"""The tests to run; None for all. Read as early, since pytest puts another standard input there."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Take part: as the reporter of this session, or of one worker."""
    overrode = override(config)
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerReporter(config), "fairtrial-worker")
    elif CHANNEL is not None:
        config.pluginmanager.register(Reporter(CHANNEL, overrode), "fairtrial-reporter")
    config.pluginmanager.register(Describer(), "fairtrial-describer")
    choose(config, ONLY, name_test)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep pytest's cache out of the tree. Turned off altogether, `--lf` would be an error."""
    cache: Any = getattr(session.config, "cache", None)
    if hasattr(cache, "_cachedir"):
        cache._cachedir = Path(tempfile.gettempdir()) / "fairtrial-pytest-cache"
