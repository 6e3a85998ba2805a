"""Match code against patterns: Python in which names that start with ``__`` are placeholders."""

from __future__ import annotations

import ast
from functools import cache

Placeholders = dict[str, ast.expr]


def match_code(pattern: str, node: ast.AST | None) -> Placeholders | None:
    """Return what each placeholder stands for if a node has the form of a pattern, else None."""
    placeholders: Placeholders = {}
    if isinstance(node, ast.Expr):
        node = node.value
    if node is None:
        return None
    return placeholders if _match(_parse(pattern), node, placeholders) else None


def is_same_code(one: ast.AST, other: ast.AST) -> bool:
    """Return whether two nodes are the same code, apart from being read or written."""
    return _match(one, other, {})


@cache
def _parse(pattern: str) -> ast.AST:
    (statement,) = ast.parse(pattern).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _match(pattern: ast.AST, node: ast.AST, placeholders: Placeholders) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id.startswith("__"):
        if not isinstance(node, ast.expr):
            return False
        earlier = placeholders.setdefault(pattern.id, node)
        return earlier is node or is_same_code(earlier, node)
    if type(pattern) is not type(node):
        return False
    for name in pattern._fields:
        if name in ("ctx", "type_comment", "kind", "type_params"):
            continue
        if not _match_values(getattr(pattern, name, None), getattr(node, name, None), placeholders):
            return False
    return True


def _match_values(one: object, other: object, placeholders: Placeholders) -> bool:
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return _match(one, other, placeholders)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _match_values(mine, its, placeholders) for mine, its in zip(one, other, strict=True)
        )
    return type(one) is type(other) and one == other
