"""What command-line agents are told. They see the files themselves, so these are not in it."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.agents.proposers.prompts import fenced, spell_estimate
from fairtrial.errors import on_one_line
from fairtrial.model.proposals import Brief, Kind, Request, Tried
from fairtrial.model.verdicts import Failure

MOST_FILES, MOST_FAILURES, MOST_DIFFERENCES = 200, 5, 5
LONGEST_VALUE, LONGEST_MESSAGE, LONGEST_DIFF = 400, 2_000, 20_000

_ROLE = """\
You are in a private copy of a Python project. Make it faster without changing what it does, by \
editing files in place. What you leave in the folder is what you propose: it is checked against \
the original's behaviour and tests and then timed against the original. A change that alters any \
result is worth nothing, and so is one that only looks faster. Don't special-case the inputs of \
checks or benchmarks, don't skip work that callers may see, and keep names and signatures as they \
are. Nobody can answer questions: decide by yourself, make the change, and stop. Remove what you \
made only for trying things out."""

_WANTED = {
    Kind.INITIAL: "Make one change that makes what is timed faster.",
    Kind.REPAIR: "An attempt at this is wrong. Find out why, and mend it; keep what makes it fast. "
    "If its idea can't work, take another.",
    Kind.REFINE: "An attempt at this is right. Make it faster still: go on from it, or do what it "
    "does in a better way.",
    Kind.ADAPT: "Several steps were made one after the other. Decide by what each of them gained: "
    "go further where there is more to gain, give up what gained nothing, or try something of "
    "another sort.",
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
    """The text that asks for what is wanted: a function of brief and request alone."""
    parts = [_ROLE, f"# Task\n\n{brief.task.strip() or 'Make this code faster.'}"]
    if brief.checks:
        parts.append("What must hold:\n" + _list(brief.checks))
    if brief.benchmarks:
        parts.append("What is timed:\n" + _list(brief.benchmarks))
    parts.append(f"A gain below {brief.min_effect:.1%} counts for nothing.")
    parts.append(_files_text(sorted(brief.files)))
    parts.append(f"# What is wanted\n\n{_WANTED[request.kind]}")
    if request.about:
        parts.extend(_about_texts(request))
    parts.append(_WAYS[request.replicate % len(_WAYS)])
    text = "\n\n".join(parts) + "\n"
    # What no argument and no file can hold.
    return text.replace("\0", "\\0").encode("utf-8", "replace").decode("utf-8")


def _files_text(paths: Sequence[str]) -> str:
    text = "Only these files, and new ones beside them, may be changed; all else is left out:\n"
    more = len(paths) - MOST_FILES
    return text + _list(paths[:MOST_FILES]) + (f"\n- and {more:,} more" if more > 0 else "")


def _about_texts(request: Request) -> list[str]:
    tried = request.about[0]
    earlier = [each for each in request.history if each.digest != tried.digest]
    texts = [f"Tried before:\n{_steps(earlier)}"] if earlier else []
    diff = tried.diff
    if len(diff) > LONGEST_DIFF:
        diff = f"{diff[:LONGEST_DIFF]}\n[{len(diff) - LONGEST_DIFF:,} more characters]\n"
    texts.append(f"{_APPLIED}:\n{fenced(diff, 'diff')}" if diff else f"{_NOT_APPLIED}.")
    texts.append(f"What came of it: {_standing(tried)}")
    texts.extend(_failure_text(failure) for failure in tried.failures[:MOST_FAILURES])
    if len(tried.failures) > MOST_FAILURES:
        texts.append(f"... and {len(tried.failures) - MOST_FAILURES} further failures.")
    return texts


def _steps(history: Sequence[Tried]) -> str:
    return "\n".join(f"{number}. {_standing(tried)}" for number, tried in enumerate(history, 1))


def _standing(tried: Tried) -> str:
    text = tried.verdict.value
    if tried.estimate is not None:
        text += f", {spell_estimate(tried.estimate)}"
    return f"{text}: {_bounded(tried.why)}" if tried.why else text


def _failure_text(failure: Failure) -> str:
    lines = [f"Failure in {failure.what}: {_bounded(failure.message)}"]
    for difference in failure.differences[:MOST_DIFFERENCES]:
        lines.append(f"  at {on_one_line(difference.where, LONGEST_VALUE)}")
        lines.append(f"    expected: {on_one_line(difference.expected, LONGEST_VALUE)}")
        lines.append(f"    actual:   {on_one_line(difference.actual, LONGEST_VALUE)}")
    return "\n".join(lines)


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} ..."


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
