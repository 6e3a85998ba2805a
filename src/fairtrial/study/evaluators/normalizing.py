"""How texts are made alike before they are compared."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.core import LabError, Mistake, Record, canonical_json, is_scalar, scalar_text
from fairtrial.study.evaluators.case import EvaluationCase, Evaluator

ANSWER_FIELDS = ("text", "output", "response")
"""Further keys under which an output may hold its text."""

NO_ANSWER = "no answer found in the output"
"""The note of a score of 0 for an output without an answer."""


@dataclass(frozen=True, slots=True)
class TextEvaluator(Record, Evaluator):
    """Base class of evaluators that compare texts.

    field: the key of the output that holds the answer, or a path: `files.answer.txt`; by default
        `answer`, `solution`, ..., or the only file that was collected
    extract: a regular expression that finds the final answer in the text: its group 1, or all of
        it; the last match counts
    extract_reference: the same for the reference
    ignore_case: whether capital letters count as small ones
    ignore_space: whether white space at the ends is dropped, and inside taken as one space
    ignore_punctuation: whether punctuation is dropped
    reference_column: the column with the right answer, if not that of the dataset
    """

    field: str = ""
    extract: str = ""
    extract_reference: str = ""
    ignore_case: bool = False
    ignore_space: bool = True
    ignore_punctuation: bool = False
    reference_column: str = ""

    def _mistakes(self) -> Iterator[Mistake]:
        for name in ("extract", "extract_reference"):
            yield from pattern_mistakes(name, getattr(self, name))

    @property
    def needs_reference(self) -> bool:
        """Whether the reference comes from the problem rather than from a column of its own."""
        return not self.reference_column

    def find_answer(self, case: EvaluationCase) -> str | None:
        """Return the text to judge; None if the output has no answer."""
        value = find_field(case, self.field)
        return None if value is None else last_match(self.extract, as_text(value))

    def find_reference(self, case: EvaluationCase) -> Any:
        """Return the reference; raises `LabError` if the problem has none."""
        value = case.cell(self.reference_column) if self.reference_column else case.reference
        if value is None:
            raise LabError(
                f"{case.problem.problem_id} has no reference: name its column, `reference: answer`"
            )
        if not self.extract_reference:
            return value
        numbers = last_match(self.extract_reference, as_text(value))
        if numbers is None:
            raise LabError(
                f"the reference of {case.problem.problem_id} has no match for `extract_reference`"
            )
        return numbers

    def normalize(self, value: Any) -> str:
        """Return a text as it is compared."""
        text = unicodedata.normalize("NFC", as_text(value))
        if self.ignore_case:
            text = text.casefold()
        if self.ignore_punctuation:
            text = "".join(c for c in text if not unicodedata.category(c).startswith("P"))
        return " ".join(text.split()) if self.ignore_space else text


def pattern_mistakes(name: str, pattern: str) -> Iterator[Mistake]:
    """Yield a mistake if a text is no regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        yield Mistake((name,), f"is no regular expression: {error}")


def find_field(case: EvaluationCase, field: str) -> Any:
    """Return the answer of an output; None if there is none.

    field: its key, or a path of keys with dots: `files.answer.txt`
    """
    if field:
        return _look_up(case.output, field)
    value = case.answer
    if not isinstance(value, Mapping):
        return value
    files = value.get("files")
    if not any(name in value for name in ANSWER_FIELDS) and isinstance(files, Mapping):
        return next(iter(files.values())) if len(files) == 1 else None
    return next((value[name] for name in ANSWER_FIELDS if name in value), None)


def _look_up(data: Any, path: str) -> Any:
    """Return what a path of keys leads to; keys may have dots themselves. None if nothing."""
    if not isinstance(data, Mapping) or path in data:
        return data.get(path) if isinstance(data, Mapping) else None
    words = path.split(".")
    found = (
        _look_up(data.get(".".join(words[:count])), ".".join(words[count:]))
        for count in range(1, len(words))
    )
    return next((value for value in found if value is not None), None)


def last_match(pattern: str, text: str) -> str | None:
    """Return the last match of a pattern: its group 1, or all of it; None if there is none."""
    if not pattern:
        return text
    numbers = list(re.finditer(pattern, text))
    if not numbers:
        return None
    return (numbers[-1][1] if numbers[-1].re.groups else numbers[-1][0]) or ""


def as_text(value: Any) -> str:
    """Return a value as text: scalars as YAML has them, others as JSON."""
    return scalar_text(value) if is_scalar(value) else canonical_json(value)


def no_answer(metric: str = "score", **others: float) -> list[dict[str, Any]]:
    """Return the rows for an output without an answer, which scores 0."""
    note = {"note": NO_ANSWER}
    zeros = {metric: 0.0, **others}
    return [{"metric_name": name, "metric_value": 0.0, **note} for name in zeros]
