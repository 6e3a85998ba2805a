"""Operators and functions of constraint expressions, with limits on time and memory.

Levels may be long texts or large numbers, and an expression may use one many times: without limits
a product of numbers could take minutes, and a sum of texts gigabytes. Operands beyond the limits
raise `ValueError`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from fairtrial.core import describe_value

MAX_BITS = 4_096
"""The largest size of a computed integer: about 1,200 digits."""
MAX_LENGTH = 100_000
"""The largest number of characters or items that `+` may join."""


def _add(one: Any, two: Any) -> Any:
    if isinstance(one, (str, list, tuple)) and len(one) + len(two) > MAX_LENGTH:
        raise ValueError(f"`+` may join {MAX_LENGTH:,} characters or items at most")
    return one + two


def _bounded(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(one: Any, two: Any) -> Any:
        result = apply(one, two)
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            raise ValueError("a number gets too large")
        return result

    return compute


def _to_text(value: Any) -> str:
    if value is not None and not isinstance(value, (str, int, float)):
        raise ValueError(f"str() takes a text or a number, not {describe_value(value)}")
    return str(value)


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", _bounded(_add)),
    ast.Sub: ("-", _bounded(operator.sub)),
    ast.Mult: ("*", _bounded(operator.mul)),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "int": int,
    "float": float,
    "str": _to_text,
    "bool": bool,
}
