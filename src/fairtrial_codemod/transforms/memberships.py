"""Collections that are made only to ask what is in them, again in each round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.hashability import is_hashable
from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.lives import life_of
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    Change,
    Comprehension,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.stability import is_set_before
from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope, unhashable


def find_inner_sets(source: Source) -> Iterator[Change]:
    """``if x in [other.id for other in others]`` in a loop that doesn't change `others`."""
    for scope in scopes_of(source):
        taken: list[str] = []
        for node in own_nodes(scope, ast.Compare):
            match node:
                case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[asked]):
                    name = source.fresh("known", *taken)
                    made = _made(scope, left, asked, name)
                    loop = _outermost(scope, node, asked) if made else None
                    if made and loop:
                        taken.append(name)
                        yield _hoist(scope, loop, asked, made, name)


def _made(scope: Scope, left: ast.expr, asked: ast.expr, name: str) -> str | None:
    """The code that makes a set of it."""
    source = scope.source
    match asked:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="values"), args=[], keywords=[]):
            return _try_set(scope, left, asked, name)
        case ast.Call(func=ast.Attribute(attr="split" | "rsplit" | "splitlines")):
            is_known = source.is_builtin("set") and is_hashable(scope, left)
            return f"{name} = set({source.say(asked)})" if is_known else None
        case ast.Call(func=ast.Name(id="list" | "set" | "tuple" as made), args=[it], keywords=[]):
            if not source.is_builtin(made):
                return None
            if _is_lasting(scope, it):
                text = f"{name} = set({source.say(it)})"
                return text if made == "set" else _try_set(scope, left, it, name)
            asked = it
        case ast.ListComp() | ast.SetComp():
            pass
        case _:
            return None
    match asked:
        case ast.ListComp(elt=each) | ast.SetComp(elt=each) | ast.GeneratorExp(elt=each):
            inner = ast.unparse(asked)[1:-1]
            return None if unhashable(each) else f"{name} = {{{inner}}}"
    return None


def _is_lasting(scope: Scope, given: ast.expr) -> bool:
    """Whether it is a name for, or the values of, what can be gone through twice."""
    if match("__d.values()", given):
        return True
    if not isinstance(given, ast.Name):
        return False
    for bound in life_of(scope, given).bindings(given.id):
        match scope.assignment(bound):
            case ast.GeneratorExp() | ast.Call(func=ast.Attribute()):
                return False
            case ast.Call(func=ast.Name(id=name)) if name not in PURE or name in KEEPING:
                return False
    return True


def _try_set(scope: Scope, left: ast.expr, given: ast.expr, name: str) -> str | None:
    """A set of what may be anything; a list, if it can't be hashed."""
    source = scope.source
    is_known = all(map(source.is_builtin, ("set", "list", "TypeError")))
    if not is_known or not is_hashable(scope, left):
        return None
    text = source.say(given)
    return f"try:\n    {name} = set({text})\nexcept TypeError:\n    {name} = list({text})"


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
                if not is_pure and not _stays(life_of(scope, node), name, loop):
                    return False
            case ast.Call(func=ast.Attribute(attr=method)) if method in READING:
                pass
            case ast.Call(func=func) if not isinstance(func, ast.Name) or func.id in own:
                return False
            case ast.Attribute(attr=attr) if attr in written:
                return False
            case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr() | ast.Lambda():
                return False
    return True


def _stays(scope: Scope, name: str, loop: ast.AST) -> bool:
    """Whether a name is set before a loop, and what it stands for is there and stays so."""
    return (
        is_untouched(scope, name, loop)
        and not scope.is_questioned(name, loop)
        and is_set_before(scope, name, scope.source.statement_of(loop))
    )


def _first_iterables(asked: ast.expr) -> list[ast.expr]:
    return [node.generators[0].iter for node in ast.walk(asked) if isinstance(node, COMPREHENSIONS)]


def _hoist(
    scope: Scope, loop: Loop | Comprehension, asked: ast.expr, made: str, name: str
) -> Change:
    before = scope.source.statement_of(loop)
    edits = (("before", before, made), ("replace", asked, name))
    what = "what is asked for membership is made once, as a set"
    return Change(what, asked.lineno, scope.name, edits)
