"""What timed workers print: a candidate must print what the base prints, also while it is timed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fairtrial.arena.model.problem import Benchmark
from fairtrial.arena.model.timings import Arm
from fairtrial.arena.model.verdicts import Difference, Failure, Reason, Rejection
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing.command_benchmark import compare_outputs
from fairtrial.sandbox import Captured, Completed

OUTPUT_BYTES = 2**20
"""How much of a worker's output is kept: its head and its tail; of the rest the size is known."""
_NOTHING, _SOMETHING = "nothing", "some output"


def reject_output(
    benchmark: Benchmark,
    done: Mapping[Arm, Completed],
    stages: Mapping[Arm, Stage],
    *,
    is_stable: bool,
) -> Rejection | None:
    """Return a rejection if a candidate printed something else than the base in a session.

    done: how the workers ended, with their outputs
    is_stable: see `find_output_difference`
    """
    if "base" not in done:
        return None
    slots = {arm: stage.seen for arm, stage in stages.items()}
    difference = find_output_difference(done, slots, is_stable=is_stable)
    if difference is None:
        return None
    message = (
        f"{benchmark.name}: while it was timed, {benchmark.subject} printed something else than "
        f"the base: {difference.where} should be {difference.expected.strip()}, is "
        f"{difference.actual.strip()}"
    )
    failed = Failure(f"bench[{benchmark.name}]", benchmark.subject, message, (difference,))
    return Rejection(Reason.DIFFERENT, message, (failed,))


def find_output_difference(
    done: Mapping[Arm, Completed], slots: Mapping[Arm, Path], *, is_stable: bool
) -> Difference | None:
    """Return the first difference between what base and candidate printed in a session.

    Of a candidate that had to be stopped nothing is known to be printed.

    done: how the workers ended, that of the base included
    slots: the paths at which the workers saw their slots
    is_stable: whether the base's output is known not to vary; otherwise it only counts whether
        there is any
    """
    base = done["base"].stdout
    candidate = done["candidate"].stdout if "candidate" in done else Captured()
    if base == candidate:
        return None
    if bool(base.head) != bool(candidate.head):
        names = (_SOMETHING if output.head else _NOTHING for output in (base, candidate))
        return Difference("the output", *names)
    if not is_stable:
        return None
    if slots["base"] == slots["candidate"]:
        return compare_outputs(base, candidate)
    if base.dropped or candidate.dropped:
        return None  # paths of different lengths may have moved the rest
    return compare_outputs(
        _without_path(base, slots["base"]), _without_path(candidate, slots["candidate"])
    )


def _without_path(output: Captured, slot: Path) -> Captured:
    path = os.fsencode(slot)
    return Captured(output.head.replace(path, b"{slot}"), output.tail.replace(path, b"{slot}"))
