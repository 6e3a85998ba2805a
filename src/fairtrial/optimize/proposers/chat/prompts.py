"""Prompts for language models: the task, the files, earlier candidates, and how to answer.

The text is a function of the brief, the request and the form of the answer alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fairtrial.optimize.proposals import Brief, Request, RequestKind, Tried
from fairtrial.optimize.proposers.prompt_parts import (
    describe_outcome,
    describe_steps,
    describe_task,
    fence_diff,
    fence_length,
    fence_text,
    itemize,
)

Form = Literal["whole_file", "search_replace"]
Message = dict[str, str]

NO_CHANGE = "NO CHANGE"
"""The answer of a model that has nothing to propose."""

_ROLE = """\
You make Python projects faster without changing what they do. Each change that you propose is \
applied to a copy of the project, checked against the original's behavior and tests, and, if all \
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
    """Return the messages of a request."""
    parts = [
        _brief_text(brief),
        _request_text(brief, request),
        _how_to_answer(brief, request, form),
    ]
    text = _sendable("\n\n".join(parts))
    return [{"role": "system", "content": _ROLE}, {"role": "user", "content": text}]


def write_complaint(problems: Sequence[str], wanted: int) -> str:
    """Return the message that follows an unusable answer."""
    heads = " under its own CANDIDATE line" if wanted > 1 else ""
    return _sendable(
        f"Your answer can't be used:\n{itemize(problems)}\n\n"
        f"Answer once more, completely{heads}, in the form described above."
    )


def _sendable(text: str) -> str:
    """Return text that JSON can hold: file names may hold halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# -- the brief --


def _brief_text(brief: Brief) -> str:
    parts = describe_task(brief)
    parts.append("# Files\n\nThis is the original. These files may be changed, and no others:")
    parts.extend(
        f"FILE: {path}\n{fence_text(text, _language(path))}"
        for path, text in sorted(brief.files.items())
    )
    return "\n\n".join(parts)


def _language(path: str) -> str:
    return "python" if path.endswith((".py", ".pyi")) else ""


# -- the request --


def _request_text(brief: Brief, request: Request) -> str:
    if request.kind == RequestKind.INITIAL:
        text = "# What is wanted\n\nPropose one change that makes what is timed faster."
    elif request.wanted > 1:
        text = _several_text(request)
    elif request.kind == RequestKind.REPAIR:
        text = _repair_text(request)
    elif request.kind == RequestKind.ADAPT:
        text = _adapt_text(request)
    else:
        text = _refine_text(request)
    return f"{text}\n\n{_nudge(request)}"


def _nudge(request: Request) -> str:
    """Return a hint that differs between requests that are equal otherwise."""
    number = request.replicate + (request.lineage if request.kind == RequestKind.INITIAL else 0)
    text = _NUDGES[number % len(_NUDGES)]
    if number >= len(_NUDGES):
        text += f" Others work on the same in other ways; this is way {number + 1}."
    return text


def _repair_text(request: Request) -> str:
    steps = describe_steps(request.history, without=request.about)
    return "\n\n".join(
        [
            "# What is wanted\n\nThis attempt is wrong. Find out why, and propose it again without "
            "the mistake; keep what makes it fast. If its idea can't work, take another.",
            *map(_tried_text, request.about),
            *([f"Tried before:\n{steps}"] if steps else []),
        ]
    )


def _refine_text(request: Request) -> str:
    return "\n\n".join(
        [
            "# What is wanted\n\nThis attempt is right. Make it faster still: build on it, or do "
            "what it does in a better way.",
            *map(_tried_text, request.about),
        ]
    )


def _adapt_text(request: Request) -> str:
    return "\n\n".join(
        [
            "# What is wanted\n\nSeveral steps were made one after the other. Decide by what each "
            "step gained: go further where there is more to gain, give up what gained nothing, or "
            "try something of another sort.",
            f"The steps so far, the oldest first:\n{describe_steps(request.history)}",
            "The best of them, to continue from:",
            *map(_tried_text, request.about),
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


def _tried_text(tried: Tried) -> str:
    shown = f"Its change against the original:\n{fence_diff(tried.diff)}"
    return "\n\n".join([shown, *describe_outcome(tried)])


# -- the form of the answer --


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
