"""Parse the reports of a pytest run, which are not trusted.

The harness plug-in `fairtrial_pytest.py` writes them, but in a process that runs a candidate's
code, which may write anything. Lines that are not reports are ignored; of several reports on one
test the worst counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from fairtrial.arena.model.verdicts import Difference
from fairtrial.sandbox import Completed

MAX_ID, MAX_MESSAGE, MAX_VALUE, MAX_PATH = 1_000, 8_000, 1_000, 5_000
MAX_LINES = 1_000_000
"""Enough for 400,000 tests; parsing a flood of empty lines would take minutes."""


class PytestOutcome(StrEnum):
    """The outcome of one test, worst last."""

    PASSED = "passed"
    XPASSED = "xpassed"
    XFAILED = "xfailed"
    SKIPPED = "skipped"
    INCOMPLETE = "incomplete"
    """it was set up, but did not finish"""
    ERROR = "error"
    """setting it up or tearing it down failed"""
    FAILED = "failed"


_WORST_LAST = list(PytestOutcome)


@dataclass(frozen=True, slots=True)
class PytestResult:
    """The result of one test.

    outcome: the worst reported outcome
    message: why it is not `passed`
    differences: both sides of the failed assertion, where pytest knows them
    seconds: its duration
    times: how often it was reported; ids are not always unique
    """

    outcome: PytestOutcome
    message: str = ""
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0
    times: int = 1

    def joined(self, other: PytestResult) -> PytestResult:
        """Return the worse of two results of one test, with the sum of their durations."""
        worse = max(self, other, key=lambda result: _WORST_LAST.index(result.outcome))
        seconds = self.seconds + other.seconds
        return replace(worse, seconds=seconds, times=self.times + other.times)


@dataclass(frozen=True, slots=True)
class Uncollected:
    """A file or class whose tests could not be collected.

    what: its id
    is_skipped: whether it is skipped on purpose
    message: the reason
    """

    what: str
    is_skipped: bool
    message: str


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of pytest.

    completed: the completed process
    tests: the result of each test, in the order in which they finished
    collected: the tests that pytest selected
    uncollected: files and classes that could not be collected
    running: tests that were started but not finished, in the order of their start
    loaded: files that were imported
    overrode: options of pytest that were turned off, since they hide results
    has_opened: whether pytest started
    exit_status: the exit status that pytest reported; None if it did not finish
    """

    completed: Completed
    tests: Mapping[str, PytestResult] = field(default_factory=dict)
    collected: frozenset[str] = frozenset()
    uncollected: tuple[Uncollected, ...] = ()
    running: tuple[str, ...] = ()
    loaded: frozenset[str] = frozenset()
    overrode: tuple[str, ...] = ()
    has_opened: bool = False
    exit_status: int | None = None


def read_run(completed: Completed) -> SuiteRun:
    """Parse the reports of a completed pytest process."""
    tests: dict[str, PytestResult] = {}
    running: dict[str, None] = {}
    collected: set[str] = set()
    loaded: set[str] = set()
    uncollected: list[Uncollected] = []
    overrode: tuple[str, ...] = ()
    has_opened, exit_status = False, None
    for report in _parse_lines(completed.channel):
        match report:
            case {"started": str(name)}:
                running[clean(name, MAX_ID)] = None
            case {"finished": str(name), "outcome": str(outcome)} if outcome in _WORST_LAST:
                name = clean(name, MAX_ID)
                result = _build_result(PytestOutcome(outcome), report)
                tests[name] = tests[name].joined(result) if name in tests else result
                running.pop(name, None)
            case {"collected": list(names)}:
                collected.update(_clean_texts(names, MAX_ID))
            case {"uncollected": str(name), "outcome": outcome}:
                message = clean(report.get("message"), MAX_MESSAGE)
                what = clean(name, MAX_ID)
                uncollected.append(Uncollected(what, outcome == "skipped", message))
            case {"loaded": list(names)}:
                loaded.update(_clean_texts(names, MAX_PATH))
            case {"closed": int(status)}:
                exit_status = status
            case {"opened": _, "overrode": list(names)}:
                has_opened, overrode = True, tuple(_clean_texts(names, MAX_ID))
    return SuiteRun(
        completed=completed,
        tests=tests,
        collected=frozenset(collected),
        uncollected=tuple(uncollected),
        running=tuple(running),
        loaded=frozenset(loaded),
        overrode=overrode,
        has_opened=has_opened,
        exit_status=exit_status,
    )


def _parse_lines(channel: bytes) -> Iterator[dict[str, Any]]:
    """Yield every complete line that is a JSON object."""
    *lines, _unfinished = channel.split(b"\n", MAX_LINES)
    for line in lines:
        if not line.startswith(b"{"):
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _build_result(outcome: PytestOutcome, report: dict[str, Any]) -> PytestResult:
    match report:
        case {"left": str(left), "right": str(right)}:
            differences: tuple[Difference, ...] = (
                Difference(
                    "left == right: actual is the left side, expected the right",
                    expected=clean(right, MAX_VALUE),
                    actual=clean(left, MAX_VALUE),
                ),
            )
        case _:
            differences = ()
    seconds = report.get("seconds")
    return PytestResult(
        outcome,
        clean(report.get("message"), MAX_MESSAGE),
        differences,
        seconds if isinstance(seconds, float) and 0 <= seconds < math.inf else 0.0,
    )


def _clean_texts(values: list[Any], max_length: int) -> Iterator[str]:
    return (clean(value, max_length) for value in values if isinstance(value, str))


def clean(text: object, max_length: int) -> str:
    """Return text that can be stored: short, without lone surrogates; empty if it isn't text."""
    if not isinstance(text, str):
        return ""
    return text[:max_length].encode("utf-8", "backslashreplace").decode("utf-8")
