"""Checks of conditions by a study's constraints: expressions and functions."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from fairtrial.core import FieldPath, StudyError, describe_value, plugins
from fairtrial.study.design.expressions import Expression, Scope, format_factors
from fairtrial.study.model.factors import Constraint, ConstraintSeverity

Check = Callable[[Scope, Scope], bool]
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
        self._rules: list[tuple[Constraint, list[Check]]] = []
        for index, constraint in enumerate(constraints):
            checks: list[Check] = []
            if constraint.expression is not None:
                path: FieldPath = ("constraints", index, "expression")
                expression = locate_mistakes(path, Expression)(constraint.expression)
                checks.append(locate_mistakes(path, expression.holds))
            if constraint.callable_ref is not None:
                path = ("constraints", index, "callable_ref")
                check = locate_mistakes(path, _load_check)(constraint.callable_ref, folder)
                checks.append(locate_mistakes(path, check))
            self._rules.append((constraint, checks))

    def __call__(self, factors: Scope, blocks: Scope) -> tuple[bool, tuple[str, ...]]:
        """Return whether an assignment may run, and a message for each constraint it breaks."""
        admissible = True
        messages = []
        for constraint, checks in self._rules:
            if all(check(factors, blocks) for check in checks):
                continue
            messages.append(constraint_message(constraint))
            if constraint.severity is ConstraintSeverity.ERROR:
                admissible = False
        return admissible, tuple(messages)


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
