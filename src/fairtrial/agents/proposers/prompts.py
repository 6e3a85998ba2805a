"""What models are told: the task, the files, what was tried, and how to answer.

The text is a function of the brief, the request and the form of the answer alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from fairtrial.errors import on_one_line
from fairtrial.model.proposals import Brief, Kind, Request, Tried
from fairtrial.model.timings import Estimate
from fairtrial.model.verdicts import Failure

Form = Literal["whole_file", "search_replace"]
Message = dict[str, str]

MOST_FAILURES, MOST_DIFFERENCES, LONGEST_VALUE, LONGEST_MESSAGE = 5, 5, 400, 2_000
LONGEST_DIFF = 30_000
NO_CHANGE = "NO CHANGE"
"""What a model answers that has nothing to propose."""

_ROLE = """\
You make Python projects faster without changing what they do. Each change that you propose is \
applied to a copy of the project, checked against the original's behaviour and tests, and, if all \
of that holds, timed against the original. A change that alters any result is worth nothing, and \
so is one that only looks faster. Don't special-case the inputs of checks or benchmarks, don't \
skip work that callers may see, and keep names and signatures as they are."""

_NUDGES = (
    "Look for a better algorithm first: work whose amount grows faster than it has to.",
    "Look at the data structures first: membership tests, look-ups, insertions, ordering.",
    "Look first for work that is done again and again and could be done once.",
    "Look first at inner loops: what built-in functions and the standard library do faster.",
    "Look first at what is copied, converted or allocated without need.",
    "Look first at the usual case: what could be decided early or left out there.",
    "Think of how an expert would write this from scratch, for speed alone.",
)

_WHOLE_FILE = """\
Answer with the complete new text of each file that you change, and of no other, like this:

FILE: path/of/the/file.py
{fence}python
...the whole file...
{fence}

The line with FILE stands right before the block. A block starts and ends with {ticks} backticks."""

_SEARCH_REPLACE = """\
Answer with one or more blocks like this:

FILE: path/of/the/file.py
<<<<<<< SEARCH
lines of the original file, exactly as they are
=======
the lines that take their place
>>>>>>> REPLACE

The lines under SEARCH are whole lines, copied from the original file to the letter, indentation \
included; they must occur there exactly once, so add lines around them until they do. All blocks \
apply to the original files as shown above, not to each other's results and not to an earlier \
attempt: repeat whatever of an attempt you keep."""


def write_messages(brief: Brief, request: Request, form: Form) -> list[Message]:
    """The messages that ask for what is wanted."""
    parts = [
        _brief_text(brief),
        _request_text(brief, request),
        _how_to_answer(brief, request, form),
    ]
    # File names and messages may hold halves of surrogate pairs, which can't be sent.
    text = "\n\n".join(parts).encode("utf-8", "backslashreplace").decode("utf-8")
    return [{"role": "system", "content": _ROLE}, {"role": "user", "content": text}]


def write_complaint(problems: Sequence[str], wanted: int) -> str:
    """The one more message that an answer gets that can't be used."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    heads = " under its own CANDIDATE line" if wanted > 1 else ""
    return (
        f"Your answer can't be used:\n{listed}\n\n"
        f"Answer once more, completely{heads}, in the form described above."
    )


# -- what all requests share --


def _brief_text(brief: Brief) -> str:
    parts = [f"# Task\n\n{brief.task.strip() or 'Make this code faster.'}"]
    if brief.checks:
        parts.append("What must hold:\n" + _list(brief.checks))
    if brief.benchmarks:
        parts.append("What is timed:\n" + _list(brief.benchmarks))
    parts.append(f"A gain below {brief.min_effect:.1%} counts for nothing.")
    parts.append("# Files\n\nThis is the original. These files may be changed, and no others:")
    parts.extend(
        f"FILE: {path}\n{fenced(text, _language(path))}"
        for path, text in sorted(brief.files.items())
    )
    return "\n\n".join(parts)


def fenced(text: str, language: str = "") -> str:
    """A text as a block whose fence doesn't occur in it."""
    fence = "`" * fence_length([text])
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def fence_length(texts: Sequence[str]) -> int:
    """How many backticks a fence around these needs."""
    runs = (len(run) for text in texts for run in re.findall("`{3,}", text))
    return max(runs, default=2) + 1


def _language(path: str) -> str:
    return "python" if path.endswith((".py", ".pyi")) else ""


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


# -- what this request is about --


def _request_text(brief: Brief, request: Request) -> str:
    if request.kind == Kind.INITIAL:
        text = "# What is wanted\n\nPropose one change that makes what is timed faster."
    elif request.wanted > 1:
        text = _several_text(request)
    elif request.kind == Kind.REPAIR:
        text = _repair_text(request)
    elif request.kind == Kind.ADAPT:
        text = _adapt_text(request)
    else:
        text = _refine_text(request)
    return f"{text}\n\n{_nudge(request)}"


def _nudge(request: Request) -> str:
    """A hint that differs between requests that would be the same otherwise."""
    number = request.replicate + (request.line if request.kind == Kind.INITIAL else 0)
    text = _NUDGES[number % len(_NUDGES)]
    if number >= len(_NUDGES):
        text += f" Others work on the same in other ways; this is way {number + 1}."
    return text


def _repair_text(request: Request) -> str:
    return "\n\n".join(
        [
            "# What is wanted\n\nThis attempt is wrong. Find out why, and propose it again without "
            "the mistake; keep what makes it fast. If its idea can't work, take another.",
            *_tried_texts(request.about),
            _earlier_text(request),
        ]
    ).rstrip()


def _refine_text(request: Request) -> str:
    return "\n\n".join(
        [
            "# What is wanted\n\nThis attempt is right. Make it faster still: go on from it, or do "
            "what it does in a better way.",
            *_tried_texts(request.about),
        ]
    )


def _adapt_text(request: Request) -> str:
    return "\n\n".join(
        [
            "# What is wanted\n\nSeveral steps were made one after the other; this is where they "
            "led. Decide by what each step gained: go further where there is more to gain, give up "
            "what gained nothing, or try something of another sort.",
            _history_text(request.history),
            "The last attempt:",
            *_tried_texts(request.about),
        ]
    )


def _several_text(request: Request) -> str:
    parts = [
        "# What is wanted\n\n"
        f"These {len(request.about)} attempts are independent of each other. Make each of them "
        "better: fix what is wrong, or make it faster still. Don't merge them."
    ]
    for number, tried in enumerate(request.about, 1):
        parts.extend((f"## Attempt {number}", _tried_text(tried)))
    return "\n\n".join(parts)


def _earlier_text(request: Request) -> str:
    """What the line tried before, in short."""
    about = {tried.digest for tried in request.about}
    earlier = [tried for tried in request.history if tried.digest not in about]
    return f"Tried before:\n{_steps(earlier)}" if earlier else ""


def _history_text(history: Sequence[Tried]) -> str:
    return f"The steps so far, the oldest first:\n{_steps(history)}" if history else ""


def _steps(history: Sequence[Tried]) -> str:
    lines, before = [], 1.0
    for number, tried in enumerate(history, 1):
        line = f"{number}. {_standing(tried)}"
        if tried.estimate is not None:
            line += f"; this step by itself: {tried.estimate.ratio / before:.3f} times"
            before = tried.estimate.ratio
        lines.append(line)
    return "\n".join(lines)


def _tried_texts(about: Sequence[Tried]) -> list[str]:
    return [_tried_text(tried) for tried in about]


def _tried_text(tried: Tried) -> str:
    diff = tried.diff
    if len(diff) > LONGEST_DIFF:
        diff = f"{diff[:LONGEST_DIFF]}\n[{len(diff) - LONGEST_DIFF:,} more characters]\n"
    parts = [
        f"Its change against the original:\n{fenced(diff, 'diff')}",
        f"What came of it: {_standing(tried)}",
    ]
    parts.extend(_failure_text(failure) for failure in tried.failures[:MOST_FAILURES])
    if len(tried.failures) > MOST_FAILURES:
        parts.append(f"... and {len(tried.failures) - MOST_FAILURES} further failures.")
    return "\n\n".join(parts)


def _standing(tried: Tried) -> str:
    """What a candidate is, in a line."""
    text = tried.verdict.value
    if tried.estimate is not None:
        text += f", {spell_estimate(tried.estimate)}"
    return f"{text}: {_bounded(tried.why, LONGEST_MESSAGE)}" if tried.why else text


def spell_estimate(estimate: Estimate) -> str:
    """A ratio with its interval, as a sentence has it."""
    return (
        f"{estimate.ratio:.3f} times as fast as the original "
        f"({estimate.confidence:.0%} interval {estimate.low:.3f} to {estimate.high:.3f})"
    )


def _failure_text(failure: Failure) -> str:
    lines = [f"Failure in {failure.what}: {_bounded(failure.message, LONGEST_MESSAGE)}"]
    for difference in failure.differences[:MOST_DIFFERENCES]:
        lines.append(f"  at {on_one_line(difference.where, LONGEST_VALUE)}")
        lines.append(f"    expected: {on_one_line(difference.expected, LONGEST_VALUE)}")
        lines.append(f"    actual:   {on_one_line(difference.actual, LONGEST_VALUE)}")
    if len(failure.differences) > MOST_DIFFERENCES:
        lines.append(f"  ... and {len(failure.differences) - MOST_DIFFERENCES} more places")
    return "\n".join(lines)


def _bounded(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} ..."


# -- how to answer --


def _how_to_answer(brief: Brief, request: Request, form: Form) -> str:
    ticks = fence_length(list(brief.files.values()))
    how = _SEARCH_REPLACE
    if form == "whole_file":
        how = _WHOLE_FILE.format(fence="`" * ticks, ticks=ticks)
    parts = [
        "# How to answer\n\nBegin with a sentence or two: what you change, and why it is faster."
    ]
    if request.wanted > 1:
        parts.append(
            f"Give {request.wanted} answers, one for each attempt, each after a line of its own: "
            f"CANDIDATE 1, CANDIDATE 2, ... Leave out those that you can't make better."
        )
    parts.append(how)
    parts.append(f"If nothing can be gained at all, answer {NO_CHANGE} and say why.")
    return "\n\n".join(parts)
