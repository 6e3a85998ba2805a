"""Contradictions of a claimed gain: total time and slowest samples that say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.arena.model.timings import SlowInput, Timing
from fairtrial.arena.model.verdicts import Verdict
from fairtrial.arena.timing.stats.ratio_text import estimate_text

SLOWER_TAIL = 1.1
"""How many times as long as the base's the candidate's slowest tenth may take."""
MOST_NAMED = 3
"""The number of inputs that are named in a sentence."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A figure that contradicts a gain by the median.

    text: what is contradicted, in one sentence
    is_shown: whether an interval shows it; if not, more sessions may resolve it
    """

    text: str
    is_shown: bool


def find_contradictions(timing: Timing, overall: Verdict) -> list[Contradiction]:
    """Return what contradicts a gain, in the figures of one benchmark; empty if nothing does.

    overall: the verdict over all benchmarks; only `faster` can be contradicted

    Shown are a total whose interval is below 1 and below the median's ratio, and a slowest tenth
    whose interval is so, with an estimate below 1/1.1. A benchmark whose median is faster also
    needs a total that is faster: one whose interval includes 1 leaves the gain open.
    """
    is_gain = overall == Verdict.FASTER and timing.verdict != Verdict.SLOWER
    if not is_gain or timing.estimate is None:
        return []
    contradictions = []
    total, tail = timing.total, timing.tail
    least = min(1.0, timing.estimate.ratio)
    median = f"by the median it is {timing.estimate.ratio_text()}"
    if total is not None and total.high < least:
        text = f"{median}, but in total it is slower than the base: {estimate_text(total)}"
        contradictions.append(Contradiction(text, is_shown=True))
    elif total is not None and total.low <= 1 and timing.verdict == Verdict.FASTER:
        text = f"{median}, but in total no gain is shown: {estimate_text(total)}"
        contradictions.append(Contradiction(text, is_shown=False))
    if tail is not None and tail.high < least and tail.ratio < 1 / SLOWER_TAIL:
        text = f"its slowest tenth of samples is slower than the base's: {estimate_text(tail)}"
        contradictions.append(Contradiction(text, is_shown=True))
    if contradictions and timing.slow_inputs:
        contradictions[0] = Contradiction(
            f"{contradictions[0].text}; slower on {name_inputs(timing.slow_inputs)}",
            contradictions[0].is_shown,
        )
    return [
        Contradiction(f"{timing.benchmark}: {contradiction.text}", contradiction.is_shown)
        for contradiction in contradictions
    ]


def name_inputs(inputs: Sequence[SlowInput]) -> str:
    """Return a list like ``input 7 of session 2 (list of 400): 19.8 times as long``."""
    named = [_name_input(slow) for slow in inputs[:MOST_NAMED]]
    return ", ".join(named)


def _name_input(slow: SlowInput) -> str:
    last = slow.first + slow.calls - 1
    which = f"input {slow.first}" if slow.calls == 1 else f"inputs {slow.first} to {last}"
    return f"{which} of session {slow.session} ({slow.what}): {slow.growth:.3g} times as long"
