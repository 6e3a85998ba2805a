"""The arguments of `fairtrial compare`: two versions, and what they are compared by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import suites, targets
from fairtrial.core import Mistake, StudyError

PROBLEM_SUFFIXES = (".yaml", ".yml", ".json")
USAGE = (
    "compare A B PROBLEM, compare A..B PROBLEM, compare A B SUITE, compare A B -- COMMAND or "
    "compare --command A --command B"
)
_SEPARATOR, _WORDS = "--", "fairtrial.command_words"


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """Two versions, and the problem that they are compared by.

    versions: the two versions, or one range of revisions
    problem: the problem file; None if there is none
    """

    versions: tuple[str, ...]
    problem: Path | None


class CommandAfterDashes(click.Command):
    """A command that keeps the words after ``--`` apart from its own arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if _SEPARATOR in args:
            at = args.index(_SEPARATOR)
            ctx.meta[_WORDS] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)


def words_after_dashes() -> tuple[str, ...]:
    """Return the words after ``--`` of the current command; none if there is no ``--``."""
    words: Any = click.get_current_context().meta.get(_WORDS, ())
    return tuple(words)


def split_arguments(words: Sequence[str]) -> ComparedVersions:
    """Tell versions from the problem, which comes first or last.

    Raises `StudyError` if there are too few or too many.
    """
    versions, problem = list(words), None
    for index in (-1, 0):
        if versions and problem is None and _is_problem(versions[index]):
            problem = Path(versions.pop(index))
    if problem is None and names_suite(words):
        problem = Path(versions.pop())
    is_range = len(versions) == 1 and ".." in versions[0]
    if len(versions) != 2 and not is_range:
        if len(words) == 3:
            message = f"{words[-1]} is no problem file, and no suite of benchmarks is there"
            hint = f"write {USAGE}"
            if Path(words[-1]).exists():
                hint = "a suite has tests that take `benchmark`, or functions time_* or peakmem_*"
            raise StudyError(Mistake((), message, hint))
        what = "two versions and a problem"
        given = " ".join(words) or "nothing"
        raise StudyError(Mistake((), f"expected {what}, got {given}", f"write {USAGE}"))
    return ComparedVersions(tuple(versions), problem)


def names_suite(words: Sequence[str]) -> bool:
    """Return whether the last argument is a suite of benchmarks, and not a version."""
    has_versions = len(words) == 3 or (len(words) == 2 and ".." in words[0])
    return has_versions and suites.is_suite(words[-1])


def _is_problem(word: str) -> bool:
    path = Path(word)
    return path.suffix.lower() in PROBLEM_SUFFIXES or targets.is_target(word)
