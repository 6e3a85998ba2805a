"""Evaluators that compare an answer with a reference: exact, numeric, one_of, contains, ..."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from fairtrial.core import LabError, Mistake, Record, StudyError, plain_number
from fairtrial.study.evaluators.case import EvaluationCase, Evaluator
from fairtrial.study.evaluators.normalizing import (
    TextEvaluator,
    as_text,
    find_field,
    last_match,
    no_answer,
    pattern_mistakes,
)
from fairtrial.study.model.study import RunBudget

_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Exact(TextEvaluator):
    """Whether the answer equals the reference."""

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 or 0."""
        answer, reference = self.find_answer(case), self.find_reference(case)
        if answer is None:
            return no_answer()
        return int(self.normalize(answer) == self.normalize(reference))


@dataclass(frozen=True, slots=True)
class Numeric(TextEvaluator):
    """Whether the answer's last number is close enough to the reference.

    tolerance: the largest difference
    relative_tolerance: the largest difference as a share of the reference
    """

    tolerance: float = 0.0
    relative_tolerance: float = 0.0

    def _mistakes(self) -> Iterator[Mistake]:
        yield from TextEvaluator._mistakes(self)
        for name in ("tolerance", "relative_tolerance"):
            if not 0 <= getattr(self, name) < math.inf:
                yield Mistake((name,), f"must be 0 or more, got {getattr(self, name):g}")

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 or 0."""
        expected = _last_number(self.find_reference(case))
        if expected is None:
            raise LabError(
                f"the reference of {case.problem.problem_id} holds no number; "
                "`extract_reference` finds one in a longer text"
            )
        answer = self.find_answer(case)
        number = None if answer is None else _last_number(answer)
        if number is None:
            return no_answer()
        if number == expected:  # infinities, too
            return 1
        allowed = max(self.tolerance, self.relative_tolerance * abs(expected))
        # Decimal fractions such as 0.1 + 0.2 aren't exact in binary.
        slack = 1e-12 * max(abs(number), abs(expected))
        return int(abs(number - expected) <= allowed + slack)


def _last_number(value: Any) -> float | None:
    number = plain_number(value)
    if number is not None:
        return float(number)
    text = as_text(value).replace("\u2212", "-")
    match = _NUMBER.findall(text)
    if not match:
        return None
    try:
        return float(match[-1].rstrip(",").replace(",", ""))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class OneOf(TextEvaluator):
    """Whether the answer equals one of several references: a list, or a text with separators.

    separator: what separates the references in a text
    """

    separator: str = "|"

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 or 0."""
        references = _items(self.find_reference(case), self.separator)
        answer = self.find_answer(case)
        if answer is None:
            return no_answer()
        return int(self.normalize(answer) in {self.normalize(item) for item in references})


@dataclass(frozen=True, slots=True)
class Contains(TextEvaluator):
    """Whether the answer contains the reference, or all or any of several.

    separator: what separates several references in a text
    need: whether `all` of them must be there, or `any`
    """

    separator: str = "|"
    need: str = "all"

    def _mistakes(self) -> Iterator[Mistake]:
        yield from TextEvaluator._mistakes(self)
        if self.need not in ("all", "any"):
            yield Mistake(("need",), f"expected 'all' or 'any', got '{self.need}'")

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 or 0."""
        references = _items(self.find_reference(case), self.separator)
        answer = self.find_answer(case)
        if answer is None:
            return no_answer()
        text = self.normalize(answer)
        match = [self.normalize(item) in text for item in references]
        return int(all(match) if self.need == "all" else any(match))


@dataclass(frozen=True, slots=True)
class Regex(Record, Evaluator):
    """Whether the answer has a match for a regular expression.

    pattern: the expression; by default the problem's reference is one
    field: the key of the output that holds the answer
    whole: whether all of the answer must match
    ignore_case: whether capital letters count as small ones
    """

    pattern: str = ""
    field: str = ""
    whole: bool = False
    ignore_case: bool = False

    def _mistakes(self) -> Iterator[Mistake]:
        yield from pattern_mistakes("pattern", self.pattern)

    @property
    def needs_reference(self) -> bool:
        """Whether the reference is the pattern."""
        return not self.pattern

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 or 0."""
        pattern = self.pattern or as_text(case.reference or "")
        if not pattern:
            raise LabError("regex needs `pattern`, or a reference that is one")
        try:
            compiled = re.compile(pattern, re.IGNORECASE if self.ignore_case else 0)
        except re.error as error:
            name = case.problem.problem_id
            raise LabError(f"the reference of {name} is no pattern: {error}") from None
        value = find_field(case, self.field)
        if value is None:
            return no_answer()
        match = compiled.fullmatch if self.whole else compiled.search
        return int(match(as_text(value)) is not None)


@dataclass(frozen=True, slots=True)
class Overlap(TextEvaluator):
    """How much the answer's items, as a set, agree with the reference's: f1, precision, recall.

    separator: what separates the items of a text; ` ` for words
    """

    separator: str = ","

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return the three scores; F1 is the main one."""
        expected = self._item_set(self.find_reference(case))
        value = find_field(case, self.field)
        if isinstance(value, str) and self.extract:
            value = last_match(self.extract, value)
        if value is None:
            return no_answer(precision=0.0, recall=0.0)
        given = self._item_set(value)
        common = len(given & expected)
        precision = common / len(given) if given else float(not expected)
        recall = common / len(expected) if expected else float(not given)
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0.0
        return {"score": f1, "precision": precision, "recall": recall}

    def _item_set(self, value: Any) -> set[str]:
        items = {self.normalize(item) for item in _items(value, self.separator)}
        return items - {""}


def _items(value: Any, separator: str) -> list[Any]:
    """Return the items of a list, of a text with a JSON list, or of a text with separators."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    text = as_text(value)
    if text.lstrip().startswith("["):
        try:
            items = json.loads(text)
            return items if isinstance(items, list) else [items]
        except ValueError:
            pass
    return text.split(separator) if separator.strip() else text.split()


@dataclass(frozen=True)
class JsonSchema(Record, Evaluator):
    """Whether the answer follows a JSON schema; needs the extra `evaluators`.

    schema: the schema; by default the problem's reference is one
    field: the key of the output that holds the answer; by default the answer, else all of it
    """

    schema: Mapping[str, Any] | None = None
    field: str = ""

    def _mistakes(self) -> Iterator[Mistake]:
        if self.schema is not None and find_spec("jsonschema") is not None:
            from jsonschema import SchemaError

            try:
                _validator(self.schema)
            except SchemaError as error:
                yield Mistake(("schema",), f"is no JSON schema: {error.message}")

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` if the library isn't installed."""
        if find_spec("jsonschema") is None:
            hint = 'pip install "fairtrial[evaluators]"'
            raise StudyError(Mistake((), "json_schema needs jsonschema", hint))

    @property
    def needs_reference(self) -> bool:
        """Whether the reference is the schema."""
        return self.schema is None

    @cached_property
    def _own_validator(self) -> Any:
        return _validator(self.schema)

    def evaluate(self, case: EvaluationCase) -> Any:
        """Return 1 or 0, with the first violation in the notes."""
        if self.schema is None and not isinstance(case.reference, Mapping):
            raise LabError("json_schema needs `schema`, or a reference that is one")
        validator = self._own_validator if self.schema else _validator(case.reference)
        value = case.output.get(self.field) if self.field else case.answer
        if isinstance(value, str):
            try:
                value = json.loads(_unfenced(value))
            except ValueError as error:
                return {"score": 0, "note": f"the answer is not JSON: {error}"}
        wrong = next(iter(validator.iter_errors(value)), None)
        if wrong is None:
            return 1
        return {"score": 0, "note": f"{wrong.json_path}: {wrong.message}"[:500]}


def _validator(schema: Any) -> Any:
    from jsonschema.validators import validator_for

    cls = validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


def _unfenced(text: str) -> str:
    match = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    return match[1] if match else text
