"""Where the time goes, line by line: the base and the winner side by side, each in a slot.

A profile explains; it measures nothing. Looking on makes code slower, and short lines more so than
long ones; that is taken off as well as it can be, and is large. Shares are to be read as "about",
and how fast something is says the bench alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fairtrial.arena.arena import Arena
from fairtrial.arena.checks.function_check import OUTPUT_BYTES, make_inputs
from fairtrial.arena.checks.pytest_check import SuiteTrial, name_some, pytest_command
from fairtrial.arena.delivery.markdown_quoting import spell_command
from fairtrial.arena.delivery.tracing import Order, Traced, can_trace, trace
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.problem import Benchmark, Check
from fairtrial.arena.resources import Ground
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.test_benchmark import NAME, choose_slowest
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import Caps, Command

MOST_LINES = 8
"""How many lines of each side are told."""
MOST_PARTS = 4
"""How many benchmarks are looked at."""
CALLS = 20
SPEND_S, LIMIT_S = 3.0, 60.0
TESTS_S = 10.0
"""So much of the slowest tests is enough."""


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line, and what it takes.

    path, line: where it is; lines count from 1
    text: what stands there
    hits: how often it was run
    seconds: how long it took with all that it runs, but for other lines of the editable files;
        without what looking on took, where that is known
    share: the same as a share of what all lines took
    """

    path: str
    line: int
    text: str
    hits: int
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Side:
    """The base, or the winner.

    lines: those that took longest, the longest first
    seconds: how long it took while we looked on
    plain_s: how long the same takes otherwise; None if that isn't known
    calls: how many calls it was, if it was calls
    notes: what makes it incomplete
    """

    lines: tuple[HotLine, ...]
    seconds: float
    plain_s: float | None = None
    calls: int = 0
    notes: tuple[str, ...] = ()

    @property
    def slowdown(self) -> float | None:
        """How many times as long it took because we looked on; None if that isn't known."""
        return self.seconds / self.plain_s if self.plain_s else None


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was run on both sides.

    what: its name and what it runs
    base, winner: what was seen; no winner where only the base was asked for
    """

    what: str
    base: Side
    winner: Side | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """What a look at both sides came to.

    parts: benchmark by benchmark
    failures: what could not be profiled, and why: it costs nothing else
    """

    parts: tuple[Part, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Subject:
    """Something that can be looked at: calls with their inputs, or a command."""

    what: str
    order: Order
    make: Callable[[Stage], Command] | None = None


async def profile(arena: Arena, changes: Changes | None) -> Profile:
    """Look at what is timed, by line, on the base and on the winner; never raises."""
    ground, trials, _ = arena.parts()
    parts: list[Part] = []
    failures: list[str] = []
    suite = next((trial for trial in trials if isinstance(trial, SuiteTrial)), None)
    try:
        sources = await arena.sources()
    except Exception as error:
        return Profile(failures=(_tell(error),))
    order = _order(sources, changes)
    for benchmark in ground.problem.bench[:MOST_PARTS]:
        try:
            subject = await _find_subject(ground, benchmark, order)
            parts.append(await _look(ground, changes, subject, sources))
        except Exception as error:  # a profile explains; it must not cost anything else
            failures.append(f"{benchmark.name}: {_tell(error)}")
    if not parts and suite is not None:
        try:
            parts.append(await _look(ground, changes, _find_tests(suite, order), sources))
        except Exception as error:
            failures.append(f"{suite.label}: {_tell(error)}")
    if not parts and not failures:
        failures.append("nothing that is timed is Python that we can look at")
    return Profile(tuple(parts), tuple(failures))


def _tell(error: Exception) -> str:
    is_ours = isinstance(error, LabError | StudyError)
    return str(error) if is_ours else f"{type(error).__name__}: {error}"


def _order(sources: Mapping[str, str], changes: Changes | None) -> Order:
    added = [path for path, state in changes.files.items() if state] if changes else []
    paths = {path for path in (*sources, *added) if path.endswith((".py", ".pyw"))}
    return Order(tuple(sorted(paths)), timed=True, limit_s=LIMIT_S, spend_s=SPEND_S)


async def _find_subject(ground: Ground, benchmark: Benchmark, order: Order) -> _Subject:
    if not benchmark.call:
        if not can_trace(benchmark.command):
            raise LabError(f"{benchmark.command[0]} is not Python, or is called with options of it")
        what = f"{benchmark.name}: {spell_command(benchmark.command)}"
        make = _making(benchmark)
        return _Subject(what, order, make)
    label = f"bench[{benchmark.name}]"
    check = Check(function=benchmark.call, inputs=benchmark.inputs, cases=CALLS)
    calls = await make_inputs(label, check, ground, secrets.token_hex(16))
    job = {"function": benchmark.call, "view": "", "caps": list(Caps())}
    cases = [call.case for call in calls]
    order = replace(order, calls={**job, "output_bytes": OUTPUT_BYTES, "cases": cases})
    return _Subject(f"{benchmark.name}: {benchmark.call}", order)


def _making(benchmark: Benchmark) -> Callable[[Stage], Command]:
    return lambda stage: stage.command(benchmark.command, timeout_s=LIMIT_S)


def _find_tests(suite: SuiteTrial, order: Order) -> _Subject:
    tests = choose_slowest(suite.durations, enough_s=TESTS_S)

    def make(stage: Stage) -> Command:
        return pytest_command(stage, suite.check, only=tests)

    return _Subject(f"{NAME} of {suite.label}: {name_some(tests)}", order, make)


async def _look(
    ground: Ground, changes: Changes | None, subject: _Subject, sources: Mapping[str, str]
) -> Part:
    base = await trace(ground, None, subject.order, subject.make)
    if changes is None:
        return Part(subject.what, _side(base, sources))
    # As many calls as the base had time for, with the same inputs: shares of the same work.
    order = replace(subject.order, count=max(base.done, 1))
    winner = await trace(ground, changes, order, subject.make)
    after = {
        path: state.content.decode("utf-8", "replace")
        for path, state in changes.files.items()
        if state is not None
    }
    return Part(subject.what, _side(base, sources), _side(winner, {**sources, **after}))


def _side(traced: Traced, sources: Mapping[str, str]) -> Side:
    times = take_off(traced)
    total_s = sum(times.values())
    slowest = sorted(times.items(), key=lambda each: (-each[1], each[0]))
    texts: dict[str, list[str]] = {}
    lines = []
    for (path, line), seconds in slowest[:MOST_LINES]:
        rows = texts.setdefault(path, sources.get(path, "").splitlines())
        text = rows[line - 1].strip() if 0 < line <= len(rows) else ""
        share = seconds / total_s if total_s > 0 else 0.0
        lines.append(HotLine(path, line, text, traced.lines[path, line][0], seconds, share))
    notes = list(traced.trouble)
    if not lines:
        notes.append("no line of an editable file was run in the process that we looked at")
    return Side(tuple(lines), traced.seconds, traced.plain_s, traced.done, tuple(notes))


def take_off(traced: Traced) -> dict[tuple[str, int], float]:
    """The lines' times without what looking on took, as far as that is known.

    Every line that is reached costs us about the same; without us, all took `plain_s` together.
    """
    hits = sum(count for count, _ in traced.lines.values())
    total_s = sum(seconds for _, seconds in traced.lines.values())
    plain_s = total_s if traced.plain_s is None else traced.plain_s
    each_s = max(0.0, total_s - plain_s) / max(hits, 1)
    times = {place: max(0.0, s - count * each_s) for place, (count, s) in traced.lines.items()}
    return times if any(times.values()) else {place: s for place, (_, s) in traced.lines.items()}
