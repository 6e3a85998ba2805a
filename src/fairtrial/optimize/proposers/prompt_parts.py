"""Texts that all prompts share: the task, earlier candidates and their verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairtrial.arena import Estimate, Failure
from fairtrial.core import on_one_line
from fairtrial.optimize.proposals import Brief, Tried, step_gains

MOST_FAILURES, MOST_DIFFERENCES, LONGEST_VALUE, LONGEST_MESSAGE = 5, 5, 400, 2_000
LONGEST_DIFF = 30_000


def describe_task(brief: Brief) -> list[str]:
    """Return the task, the checks, the benchmarks and the smallest gain: a paragraph each."""
    parts = [f"# Task\n\n{brief.task.strip() or 'Make this code faster.'}"]
    if brief.checks:
        parts.append("What must hold:\n" + itemize(brief.checks))
    if brief.benchmarks:
        parts.append("What is timed:\n" + itemize(brief.benchmarks))
    parts.append(f"A gain below {brief.min_effect:.1%} counts for nothing.")
    return parts


def itemize(lines: Sequence[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def fence_text(text: str, language: str = "") -> str:
    """Return a fenced block whose fence doesn't occur in the text."""
    fence = "`" * fence_length([text])
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def fence_length(texts: Sequence[str]) -> int:
    """Return how many backticks a fence around these texts needs."""
    runs = (len(run) for text in texts for run in re.findall("`{3,}", text))
    return max(runs, default=2) + 1


def fence_diff(diff: str) -> str:
    """Return a diff as a fenced block, cut if it is too long."""
    if len(diff) > LONGEST_DIFF:
        diff = f"{diff[:LONGEST_DIFF]}\n[{len(diff) - LONGEST_DIFF:,} more characters]\n"
    return fence_text(diff, "diff")


def describe_steps(history: Sequence[Tried], without: Sequence[Tried] = ()) -> str:
    """Return the steps of a lineage with the gain of each, one per line.

    without: candidates to leave out; the others keep their numbers
    """
    left_out = {tried.digest for tried in without}
    lines = []
    for number, (tried, gain) in enumerate(zip(history, step_gains(history), strict=True), 1):
        if tried.digest in left_out:
            continue
        line = f"{number}. {_describe_verdict(tried)}"
        if gain is not None:
            line += f"; this step by itself: {gain:.3f} times as fast as the best before it"
        lines.append(line)
    return "\n".join(lines)


def describe_outcome(tried: Tried) -> list[str]:
    """Return a candidate's verdict and its failures: a paragraph each."""
    parts = [f"Result: {_describe_verdict(tried)}"]
    parts.extend(_describe_failure(failure) for failure in tried.failures[:MOST_FAILURES])
    if len(tried.failures) > MOST_FAILURES:
        parts.append(f"... and {len(tried.failures) - MOST_FAILURES} further failures.")
    return parts


def _describe_verdict(tried: Tried) -> str:
    """Return verdict, speed and reason in one line."""
    text = tried.verdict.value
    if tried.estimate is not None:
        text += f", {_describe_estimate(tried.estimate)}"
    return f"{text}: {_shorten(tried.why)}" if tried.why else text


def _describe_estimate(estimate: Estimate) -> str:
    return (
        f"{estimate.ratio:.3f} times as fast as the original "
        f"({estimate.confidence:.0%} interval {estimate.low:.3f} to {estimate.high:.3f})"
    )


def _describe_failure(failure: Failure) -> str:
    lines = [f"Failure in {failure.what}: {_shorten(failure.message)}"]
    for difference in failure.differences[:MOST_DIFFERENCES]:
        lines.append(f"  at {on_one_line(difference.where, LONGEST_VALUE)}")
        lines.append(f"    expected: {on_one_line(difference.expected, LONGEST_VALUE)}")
        lines.append(f"    actual:   {on_one_line(difference.actual, LONGEST_VALUE)}")
    if len(failure.differences) > MOST_DIFFERENCES:
        lines.append(f"  ... and {len(failure.differences) - MOST_DIFFERENCES} more places")
    return "\n".join(lines)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} ..."
