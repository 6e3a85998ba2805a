"""What may be said of a loop that is to be replaced as a whole."""

from __future__ import annotations

import ast

from fairtrial.agents.proposers.transforms.analysis.source import COMPREHENSIONS, Source
from fairtrial.agents.proposers.transforms.analysis.uses import PURE, Scope

_READING = {"lower", "upper", "casefold", "title", "strip", "lstrip", "rstrip", "get", "split"}
_READING |= {"startswith", "endswith", "isdigit", "isalpha", "isalnum", "isspace", "replace"}
_ODD = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)


def is_forgotten(scope: Scope, loop: ast.For) -> bool:
    """Whether nobody reads what the names of a loop stand for after it."""
    inside = set(ast.walk(loop))
    names = _names(loop.target)
    parts = (each for each in ast.walk(loop.target) if isinstance(each, ast.expr))
    # An object's attribute or element can be a target, too.
    is_plain = all(isinstance(each, ast.Name | ast.Tuple | ast.Starred) for each in parts)
    return is_plain and all(
        mention in inside or _is_set_anew(scope, mention, loop)
        for name in names
        for mention in scope.mentions(name)
    )


def _is_set_anew(scope: Scope, mention: ast.Name, loop: ast.For) -> bool:
    """Whether a mention is in another loop or comprehension that binds the name itself."""
    if scope.source.function_of(mention) is not scope.function:
        return False
    below: ast.AST = mention
    for each in scope.source.around(mention):
        targets: list[ast.AST] = []
        if isinstance(each, ast.For) and below is not each.iter and below not in each.orelse:
            targets = [] if loop in set(ast.walk(each)) else [each.target]
        elif isinstance(each, COMPREHENSIONS):
            # Its first iterable is outside; that one is a mention of its own.
            first = each.generators[0].iter
            targets = [] if below is first else [one.target for one in each.generators]
            if mention in set(ast.walk(first)):
                targets = []
        if any(mention.id in _names(target) for target in targets):
            return True
        below = each
    return False


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def is_pure(source: Source, *nodes: ast.expr) -> bool:
    """Whether it doesn't matter how often expressions are asked for."""
    for each in (part for node in nodes for part in ast.walk(node)):
        match each:
            case ast.Call(func=ast.Name(id=name)):
                if name not in PURE or not source.is_builtin(name):
                    return False
            case ast.Call(func=ast.Attribute(attr=name)) if name in _READING:
                pass
            case ast.Call():
                return False
        if isinstance(each, _ODD):
            return False
    return True


def is_plain(loop: ast.For) -> bool:
    """Whether what a loop goes through may stand in a comprehension."""
    return not any(isinstance(each, _ODD) for each in ast.walk(loop.iter))


def say_target(loop: ast.For) -> str:
    """What a loop binds, as code."""
    said = ast.unparse(loop.target)
    is_several = isinstance(loop.target, ast.Tuple) and len(loop.target.elts) > 1
    return said[1:-1] if is_several and said.startswith("(") else said


def is_watched(source: Source, node: ast.AST) -> bool:
    """Whether somebody may catch what is raised there, and see what was done until then."""
    return source.is_watched(node)


def mentions(name: str, *nodes: ast.AST) -> bool:
    """Whether a name is in there."""
    return any(name in _names(node) for node in nodes)


def has_comment(source: Source, node: ast.stmt) -> bool:
    """Whether there may be a comment in a statement or behind it: it would be lost."""
    return any("#" in line for line in source.lines[node.lineno - 1 : node.end_lineno])
