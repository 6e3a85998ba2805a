"""Processes that run while somebody talks with them: started, talked with, ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from fairtrial.arena.model.timings import Arm
from fairtrial.arena.stage import Stage
from fairtrial.arena.task_groups import single_cause
from fairtrial.arena.timing.session import ArmError
from fairtrial.arena.timing.worker_channel import LateError, Line, LineError
from fairtrial.sandbox import Command, Completed

START_S = 60.0
"""How long a process may take until it says that it is there."""
LEAVE_S = 5.0
"""How long it may take to leave once nobody asks any more."""
T = TypeVar("T")


@dataclass(slots=True)
class Talked(Generic[T]):
    """What came of a talk.

    result: what the work gave; None if it failed
    failure: who couldn't go on, and why
    commands: what was run
    done: how each process ended; one that had to be stopped is not in it
    """

    result: T | None = None
    failure: ArmError | None = None
    commands: dict[Arm, Command] = field(default_factory=dict)
    done: dict[Arm, Completed] = field(default_factory=dict)


async def talk_with(
    stages: Mapping[Arm, Stage],
    make: Callable[[Stage, int], Command],
    work: Callable[[Mapping[Arm, Line]], T],
    *,
    away_from: Sequence[int] = (),
) -> Talked[T]:
    """Start a process on each stage, do the work in a thread, end the processes.

    make: the command on a stage that has this descriptor for its line
    work: gets a line to each; what it does, blocks
    away_from: cores that this side keeps away from
    """
    import anyio

    talked: Talked[T] = Talked()
    lines = {arm: Line() for arm in stages}

    async def run(arm: Arm) -> None:
        command = talked.commands[arm] = make(stages[arm], lines[arm].far)
        try:
            talked.done[arm] = await stages[arm].run(command)
        finally:
            lines[arm].hang_up()

    try:
        async with anyio.create_task_group() as tasks:
            for arm in stages:
                tasks.start_soon(run, arm)
            try:
                begin = partial(_greet_and_work, lines, work, away_from)
                talked.result = await anyio.to_thread.run_sync(begin, abandon_on_cancel=True)
            except ArmError as error:
                talked.failure = error
            finally:
                for line in lines.values():
                    line.hang_up()
            tasks.cancel_scope.deadline = anyio.current_time() + LEAVE_S
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    finally:
        for line in lines.values():
            line.close()
    return talked


def _greet_and_work(
    lines: Mapping[Arm, Line], work: Callable[[Mapping[Arm, Line]], T], away_from: Sequence[int]
) -> T:
    with keeping_away(away_from):
        for arm, line in lines.items():
            try:
                line.greet(START_S)
            except LineError as error:
                raise ArmError(arm, str(error), error) from None
            line.handed_over()
        return work(lines)


def is_late(failure: ArmError) -> bool:
    """Whether it is out because it took too long."""
    return isinstance(failure.error, LateError)


@contextmanager
def keeping_away(cores: Sequence[int]) -> Iterator[None]:
    """Leave these cores to what is timed, as long as this thread has others to run on.

    A thread may have been started while another kept away, and inherited that; afterwards it is as
    free as the process's first one.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(os.getpid())
    if others := before.difference(cores):
        os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
