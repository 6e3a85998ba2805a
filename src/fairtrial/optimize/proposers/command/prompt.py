"""Prompts for command-line agents, which see the files themselves."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.optimize.proposals import Brief, Request, RequestKind
from fairtrial.optimize.proposers.prompt_parts import (
    describe_outcome,
    describe_steps,
    describe_task,
    fence_diff,
    itemize,
)

MOST_FILES = 200

_ROLE = """\
You are in a private copy of a Python project. Make it faster without changing what it does, by \
editing files in place. What you leave in the folder is what you propose: it is checked against \
the original's behavior and tests and then timed against the original. A change that alters any \
result is worth nothing, and so is one that only looks faster. Don't special-case the inputs of \
checks or benchmarks, don't skip work that callers may see, and keep names and signatures as they \
are. Nobody can answer questions: decide by yourself, make the change, and stop. Remove what you \
made only for trying things out."""

_WANTED = {
    RequestKind.INITIAL: "Make one change that makes what is timed faster.",
    RequestKind.REPAIR: (
        "An attempt at this is wrong. Find out why, and fix it; keep what makes it fast. If its "
        "idea can't work, take another."
    ),
    RequestKind.REFINE: (
        "An attempt at this is right. Make it faster still: build on it, or do what it does in a "
        "better way."
    ),
    RequestKind.ADAPT: (
        "Several steps were made one after the other. Decide by what each of them gained: "
        "continue from the best where there is more to gain, drop what gained nothing, or try "
        "something of another kind."
    ),
}
_APPLIED = "Its changes are in the folder already"
_NOT_APPLIED = "Its changes could not be applied: the folder holds the original project"
_WAYS = (
    "Look for a better algorithm first.",
    "Look at the data structures first.",
    "Look first for work that is done again and again and could be done once.",
    "Look first at inner loops.",
    "Look first at what is copied, converted or allocated without need.",
)


def write_prompt(brief: Brief, request: Request) -> str:
    """Return the prompt: a function of brief and request alone."""
    parts = [_ROLE, *describe_task(brief)]
    parts.append(_files_text(sorted(brief.files)))
    parts.append(f"# What is wanted\n\n{_WANTED[request.kind]}")
    if request.about:
        parts.extend(_about_texts(request))
    parts.append(_WAYS[request.replicate % len(_WAYS)])
    text = "\n\n".join(parts) + "\n"
    # Neither arguments nor files can hold these characters.
    return text.replace("\0", "\\0").encode("utf-8", "replace").decode("utf-8")


def _files_text(paths: Sequence[str]) -> str:
    text = "Only these files, and new ones beside them, may be changed; all else is left out:\n"
    more = len(paths) - MOST_FILES
    return text + itemize(paths[:MOST_FILES]) + (f"\n- and {more:,} more" if more > 0 else "")


def _about_texts(request: Request) -> list[str]:
    tried = request.about[0]
    # A request to adapt is about the gain of each step, so none is left out.
    without = () if request.kind == RequestKind.ADAPT else (tried,)
    steps = describe_steps(request.history, without=without)
    texts = [f"Tried before, the oldest first:\n{steps}"] if steps else []
    texts.append(f"{_APPLIED}:\n{fence_diff(tried.diff)}" if tried.diff else f"{_NOT_APPLIED}.")
    return [*texts, *describe_outcome(tried)]
