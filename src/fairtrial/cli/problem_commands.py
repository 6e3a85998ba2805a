"""What commands on code problems have in common: reading the file, settings, notes, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import CodeProblem, Judgement, Reason, problem_files
from fairtrial.cli.event_text import print_event
from fairtrial.cli.output import print_wrapped, warn
from fairtrial.core import StudyError, events, on_one_line

LONGEST_NOTE = 2_000


def unsandboxed_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds ``--unsandboxed`` to a command.

    what: what runs without a sandbox, for the help
    """
    return click.option(
        "--unsandboxed",
        is_flag=True,
        help=f"Run {what} without a sandbox where there is none, or where the problem says plain.",
    )


def base_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--base`` to a command."""
    option = click.option(
        "--base",
        default="",
        metavar="REV",
        help="A git revision that is the base; default: the problem's, or the tree as it is.",
    )
    return option(command)


def strict_paths_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--strict-paths`` to a command."""
    option = click.option(
        "--strict-paths",
        is_flag=True,
        help="Reject revisions that change files outside of `editable`, as diffs are; by default "
        "such files are left out.",
    )
    return option(command)


def load_with_warnings(path: Path) -> CodeProblem:
    """Read a problem file, and print warnings about it."""
    problem, warnings = problem_files.read_problem(path)
    warn(warnings)
    return problem


def choose_emit(*, as_json: bool) -> events.Emit:
    """Return what shows progress events: nothing beside JSON, else lines on standard error."""
    return events.ignore_event if as_json else print_event


def print_notes(notes: Iterable[str]) -> None:
    """Print notes below a result, one paragraph each."""
    for text in notes:
        print_wrapped(f"note: {on_one_line(text, LONGEST_NOTE)}", "", "  ")


def report_unusable(judgements: Sequence[Judgement], *, as_json: bool) -> int:
    """Return the exit code of a command whose candidates were judged, as far as possible.

    Raises `StudyError` if one can't be used: there is no diff in it, or it doesn't apply. With JSON
    only the exit code says so: one document is all that is printed.
    """
    names = [
        judgement.name
        for judgement in judgements
        if judgement.rejection is not None and judgement.rejection.reason == Reason.UNUSABLE
    ]
    if not names:
        return 0
    if as_json:
        return StudyError.exit_code
    verb = "candidate can't" if len(names) == 1 else "candidates can't"
    raise StudyError(f"{len(names)} {verb} be used: {', '.join(names)}; see above")


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Add the problem's file to mistakes that don't say where they are."""
    try:
        yield
    except StudyError as error:
        if error.source:
            raise
        raise StudyError(error.mistakes, source=str(path)) from None
