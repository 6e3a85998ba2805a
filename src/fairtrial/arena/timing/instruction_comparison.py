"""Instruction counts added to measurements; they change no verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.timings import Measurement, Pair, Timing
from fairtrial.arena.timing.bench import Bench
from fairtrial.arena.timing.instruction_counts import InstructionCount, prepare_counter
from fairtrial.arena.timing.valgrind import Valgrind
from fairtrial.core import run_all

Key = TypeVar("Key", bound=Hashable)


async def add_instruction_counts(
    bench: Bench,
    valgrind: Valgrind,
    base: Changes | None,
    timed: Mapping[Key, tuple[Changes, Measurement]],
) -> dict[Key, Measurement]:
    """Return measurements with instruction counts; their verdicts don't change.

    base: the candidate in the base's place; None for the base itself
    timed: the candidates that were timed, with their measurements
    """
    if not timed:
        return {}
    counter = await prepare_counter(bench, valgrind, _fastest_calls(timed.values()))
    versions: list[Changes | None] = [base, *(changes for changes, _ in timed.values())]
    # The arena's leases limit how many run at once.
    counts = await run_all([partial(counter.count, version) for version in versions])
    min_effect = bench.resources.problem.min_effect
    return {
        key: add_counts(measured, counts[0], own_counts, min_effect)
        for (key, (_, measured)), own_counts in zip(timed.items(), counts[1:], strict=True)
    }


def _fastest_calls(timed: Iterable[tuple[Changes, Measurement]]) -> dict[str, float]:
    """Return the shortest time of a call of the base, by benchmark."""
    seconds: dict[str, float] = {}
    for _, measured in timed:
        for timing in measured.timings:
            name = timing.benchmark
            seconds[name] = min(timing.base_s, seconds.get(name, math.inf))
    return seconds


def add_counts(
    measured: Measurement,
    base: Mapping[str, InstructionCount],
    candidate: Mapping[str, InstructionCount],
    min_effect: float,
) -> Measurement:
    """Return a measurement with the counts of its benchmarks, or notes why there are none."""
    timings = []
    for timing in measured.timings:
        counts = base[timing.benchmark], candidate[timing.benchmark]
        timings.append(_add_count(timing, *counts, min_effect))
    return replace(measured, timings=tuple(timings))


def _add_count(
    timing: Timing, base: InstructionCount, candidate: InstructionCount, min_effect: float
) -> Timing:
    if not base.instructions or not candidate.instructions:
        is_base_missing = base.why_not not in ("", candidate.why_not)
        why_not = f"the base: {base.why_not}" if is_base_missing else candidate.why_not
        note = f"instructions are not counted: {why_not}"
        return replace(timing, notes=(*timing.notes, note))
    counted = replace(timing, instructions=Pair(base.instructions, candidate.instructions))
    note = explain_contradiction(counted, min_effect)
    return replace(counted, notes=(*counted.notes, note)) if note else counted


def explain_contradiction(timing: Timing, min_effect: float) -> str:
    """Return a note if time and counts contradict each other, each by the minimum effect or more.

    Otherwise the note is empty.
    """
    pair, estimate = timing.instructions, timing.estimate
    if pair is None or estimate is None:
        return ""
    least, fewer = math.log1p(min_effect), math.log(pair.base / pair.candidate)
    faster = math.log(estimate.ratio)
    if faster > least and fewer < -least:
        contradiction = "it is faster, but executes more instructions"
        return (
            f"{contradiction}: fewer cache misses, less waiting, or wider instructions can do that"
        )
    if faster < -least and fewer > least:
        contradiction = "it is slower, but executes fewer instructions"
        return (
            f"{contradiction}: cache misses, remote memory, waiting, or expensive "
            "instructions in C code can do that"
        )
    return ""
