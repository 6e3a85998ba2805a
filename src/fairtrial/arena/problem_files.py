"""Reading files of code problems: one call, one report with every mistake and its line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import (
    Document,
    Mistake,
    StudyError,
    StudyWarning,
    build,
    format_of,
    is_problem,
    is_study,
    parse,
    read_text,
)

_START = "docs/problems.md has one to start from"


def load_problem(path: str | os.PathLike[str], format: str | None = None) -> CodeProblem:
    """Read a code problem from a YAML or JSON file; `format` overrules the file's ending.

    Raises one `StudyError` with all mistakes, or returns the problem and issues a `StudyWarning`
    for each value that is read as something else than it looks. Whether what it names is there
    (repository, Python, files) is found out when candidates are judged.
    """
    problem, doubts = read_problem(path, format)
    for doubt in doubts:
        warnings.warn(doubt, StudyWarning, stacklevel=2)
    return problem


def read_problem(
    path: str | os.PathLike[str], format: str | None = None
) -> tuple[CodeProblem, list[str]]:
    """The same, with the warnings as lines of text."""
    source = os.fspath(path)
    document = _read(path, format)
    if is_study(document.data):
        hint = "`fairtrial plan` and `fairtrial run` take studies"
        raise StudyError(Mistake((), "this is a study, not a code problem", hint), source=source)
    mistakes: list[Mistake] = []
    problem = build(CodeProblem, document.data, (), mistakes)
    found = document.place(mistakes)
    if found:
        raise StudyError(found, source=source)
    # The problem is nobody else's yet.
    object.__setattr__(problem, "folder", Path(path).absolute().parent.resolve())
    object.__setattr__(problem, "file", Path(path).name)
    return problem, [f"{source}:{warning.line}: {warning}" for warning in document.warnings]


def is_problem_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is meant as a code problem; not if it can't be read at all."""
    try:
        return is_problem(_read(path, None).data)
    except StudyError:
        return False


def locate(path: str | os.PathLike[str], mistakes: Sequence[Mistake]) -> StudyError:
    """Mistakes in a problem that was read from a file, with their lines there."""
    return StudyError(_read(path, None).place(mistakes), source=os.fspath(path))


def _read(path: str | os.PathLike[str], format: str | None) -> Document:
    try:
        text = read_text(Path(path), "problem_id")
        return parse(text, format or format_of(Path(path)), if_empty=_START)
    except StudyError as error:
        raise StudyError(error.mistakes, source=os.fspath(path)) from None
