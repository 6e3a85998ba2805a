"""What a run of pytest reported about its tests, read with suspicion.

`guest/plugin/fairtrial_pytest.py` writes it, but in a process that runs a candidate's code, so
anything may. Whatever is not a report is left out; of two reports on one test the worse counts.
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

LONGEST_ID, LONGEST_MESSAGE, LONGEST_VALUE, LONGEST_PATH = 1_000, 8_000, 1_000, 5_000
MOST_LINES = 1_000_000
"""Enough for 400,000 tests; reading a flood of empty lines to its end would take minutes."""


class Outcome(StrEnum):
    """What came of one test, the worst last."""

    PASSED = "passed"
    XPASSED = "xpassed"
    XFAILED = "xfailed"
    SKIPPED = "skipped"
    INCOMPLETE = "incomplete"
    """it was set up, but not run to its end"""
    ERROR = "error"
    """setting it up or tearing it down failed"""
    FAILED = "failed"


_WORST_LAST = list(Outcome)


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of one test.

    outcome: the worst that was reported
    message: why it is not `passed`
    differences: the two sides of the assertion that failed, where pytest knew them
    seconds: how long it took
    times: how often it was reported; ids are not always unique
    """

    outcome: Outcome
    message: str = ""
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0
    times: int = 1

    def joined(self, other: Told) -> Told:
        """Both reports in one: the worse, and all the time that went into them."""
        worse = max(self, other, key=lambda told: _WORST_LAST.index(told.outcome))
        seconds = self.seconds + other.seconds
        return replace(worse, seconds=seconds, times=self.times + other.times)


@dataclass(frozen=True, slots=True)
class Uncollected:
    """A file or class whose tests could not be collected.

    what: its id
    is_skipped: whether it asked to be skipped
    message: why
    """

    what: str
    is_skipped: bool
    message: str


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of pytest.

    completed: what came of the process
    tests: what was told of each test, in the order they finished
    collected: the tests that pytest meant to run
    uncollected: what it could not collect
    running: tests that were started and not finished, in the order they started
    loaded: files that were imported
    overrode: pytest's options that would have hidden results and were turned off
    has_opened: whether pytest started at all
    exit_status: what pytest said at its end; None if it didn't get there
    """

    completed: Completed
    tests: Mapping[str, Told] = field(default_factory=dict)
    collected: frozenset[str] = frozenset()
    uncollected: tuple[Uncollected, ...] = ()
    running: tuple[str, ...] = ()
    loaded: frozenset[str] = frozenset()
    overrode: tuple[str, ...] = ()
    has_opened: bool = False
    exit_status: int | None = None


def read_run(completed: Completed) -> SuiteRun:
    """The run that these reports tell of."""
    tests: dict[str, Told] = {}
    running: dict[str, None] = {}
    collected: set[str] = set()
    loaded: set[str] = set()
    uncollected: list[Uncollected] = []
    overrode: tuple[str, ...] = ()
    has_opened, exit_status = False, None
    for report in _reports(completed.channel):
        match report:
            case {"started": str(name)}:
                running[clean(name, LONGEST_ID)] = None
            case {"finished": str(name), "outcome": str(outcome)} if outcome in _WORST_LAST:
                name = clean(name, LONGEST_ID)
                told = _told(Outcome(outcome), report)
                tests[name] = tests[name].joined(told) if name in tests else told
                running.pop(name, None)
            case {"collected": list(names)}:
                collected.update(_texts(names, LONGEST_ID))
            case {"uncollected": str(name), "outcome": outcome}:
                why = clean(report.get("message"), LONGEST_MESSAGE)
                what = clean(name, LONGEST_ID)
                uncollected.append(Uncollected(what, outcome == "skipped", why))
            case {"loaded": list(names)}:
                loaded.update(_texts(names, LONGEST_PATH))
            case {"closed": int(status)}:
                exit_status = status
            case {"opened": _, "overrode": list(names)}:
                has_opened, overrode = True, tuple(_texts(names, LONGEST_ID))
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


def _reports(channel: bytes) -> Iterator[dict[str, Any]]:
    """Every line that is a JSON object; the last only if it is complete."""
    *lines, _unfinished = channel.split(b"\n", MOST_LINES)
    for line in lines:
        if not line.startswith(b"{"):
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _told(outcome: Outcome, report: dict[str, Any]) -> Told:
    match report:
        case {"left": str(left), "right": str(right)}:
            differences: tuple[Difference, ...] = (
                Difference(
                    "left == right: actual is the left side, expected the right",
                    expected=clean(right, LONGEST_VALUE),
                    actual=clean(left, LONGEST_VALUE),
                ),
            )
        case _:
            differences = ()
    seconds = report.get("seconds")
    return Told(
        outcome,
        clean(report.get("message"), LONGEST_MESSAGE),
        differences,
        seconds if isinstance(seconds, float) and 0 <= seconds < math.inf else 0.0,
    )


def _texts(values: list[Any], longest: int) -> Iterator[str]:
    return (clean(value, longest) for value in values if isinstance(value, str))


def clean(text: object, longest: int) -> str:
    """Text that can be stored and shown: short enough, no lone surrogates; empty if it is none."""
    if not isinstance(text, str):
        return ""
    return text[:longest].encode("utf-8", "backslashreplace").decode("utf-8")
