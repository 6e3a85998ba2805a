"""Coverage of the winner's changes: which changed lines the checks run, and which they don't.

A check is no evidence for a line that it never runs. Processes that a check starts are not traced:
lines that run only there count as not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from fairtrial.arena.arena import Arena
from fairtrial.arena.checks.command_check import PreparedCommandCheck, plain_command
from fairtrial.arena.checks.function_check import PreparedFunctionCheck
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck, pytest_command
from fairtrial.arena.delivery.edits import find_differing
from fairtrial.arena.delivery.tracing import LineTrace, TraceRequest, can_trace, trace
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.problem import Check
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.stage import Stage
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import Command

ENDINGS = (".py", ".pyw")
LONGEST_S = 600.0
"""How long one check may take while it is traced, which makes it slower."""


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Consecutive lines of a file.

    path: the file
    first, last: the first and the last line, counted from 1
    """

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a change the checks run.

    changed: number of new or changed lines with code
    executed: how many of them some check runs
    missed: the lines that none runs
    unfollowed: changed files that can't be traced because they aren't Python
    notes: why it is incomplete; with any, lines in `missed` may have been run
    """

    changed: int = 0
    executed: int = 0
    missed: tuple[LineSpan, ...] = ()
    unfollowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """The share of changed lines that is run; None if there are none with code."""
        return self.executed / self.changed if self.changed else None


async def measure_coverage(arena: Arena, changes: Changes) -> Coverage:
    """Run each check on the winner once more, traced; return which changed lines it runs.

    A check that can't be traced becomes a note instead of an error.
    """
    kept = [path for path, state in changes.files.items() if state and not state.is_link]
    paths = tuple(sorted(path for path in kept if path.endswith(ENDINGS)))
    unfollowed = tuple(sorted(set(kept) - set(paths)))
    if not paths:
        return Coverage(unfollowed=unfollowed)
    request = TraceRequest(paths, compiled=paths)
    traces: list[LineTrace] = []
    notes: list[str] = []
    for check in arena.checks:
        try:
            line_trace = await _trace_check(arena.resources, changes, check, request)
            notes += [f"{check.label}: {text}" for text in line_trace.trouble]
            traces.append(line_trace)
        except Exception as error:  # missing evidence is reported, and costs nothing else
            is_ours = isinstance(error, LabError | StudyError)
            text = str(error) if is_ours else f"{type(error).__name__}: {error}"
            notes.append(f"{check.label} could not be traced: {text}")
    if not traces:
        return Coverage(unfollowed=unfollowed, notes=tuple(notes))
    try:
        changed = {path: _changed_lines(arena.resources, changes, path) for path in paths}
    except OSError as error:
        notes.append(f"the base can't be read: {error.strerror}")
        return Coverage(unfollowed=unfollowed, notes=tuple(notes))
    return _sum_up(changed, traces, unfollowed, notes)


async def _trace_check(
    resources: ArenaResources, changes: Changes, prepared: PreparedCheck, request: TraceRequest
) -> LineTrace:
    match prepared:
        case PreparedFunctionCheck(expectation=wanted):
            calls = json.loads(wanted.job)
            request = replace(request, calls=calls, limit_s=min(wanted.check.timeout_s, LONGEST_S))
            return await trace(resources, changes, request)
        case PreparedPytestCheck(check=check):
            make: Callable[[Stage], Command] = partial(_make_tests, check=check)
        case PreparedCommandCheck(check=check) if can_trace(check.command):
            make = partial(plain_command, check=check)
        case _:
            raise LabError("it is not Python, or is called with options of it")
    request = replace(request, limit_s=min(check.timeout_s, LONGEST_S))
    return await trace(resources, changes, request, make)


def _make_tests(stage: Stage, check: Check) -> Command:
    return pytest_command(stage, check)


def _changed_lines(resources: ArenaResources, changes: Changes, path: str) -> set[int]:
    state = changes.files[path]
    assert state is not None
    file: Path = resources.pool.base / path
    before = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
    differing = find_differing(before.splitlines(), state.content.splitlines())
    return {line + 1 for _, lines in differing for line in lines}


def _sum_up(
    changed: dict[str, set[int]],
    traces: Sequence[LineTrace],
    unfollowed: tuple[str, ...],
    notes: Sequence[str],
) -> Coverage:
    total = executed = 0
    missed: list[LineSpan] = []
    for path, lines in changed.items():
        code = frozenset[int]().union(
            *(line_trace.executable.get(path, ()) for line_trace in traces)
        )
        with_code = lines & code
        run = {
            line
            for line in with_code
            if any((path, line) in line_trace.lines for line_trace in traces)
        }
        total, executed = total + len(with_code), executed + len(run)
        missed += _spans(path, sorted(with_code - run), code)
    return Coverage(total, executed, tuple(missed), unfollowed, tuple(notes))


def _spans(path: str, lines: Iterable[int], code: Iterable[int]) -> Iterator[LineSpan]:
    """Group lines into spans; lines without code don't separate them."""
    ordered = sorted(code)
    following = dict(pairwise(ordered))
    first = last = None
    for line in lines:
        if last is not None and following.get(last) == line:
            last = line
            continue
        if first is not None and last is not None:
            yield LineSpan(path, first, last)
        first = last = line
    if first is not None and last is not None:
        yield LineSpan(path, first, last)
