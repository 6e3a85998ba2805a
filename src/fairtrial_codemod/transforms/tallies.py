"""Loops that count what meets a condition: the length of a list says it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.loop_ends import (
    ODD,
    has_comment,
    is_begun,
    is_forgotten,
    is_plain,
    mentions,
    say_target,
)
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import Change, Source
from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope

_STEP = "if __c:\n __t += 1"


def find_tallies(source: Source) -> Iterator[Change]:
    """``count = 0; for x in items: if x > 2: count += 1``."""
    if not source.is_builtin("len"):
        return
    yield from find_each(source, ast.For, _tally)


def _tally(scope: Scope, loop: ast.For) -> Change | None:
    source = scope.source
    found = match(_STEP, loop.body[0]) if len(loop.body) == 1 else None
    if not found or loop.orelse or has_comment(source, loop) or source.is_watched(loop):
        return None
    test, count = found["__c"], found["__t"]
    if not isinstance(count, ast.Name) or not _is_whole(scope, count.id):
        return None
    if not is_begun(scope, count.id, loop):
        return None
    if mentions(count.id, test, loop.iter, loop.target) or not is_forgotten(scope, loop):
        return None
    if not is_plain(loop) or any(_is_odd(source, each) for each in ast.walk(test)):
        return None
    given = f"{say_target(loop)} in {_say(loop.iter)}"
    code = f"{count.id} += len([1 for {given} if {_say(test)}])"
    what = f"{count.id} by the length of a list"
    return Change(what, loop.lineno, scope.name, (("replace", loop, code),))


def _is_odd(source: Source, node: ast.AST) -> bool:
    """What doesn't work in a comprehension of its own, or may go on with its names later."""
    match node:
        case ast.Name(id=name):
            return name in ("super", "__class__")
        case ast.comprehension(is_async=is_async):
            return bool(is_async)
        case ast.GeneratorExp():
            match source.parents[node]:
                case ast.Call(func=ast.Name(id=name)) if source.is_builtin(name):
                    return name not in PURE - KEEPING
            return True
    return isinstance(node, ODD)


def _say(node: ast.expr) -> str:
    said = ast.unparse(node)
    return f"({said})" if isinstance(node, ast.IfExp) else said


def _is_whole(scope: Scope, name: str) -> bool:
    """Whether it is always a whole number, for which it doesn't matter how it is added up."""
    if not scope.is_local(name) or scope.parameter(name):
        return False
    for bound in scope.bindings(name):
        match scope.source.parents[bound]:
            case ast.Assign(targets=[_], value=ast.Constant(value=int(begun))):
                if isinstance(begun, bool):  # nothing is added to it if nothing is found
                    return False
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
