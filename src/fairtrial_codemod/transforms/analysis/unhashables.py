"""What visibly can't be hashed: a set could not be asked for it."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.iterables import kinds_of
from fairtrial_codemod.transforms.analysis.source import COMPREHENSIONS
from fairtrial_codemod.transforms.analysis.uses import Scope, unhashable

_KINDS = frozenset({"list", "dict", "set", "deque", "defaultdict", "counter", "ordereddict"})
_KINDS |= {"mutablemapping", "mutablesequence", "mapping", "bytearray"}
_METHODS = frozenset({"append", "extend", "items", "keys", "values", "get", "update", "setdefault"})
"""What only lists and dictionaries can do."""


def is_unhashable(scope: Scope, node: ast.expr) -> bool:
    """Whether the function itself says that an expression gives a list, a set or a dictionary."""
    if is_left_over(scope, node):
        return True
    if not isinstance(node, ast.Name):
        return unhashable(node)
    if kinds_of(scope, node.id) & _KINDS or _is_one_of_lists(scope, node.id):
        return True
    return any(_is_used_so(scope, each) for each in scope.mentions(node.id))


def is_left_over(scope: Scope, node: ast.expr) -> bool:
    """Whether it is asked for where a TypeError was caught: it may be because of its hash."""
    for each in scope.source.around(node):
        match each:
            case ast.ExceptHandler(type=None):
                return True
            case ast.ExceptHandler(type=ast.expr() as caught):
                names = {part.id for part in ast.walk(caught) if isinstance(part, ast.Name)}
                return not names.isdisjoint({"TypeError", "Exception", "BaseException"})
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return False
    return False


def _is_used_so(scope: Scope, mention: ast.Name) -> bool:
    match scope.source.parents[mention]:
        case ast.Attribute(attr=method):
            return method in _METHODS
        case ast.Subscript(value=it, slice=ast.Constant(value=str())):
            return it is mention
        case ast.Subscript(value=it, ctx=ast.Store() | ast.Del()):
            return it is mention
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            named = {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}
            return not named.isdisjoint(_KINDS)
    return False


def _is_one_of_lists(scope: Scope, name: str) -> bool:
    """Whether it is each of ``rows: list[list[int]]``, as the annotation says."""
    for node in scope.source.walk(scope.function):
        parts = node.generators if isinstance(node, COMPREHENSIONS) else [node]
        for part in parts:
            match part:
                case (
                    ast.For(target=ast.Name(id=target), iter=ast.Name(id=items))
                    | ast.comprehension(target=ast.Name(id=target), iter=ast.Name(id=items))
                ) if target == name:
                    if _holds_lists(scope, items):
                        return True
    return False


def _holds_lists(scope: Scope, items: str) -> bool:
    parameter = scope.parameter(items)
    annotation = parameter.annotation if parameter else None
    if not isinstance(annotation, ast.Subscript):
        return False
    inner = annotation.slice
    inner = inner.value if isinstance(inner, ast.Subscript) else inner
    return isinstance(inner, ast.Name) and inner.id.lower() in _KINDS
