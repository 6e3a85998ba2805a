"""Divisors that are looked for among all smaller numbers: the square root is enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.loop_ends import is_forgotten
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Source
from fairtrial_codemod.transforms.analysis.uses import Scope

_RANGES = ("range(2, __n)", "range(2, __n // 2 + 1)", "range(2, int(__n / 2) + 1)")
"""Where divisors are looked for: none is larger than a half, but for the number itself."""
_LOOPS = tuple(
    f"for __i in {given}:\n if {test}:\n  {found}"
    for given in _RANGES
    for test in ("__n % __i == 0", "not __n % __i")
    for found in ("return __r", "__f = __r\n  break")
)
_TESTS = tuple(
    form.replace("range", given)
    for given in _RANGES
    for form in (
        "all(__n % __i for __i in range)",
        "all(__n % __i != 0 for __i in range)",
        "any(__n % __i == 0 for __i in range)",
        "all([__n % __i != 0 for __i in range])",
        "any([__n % __i == 0 for __i in range])",
    )
)


def find_divisors(source: Source) -> Iterator[Change]:
    """``for i in range(2, n): if n % i == 0: return False``."""
    if not all(map(source.is_builtin, ("range", "all", "any", "max", "int"))):
        return
    if not source.can_import("math"):
        return
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.For, ast.Call):
            bounds = _bounds(scope, node)
            if bounds:
                number, given = bounds
                # A half by `/` may be of a whole number that is a float.
                is_float = "/ 2)" in ast.unparse(given)
                whole = f"int({number})" if is_float else number
                root = f"range(2, math.isqrt(max({whole}, 0)) + 1)"
                what = f"divisors of {number} are looked for up to its square root"
                edit = ("replace", given, root)
                yield Change(what, given.lineno, scope.name, (edit,), ("math",))


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
        flag = found.get("__f", ast.Name("__f"))
        if not isinstance(flag, ast.Name) or flag.id in (number.id, divisor.id):
            return None
        if isinstance(node, ast.For):
            if node.orelse or not is_forgotten(scope, node):
                return None
            return number.id, node.iter
        (tested,) = node.args
        assert isinstance(tested, ast.GeneratorExp | ast.ListComp)
        return number.id, tested.generators[0].iter
    return None
