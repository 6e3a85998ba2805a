"""Targets on the command line: functions named in place of a problem file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairtrial.arena import ArenaSettings, targets
from fairtrial.cli.compare_arguments import words_after_dashes
from fairtrial.cli.interrupts import run_interruptible
from fairtrial.cli.output import fold, note, shown_path
from fairtrial.cli.problem_commands import choose_emit
from fairtrial.core import Mistake, StudyError


def record_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--record`` to a command; the words to record stand after ``--``."""
    option = click.option(
        "--record",
        "records",
        is_flag=True,
        help="For a target: record the calls of the command after `--` instead of those of the "
        "tests: --record -- python script.py",
    )
    return option(command)


def resolve_problem(
    given: Path, *, records: bool = False, unsandboxed: bool = False, as_json: bool = False
) -> Path:
    """Return a problem file: the given one, or the one that is drafted for a target.

    given: the path of a problem file, or a target such as `src/shop/cart.py::Cart.total`
    records: whether the words after ``--`` are a command to record
    """
    command = words_after_dashes()
    if not targets.is_target(str(given)) and given.suffix != ".py":
        if records:
            message = "--record is for a target, such as src/shop/cart.py::Cart.total"
            raise StudyError(Mistake((), message, "leave it out"))
        if command:
            message = f"unexpected words after `--`: {' '.join(command)}"
            raise StudyError(Mistake((), message, "--record records a command"))
        return given
    draft = draft_problem(
        str(given), None, records=records, unsandboxed=unsandboxed, as_json=as_json
    )
    if not as_json:
        show_draft(draft)
    return draft.problem


def draft_problem(
    text: str,
    folder: Path | None,
    *,
    records: bool = False,
    unsandboxed: bool = False,
    as_json: bool = False,
    replaces: bool = False,
) -> targets.TargetDraft:
    """Draft the problem of a target; the words after ``--`` are the command to record."""
    command = words_after_dashes()
    if bool(command) != records:
        message = "--record needs a command after `--`, and the command needs --record"
        raise StudyError(Mistake((), message, "--record -- python script.py"), source=text)
    settings = ArenaSettings(unsandboxed=unsandboxed, emit=choose_emit(as_json=as_json))
    work = partial(
        targets.prepare_target,
        text,
        folder,
        command=command,
        settings=settings,
        replaces=replaces,
    )
    return run_interruptible(work)


def show_draft(draft: targets.TargetDraft) -> None:
    """Say on standard error what was found, and where the problem is."""
    for line in draft.lines:
        note(fold(line, "", "  "))
    origin = "" if draft.is_new else " (drafted earlier for the same tree)"
    note(f"problem: {shown_path(draft.problem)}{origin}")


def keep_draft(problem: Path, folder: Path) -> None:
    """Copy the files of a drafted problem to the output folder of its optimization."""
    source = problem.parent
    if not targets.is_draft(source) or source == folder:
        return
    kept = folder / "target"
    kept.mkdir(exist_ok=True)
    for file in source.iterdir():
        if file.is_file():
            shutil.copyfile(file, kept / file.name)
