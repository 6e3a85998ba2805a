"""Reading study files: one call, one report with every mistake and its line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.core import (
    Document,
    Mistake,
    StudyError,
    StudyWarning,
    build,
    format_of,
    is_problem,
    parse,
    read_text,
)
from fairtrial.study.design.expression_warnings import expression_doubts
from fairtrial.study.model.study import Study
from fairtrial.study.validation import binding_doubts, setting_doubts, study_mistakes, word_doubts


@dataclass(frozen=True, slots=True)
class LoadedStudy:
    """A study without mistakes, and what to know about its file.

    study: the study
    warnings: values that are read as something else than they look, and comparisons with what a
        factor never is
    source: the file, as its path was given
    unbound: agents and problems that the file doesn't bind, though it binds others; `run` says so,
        unless Python binds them
    """

    study: Study
    warnings: tuple[Mistake, ...]
    source: str
    unbound: tuple[Mistake, ...] = ()
    _document: Document | None = field(default=None, compare=False, repr=False)

    def locate(self, error: StudyError) -> StudyError:
        """The same with the lines of the file where what is wrong is written."""
        data = self._document.data if self._document is not None else {}
        if error.source or not all(each.path and each.path[0] in data for each in error.mistakes):
            return error
        assert self._document is not None
        return StudyError(self._document.place(error.mistakes), source=self.source)

    def warning_lines(self) -> list[str]:
        """The warnings as text, one line each, with file and line."""
        return self._lines(self.warnings)

    def unbound_lines(self) -> list[str]:
        """What is not bound, in the same form."""
        return self._lines(self.unbound)

    def _lines(self, warnings: Iterable[Mistake]) -> list[str]:
        return [f"{self.source}:{warning.line}: {warning}" for warning in warnings]


def load_study(path: str | os.PathLike[str], format: str | None = None) -> Study:
    """Read a study from a YAML or JSON file; `format` overrules the file's ending.

    Raises one `StudyError` with all mistakes, or returns the study and issues a `StudyWarning` for
    each value that is read as something else than it looks, and for each comparison that is never
    met. Whether the study makes sense as a whole is left to `validate_study`, and told here only if
    the file has other mistakes.
    """
    loaded = _load(path, format, validate=False)
    for line in loaded.warning_lines():
        warnings.warn(line, StudyWarning, stacklevel=2)
    return loaded.study


def read_study(path: str | os.PathLike[str], format: str | None = None) -> LoadedStudy:
    """Read a study and check it as a whole; raises one `StudyError` with all mistakes."""
    return _load(path, format, validate=True)


def _load(path: str | os.PathLike[str], format: str | None, *, validate: bool) -> LoadedStudy:
    source = os.fspath(path)
    try:
        document = parse(read_text(Path(path)), format or format_of(Path(path)))
    except StudyError as error:
        raise StudyError(error.mistakes, source=source) from None
    if is_problem(document.data):
        hint = "`fairtrial check` looks at it, and `fairtrial evaluate` judges candidates by it"
        raise StudyError(Mistake((), "this is a code problem, not a study", hint), source=source)
    mistakes: list[Mistake] = []
    study = build(Study, document.data, (), mistakes)
    # The study is nobody else's yet; a provisional one could not be made anew with its folder.
    object.__setattr__(study, "folder", Path(path).absolute().parent)
    unreadable = [*mistakes, *document.mistakes]
    if isinstance(document.data, dict) and (validate or unreadable):
        # What could not be read may look wrong for a second reason, which helps nobody.
        told = {mistake.path for mistake in unreadable} - {()}
        across = study_mistakes(study, unreadable)
        mistakes.extend(mistake for mistake in across if mistake.path not in told)
    found = document.place(mistakes)
    if found:
        raise StudyError(found, source=source)
    doubts = document.place(
        [*expression_doubts(study), *setting_doubts(study), *word_doubts(study)]
    )
    unbound = document.place(list(binding_doubts(study)))
    return LoadedStudy(study, (*document.warnings, *doubts), source, tuple(unbound), document)
