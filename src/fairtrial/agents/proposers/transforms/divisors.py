"""Divisors that are looked for among all smaller numbers: the square root is enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.matching import match
from fairtrial.agents.proposers.transforms.source import Change, Source
from fairtrial.agents.proposers.transforms.uses import Scope

_LOOPS = (
    "for __i in range(2, __n):\n if __n % __i == 0:\n  return __r",
    "for __i in range(2, __n):\n if not __n % __i:\n  return __r",
)
_TESTS = (
    "all(__n % __i for __i in range(2, __n))",
    "all(__n % __i != 0 for __i in range(2, __n))",
    "any(__n % __i == 0 for __i in range(2, __n))",
    "all([__n % __i != 0 for __i in range(2, __n)])",
    "any([__n % __i == 0 for __i in range(2, __n)])",
)


def find_divisors(source: Source) -> Iterator[Change]:
    """``for i in range(2, n): if n % i == 0: return False``."""
    if not all(map(source.is_builtin, ("range", "all", "any", "max"))):
        return
    if not source.can_import("math"):
        return
    for qualified, function in source.functions:
        scope = Scope(source, qualified, function)
        for node in source.walk(function):
            if source.function_of(node) is not function:
                continue
            bounds = _bounds(scope, node)
            if bounds:
                number, given = bounds
                root = f"range(2, math.isqrt(max({number}, 0)) + 1)"
                what = f"divisors of {number} are looked for up to its square root"
                edit = ("replace", given, root)
                yield Change(what, given.lineno, qualified, (edit,), ("math",))


def _bounds(scope: Scope, node: ast.AST) -> tuple[str, ast.expr] | None:
    """The number, and the range in which its divisors are looked for."""
    patterns = _LOOPS if isinstance(node, ast.For) else _TESTS
    if not isinstance(node, ast.For | ast.Call):
        return None
    for pattern in patterns:
        found = match(pattern, node)
        if found is None:
            continue
        number, divisor, given = found["__n"], found["__i"], found.get("__r")
        if not isinstance(number, ast.Name) or not isinstance(divisor, ast.Name):
            return None
        if not scope.is_local(number.id) or (given and not isinstance(given, ast.Constant)):
            return None
        if isinstance(node, ast.For):
            inside = set(ast.walk(node))
            if node.orelse or any(each not in inside for each in scope.mentions(divisor.id)):
                return None
            return number.id, node.iter
        (tested,) = node.args
        assert isinstance(tested, ast.GeneratorExp | ast.ListComp)
        return number.id, tested.generators[0].iter
    return None
