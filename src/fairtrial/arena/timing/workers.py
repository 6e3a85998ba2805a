"""Worker processes: started, used over their channels by a thread, and ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from fairtrial.arena.model.timings import Arm
from fairtrial.arena.timing.session import ArmError
from fairtrial.arena.timing.worker_channel import ChannelError, ChannelTimeoutError, WorkerChannel
from fairtrial.core import single_cause
from fairtrial.sandbox import Command, Completed

START_S = 60.0
"""How long a process may take until it reports that it has started."""
LEAVE_S = 15.0
"""How long it may take to exit once its channel is shut down."""
T = TypeVar("T")


class RunsCommands(Protocol):
    """Where worker processes run: a stage, or this machine as it is."""

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended."""
        ...


S = TypeVar("S", bound=RunsCommands)


@dataclass(slots=True)
class WorkResult(Generic[T]):
    """The result of work with one or two worker processes.

    result: what the work returned; None if it failed
    failure: which worker couldn't go on, and why
    commands: the command of each worker
    done: how each process ended; one that had to be stopped is not in it
    """

    result: T | None = None
    failure: ArmError | None = None
    commands: dict[Arm, Command] = field(default_factory=dict)
    done: dict[Arm, Completed] = field(default_factory=dict)


async def run_workers(
    stages: Mapping[Arm, S],
    make: Callable[[S, int], Command],
    work: Callable[[Mapping[Arm, WorkerChannel]], T],
    *,
    away_from: Sequence[int] = (),
) -> WorkResult[T]:
    """Start a process on each stage, do the work in a thread, and end the processes.

    make: returns the command for a stage that inherits this descriptor of a channel
    work: called in a thread with a channel to each process; may block
    away_from: cores that this thread leaves to the processes
    """
    import anyio

    outcome: WorkResult[T] = WorkResult()
    channels = {arm: WorkerChannel() for arm in stages}

    async def run(arm: Arm) -> None:
        command = outcome.commands[arm] = make(stages[arm], channels[arm].remote)
        try:
            outcome.done[arm] = await stages[arm].run(command)
        finally:
            channels[arm].shut_down()

    try:
        async with anyio.create_task_group() as tasks:
            for arm in stages:
                tasks.start_soon(run, arm)
            try:
                begin = partial(_connect_and_work, channels, work, away_from)
                outcome.result = await anyio.to_thread.run_sync(begin, abandon_on_cancel=True)
            except ArmError as error:
                outcome.failure = error
            finally:
                for channel in channels.values():
                    channel.shut_down()
            tasks.cancel_scope.deadline = anyio.current_time() + LEAVE_S
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    finally:
        for channel in channels.values():
            channel.close()
    return outcome


def _connect_and_work(
    channels: Mapping[Arm, WorkerChannel],
    work: Callable[[Mapping[Arm, WorkerChannel]], T],
    away_from: Sequence[int],
) -> T:
    with keeping_away(away_from):
        for arm, channel in channels.items():
            try:
                channel.wait_for_start(START_S)
            except ChannelError as error:
                raise ArmError(arm, str(error), error) from None
            channel.close_remote()
        return work(channels)


def is_late(failure: ArmError) -> bool:
    """Return whether a worker failed because it took too long."""
    return isinstance(failure.error, ChannelTimeoutError)


@contextmanager
def keeping_away(cores: Sequence[int]) -> Iterator[None]:
    """Keep this thread off the cores of timed processes, as long as it has other cores.

    A thread that was started meanwhile inherits the restriction; afterwards its affinity is that of
    the process's first thread.
    """
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(os.getpid())
    if remaining := before.difference(cores):
        os.sched_setaffinity(0, remaining)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
