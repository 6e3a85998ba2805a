"""Load code problems from YAML or JSON files, and report all mistakes with their lines."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.preflight import find_missing_parts
from fairtrial.core import Mistake, StudyError, build_record, describe_value, documents

__all__ = [
    "as_problem",
    "check_problem_file",
    "is_problem_file",
    "read_problem",  # `load_problem` stands in the facade itself
]
ProblemSource = CodeProblem | str | os.PathLike[str]
_EMPTY_FILE_HINT = "docs/problems.md has one to start from"


def load_problem(path: str | os.PathLike[str], format: str | None = None) -> CodeProblem:
    """Read a code problem from a YAML or JSON file; `format` overrides the file's suffix.

    Returns the problem, and issues a `StudyWarning` for each value that YAML reads differently than
    it looks. Raises one `StudyError` with all mistakes. That the repository, the Python and the
    files exist is checked only when candidates are judged.
    """
    problem, messages = read_problem(path, format)
    for message in messages:
        warnings.warn(message, documents.StudyWarning, stacklevel=2)
    return problem


def read_problem(
    path: str | os.PathLike[str], format: str | None = None
) -> tuple[CodeProblem, list[str]]:
    """Read a code problem from a YAML or JSON file, like `load_problem`.

    Returns the problem and the warnings as lines of text. Raises `StudyError` with all mistakes.
    """
    source = os.fspath(path)
    document = _read(path, format)
    if document.is_study:
        hint = "`fairtrial plan` and `fairtrial run` take studies"
        raise StudyError(Mistake((), "this is a study, not a code problem", hint), source=source)
    mistakes: list[Mistake] = []
    problem = build_record(CodeProblem, document.data, (), mistakes)
    located = document.locate(mistakes)
    if located:
        raise StudyError(located, source=source)
    # A frozen record may be changed here, since no other code has a reference to it yet.
    object.__setattr__(problem, "folder", Path(path).absolute().parent.resolve())
    object.__setattr__(problem, "file", Path(path).name)
    return problem, [f"{source}:{warning.line}: {warning}" for warning in document.warnings]


def as_problem(problem: ProblemSource) -> CodeProblem:
    """Return the code problem that is given, or that the file of that path holds.

    Raises `StudyError` if it is neither, with all mistakes of a file.
    """
    if isinstance(problem, CodeProblem):
        return problem
    if isinstance(problem, (str, os.PathLike)):
        return load_problem(problem)
    hint = "load_problem(path) reads one from a file"
    message = f"expected a CodeProblem or the path of a problem file, got {describe_value(problem)}"
    raise StudyError(Mistake(("problem",), message, hint))


def is_problem_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds a code problem; False if it can't be read."""
    try:
        return _read(path, None).is_problem
    except StudyError:
        return False


def check_problem_file(path: Path) -> tuple[CodeProblem, list[str]]:
    """Read a problem file and check that all that it names exists, without running anything.

    Returns the problem and warnings. Raises `StudyError` with all mistakes and their lines.
    """
    problem, doubts = read_problem(path)
    missing = find_missing_parts(problem)
    if missing:
        raise StudyError(_read(path, None).locate(missing), source=os.fspath(path))
    return problem, doubts


def _read(path: str | os.PathLike[str], format: str | None) -> documents.Document:
    return documents.read_document(path, format, key="problem_id", if_empty=_EMPTY_FILE_HINT)
