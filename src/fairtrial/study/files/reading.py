"""Read study files, and report every mistake in them at once, with its line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fairtrial.core import Mistake, StudyError, build_record, describe_value, documents
from fairtrial.study.design.expression_warnings import find_expression_warnings
from fairtrial.study.model.study import Study
from fairtrial.study.validation import (
    find_row_warnings,
    find_study_mistakes,
    find_unbound_names,
    find_uncorrected_claims,
    find_unknown_terms,
    find_unused_settings,
)

StudySource = Study | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class LoadedStudy:
    """A valid study, and warnings about its file.

    study: the study
    warnings: ambiguous values, comparisons that can never be true, unused settings, unknown terms
    source: the path of the file, as it was given
    unbound: agents and problems that the file doesn't bind although it binds others; a mistake
        unless Python code binds them
    """

    study: Study
    warnings: tuple[Mistake, ...]
    source: str
    unbound: tuple[Mistake, ...] = ()
    _document: documents.Document | None = field(default=None, compare=False, repr=False)

    def locate(self, error: StudyError) -> StudyError:
        """Return the same error with the file's name and the lines of its mistakes.

        Returns the error unchanged if it has a source, or is about something not in the file.
        """
        data = self._document.data if self._document is not None else {}
        is_in_file = all(mistake.path and mistake.path[0] in data for mistake in error.mistakes)
        if error.source or not is_in_file:
            return error
        assert self._document is not None
        return StudyError(self._document.locate(error.mistakes), source=self.source)

    def warning_lines(self) -> list[str]:
        """Return the warnings as lines of text, each with file name and line number."""
        return self._lines(self.warnings)

    def unbound_lines(self) -> list[str]:
        """Return the unbound names as lines of text, each with file name and line number."""
        return self._lines(self.unbound)

    def _lines(self, warnings: Iterable[Mistake]) -> list[str]:
        return [f"{self.source}:{warning.line}: {warning}" for warning in warnings]


def as_study(study: StudySource) -> Study:
    """Return the study that is given, or that the file of that path holds.

    Raises `StudyError` if it is neither, with all mistakes of a file.
    """
    if isinstance(study, Study):
        return study
    if isinstance(study, (str, os.PathLike)):
        return load_study(study)
    message = f"expected a Study or the path of a study file, got {describe_value(study)}"
    raise StudyError(Mistake(("study",), message, "load_study(path) reads one from a file"))


def load_study(path: str | os.PathLike[str], format: str | None = None) -> Study:
    """Read a study from a YAML or JSON file; `format` takes precedence over the file's suffix.

    Raises one `StudyError` with all mistakes, and issues a `StudyWarning` for each ambiguous value
    and each comparison that can never be true. The study as a whole is checked by `validate_study`;
    here such mistakes are reported only together with others.
    """
    loaded = _load(path, format, validate=False)
    for line in loaded.warning_lines():
        warnings.warn(line, documents.StudyWarning, stacklevel=2)
    return loaded.study


def read_study(path: str | os.PathLike[str], format: str | None = None) -> LoadedStudy:
    """Read a study and check it as a whole; raises one `StudyError` with all mistakes."""
    return _load(path, format, validate=True)


def _load(path: str | os.PathLike[str], format: str | None, *, validate: bool) -> LoadedStudy:
    source = os.fspath(path)
    document = documents.read_document(path, format)
    if document.is_problem:
        hint = "`fairtrial check` looks at it, and `fairtrial evaluate` judges candidates by it"
        raise StudyError(Mistake((), "this is a code problem, not a study", hint), source=source)
    mistakes: list[Mistake] = []
    study = build_record(Study, document.data, (), mistakes)
    # Set in place: a provisional study, one with mistakes, can't be created again with its folder.
    study.set_folder(Path(path).absolute().parent)
    field_mistakes = [*mistakes, *document.mistakes]
    if isinstance(document.data, dict) and (validate or field_mistakes):
        # A field with a mistake may break rules for the whole study too; reporting that is no help.
        reported = {mistake.path for mistake in field_mistakes} - {()}
        study_mistakes = find_study_mistakes(study, field_mistakes)
        mistakes.extend(mistake for mistake in study_mistakes if mistake.path not in reported)
    located = document.locate(mistakes)
    if located:
        raise StudyError(located, source=source)
    study_warnings = document.locate(
        [
            *find_expression_warnings(study),
            *find_unused_settings(study),
            *find_unknown_terms(study),
            *find_uncorrected_claims(study),
            *(find_row_warnings(study) if validate else ()),
        ]
    )
    unbound = document.locate(list(find_unbound_names(study)))
    all_warnings = (*document.warnings, *study_warnings)
    return LoadedStudy(study, all_warnings, source, tuple(unbound), document)
