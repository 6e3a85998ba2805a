"""Profiles by line: where base and winner spend their time, each in a slot.

A profile explains; it is no measurement. Tracing slows code down, short lines more than long ones;
that overhead is large, and is subtracted as far as it is known. Shares are approximate. Only the
bench measures speed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fairtrial.arena.arena import Arena
from fairtrial.arena.checks.function_check import OUTPUT_BYTES, make_inputs
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck, name_some, pytest_command
from fairtrial.arena.delivery.tracing import LineTrace, TraceRequest, can_trace, trace
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.problem import Benchmark, Check
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.function_benchmark import benchmark_job
from fairtrial.arena.timing.suite_benchmark import NAME, choose_slowest
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import Command

MOST_LINES = 8
"""How many lines of each side are reported."""
MOST_BENCHMARKS = 4
"""How many benchmarks are profiled."""
CALLS = 20
SPEND_S, LIMIT_S = 3.0, 60.0
TESTS_S = 10.0
"""The total time of the slowest tests that is enough for a profile."""


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line and its time.

    path, line: where it is; lines count from 1
    text: its text
    hits: how often it was run
    seconds: its time with all that it runs, except for other lines of the editable files; without
        the overhead of tracing, where that is known
    share: its share of the time of all lines
    """

    path: str
    line: int
    text: str
    hits: int
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class ProfileSide:
    """The profile of the base or the winner.

    lines: the slowest lines, the slowest first
    seconds: how long it took while it was traced
    plain_s: how long the same takes otherwise; None if that isn't known
    calls: the number of calls, if it was a function
    notes: why it is incomplete
    """

    lines: tuple[HotLine, ...]
    seconds: float
    plain_s: float | None = None
    calls: int = 0
    notes: tuple[str, ...] = ()

    @property
    def slowdown(self) -> float | None:
        """How many times as long it took because of tracing; None if that isn't known."""
        return self.seconds / self.plain_s if self.plain_s else None


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """The profile of one benchmark.

    what: its name and what it runs
    base, winner: the profiles of both; no winner if only the base was profiled
    """

    what: str
    base: ProfileSide
    winner: ProfileSide | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Profiles of base and winner.

    parts: one for each benchmark
    failures: what could not be profiled, and why
    """

    parts: tuple[ProfileEntry, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is profiled.

    what: its name and what it runs
    request: what is traced
    make: returns the command; None for calls
    """

    what: str
    request: TraceRequest
    make: Callable[[Stage], Command] | None = None


async def profile_winner(arena: Arena, changes: Changes | None) -> Profile:
    """Profile the benchmarks by line on the base and on the winner.

    A benchmark that can't be profiled becomes an entry in `failures` instead of an error.

    changes: the winner; None to profile the base alone
    """
    resources = arena.resources
    parts: list[ProfileEntry] = []
    failures: list[str] = []
    suite = next((check for check in arena.checks if isinstance(check, PreparedPytestCheck)), None)
    try:
        sources = await arena.sources()
    except Exception as error:
        return Profile(failures=(_error_text(error),))
    request = _make_request(sources, changes)
    for benchmark in resources.problem.bench[:MOST_BENCHMARKS]:
        try:
            subject = await _find_subject(resources, benchmark, request)
            parts.append(await _profile(resources, changes, subject, sources))
        except Exception as error:  # a profile explains; it must not cost anything else
            failures.append(f"{benchmark.name}: {_error_text(error)}")
    if not parts and suite is not None:
        try:
            parts.append(await _profile(resources, changes, _find_tests(suite, request), sources))
        except Exception as error:
            failures.append(f"{suite.label}: {_error_text(error)}")
    if not parts and not failures:
        failures.append("nothing that is timed is Python that can be traced")
    return Profile(tuple(parts), tuple(failures))


def _error_text(error: Exception) -> str:
    is_ours = isinstance(error, LabError | StudyError)
    return str(error) if is_ours else f"{type(error).__name__}: {error}"


def _make_request(sources: Mapping[str, str], changes: Changes | None) -> TraceRequest:
    added = [path for path, state in changes.files.items() if state] if changes else []
    paths = {path for path in (*sources, *added) if path.endswith((".py", ".pyw"))}
    return TraceRequest(tuple(sorted(paths)), timed=True, limit_s=LIMIT_S, spend_s=SPEND_S)


async def _find_subject(
    resources: ArenaResources, benchmark: Benchmark, request: TraceRequest
) -> _Subject:
    if not benchmark.call:
        if not can_trace(benchmark.command):
            raise LabError(f"{benchmark.command[0]} is not Python, or is called with options of it")
        if benchmark.inputs:
            raise LabError("commands whose input files are made for each run are not profiled")
        what = f"{benchmark.name}: {benchmark.command_text}"
        return _Subject(what, request, _command_maker(benchmark))
    label = f"bench[{benchmark.name}]"
    check = Check(function=benchmark.call, inputs=benchmark.inputs, cases=CALLS)
    calls = await make_inputs(label, check, resources, secrets.token_hex(16))
    job = benchmark_job(benchmark, check)
    cases = [call.case for call in calls]
    request = replace(request, calls={**job, "output_bytes": OUTPUT_BYTES, "cases": cases})
    return _Subject(f"{benchmark.name}: {benchmark.call}", request)


def _command_maker(benchmark: Benchmark) -> Callable[[Stage], Command]:
    return lambda stage: stage.command(benchmark.command, timeout_s=LIMIT_S)


def _find_tests(suite: PreparedPytestCheck, request: TraceRequest) -> _Subject:
    tests = choose_slowest(suite.durations, enough_s=TESTS_S)

    def make(stage: Stage) -> Command:
        return pytest_command(stage, suite.check, only=tests)

    return _Subject(f"{NAME} of {suite.label}: {name_some(tests)}", request, make)


async def _profile(
    resources: ArenaResources,
    changes: Changes | None,
    subject: _Subject,
    sources: Mapping[str, str],
) -> ProfileEntry:
    base = await trace(resources, None, subject.request, subject.make)
    if changes is None:
        return ProfileEntry(subject.what, _make_side(base, sources))
    # As many calls as the base had time for, with the same inputs: shares of equal work.
    request = replace(subject.request, count=max(base.done, 1))
    winner = await trace(resources, changes, request, subject.make)
    after = {
        path: state.content.decode("utf-8", "replace")
        for path, state in changes.files.items()
        if state is not None
    }
    sides = _make_side(base, sources), _make_side(winner, {**sources, **after})
    return ProfileEntry(subject.what, *sides)


def _make_side(line_trace: LineTrace, sources: Mapping[str, str]) -> ProfileSide:
    times = subtract_overhead(line_trace)
    total_s = sum(times.values())
    slowest = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    texts: dict[str, list[str]] = {}
    lines = []
    for (path, line), seconds in slowest[:MOST_LINES]:
        rows = texts.setdefault(path, sources.get(path, "").splitlines())
        text = rows[line - 1].strip() if 0 < line <= len(rows) else ""
        share = seconds / total_s if total_s > 0 else 0.0
        lines.append(HotLine(path, line, text, line_trace.lines[path, line][0], seconds, share))
    notes = list(line_trace.trouble)
    if not lines:
        notes.append("no line of an editable file was run in the traced process")
    return ProfileSide(
        tuple(lines), line_trace.seconds, line_trace.plain_s, line_trace.done, tuple(notes)
    )


def subtract_overhead(line_trace: LineTrace) -> dict[tuple[str, int], float]:
    """Return the time of each line without the overhead of tracing, as far as it is known.

    The overhead of each line that is reached is about the same; without it, all lines take
    `plain_s` together.
    """
    hits = sum(count for count, _ in line_trace.lines.values())
    total_s = sum(seconds for _, seconds in line_trace.lines.values())
    plain_s = total_s if line_trace.plain_s is None else line_trace.plain_s
    overhead_s = max(0.0, total_s - plain_s) / max(hits, 1)
    times = {
        location: max(0.0, seconds - count * overhead_s)
        for location, (count, seconds) in line_trace.lines.items()
    }
    if any(times.values()):
        return times
    return {location: seconds for location, (_, seconds) in line_trace.lines.items()}
