"""Collections that are made only to ask what is in them, again in each round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.source import (
    COMPREHENSIONS,
    Change,
    Comprehension,
    Loop,
    Source,
)
from fairtrial.agents.proposers.transforms.uses import PURE, Scope, unhashable


def find_inner_sets(source: Source) -> Iterator[Change]:
    """``if x in [other.id for other in others]`` in a loop that doesn't change `others`."""
    for qualified, function in source.functions:
        scope = Scope(source, qualified, function)
        taken: list[str] = []
        for node in source.walk(function):
            match node:
                case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[asked]):
                    made = _made(scope, asked)
                    loop = _outermost(scope, node, asked) if made else None
                    if made and loop and source.function_of(node) is function:
                        name = source.fresh("known", *taken)
                        taken.append(name)
                        yield _hoist(scope, loop, asked, made, name)


def _made(scope: Scope, asked: ast.expr) -> str | None:
    """The same as a set."""
    source = scope.source
    match asked:
        case ast.Call(func=ast.Name(id="list" | "set" | "tuple" as name), args=[it], keywords=[]):
            if not source.is_builtin(name):
                return None
            asked = it
        case ast.ListComp() | ast.SetComp():
            pass
        case _:
            return None
    match asked:
        case ast.ListComp(elt=each) | ast.SetComp(elt=each) | ast.GeneratorExp(elt=each):
            inner = ast.unparse(asked)[1:-1]
            return None if unhashable(each) else f"{{{inner}}}"
    return None


def _outermost(scope: Scope, test: ast.Compare, asked: ast.expr) -> Loop | Comprehension | None:
    """The largest loop around in which the collection is always the same."""
    best = None
    for loop in reversed(scope.loops(test)):
        if not _is_same(scope, asked, loop):
            break
        best = loop
    return best if best is not None and scope.can_precede(best) else None


def _is_same(scope: Scope, asked: ast.expr, loop: ast.AST) -> bool:
    own = {
        node.id
        for node in ast.walk(asked)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    written = {
        node.attr
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    # What it goes through is looked up outside: there its own names mean something else.
    outside = {node for part in _first_iterables(asked) for node in ast.walk(part)}
    for node in ast.walk(asked):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name not in own or node in outside:
                is_pure = name in PURE and scope.source.is_builtin(name)
                if not is_pure and not scope.is_untouched(name, loop):
                    return False
            case ast.Call(func=func) if not isinstance(func, ast.Name) or func.id in own:
                return False
            case ast.Attribute(attr=attr) if attr in written:
                return False
            case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr() | ast.Lambda():
                return False
    return True


def _first_iterables(asked: ast.expr) -> list[ast.expr]:
    return [node.generators[0].iter for node in ast.walk(asked) if isinstance(node, COMPREHENSIONS)]


def _hoist(
    scope: Scope, loop: Loop | Comprehension, asked: ast.expr, made: str, name: str
) -> Change:
    before = scope.source.statement_of(loop)
    edits = (("before", before, f"{name} = {made}"), ("replace", asked, name))
    what = "what is asked for membership is made once, as a set"
    return Change(what, asked.lineno, scope.name, edits)
