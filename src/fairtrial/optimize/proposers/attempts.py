"""What was tried, in words: what all who write prompts have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairtrial.arena import Estimate, Failure
from fairtrial.core import on_one_line
from fairtrial.optimize.proposals import Brief, Tried, step_gains

MOST_FAILURES, MOST_DIFFERENCES, LONGEST_VALUE, LONGEST_MESSAGE = 5, 5, 400, 2_000
LONGEST_DIFF = 30_000


def spell_task(brief: Brief) -> list[str]:
    """What is asked, what must hold, what is timed, what counts: a paragraph each."""
    parts = [f"# Task\n\n{brief.task.strip() or 'Make this code faster.'}"]
    if brief.checks:
        parts.append("What must hold:\n" + itemise(brief.checks))
    if brief.benchmarks:
        parts.append("What is timed:\n" + itemise(brief.benchmarks))
    parts.append(f"A gain below {brief.min_effect:.1%} counts for nothing.")
    return parts


def itemise(lines: Sequence[str]) -> str:
    """One item a line."""
    return "\n".join(f"- {line}" for line in lines)


def fenced(text: str, language: str = "") -> str:
    """A text as a block whose fence doesn't occur in it."""
    fence = "`" * fence_length([text])
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def fence_length(texts: Sequence[str]) -> int:
    """How many backticks a fence around these needs."""
    runs = (len(run) for text in texts for run in re.findall("`{3,}", text))
    return max(runs, default=2) + 1


def spell_diff(diff: str) -> str:
    """A diff as a block, cut where it gets too long."""
    if len(diff) > LONGEST_DIFF:
        diff = f"{diff[:LONGEST_DIFF]}\n[{len(diff) - LONGEST_DIFF:,} more characters]\n"
    return fenced(diff, "diff")


def spell_steps(history: Sequence[Tried], but: Sequence[Tried] = ()) -> str:
    """The steps of a line, one a line, with what each of them gained.

    but: those that are told of elsewhere; the others keep their numbers
    """
    left_out = {tried.digest for tried in but}
    lines = []
    for number, (tried, gain) in enumerate(zip(history, step_gains(history), strict=True), 1):
        if tried.digest in left_out:
            continue
        line = f"{number}. {_spell_standing(tried)}"
        if gain is not None:
            line += f"; this step by itself: {gain:.3f} times as fast as the best before it"
        lines.append(line)
    return "\n".join(lines)


def spell_outcome(tried: Tried) -> list[str]:
    """What came of a candidate, and what failed: a paragraph each."""
    parts = [f"What came of it: {_spell_standing(tried)}"]
    parts.extend(_spell_failure(failure) for failure in tried.failures[:MOST_FAILURES])
    if len(tried.failures) > MOST_FAILURES:
        parts.append(f"... and {len(tried.failures) - MOST_FAILURES} further failures.")
    return parts


def _spell_standing(tried: Tried) -> str:
    """What a candidate is, in a line."""
    text = tried.verdict.value
    if tried.estimate is not None:
        text += f", {_spell_estimate(tried.estimate)}"
    return f"{text}: {_bounded(tried.why)}" if tried.why else text


def _spell_estimate(estimate: Estimate) -> str:
    return (
        f"{estimate.ratio:.3f} times as fast as the original "
        f"({estimate.confidence:.0%} interval {estimate.low:.3f} to {estimate.high:.3f})"
    )


def _spell_failure(failure: Failure) -> str:
    lines = [f"Failure in {failure.what}: {_bounded(failure.message)}"]
    for difference in failure.differences[:MOST_DIFFERENCES]:
        lines.append(f"  at {on_one_line(difference.where, LONGEST_VALUE)}")
        lines.append(f"    expected: {on_one_line(difference.expected, LONGEST_VALUE)}")
        lines.append(f"    actual:   {on_one_line(difference.actual, LONGEST_VALUE)}")
    if len(failure.differences) > MOST_DIFFERENCES:
        lines.append(f"  ... and {len(failure.differences) - MOST_DIFFERENCES} more places")
    return "\n".join(lines)


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} ..."
