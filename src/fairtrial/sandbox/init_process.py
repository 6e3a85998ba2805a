"""Our init (`fairtrial.sandbox.harness.init`) at work for one command: handed what it needs, listened to,
ended.

It lives as long as we hold one end of a pipe, and reports on another that the command can't reach.
How it is started is the sandbox's business.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import LabError
from fairtrial.sandbox.captured_output import Head, HeadAndTail
from fairtrial.sandbox.cgroup import Group, limiting
from fairtrial.sandbox.commands import Command, Completed, Ending
from fairtrial.sandbox.descriptors import Descriptors
from fairtrial.sandbox.harness.watcher import LONGEST_WALL
from fairtrial.sandbox.polling import await_exit, listen, read_the_rest

if TYPE_CHECKING:
    from anyio import CancelScope

_REPORT_BYTES = 4096
_PATIENCE_S = 15.0
"""How long our init may take to end everything before it is ended itself."""
_MIND_EVERY_S = 0.25
_STEP_S = 1.0
_SELDOM_S = 0.25
"""How often our init looks at what is timed: looking disturbs."""


class NotStartedError(LabError):
    """Our init didn't come as far as the command: nothing of it has run."""


@dataclass(frozen=True, slots=True)
class Handed:
    """What our init is given: its ends of the pipes, closed here as soon as it is started.

    stdin, stdout, stderr: the command's
    report: what our init reports on
    life: reads end-of-file when all has to end
    channel: what the command reports on, if it does
    joins: what our init writes its pid into before anything else, to join its control groups
    """

    stdin: int
    stdout: int
    stderr: int
    report: int
    life: int
    channel: int | None
    joins: tuple[Path, ...]


Start = Callable[[dict[str, Any], Handed], Awaitable["subprocess.Popen[bytes] | None"]]
"""Starts our init with its orders. Returns its process; None if that is no child of ours: then the
end of its report is its end."""


async def run_child(
    command: Command, start: Start, *, who: str, env: Mapping[str, str], **orders: Any
) -> Completed:
    """Run a command under our init and tell what came of it; nothing of it is left then.

    start: how the sandbox starts our init
    who: the sandbox's name
    env: what the command's environment has beside its own
    orders: what else our init is told: plan, is_first, private, scratch
    """
    told = {
        "argv": list(command.argv),
        "cwd": str(command.cwd),
        "env": {**command.env, **env},
        "limits": _limits(command),
        "cores": list(command.cores),
        **orders,
    }
    child = _Child(command)
    try:
        with limiting(command.limits) as group, Descriptors() as descriptors:
            await child.attend(start, told, group, descriptors)
            exceeded = group.exceeded() if group else None
            peak_mb = group.peak_rss_mb() if group else 0.0
    except OSError as error:  # too many open files, say
        reason = error.strerror or error
        raise LabError(f"the {who} sandbox could not be used: {reason}") from error
    report = child.told()
    if "ending" not in report:
        report = child.guess_report(exceeded, who, bool(orders["is_first"]))
    if exceeded and report["ending"] == Ending.PROCESSES:
        exceeded = Ending.PROCESSES  # too many of them take too much memory: that is why
    if report["ending"] == "stopped" and not exceeded:  # outwaited: our init had no core to look
        if report["wall_s"] <= command.timeout_s:
            raise LabError(f"the {who} sandbox could not be used: this machine is too busy")
        exceeded = Ending.TIMEOUT
    return Completed(
        ending=exceeded or Ending(report["ending"]),
        exit_code=report["exit_code"],
        signal=report["signal"],
        stdout=child.out.captured(),
        stderr=child.err.captured(),
        channel=child.channel.kept,
        channel_overflowed=child.channel.overflowed,
        wall_s=report["wall_s"],
        cpu_s=report["cpu_s"],
        peak_rss_mb=max(report["peak_rss_mb"], peak_mb),
    )


def _limits(command: Command) -> dict[str, Any]:
    """What our init watches over."""
    limits = command.limits
    return {
        "timeout_s": command.timeout_s,
        "memory_mb": limits.memory_mb,
        "processes": limits.processes,
        "file_mb": limits.file_mb,
        **({"look_every_s": _SELDOM_S} if command.cores or command.line is not None else {}),
    }


@dataclass(slots=True)
class _Child:
    """One run of our init, and what is read from it and the command."""

    command: Command
    out: HeadAndTail = field(init=False)
    err: HeadAndTail = field(init=False)
    channel: Head = field(init=False)
    report: Head = field(init=False)
    sinks: dict[int, HeadAndTail | Head] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.out = HeadAndTail(self.command.output_bytes)
        self.err = HeadAndTail(self.command.output_bytes)
        self.channel = Head(self.command.channel_bytes)
        self.report = Head(_REPORT_BYTES)

    async def attend(
        self, start: Start, orders: dict[str, Any], group: Group | None, descriptors: Descriptors
    ) -> None:
        """Start it and listen until it has ended; if we are cancelled, end it first."""
        import anyio

        life, life_kept = descriptors.pipe()
        handed = self._hand(group, life, descriptors)
        try:
            # Not to be cancelled halfway: what was started is ended below.
            with anyio.CancelScope(shield=True):
                self.process = await start(orders, handed)
            descriptors.close(*_numbers(handed))
            await self._listen_to_all(group, lambda: descriptors.close(life_kept))
        finally:
            descriptors.close(*_numbers(handed), life_kept)
            with anyio.CancelScope(shield=True):
                await self._await_end()
        for descriptor, sink in self.sinks.items():
            read_the_rest(descriptor, sink)

    def _hand(self, group: Group | None, life: int, descriptors: Descriptors) -> Handed:
        stdin = descriptors.holding(self.command.stdin)
        written = []
        for sink in (self.out, self.err, self.report, self.channel):
            read, write = descriptors.pipe()
            os.set_blocking(read, False)
            self.sinks[read] = sink
            written.append(write)
        out, err, report, channel = written
        if self.command.line is not None:
            descriptors.close(channel)
            channel = descriptors.copy(self.command.line)
        elif not self.command.channel_bytes:
            descriptors.close(channel)
        return Handed(
            stdin=stdin,
            stdout=out,
            stderr=err,
            report=report,
            life=life,
            channel=channel if self.command.talks else None,
            joins=group.joins if group else (),
        )

    async def _listen_to_all(self, group: Group | None, stop: Callable[[], None]) -> None:
        import anyio

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_outwait, self.command.timeout_s, tasks.cancel_scope)
            if group is not None:
                tasks.start_soon(_mind, group, stop)
            for descriptor, sink in self.sinks.items():
                if sink is not self.report:
                    tasks.start_soon(listen, descriptor, sink)
            if self.process is not None:
                await await_exit(self.process)
            await self._hear_the_report()
            tasks.cancel_scope.cancel()

    async def _hear_the_report(self) -> None:
        """All of it; there may be another process around our init, which is gone before it is."""
        descriptor = next(each for each, sink in self.sinks.items() if sink is self.report)
        read_the_rest(descriptor, self.report)
        if "ending" not in self.told():
            await listen(descriptor, self.report)

    async def _await_end(self) -> None:
        """Our init, told to end by the closed pipe, has done so, or is made to."""
        import anyio

        with anyio.move_on_after(_PATIENCE_S):
            if self.process is not None:
                await await_exit(self.process)
            await self._hear_the_report()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            await await_exit(self.process)

    def told(self) -> dict[str, Any]:
        """What our init has said so far, in one."""
        report: dict[str, Any] = {}
        for line in self.report.kept.splitlines(keepends=True):
            if line.endswith(b"\n"):
                report.update(json.loads(line))
        return report

    def guess_report(self, exceeded: Ending | None, who: str, is_full: bool) -> dict[str, Any]:
        """What to say when our init didn't live to tell; raises if that is no command's doing."""
        said = self.err.captured().text.strip()[-2000:] or "it said nothing"
        report = self.told()
        if "started" not in report:
            raise NotStartedError(f"the {who} sandbox could not be started: {said}")
        if is_full and exceeded is None:
            raise LabError(f"the {who} sandbox was ended from outside: {said}")
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(report["started"], signal.SIGKILL)
        return {
            "ending": Ending.SIGNALLED,
            "exit_code": None,
            "signal": int(signal.SIGKILL),
            "wall_s": time.monotonic() - self.began,
            "cpu_s": 0.0,
            "peak_rss_mb": 0.0,
        }


def _numbers(handed: Handed) -> list[int]:
    given = [handed.stdin, handed.stdout, handed.stderr, handed.report, handed.life]
    return given if handed.channel is None else [*given, handed.channel]


async def _mind(group: Group, stop: Callable[[], None]) -> None:
    """Stop all when the kernel has had to: it ends one process, and others may wait for that."""
    import anyio

    while not group.exceeded():
        await anyio.sleep(_MIND_EVERY_S)
    stop()


async def _outwait(timeout_s: float, scope: CancelScope) -> None:
    """Give our init up when it should have ended all long ago: whoever can reach it may stop it.

    Counted in steps: what we were stopped for ourselves (Ctrl-Z) is one of them at most.
    """
    import anyio

    for _ in range(math.ceil((LONGEST_WALL * timeout_s + _PATIENCE_S) / _STEP_S)):
        await anyio.sleep(_STEP_S)
    scope.cancel()
