"""Running of one command under the init process (`fairtrial.sandbox.harness.init`).

The init process starts the command, watches it and reports on a pipe that the command can't reach.
It ends everything as soon as this process closes, or loses, its end of the `life` pipe. How the
init process is started is up to each sandbox.
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
from fairtrial.sandbox.captured_output import OutputHead, OutputHeadAndTail
from fairtrial.sandbox.cgroup import ControlGroup, limited_group
from fairtrial.sandbox.commands import Command, Completed, Ending
from fairtrial.sandbox.descriptors import Descriptors
from fairtrial.sandbox.harness.watcher import MAX_WALL_FACTOR
from fairtrial.sandbox.polling import await_exit, read_available, read_until_eof

if TYPE_CHECKING:
    from anyio import CancelScope

_REPORT_BYTES = 4096
_END_TIMEOUT_S = 15.0
"""How long the init process may take to end everything before it is killed."""
_CHECK_GROUP_S = 0.25
_STEP_S = 1.0
_TIMED_POLL_S = 0.25
"""How often the init process checks limits of what is timed: rarely, since checks disturb."""


class NotStartedError(LabError):
    """The init process failed before it started the command."""


@dataclass(frozen=True, slots=True)
class InitDescriptors:
    """Descriptors for the init process, closed in this process once it has started.

    stdin, stdout, stderr: the command's streams
    report: what the init process reports on
    life: reads end-of-file when everything has to end
    channel: what the command reports on; None if it has no channel
    joins: files by which the init process joins its control groups before the command starts
    usage: the file in which a group counts CPU time; None if none does
    ended: held open by whatever waits for the init process outside of its namespaces, if that is
        not a child of this process
    """

    stdin: int
    stdout: int
    stderr: int
    report: int
    life: int
    channel: int | None
    joins: tuple[Path, ...]
    usage: Path | None
    ended: int


StartInit = Callable[[dict[str, Any], InitDescriptors], Awaitable["subprocess.Popen[bytes] | None"]]
"""Starts the init process with its orders. Returns its process; None if it isn't a child of this
process, in which case it has ended when its report is complete, or else when `ended` is closed."""


async def run_under_init(
    command: Command, start: StartInit, *, sandbox_name: str, env: Mapping[str, str], **orders: Any
) -> Completed:
    """Run a command under an init process; returns its result when all processes have ended.

    start: starts the init process
    sandbox_name: the sandbox's name, for messages
    env: variables that the sandbox adds to the command's environment
    orders: further orders for the init process: plan, is_first, private, scratch

    Raises `LabError` if the command could not be run, and `NotStartedError` if it wasn't started.
    """
    all_orders = {
        "argv": list(command.argv),
        "cwd": str(command.cwd),
        "env": {**command.env, **env},
        "limits": _make_limits(command),
        "cores": list(command.cores),
        **orders,
    }
    run = _InitRun(command)
    try:
        with limited_group(command.limits) as group, Descriptors() as descriptors:
            await run.supervise(start, all_orders, group, descriptors)
            exceeded = group.exceeded() if group else None
            peak_mb = group.peak_rss_mb() if group else 0.0
            group_cpu_s = group.cpu_s() if group else None
    except OSError as error:  # such as too many open files
        reason = error.strerror or error
        raise LabError(f"the {sandbox_name} sandbox could not be used: {reason}") from error
    report = run.read_report()
    if "ending" not in report:
        report = run.make_missing_report(exceeded, sandbox_name, bool(orders["is_first"]))
    if exceeded and report["ending"] == Ending.PROCESSES:
        exceeded = Ending.PROCESSES  # many processes may use up the memory, too
    if report["ending"] == "stopped" and not exceeded:  # cancelled: init got no core to check
        if report["wall_s"] <= command.timeout_s:
            raise LabError(
                f"the {sandbox_name} sandbox could not be used: this machine is too busy"
            )
        exceeded = Ending.TIMEOUT
    return Completed(
        ending=exceeded or Ending(report["ending"]),
        exit_code=report["exit_code"],
        signal=report["signal"],
        stdout=run.out.captured(),
        stderr=run.err.captured(),
        channel=run.channel.kept,
        channel_overflowed=run.channel.overflowed,
        wall_s=report["wall_s"],
        # The init process sees the time of its descendants only as far as they are waited for; the
        # group counts all, and the init process itself.
        cpu_s=max(report["cpu_s"], (group_cpu_s or 0.0) - report.get("own_cpu_s", math.inf)),
        peak_rss_mb=max(report["peak_rss_mb"], peak_mb),
        counts_all_cpu=group_cpu_s is not None and "own_cpu_s" in report,
    )


def _make_limits(command: Command) -> dict[str, Any]:
    """Return the limits that the init process enforces."""
    limits = command.limits
    return {
        "timeout_s": command.timeout_s,
        "memory_mb": limits.memory_mb,
        "processes": limits.processes,
        "file_mb": limits.file_mb,
        **({"poll_s": _TIMED_POLL_S} if command.cores or command.channel_fd is not None else {}),
    }


@dataclass(slots=True)
class _InitRun:
    """One init process, and the output that is read from it and from the command."""

    command: Command
    out: OutputHeadAndTail = field(init=False)
    err: OutputHeadAndTail = field(init=False)
    channel: OutputHead = field(init=False)
    report: OutputHead = field(init=False)
    sinks: dict[int, OutputHeadAndTail | OutputHead] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    ended: int = -1
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.out = OutputHeadAndTail(self.command.output_bytes)
        self.err = OutputHeadAndTail(self.command.output_bytes)
        self.channel = OutputHead(self.command.channel_bytes)
        self.report = OutputHead(_REPORT_BYTES)

    async def supervise(
        self,
        start: StartInit,
        orders: dict[str, Any],
        group: ControlGroup | None,
        descriptors: Descriptors,
    ) -> None:
        """Start the init process and read its output until it has ended; ends it when cancelled."""
        import anyio

        life, life_kept = descriptors.pipe()
        passed = self._open_descriptors(group, life, descriptors)
        try:
            # Shielded, so that a process that was started is always known and ended below.
            with anyio.CancelScope(shield=True):
                self.process = await start(orders, passed)
            descriptors.close(*_list_descriptors(passed))
            await self._read_all(group, lambda: descriptors.close(life_kept))
        finally:
            descriptors.close(*_list_descriptors(passed), life_kept)
            with anyio.CancelScope(shield=True):
                await self._await_end()
        for descriptor, sink in self.sinks.items():
            read_available(descriptor, sink)

    def _open_descriptors(
        self, group: ControlGroup | None, life: int, descriptors: Descriptors
    ) -> InitDescriptors:
        stdin = descriptors.make_file(self.command.stdin)
        writing_ends = []
        for sink in (self.out, self.err, self.report, self.channel):
            read, write = descriptors.pipe()
            os.set_blocking(read, False)
            self.sinks[read] = sink
            writing_ends.append(write)
        out, err, report, channel = writing_ends
        self.ended, ended = descriptors.pipe()
        if self.command.channel_fd is not None:
            descriptors.close(channel)
            channel = descriptors.copy(self.command.channel_fd)
        elif not self.command.channel_bytes:
            descriptors.close(channel)
        return InitDescriptors(
            stdin=stdin,
            stdout=out,
            stderr=err,
            report=report,
            life=life,
            channel=channel if self.command.has_channel else None,
            joins=group.joins if group else (),
            usage=group.usage if group else None,
            ended=ended,
        )

    async def _read_all(self, group: ControlGroup | None, stop: Callable[[], None]) -> None:
        """Read all output until the init process has ended."""
        import anyio

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_overdue, self.command.timeout_s, tasks.cancel_scope)
            if group is not None:
                tasks.start_soon(_stop_when_exceeded, group, stop)
            for descriptor, sink in self.sinks.items():
                if sink is not self.report:
                    tasks.start_soon(read_until_eof, descriptor, sink)
            if self.process is not None:
                await await_exit(self.process)
            await self._await_report()
            tasks.cancel_scope.cancel()

    async def _await_report(self) -> None:
        """Read the whole report; a wrapper such as bwrap may end before the init process does."""
        import anyio

        descriptor = next(
            descriptor for descriptor, sink in self.sinks.items() if sink is self.report
        )
        read_available(descriptor, self.report)
        await read_until_eof(descriptor, self.report, lambda: "ending" in self.read_report())
        if "ending" not in self.read_report() and self.process is None:
            # It was killed: its descriptors are closed before its descendants have ended.
            with anyio.move_on_after(_END_TIMEOUT_S):
                await anyio.wait_readable(self.ended)

    async def _await_end(self) -> None:
        """Wait until the init process has ended after its `life` pipe was closed, or kill it."""
        import anyio

        with anyio.move_on_after(_END_TIMEOUT_S):
            if self.process is not None:
                await await_exit(self.process)
            await self._await_report()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            await await_exit(self.process)

    def read_report(self) -> dict[str, Any]:
        """Return all that the init process has reported so far, as one mapping."""
        report: dict[str, Any] = {}
        for line in self.report.kept.splitlines(keepends=True):
            if line.endswith(b"\n"):
                report.update(json.loads(line))
        return report

    def make_missing_report(
        self, exceeded: Ending | None, sandbox_name: str, is_full: bool
    ) -> dict[str, Any]:
        """Return a report in place of one that the init process didn't send.

        Raises `LabError` if the command can't be the cause.
        """
        stderr = self.err.captured().text.strip()[-2000:] or "it said nothing"
        report = self.read_report()
        if "started" not in report:
            raise NotStartedError(f"the {sandbox_name} sandbox could not be started: {stderr}")
        if is_full and exceeded is None:
            raise LabError(f"the {sandbox_name} sandbox was ended from outside: {stderr}")
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


def _list_descriptors(passed: InitDescriptors) -> list[int]:
    descriptors = [passed.stdin, passed.stdout, passed.stderr, passed.report, passed.life]
    descriptors.append(passed.ended)
    return descriptors if passed.channel is None else [*descriptors, passed.channel]


async def _stop_when_exceeded(group: ControlGroup, stop: Callable[[], None]) -> None:
    """Stop the command once the kernel has enforced a limit.

    The kernel kills one process only, and others may wait for that one forever.
    """
    import anyio

    while not group.exceeded():
        await anyio.sleep(_CHECK_GROUP_S)
    stop()


async def _cancel_when_overdue(timeout_s: float, scope: CancelScope) -> None:
    """Cancel when the init process should have ended everything long ago; it may be suspended.

    Time is counted in steps, so that a suspension of this process (Ctrl-Z) counts as one at most.
    """
    import anyio

    for _ in range(math.ceil((MAX_WALL_FACTOR * timeout_s + _END_TIMEOUT_S) / _STEP_S)):
        await anyio.sleep(_STEP_S)
    scope.cancel()
