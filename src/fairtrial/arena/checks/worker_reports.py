"""What a worker reported: read, and held against what was expected.

A report comes from a process that runs a candidate's code: all of it may be forged, and nothing
here raises because of it. One line for each call, in order, then a closing one; whatever else
stands on the channel ends the reading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fairtrial.arena.checks.value_comparison import MOST, Differences, compare
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference
from fairtrial.sandbox import TAG, Encoded

Outcome = Mapping[str, Any]
"""One call's report: ``result`` or ``raised``, ``output``, and ``after``, its arguments (None if
they are as they were)."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a worker said.

    lines: the calls' outcomes as they came, in order
    is_complete: whether all calls and the closing line are there, and nothing else
    files: the files of the modules that were loaded
    failed: why the function couldn't be imported, if so
    stray: the first line that doesn't belong there
    """

    lines: tuple[bytes, ...] = ()
    is_complete: bool = False
    files: frozenset[str] = frozenset()
    failed: Mapping[str, Any] = field(default_factory=dict)
    stray: bytes = b""


def read_report(channel: bytes, cases: int) -> Report:
    """Take the report apart as far as it makes sense."""
    whole = channel.split(b"\n")[:-1]  # after the last line's end there is nothing, or half a line
    lines: list[bytes] = []
    for line in whole[:cases]:
        if not line.startswith(b'{"case":%d,' % len(lines)):
            break
        lines.append(line)
    rest = whole[len(lines) :]
    closing = read_line(rest[0]) if rest else {}
    match closing:
        case {"done": done, "files": list(files)} if done == cases == len(lines):
            loaded = frozenset(file for file in files if isinstance(file, str))
            is_complete = len(rest) == 1 and channel.endswith(rest[0] + b"\n")
            stray = b"" if is_complete else b"".join(rest[1:2])
            return Report(tuple(lines), is_complete, loaded, stray=stray)
        case {"failed": {"type": str(), "args": list()}} if not lines:
            return Report(failed=closing)
    return Report(tuple(lines), stray=b"".join(rest[:1]))


def read_line(line: bytes) -> Mapping[str, Any]:
    """One line's JSON; empty if there is none to be read."""
    try:
        read = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} isn't JSON")


def spell_raised(raised: Any) -> Encoded:
    """A raised exception as an encoded value."""
    return {TAG: "exception", "type": raised["type"], "args": raised["args"]}


def spell_failed(failed: Mapping[str, Any]) -> str:
    """Why a function couldn't be imported: the exception, and where it came from."""
    text = render(spell_raised(failed["failed"]), 500)
    trace = failed.get("traceback")
    if not (trace and isinstance(trace, str)):
        return text
    *frames, last = trace.strip().splitlines() or [""]
    # The last line of a traceback is mostly the exception: once is enough.
    said = last if last.startswith(text.partition("(")[0]) else f"{text}\n{last}"
    return "\n".join([said, *frames])


def compare_outcomes(
    expected: Outcome, actual: Outcome, case: Mapping[str, Any], check: Check
) -> Differences:
    """Where a call's outcome is not what it should be."""
    parts = [_compare_ends(expected, actual, check)]
    parts.append(_compare(expected.get("output"), actual.get("output"), "output", check))
    if expected.get("after") is not None or actual.get("after") is not None:
        for name in ("args", "kwargs"):
            one, other = (_after(each, case, name) for each in (expected, actual))
            parts.append(_compare(one, other, f"after the call, {name}", check))
    first = tuple(difference for part in parts for difference in part.first)[:MOST]
    return Differences(first, sum(part.count for part in parts))


def _compare(expected: Encoded, actual: Encoded, where: str, check: Check) -> Differences:
    return compare(expected, actual, rel_tol=check.rel_tol, abs_tol=check.abs_tol, where=where)


def _after(outcome: Outcome, case: Mapping[str, Any], name: str) -> Encoded:
    after = outcome.get("after")
    if after is None:
        return case[name]
    return after.get(name) if isinstance(after, dict) else None


def _compare_ends(expected: Outcome, actual: Outcome, check: Check) -> Differences:
    """What the calls gave or raised."""
    if "result" in expected and "result" in actual:
        return _compare(expected["result"], actual["result"], "result", check)
    if "raised" in expected and _is_raised(actual):
        one, other = (spell_raised(outcome["raised"]) for outcome in (expected, actual))
        return _compare(one, other, "the exception", check)
    return Differences((Difference("result", _tell_end(expected), _tell_end(actual)),), 1)


def _is_raised(outcome: Outcome) -> bool:
    match outcome:
        case {"raised": {"type": str(), "args": list()}}:
            return "result" not in outcome
    return False


def _tell_end(outcome: Outcome) -> str:
    if _is_raised(outcome):
        return f"raised {render(spell_raised(outcome['raised']))}"
    return render(outcome["result"]) if "result" in outcome else "nothing that can be read"
