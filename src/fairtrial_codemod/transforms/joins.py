"""Texts that grow in a loop: their parts are joined afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.lives import life_of
from fairtrial_codemod.transforms.analysis.scopes import find_growing
from fairtrial_codemod.transforms.analysis.source import LOOPS, Change, Edit, Loop, Source
from fairtrial_codemod.transforms.analysis.unpacking import given_to
from fairtrial_codemod.transforms.analysis.uses import Scope


def find_joins(source: Source) -> Iterator[Change]:
    """``text += part`` in a loop, where nothing reads `text` before the loop is over.

    Likewise ``text = part + text``, which copies the whole text each time.
    """
    yield from find_growing(source, _grown_in, _join)


def _grown_in(scope: Scope, node: ast.stmt) -> tuple[str, Loop] | None:
    grown = _grows(node)
    loop = _outermost(scope, grown[0], node) if grown else None
    return (grown[0], loop) if grown and loop else None


def _grows(node: ast.stmt) -> tuple[str, list[ast.expr], bool] | None:
    """The name that a statement adds to, what it adds, and if in front: ``s = s + a + b``."""
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=added):
            return name, [added], False
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
            parts = _parts(value)
            if len(parts) > 1 and isinstance(parts[0], ast.Name) and parts[0].id == name:
                return name, parts[1:], False
            if isinstance(value.op, ast.Add) and isinstance(value.right, ast.Name):
                return (name, [value.left], True) if value.right.id == name else None
    return None


def _parts(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_parts(value.left), value.right]
    return [value]


def _outermost(scope: Scope, name: str, node: ast.stmt) -> Loop | None:
    """The largest loop around in which a name is only ever added to."""
    best = None
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, LOOPS) or not _only_grows(scope, name, loop):
            break
        best = loop
    return best


def _only_grows(scope: Scope, name: str, loop: Loop) -> bool:
    ends = set()
    for mention in scope.mentions(name, loop):
        statement = scope.source.statement_of(mention)
        grown = _grows(statement)
        if not grown or grown[0] != name or any(_mentions(each, name) for each in grown[1]):
            return False
        ends.add(grown[2])
    return len(ends) == 1


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def _join(scope: Scope, name: str, loop: Loop) -> Change | None:
    source = scope.source
    # What the name stands for elsewhere, before or after, need not be a text.
    added_to = next(each for each in scope.mentions(name, loop) if isinstance(each.ctx, ast.Store))
    empty = _empty(life_of(scope, added_to), name, loop)
    # Somebody may catch what is raised in the loop, and read the text then.
    is_watched = source.is_watched(loop)
    if empty is None or is_watched or loop.orelse or not scope.is_local(name):
        return None
    parts = source.fresh(f"{name}_parts")
    edits: list[Edit] = [("before", loop, f"{parts} = [{name}]")]
    statements = {source.statement_of(each) for each in scope.mentions(name, loop)}
    is_front = False
    for statement in sorted(statements, key=lambda each: each.lineno):
        grown = _grows(statement)
        assert grown is not None
        added = [source.say(each) for each in grown[1]]
        more = f"{parts} += ({', '.join(added)})" if added[1:] else f"{parts}.append({added[0]})"
        edits.append(("replace", statement, more))
        is_front = grown[2]
    joined = f"{parts}[::-1]" if is_front else parts
    edits.append(("after", loop, f"{name} = {empty}.join({joined})"))
    what = f"the parts of {name} are joined after the loop"
    return Change(what, loop.lineno, scope.name, tuple(edits))


def _empty(scope: Scope, name: str, loop: Loop) -> str | None:
    """The empty text of its kind, if all that it is ever bound to is a text, and it is by now."""
    kinds = set()
    first = None
    for bound in scope.bindings(name):
        statement = scope.source.statement_of(bound)
        if _grows(statement):
            continue
        match given_to(scope, bound):
            case ast.Constant(value=str()) | ast.JoinedStr():
                kinds.add('""')
            case ast.Constant(value=bytes()):
                kinds.add('b""')
            case _:
                return None
        block = scope.source.block_of(statement)
        if loop in block and block.index(statement) < block.index(loop):
            first = statement
    return kinds.pop() if first is not None and len(kinds) == 1 else None
