"""Checks of conditions by a study's constraints: expressions and functions."""

from __future__ import annotations

import contextlib
import copy
import itertools
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairtrial.core import FieldPath, StudyError, describe_value, plugins
from fairtrial.study.design.column_expressions import (
    FALSE,
    TRUE,
    UNDECIDED,
    ColumnExpression,
    RowColumns,
)
from fairtrial.study.design.expressions import Scope, format_factors
from fairtrial.study.model.conditions import DesignRow
from fairtrial.study.model.factors import Constraint, ConstraintSeverity

Check = Callable[[Scope, Scope], bool]
Rule = tuple[Constraint, list[Check]]
OpenRule = tuple[Rule, bool]
"""A rule, and whether it is known to be broken; else it has to be checked."""
CHUNK_ROWS = 2_048
MIN_CHECKS = 1_000
"""Fewer checks than these are made row by row: importing numpy would take longer."""
P = ParamSpec("P")
T = TypeVar("T")


def constraint_message(constraint: Constraint) -> str:
    """Return the message of a condition that breaks a constraint."""
    return f"{constraint.constraint_id}: {constraint.description}"


def locate_mistakes(path: FieldPath, function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with a path in the study prepended to the paths of its mistakes."""

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except StudyError as error:
            raise StudyError([mistake.under(path) for mistake in error.mistakes]) from None

    return wrapper


class ConstraintChecker:
    """Checks assignments of factors and blocks by a study's constraints."""

    def __init__(self, constraints: Sequence[Constraint], folder: Path | None = None) -> None:
        self._rules: list[Rule] = []
        self._expressions: list[ColumnExpression | None] = []
        for index, constraint in enumerate(constraints):
            checks: list[Check] = []
            expression = None
            if constraint.expression is not None:
                path: FieldPath = ("constraints", index, "expression")
                expression = locate_mistakes(path, ColumnExpression)(constraint.expression)
                checks.append(locate_mistakes(path, expression.holds))
            if constraint.callable_ref is not None:
                path = ("constraints", index, "callable_ref")
                check = locate_mistakes(path, _load_check)(constraint.callable_ref, folder)
                checks.append(locate_mistakes(path, check))
            self._rules.append((constraint, checks))
            # A function may change things that other functions see: it is called row by row.
            is_function = constraint.callable_ref is not None
            self._expressions.append(None if is_function else expression)

    def __call__(self, factors: Scope, blocks: Scope) -> tuple[bool, tuple[str, ...]]:
        """Return whether an assignment may run, and a message for each constraint it breaks."""
        return self._check([(rule, False) for rule in self._rules], factors, blocks)

    def check_rows(
        self, rows: Iterable[DesignRow]
    ) -> Iterator[tuple[DesignRow, bool, tuple[str, ...]]]:
        """Return each row with what a call for it returns; much faster for many rows.

        Raises what a call for one row after the other would raise, when it comes to that row.
        """
        if not self._rules:
            return zip(rows, itertools.repeat(True), itertools.repeat(()))
        return self._check_rows(rows)

    def _check_rows(
        self, rows: Iterable[DesignRow]
    ) -> Iterator[tuple[DesignRow, bool, tuple[str, ...]]]:
        for chunk in _chunks(rows):
            if len(chunk) * len(self._rules) < MIN_CHECKS:
                for row in chunk:
                    yield row, *self(row.factors, row.blocks)
                continue
            for row, open_rules in zip(chunk, self._find_open_rules(chunk), strict=True):
                if open_rules:
                    yield row, *self._check(open_rules, row.factors, row.blocks)
                else:
                    yield row, True, ()

    def _check(
        self, open_rules: Iterable[OpenRule], factors: Scope, blocks: Scope
    ) -> tuple[bool, tuple[str, ...]]:
        admissible = True
        messages = []
        for (constraint, checks), is_broken in open_rules:
            if not is_broken and all(check(factors, blocks) for check in checks):
                continue
            messages.append(constraint_message(constraint))
            if constraint.severity is ConstraintSeverity.ERROR:
                admissible = False
        return admissible, tuple(messages)

    def _find_open_rules(self, rows: Sequence[DesignRow]) -> Iterator[list[OpenRule]]:
        """Yield for each row the rules that it breaks, and those that have to be checked singly."""
        import numpy as np

        columns = RowColumns(rows)
        verdicts = np.full((len(rows), len(self._rules)), UNDECIDED, dtype=np.uint8)
        for number, expression in enumerate(self._expressions):
            if expression is not None:
                verdicts[:, number] = expression.judge(columns)
        indexes, numbers = np.nonzero(verdicts != TRUE)
        is_broken = (verdicts[indexes, numbers] == FALSE).tolist()
        bounds = np.searchsorted(indexes, np.arange(len(rows) + 1)).tolist()
        rules = [self._rules[number] for number in numbers.tolist()]
        for start, end in itertools.pairwise(bounds):
            if start == end:
                yield []
            else:
                yield list(zip(rules[start:end], is_broken[start:end], strict=True))


def _chunks(rows: Iterable[DesignRow]) -> Iterator[list[DesignRow]]:
    """Yield rows in chunks; those before an error of the design come before the error."""
    remaining = iter(rows)
    error: Exception | None = None
    while error is None:
        chunk: list[DesignRow] = []
        try:
            for row in itertools.islice(remaining, CHUNK_ROWS):
                chunk.append(row)  # noqa: PERF402  # `extend` would lose rows at an error
        except Exception as raised:
            error = raised
        if chunk:
            yield chunk
        elif error is None:
            return
    raise error


def _load_check(reference: str, folder: Path | None) -> Check:
    """Return a constraint that is given as a function, ``module:name``."""
    function = plugins.load_reference(reference, folder)

    def check(factors: Scope, blocks: Scope) -> bool:
        try:
            # The function gets copies, as it may change a list among the levels. What it prints
            # goes to stderr, as stdout may be JSON for another program.
            with contextlib.redirect_stdout(sys.stderr):
                result = function(copy.deepcopy(dict(factors)), copy.deepcopy(dict(blocks)))
        except (Exception, SystemExit) as error:
            message = f"{type(error).__name__} for {format_factors(factors)}: {error}"
            raise StudyError(f"{reference} raised {message}") from error
        if isinstance(result, Coroutine):
            result.close()  # avoids Python's warning that it was never awaited
        if not isinstance(result, bool) and type(result).__module__ != "numpy":
            raise StudyError(
                f"{reference} must return true or false, gave {describe_value(result)}"
            )
        return bool(result)

    return check
