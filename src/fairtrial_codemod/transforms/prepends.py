"""Lists that grow in front: every other element moves. They grow behind, and are turned round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import find_growing
from fairtrial_codemod.transforms.analysis.source import LOOPS, Change, Edit, Loop, Source
from fairtrial_codemod.transforms.analysis.uses import Scope, Use, is_fresh_list

_FORMS = ("__l.insert(0, __x)", "__l = [__x] + __l")


def find_prepends(source: Source) -> Iterator[Change]:
    """``path.insert(0, x)`` in a loop in which nothing else happens to `path`."""
    yield from find_growing(source, _grown_in, _turn)


def _grown_in(scope: Scope, node: ast.stmt) -> tuple[str, Loop] | None:
    grown = _grows(node)
    loop = _outermost(scope, grown[0], node) if grown else None
    return (grown[0], loop) if grown and loop else None


def _grows(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """The name that a statement adds to in front, and what it adds."""
    for form in _FORMS:
        found = match(form, node)
        if (
            found
            and isinstance(found["__l"], ast.Name)
            and not isinstance(found["__x"], ast.Starred)
        ):
            return found["__l"].id, found["__x"]
    return None


def _outermost(scope: Scope, name: str, node: ast.stmt) -> Loop | None:
    """The largest loop around in which a name is only added to, or asked for its length."""
    best = None
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, LOOPS):
            break
        if not all(_is_fine(scope, each, name) for each in scope.mentions(name, loop)):
            break
        best = loop
    return best


def _is_fine(scope: Scope, mention: ast.Name, name: str) -> bool:
    statement = scope.source.statement_of(mention)
    grown = _grows(statement)
    if grown and grown[0] == name:
        return mention not in set(ast.walk(grown[1])) or _is_asked(scope, mention)
    return _is_asked(scope, mention)


def _is_asked(scope: Scope, mention: ast.Name) -> bool:
    """Whether only its length matters, which is the same from both ends."""
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Name(id="len"), args=[it]) if it is mention:
            return scope.source.is_builtin("len")
    return isinstance(mention.ctx, ast.Load) and scope.is_truth(mention)


def _turn(scope: Scope, name: str, loop: Loop) -> Change | None:
    source = scope.source
    first = _first(scope, name, loop)
    if (
        first is None
        or source.is_watched(loop)
        or loop.orelse
        or _is_seen_before(scope, name, loop)
    ):
        return None
    edits: list[Edit] = []
    if not isinstance(first, ast.List) or len(first.elts) > 1 or _is_used_before(scope, name, loop):
        edits.append(("before", loop, f"{name}.reverse()"))
    for statement in _statements(scope, name, loop):
        grown = _grows(statement)
        if grown:
            edits.append(("replace", statement, f"{name}.append({source.say(grown[1])})"))
    edits.append(("after", loop, f"{name}.reverse()"))
    what = f"{name} grows behind and is reversed after the loop"
    return Change(what, loop.lineno, scope.name, tuple(edits))


def _statements(scope: Scope, name: str, loop: Loop) -> list[ast.stmt]:
    found = {scope.source.statement_of(each) for each in scope.mentions(name, loop)}
    return sorted(found - {loop}, key=lambda each: each.lineno)


def _first(scope: Scope, name: str, loop: Loop) -> ast.expr | None:
    """The new list that a name stands for when the loop begins, if it is bound nowhere else."""
    if not scope.is_local(name) or scope.parameter(name):
        return None
    inside = set(ast.walk(loop))
    outer = [each for each in scope.bindings(name) if each not in inside]
    if len(outer) != 1:
        return None
    value = scope.assignment(outer[0])
    block = scope.source.block_of(loop)
    statement = scope.source.statement_of(outer[0])
    if statement not in block or block.index(statement) > block.index(loop):
        return None
    return value if is_fresh_list(value, scope.source) else None


def _before(scope: Scope, name: str, loop: Loop) -> list[ast.Name]:
    """Where else than in its binding it is mentioned, up to the loop."""
    return [
        each
        for each in scope.mentions(name)
        if (each.lineno, each.col_offset) < (loop.lineno, loop.col_offset)
        if scope.use(each) is not Use.BIND
    ]


def _is_seen_before(scope: Scope, name: str, loop: Loop) -> bool:
    """Whether somebody else may hold the list when the loop begins."""
    return scope.has_alias(name) or any(
        scope.use(each) not in (Use.READ, Use.TEST, Use.METHOD)
        for each in _before(scope, name, loop)
    )


def _is_used_before(scope: Scope, name: str, loop: Loop) -> bool:
    return bool(_before(scope, name, loop))
