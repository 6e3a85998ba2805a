"""What may be said of a loop that is to be replaced as a whole."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.equalities import names_in
from fairtrial_codemod.transforms.analysis.source import COMPREHENSIONS, Source, catches
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope

_READING = {"lower", "upper", "casefold", "title", "strip", "lstrip", "rstrip", "get", "split"}
_READING |= {"startswith", "endswith", "isdigit", "isalpha", "isalnum", "isspace", "replace"}
ODD = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)
"""What means something else in a comprehension, or can't stand there."""


def is_forgotten(scope: Scope, loop: ast.For) -> bool:
    """Whether nobody reads what the names of a loop stand for after it."""
    inside = set(ast.walk(loop)).difference(ast.walk(loop.iter))
    names = names_in(loop.target)
    parts = (each for each in ast.walk(loop.target) if isinstance(each, ast.expr))
    # An object's attribute or element can be a target, too, and so can somebody else's name.
    is_plain = all(isinstance(each, ast.Name | ast.Tuple | ast.Starred) for each in parts)
    is_ours = not any(
        isinstance(node, ast.Global | ast.Nonlocal) and names.intersection(node.names)
        for node in scope.source.walk(scope.function)
    )
    return (
        is_plain
        and is_ours
        and not scope.is_opaque
        and all(
            mention in inside or _is_set_anew(scope, mention, loop)
            for name in names
            for mention in scope.mentions(name)
        )
    )


def is_begun(scope: Scope, name: str, loop: ast.For) -> bool:
    """Whether a name stands for something before a loop, even if the loop has no steps."""
    if any(isinstance(each.ctx, ast.Del) for each in scope.bindings(name)):
        return False
    if scope.parameter(name):
        return True
    for each in (loop, *scope.source.around(loop)):
        if each is scope.function:
            return False
        if isinstance(each, ast.stmt):
            block = scope.source.block_of(each)
            before = block[: block.index(each)] if each in block else []
            if any(_surely_binds(earlier, name) for earlier in before):
                return True
    return False


def _surely_binds(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            return any(name in names_in(target) for target in targets if _is_named(target))
        case ast.AnnAssign(target=ast.Name(id=bound), value=value):
            return bound == name and value is not None
        case ast.AugAssign(target=ast.Name(id=bound)):
            return bound == name
        case ast.With(body=body) | ast.AsyncWith(body=body) if not catches(statement):
            return any(_surely_binds(each, name) for each in body)
        case ast.If(body=body, orelse=other):
            return all(any(_surely_binds(each, name) for each in part) for part in (body, other))
    return False


def _is_named(target: ast.expr) -> bool:
    return all(
        isinstance(each, ast.Name | ast.Tuple | ast.List | ast.Starred | ast.expr_context)
        for each in ast.walk(target)
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
        if any(mention.id in names_in(target) for target in targets):
            return True
        below = each
    return False


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
        if isinstance(each, ODD):
            return False
    return True


def is_plain(loop: ast.For) -> bool:
    """Whether what a loop goes through may stand in a comprehension."""
    return not any(isinstance(each, ODD) for each in ast.walk(loop.iter))


def say_target(loop: ast.For) -> str:
    """What a loop binds, as code."""
    said = ast.unparse(loop.target)
    is_several = isinstance(loop.target, ast.Tuple) and len(loop.target.elts) > 1
    return said[1:-1] if is_several and said.startswith("(") else said


def mentions(name: str, *nodes: ast.AST) -> bool:
    """Whether a name is in there."""
    return any(name in names_in(node) for node in nodes)


def has_comment(source: Source, node: ast.stmt) -> bool:
    """Whether there may be a comment in a statement or behind it: it would be lost."""
    return any("#" in line for line in source.lines[node.lineno - 1 : node.end_lineno])
