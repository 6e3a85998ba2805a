"""Code patterns: Python in which names that begin with two underscores stand for anything."""

from __future__ import annotations

import ast
from functools import cache

Found = dict[str, ast.expr]


def match(pattern: str, node: ast.AST) -> Found | None:
    """What each placeholder stands for, if a node is such a piece of code."""
    found: Found = {}
    if isinstance(node, ast.Expr):
        node = node.value
    return found if _equal(_parse(pattern), node, found) else None


def same(one: ast.AST, other: ast.AST) -> bool:
    """Whether two pieces of code are the same, whether they are read or written."""
    return _equal(one, other, {})


@cache
def _parse(pattern: str) -> ast.AST:
    (statement,) = ast.parse(pattern).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _equal(pattern: ast.AST, node: ast.AST, found: Found) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id.startswith("__"):
        if not isinstance(node, ast.expr):
            return False
        earlier = found.setdefault(pattern.id, node)
        return earlier is node or same(earlier, node)
    if type(pattern) is not type(node):
        return False
    for name in pattern._fields:
        if name in ("ctx", "type_comment", "kind", "type_params"):
            continue
        if not _equal_values(getattr(pattern, name, None), getattr(node, name, None), found):
            return False
    return True


def _equal_values(one: object, other: object, found: Found) -> bool:
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return _equal(one, other, found)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _equal_values(mine, its, found) for mine, its in zip(one, other, strict=True)
        )
    return type(one) is type(other) and one == other
