"""What was counted, beside what was timed: a second opinion that changes no verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.timings import Measurement, Pair, Timing
from fairtrial.arena.task_groups import single_cause
from fairtrial.arena.timing.bench import Bench
from fairtrial.arena.timing.instruction_counts import Count, prepare_counting
from fairtrial.arena.timing.valgrind import Valgrind

Key = TypeVar("Key", bound=Hashable)


async def with_instructions(
    bench: Bench,
    valgrind: Valgrind,
    base: Changes | None,
    timed: Mapping[Key, tuple[Changes, Measurement]],
) -> dict[Key, Measurement]:
    """What the clock said of candidates, with the counts beside it; verdicts stay what they are.

    base: who stands in the base's place; None for the base itself
    """
    import anyio

    if not timed:
        return {}
    counting = await prepare_counting(bench, valgrind, _seconds(timed.values()))
    versions: list[Changes | None] = [base, *(changes for changes, _ in timed.values())]
    found: list[Mapping[str, Count]] = [{} for _ in versions]

    async def count(place: int) -> None:
        found[place] = await counting.count(versions[place])

    try:
        async with anyio.create_task_group() as tasks:  # as many at once as there are cores
            for place in range(len(versions)):
                tasks.start_soon(count, place)
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    min_effect = bench.ground.problem.min_effect
    return {
        key: add_counts(measured, found[0], counts, min_effect)
        for (key, (_, measured)), counts in zip(timed.items(), found[1:], strict=True)
    }


def _seconds(timed: Iterable[tuple[Changes, Measurement]]) -> dict[str, float]:
    """How long a call of the base takes, by benchmark, as long as nothing disturbs it."""
    found: dict[str, float] = {}
    for _, measured in timed:
        for timing in measured.timings:
            found[timing.benchmark] = min(timing.base_s, found.get(timing.benchmark, math.inf))
    return found


def add_counts(
    measured: Measurement,
    base: Mapping[str, Count],
    candidate: Mapping[str, Count],
    min_effect: float,
) -> Measurement:
    """A measurement with the counts of its benchmarks, or with why there are none."""
    timings = []
    for timing in measured.timings:
        counts = base[timing.benchmark], candidate[timing.benchmark]
        timings.append(_add_count(timing, *counts, min_effect))
    return replace(measured, timings=tuple(timings))


def _add_count(timing: Timing, base: Count, candidate: Count, min_effect: float) -> Timing:
    if not base.instructions or not candidate.instructions:
        is_bases = base.why_not not in ("", candidate.why_not)
        why_not = f"the base: {base.why_not}" if is_bases else candidate.why_not
        note = f"instructions are not counted: {why_not}"
        return replace(timing, notes=(*timing.notes, note))
    counted = replace(timing, instructions=Pair(base.instructions, candidate.instructions))
    told = tell_contradiction(counted, min_effect)
    return replace(counted, notes=(*counted.notes, told)) if told else counted


def tell_contradiction(timing: Timing, min_effect: float) -> str:
    """What to say where clock and counts say the opposite, each by the minimum effect or more."""
    pair, estimate = timing.instructions, timing.estimate
    if pair is None or estimate is None:
        return ""
    least, fewer = math.log1p(min_effect), math.log(pair.base / pair.candidate)
    faster = math.log(estimate.ratio)
    if faster > least and fewer < -least:
        told = "it is faster, but executes more instructions"
        return f"{told}: fewer cache misses, less waiting, or wider instructions can do that"
    if faster < -least and fewer > least:
        told = "it is slower, but executes fewer instructions"
        return (
            f"{told}: cache misses, memory that is fetched from afar, waiting, or expensive "
            "instructions in C code can do that"
        )
    return ""
