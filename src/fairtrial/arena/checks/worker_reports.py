"""Parse the reports of function workers, and compare the outcomes of calls.

A report comes from a process that runs a candidate's code: it may be forged, and nothing here
raises because of its content. It has one line per call, in order, and a closing line; parsing stops
at any other line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fairtrial.arena.checks.comparison_rules import (
    SPARE_BYTES,
    ComparisonBudget,
    ComparisonRules,
    is_oversized,
)
from fairtrial.arena.checks.encoded_values import TAG, Encoded
from fairtrial.arena.checks.value_comparison import MAX_DIFFERENCES, Differences, compare
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference
from fairtrial.sandbox import wire

CallOutcome = Mapping[str, Any]
"""The report of one call: ``result`` or ``raised``, ``output``, ``after``: the arguments after the
call (None if they are unchanged), and ``awaited`` if it returned a coroutine."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The report of a worker.

    lines: the outcomes of the calls, in order, as JSON
    is_complete: whether it holds all calls and the closing line, and nothing else
    files: the files of the modules that were loaded
    failed: the closing line with the exception, if the function couldn't be imported
    stray: the first unexpected line
    changes: settings of the process that the function has changed and not restored
    """

    lines: tuple[bytes, ...] = ()
    is_complete: bool = False
    files: frozenset[str] = frozenset()
    failed: Mapping[str, Any] = field(default_factory=dict)
    stray: bytes = b""
    changes: frozenset[str] = frozenset()


def read_report(channel: bytes, cases: int) -> WorkerReport:
    """Parse a report on this number of cases, up to the first unexpected line."""
    # Not split further: a forged report may consist of line ends.
    whole = channel.split(b"\n", cases + 2)[:-1]  # the rest is empty, or not expected
    lines: list[bytes] = []
    for line in whole[:cases]:
        if not line.startswith(b'{"case":%d,' % len(lines)):
            break
        lines.append(line)
    rest = whole[len(lines) :]
    closing = read_line(rest[0]) if rest and len(rest[0]) <= SPARE_BYTES else {}
    match closing:
        case {"done": done, "files": list(files)} if done == cases == len(lines):
            loaded, changes = (
                frozenset(item for item in items if isinstance(item, str))
                for items in (files, closing.get("changes") or ())
            )
            is_complete = len(rest) == 1 and channel.endswith(rest[0] + b"\n")
            stray = b"" if is_complete else b"".join(rest[1:2])
            return WorkerReport(tuple(lines), is_complete, loaded, stray=stray, changes=changes)
        case {"failed": {"type": str(), "args": list()}} if not lines:
            return WorkerReport(failed=closing)
    return WorkerReport(tuple(lines), stray=b"".join(rest[:1]))


def read_line(line: bytes) -> Mapping[str, Any]:
    """Parse a line as a JSON object; return an empty one if that fails."""
    try:
        data = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def read_outcome(line: bytes, expected: bytes) -> CallOutcome:
    """Parse a line of a report that may be forged; `expected` is the base's line.

    A line that is far longer than the base's is not parsed: that would take many times its size.
    """
    if is_oversized(line, expected):
        return {"oversized": len(line)}
    return read_line(line)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} isn't JSON")


def encode_exception(raised: Any) -> Encoded:
    """Return a reported exception as an encoded value."""
    return {TAG: "exception", **{key: raised[key] for key in _EXCEPTION_KEYS if key in raised}}


_EXCEPTION_KEYS = ("type", "args", "state", "bases")


def describe_import_failure(failed: Mapping[str, Any]) -> str:
    """Return why a function couldn't be imported: the exception and its traceback."""
    text = render(encode_exception(failed["failed"]), 500)
    trace = failed.get("traceback")
    if not (trace and isinstance(trace, str)):
        return text
    *frames, last = trace.strip().splitlines() or [""]
    # The last line of a traceback is mostly the exception, which is shown only once.
    summary = last if last.startswith(text.partition("(")[0]) else f"{text}\n{last}"
    return "\n".join([summary, *frames])


def make_rules(check: Check, budget: ComparisonBudget | None = None) -> ComparisonRules:
    """Return how a check compares values; `budget` is shared by the calls of one report."""
    return ComparisonRules(
        check.rel_tol,
        check.abs_tol,
        dict_order=check.dict_order == "strict",
        array_layout=check.array_layout == "strict",
        more_attributes=check.attributes == "any",
        budget=budget or ComparisonBudget(),
    )


def compare_outcomes(
    expected: CallOutcome, actual: CallOutcome, case: Mapping[str, Any], rules: ComparisonRules
) -> Differences:
    """Return the differences between the expected and the actual outcome of a call."""
    parts = [_compare_results(expected, actual, rules)]
    parts.append(compare(expected.get("output"), actual.get("output"), rules, "output"))
    if expected.get("after") is not None or actual.get("after") is not None:
        for name in ("args", "kwargs"):
            one, other = (_get_after(outcome, case, name) for outcome in (expected, actual))
            parts.append(compare(one, other, rules, f"after the call, {name}"))
    return join_differences(parts)


def is_same_text(one: CallOutcome, other: CallOutcome) -> bool:
    """Return whether two outcomes of the base are equal as JSON, which is quick to find out."""
    return wire.dump_encoded(one) == wire.dump_encoded(other)


def join_differences(parts: Sequence[Differences]) -> Differences:
    """Return several differences as one."""
    first = tuple(difference for part in parts for difference in part.first)[:MAX_DIFFERENCES]
    return Differences(first, sum(part.count for part in parts))


def _get_after(outcome: CallOutcome, case: Mapping[str, Any], name: str) -> Encoded:
    after = outcome.get("after")
    if after is None:
        return case[name]
    return after.get(name) if isinstance(after, dict) else None


def _compare_results(
    expected: CallOutcome, actual: CallOutcome, rules: ComparisonRules
) -> Differences:
    """Compare results or exceptions."""
    kinds = [_describe_returned(outcome) for outcome in (expected, actual)]
    if kinds[0] != kinds[1]:
        return Differences((Difference("what the call returns", *kinds),), 1)
    if "result" in expected and "result" in actual:
        return compare(expected["result"], actual["result"], rules, "result")
    if "raised" in expected and _is_raised(actual):
        one, other = (encode_exception(outcome["raised"]) for outcome in (expected, actual))
        return compare(one, other, rules, "the exception")
    return Differences(
        (Difference("result", _describe_result(expected), _describe_result(actual)),), 1
    )


def _describe_returned(outcome: CallOutcome) -> str:
    return "a coroutine, to be awaited" if outcome.get("awaited") else "its result"


def _is_raised(outcome: CallOutcome) -> bool:
    match outcome:
        case {"raised": {"type": str(), "args": list()}}:
            return "result" not in outcome
    return False


def _describe_result(outcome: CallOutcome) -> str:
    if _is_raised(outcome):
        return f"raised {render(encode_exception(outcome['raised']))}"
    if isinstance(outcome.get("unusable"), str):
        return f"arguments that can't be made there: {render(outcome['unusable'], 300)}"
    if "oversized" in outcome:
        return f"a report of {outcome['oversized']:,} bytes, which is too long to be read"
    return render(outcome["result"]) if "result" in outcome else "nothing that can be read"
