"""Runs a check or a benchmark in a slot while somebody notes which lines are run (`guest/tracer`).

What comes of it is the word of a process that runs a candidate's code: it is told to people, and
decides nothing.
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
from fairtrial.arena.resources import Ground
from fairtrial.arena.slots.pool import WorktreeSlot
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.core import LabError
from fairtrial.sandbox import Command, Completed, Ending

CHANNEL_BYTES = 32 * 2**20
FEWEST_PROCESSES = 4
"""With fewer allowed, the tracer has none for a look at what it costs itself."""
SPARE_S = 30.0
"""What Python and imports may take beside what is traced."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is run, and what is to be noted.

    paths: the files whose lines are of interest, relative to the top
    compiled: those of them whose executable lines are asked for
    timed: whether times are wanted, or only which lines are run
    limit_s: after this long it is given up; what was seen until then is told
    calls: what a worker is told, if a function is called (see `guest/worker`); if not, a command is
        run
    count: how many calls; as many as `spend_s` holds if None
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
class Traced:
    """What was seen.

    lines: hits and seconds by path and line
    executable: the lines that have code, by path
    done: how many calls were made
    seconds: how long it took
    plain_s: how long the same calls take when nobody looks on; None if that isn't known
    trouble: what makes it incomplete
    """

    lines: Mapping[tuple[str, int], tuple[int, float]] = field(default_factory=dict)
    executable: Mapping[str, frozenset[int]] = field(default_factory=dict)
    done: int = 0
    seconds: float = 0.0
    plain_s: float | None = None
    trouble: tuple[str, ...] = ()


def can_trace(argv: Sequence[str]) -> bool:
    """Whether it is Python, called in a way that we can imitate: a module, a file, a text."""
    program = Path(argv[0]).name
    is_python = argv[0] == "{python}" or program.startswith(("python", "pypy"))
    is_plain = len(argv) > 1 and (argv[1] in ("-m", "-c") or not argv[1].startswith("-"))
    return is_python and is_plain and (len(argv) > 2 or argv[1] not in ("-m", "-c"))


async def trace(
    ground: Ground,
    changes: Changes | None,
    order: Order,
    make: Callable[[Stage], Command] | None = None,
) -> Traced:
    """What is seen in a slot of its own with the candidate in it, or the base if there is none.

    make: the command to run, if it isn't calls

    Raises a `LabError` if nothing can be said.
    """

    async def work(slot: WorktreeSlot) -> Traced:
        if changes is not None:
            await slot.write_candidate(changes)
        stage = ground.stage(slot, may_be_warm=False)
        rejection, _ = await run_build(stage, slot)
        if rejection is not None:
            raise LabError(rejection.message)
        command = _traced_command(stage, order, make(stage) if make else None)
        return _read(await stage.run(command), command, order)

    return await ground.undisturbed(work)


def _traced_command(stage: Stage, order: Order, plain: Command | None) -> Command:
    """The same command under our tracer, which reads its order before the command reads."""
    tracer = str(HARNESS / "tracer.py")
    timeout_s = 2 * order.limit_s + SPARE_S
    if plain is None:
        plain = stage.command(["{python}"], timeout_s=timeout_s)
    head = json.dumps(_write(stage, order, plain.argv[1:])).encode("ascii")
    return replace(
        plain,
        argv=(plain.argv[0], tracer),
        stdin=head + b"\n" + plain.stdin,
        timeout_s=timeout_s,
        channel_bytes=CHANNEL_BYTES,
    )


def _write(stage: Stage, order: Order, words: Sequence[str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "files": [str(stage.seen / path) for path in order.paths],
        "compile": [order.paths.index(path) for path in order.compiled],
        "timed": order.timed,
        "limit_s": order.limit_s,
        "count": order.count,
        "spend_s": order.spend_s,
        "forks": stage.problem.limits.processes >= FEWEST_PROCESSES,
    }
    if order.calls is not None:
        return {**told, "calls": dict(order.calls)}
    return {**told, "run": list(words)}


def _read(done: Completed, command: Command, order: Order) -> Traced:
    """The report, as far as it makes sense: whoever wrote it may have been anybody."""
    try:
        told = json.loads(done.channel)
        traced = _take_apart(told, order)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        said = in_one_line(tail_of(done))
        how = tell_ending(done, command)
        raise LabError(f"the process {how}" + (f": {said}" if said else "")) from None
    if done.ending != Ending.EXITED:
        trouble = (*traced.trouble, f"the process {tell_ending(done, command)}")
        return replace(traced, trouble=trouble)
    return traced


def _take_apart(told: Any, order: Order) -> Traced:
    paths, plain_s = order.paths, told["plain_s"]
    lines = {
        (paths[int(number)], int(line)): (int(hits), _seconds(seconds))
        for number, line, hits, seconds in told["lines"]
    }
    trouble = [str(text)[:500] for text in told["trouble"]]
    if int(told["status"]) != 0 and not trouble:
        trouble.append(f"it ended with status {int(told['status'])}")
    return Traced(
        lines=lines,
        executable={
            paths[int(number)]: frozenset(map(int, found))
            for number, found in told["executable"].items()
        },
        done=int(told["done"]),
        seconds=_seconds(told["seconds"]),
        plain_s=None if plain_s is None else _seconds(plain_s),
        trouble=tuple(trouble),
    )


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < math.inf:
        raise ValueError("no duration")
    return seconds
