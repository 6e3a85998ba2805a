"""Loops that count what meets a condition: the length of a list says it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.analysis.loop_ends import (
    has_comment,
    is_forgotten,
    is_plain,
    is_watched,
    mentions,
    say_target,
)
from fairtrial.agents.proposers.transforms.analysis.matching import match
from fairtrial.agents.proposers.transforms.analysis.source import Change, Source
from fairtrial.agents.proposers.transforms.analysis.uses import Scope

_STEP = "if __c:\n __t += 1"
_ODD = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)


def find_tallies(source: Source) -> Iterator[Change]:
    """``count = 0; for x in items: if x > 2: count += 1``."""
    if not source.is_builtin("len"):
        return
    for qualified, function in source.functions:
        scope = Scope(source, qualified, function)
        for node in source.walk(function):
            if isinstance(node, ast.For) and source.function_of(node) is function:
                change = _tally(scope, node)
                if change:
                    yield change


def _tally(scope: Scope, loop: ast.For) -> Change | None:
    source = scope.source
    found = match(_STEP, loop.body[0]) if len(loop.body) == 1 else None
    if not found or loop.orelse or has_comment(source, loop) or is_watched(source, loop):
        return None
    test, count = found["__c"], found["__t"]
    if not isinstance(count, ast.Name) or not _is_whole(scope, count.id):
        return None
    if mentions(count.id, test, loop.iter, loop.target) or not is_forgotten(scope, loop):
        return None
    parts = list(ast.walk(test))
    if not is_plain(loop) or any(isinstance(each, _ODD) or _is_super(each) for each in parts):
        return None
    given = f"{say_target(loop)} in {ast.unparse(loop.iter)}"
    code = f"{count.id} += len([1 for {given} if {ast.unparse(test)}])"
    what = f"{count.id} by the length of a list"
    return Change(what, loop.lineno, scope.name, (("replace", loop, code),))


def _is_super(node: ast.AST) -> bool:
    """What doesn't work in a comprehension of its own."""
    return isinstance(node, ast.Name) and node.id in ("super", "__class__")


def _is_whole(scope: Scope, name: str) -> bool:
    """Whether it is always a whole number, for which it doesn't matter how it is added up."""
    if not scope.is_local(name) or scope.parameter(name):
        return False
    for bound in scope.bindings(name):
        match scope.source.parents[bound]:
            case ast.Assign(targets=[_], value=ast.Constant(value=int())):
                pass
            case ast.AugAssign(op=ast.Add() | ast.Sub() | ast.Mult(), value=added):
                if not _is_number(scope.source, added):
                    return False
            case _:
                return False
    return True


def _is_number(source: Source, node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=int()):
            return True
        case ast.Call(func=ast.Name(id="len")):
            return source.is_builtin("len")
    return False
