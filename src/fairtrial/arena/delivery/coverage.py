"""Which of the lines that the winner changed the checks run; those that they don't are named.

A check that never runs a line says nothing about it. Processes that a check starts are not
followed: lines that run only there count as not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from fairtrial.arena.arena import Arena
from fairtrial.arena.checks.command_check import CommandTrial, plain_command
from fairtrial.arena.checks.function_check import FunctionTrial
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.checks.pytest_check import SuiteTrial, pytest_command
from fairtrial.arena.delivery.edits import find_differing
from fairtrial.arena.delivery.tracing import Order, Traced, can_trace, trace
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.problem import Check
from fairtrial.arena.resources import Ground
from fairtrial.arena.stage import Stage
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import Command

ENDINGS = (".py", ".pyw")
LONGEST_S = 600.0
"""How long one check may take while it is followed, which makes it slower."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some lines of a file, one after the other; both ends belong to it."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a change the checks run.

    changed: how many lines with code of their own are new or changed
    executed: how many of them some check runs
    missed: those that none runs
    unfollowed: changed files that can't be looked at: not Python
    notes: what makes it incomplete; with any, lines that are missed may have been run
    """

    changed: int = 0
    executed: int = 0
    missed: tuple[Span, ...] = ()
    unfollowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """How much of the change is run; None where there is nothing to run."""
        return self.executed / self.changed if self.changed else None


async def coverage(arena: Arena, changes: Changes) -> Coverage:
    """Which changed lines the checks run, each done once more on the winner; never raises."""
    ground, trials, _ = arena.parts()
    kept = [path for path, state in changes.files.items() if state and not state.is_link]
    paths = tuple(sorted(path for path in kept if path.endswith(ENDINGS)))
    unfollowed = tuple(sorted(set(kept) - set(paths)))
    if not paths:
        return Coverage(unfollowed=unfollowed)
    order = Order(paths, compiled=paths)
    found: list[Traced] = []
    notes: list[str] = []
    for trial in trials:
        try:
            traced = await _follow(ground, changes, trial, order)
            notes += [f"{trial.label}: {text}" for text in traced.trouble]
            found.append(traced)
        except Exception as error:  # what isn't known is said, and costs nothing else
            is_ours = isinstance(error, LabError | StudyError)
            text = str(error) if is_ours else f"{type(error).__name__}: {error}"
            notes.append(f"{trial.label} could not be followed: {text}")
    if not found:
        return Coverage(unfollowed=unfollowed, notes=tuple(notes))
    try:
        changed = {path: _changed_lines(ground, changes, path) for path in paths}
    except OSError as error:
        notes.append(f"the base can't be read: {error.strerror}")
        return Coverage(unfollowed=unfollowed, notes=tuple(notes))
    return _sum_up(changed, found, unfollowed, notes)


async def _follow(ground: Ground, changes: Changes, trial: Trial, order: Order) -> Traced:
    match trial:
        case FunctionTrial(wanted=wanted):
            calls = json.loads(wanted.job)
            order = replace(order, calls=calls, limit_s=min(wanted.check.timeout_s, LONGEST_S))
            return await trace(ground, changes, order)
        case SuiteTrial(check=check):
            make: Callable[[Stage], Command] = partial(_make_tests, check=check)
        case CommandTrial(check=check) if can_trace(check.command):
            make = partial(plain_command, check=check)
        case _:
            raise LabError("it is not Python, or is called with options of it")
    order = replace(order, limit_s=min(check.timeout_s, LONGEST_S))
    return await trace(ground, changes, order, make)


def _make_tests(stage: Stage, check: Check) -> Command:
    return pytest_command(stage, check)


def _changed_lines(ground: Ground, changes: Changes, path: str) -> set[int]:
    state = changes.files[path]
    assert state is not None
    place: Path = ground.pool.base / path
    before = place.read_bytes() if place.is_file() and not place.is_symlink() else b""
    found = find_differing(before.splitlines(), state.content.splitlines())
    return {line + 1 for _, lines in found for line in lines}


def _sum_up(
    changed: dict[str, set[int]],
    found: Sequence[Traced],
    unfollowed: tuple[str, ...],
    notes: Sequence[str],
) -> Coverage:
    total = executed = 0
    missed: list[Span] = []
    for path, lines in changed.items():
        code = frozenset[int]().union(*(traced.executable.get(path, ()) for traced in found))
        with_code = lines & code
        run = {line for line in with_code if any((path, line) in traced.lines for traced in found)}
        total, executed = total + len(with_code), executed + len(run)
        missed += _spans(path, sorted(with_code - run), code)
    return Coverage(total, executed, tuple(missed), unfollowed, tuple(notes))


def _spans(path: str, lines: Iterable[int], code: Iterable[int]) -> Iterator[Span]:
    """Lines as ranges; lines without code between two of them don't part them."""
    ordered = sorted(code)
    following = dict(pairwise(ordered))
    first = last = None
    for line in lines:
        if last is not None and following.get(last) == line:
            last = line
            continue
        if first is not None and last is not None:
            yield Span(path, first, last)
        first = last = line
    if first is not None and last is not None:
        yield Span(path, first, last)
