"""What constraint expressions compute with: Python's operators, kept from running away.

Levels may be long, and an expression may name one many times: without limits a product of large
numbers takes minutes and a sum of texts gigabytes, for every condition. What goes past a limit
raises `ValueError`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from fairtrial.core import describe

MOST_BITS = 4_096
"""How large a computed whole number may be: some 1,200 digits."""
MOST_JOINED = 100_000
"""How many characters or items may be joined by `+`."""


def _add(one: Any, two: Any) -> Any:
    if isinstance(one, (str, list, tuple)) and len(one) + len(two) > MOST_JOINED:
        raise ValueError(f"`+` may join {MOST_JOINED:,} characters or items at most")
    return one + two


def _bounded(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(one: Any, two: Any) -> Any:
        result = apply(one, two)
        if isinstance(result, int) and result.bit_length() > MOST_BITS:
            raise ValueError("a number gets too large")
        return result

    return compute


def _spell(value: Any) -> str:
    if value is not None and not isinstance(value, (str, int, float)):
        raise ValueError(f"str() takes a text or a number, not {describe(value)}")
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
    "str": _spell,
    "bool": bool,
}
