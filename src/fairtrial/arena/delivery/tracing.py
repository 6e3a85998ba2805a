"""Tracing a check or a benchmark in a slot: which lines are run, by the harness's `tracer`.

The report comes from a process that runs a candidate's code, so it can't be trusted: it is shown to
people, and decides nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.arena.build import run_build
from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.core import LabError
from fairtrial.sandbox import Command, Completed, Ending

CHANNEL_BYTES = 32 * 2**20
FEWEST_PROCESSES = 4
"""With fewer processes allowed, the tracer can't fork one to measure its own overhead."""
SPARE_S = 30.0
"""How long Python's start and imports may take in addition."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What is run and recorded.

    paths: the files whose lines are recorded, relative to the top
    compiled: those of them whose executable lines are wanted
    timed: whether times are wanted, or only which lines are run
    limit_s: after this long the run is stopped; lines until then are reported
    calls: the job of a worker, if a function is called; None for a command
    count: how many calls; if None, as many as fit into `spend_s`
    spend_s: after this long no further call is begun
    """

    paths: tuple[str, ...]
    compiled: tuple[str, ...] = ()
    timed: bool = False
    limit_s: float = 60.0
    calls: Mapping[str, Any] | None = field(default=None, repr=False)
    count: int | None = None
    spend_s: float = 3.0


@dataclass(frozen=True, slots=True)
class LineTrace:
    """The lines that were run.

    lines: hits and seconds by path and line
    executable: the lines that have code, by path
    done: how many calls were made
    seconds: how long it took
    plain_s: how long the same calls take without tracing; None if that isn't known
    trouble: why it is incomplete
    """

    lines: Mapping[tuple[str, int], tuple[int, float]] = field(default_factory=dict)
    executable: Mapping[str, frozenset[int]] = field(default_factory=dict)
    done: int = 0
    seconds: float = 0.0
    plain_s: float | None = None
    trouble: tuple[str, ...] = ()


def can_trace(argv: Sequence[str]) -> bool:
    """Return whether a command is Python with a module, a file or a ``-c`` text to run."""
    program = Path(argv[0]).name
    is_python = argv[0] == "{python}" or program.startswith(("python", "pypy"))
    is_plain = len(argv) > 1 and (argv[1] in ("-m", "-c") or not argv[1].startswith("-"))
    return is_python and is_plain and (len(argv) > 2 or argv[1] not in ("-m", "-c"))


async def trace(
    resources: ArenaResources,
    changes: Changes | None,
    request: TraceRequest,
    make: Callable[[Stage], Command] | None = None,
) -> LineTrace:
    """Trace a run in a slot with the candidate, or with the base if there is none.

    make: returns the command to run; None for calls

    Raises `LabError` if there is no usable report.
    """

    async def work(slot: WorktreeSlot) -> LineTrace:
        if changes is not None:
            await slot.write_candidate(changes)
        stage = resources.stage(slot, may_be_warm=False)
        rejection, _ = await run_build(stage, slot)
        if rejection is not None:
            raise LabError(rejection.message)
        command = _traced_command(stage, request, make(stage) if make else None)
        return _read(await stage.run(command), command, request)

    return await resources.run_undisturbed(work)


def _traced_command(stage: Stage, request: TraceRequest, plain: Command | None) -> Command:
    """Return the command under the tracer, which reads its job from stdin before the command."""
    tracer = str(HARNESS / "tracer.py")
    timeout_s = 2 * request.limit_s + SPARE_S
    if plain is None:
        plain = stage.command(["{python}"], timeout_s=timeout_s)
    head = json.dumps(_make_job(stage, request, plain.argv[1:])).encode("ascii")
    return replace(
        plain,
        argv=(plain.argv[0], tracer),
        stdin=head + b"\n" + plain.stdin,
        timeout_s=timeout_s,
        channel_bytes=CHANNEL_BYTES,
    )


def _make_job(stage: Stage, request: TraceRequest, arguments: Sequence[str]) -> dict[str, Any]:
    job: dict[str, Any] = {
        "files": [str(stage.seen / path) for path in request.paths],
        "compile": [request.paths.index(path) for path in request.compiled],
        "timed": request.timed,
        "limit_s": request.limit_s,
        "count": request.count,
        "spend_s": request.spend_s,
        "forks": stage.problem.limits.processes >= FEWEST_PROCESSES,
    }
    if request.calls is not None:
        return {**job, "calls": dict(request.calls)}
    return {**job, "run": list(arguments)}


def _read(done: Completed, command: Command, request: TraceRequest) -> LineTrace:
    """Parse the report, which a candidate may have forged; raise `LabError` if it is invalid."""
    try:
        line_trace = _parse(json.loads(done.channel), request)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        output = in_one_line(tail_of(done))
        how = tell_ending(done, command)
        raise LabError(f"the process {how}" + (f": {output}" if output else "")) from None
    if done.ending != Ending.EXITED:
        trouble = (*line_trace.trouble, f"the process {tell_ending(done, command)}")
        return replace(line_trace, trouble=trouble)
    return line_trace


def _parse(report: Any, request: TraceRequest) -> LineTrace:
    paths, plain_s = request.paths, report["plain_s"]
    lines = {
        (paths[int(number)], int(line)): (int(hits), _seconds(seconds))
        for number, line, hits, seconds in report["lines"]
    }
    trouble = [str(text)[:500] for text in report["trouble"]]
    if int(report["status"]) != 0 and not trouble:
        trouble.append(f"it ended with status {int(report['status'])}")
    return LineTrace(
        lines=lines,
        executable={
            paths[int(number)]: frozenset(map(int, code_lines))
            for number, code_lines in report["executable"].items()
        },
        done=int(report["done"]),
        seconds=_seconds(report["seconds"]),
        plain_s=None if plain_s is None else _seconds(plain_s),
        trouble=tuple(trouble),
    )


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < math.inf:
        raise ValueError("no duration")
    return seconds
