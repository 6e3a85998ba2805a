"""Collect the parts of a string that grows in a loop, and join them after the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.source_file import (
    LOOPS,
    CodeChange,
    LoopNode,
    SourceFile,
    TextEdit,
    get_names,
)

Growth = tuple[str, list[ast.expr], bool]
"""The name that a statement adds to, the parts that it adds, and whether it adds in front."""


def find_joins(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``text += part`` and ``text = part + text`` in loops that don't read `text`."""
    for scope in list_scopes(source):
        done: set[tuple[str, LoopNode]] = set()
        for node in scope.own_nodes(ast.stmt):
            growth = _match_growth(node)
            loop = _find_loop(scope, growth[0], node) if growth else None
            if growth is None or loop is None or (growth[0], loop) in done:
                continue
            done.add((growth[0], loop))
            change = _write_join(scope, growth[0], loop)
            if change:
                yield change


def _match_growth(node: ast.stmt) -> Growth | None:
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=added):
            return name, [added], False
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
            parts = _split_sum(value)
            if len(parts) > 1 and isinstance(parts[0], ast.Name) and parts[0].id == name:
                return name, parts[1:], False
            if isinstance(value.op, ast.Add) and isinstance(value.right, ast.Name):
                return (name, [value.left], True) if value.right.id == name else None
    return None


def _split_sum(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_split_sum(value.left), value.right]
    return [value]


def _find_loop(scope: FunctionScope, name: str, node: ast.stmt) -> LoopNode | None:
    """Return the largest loop around that only adds to a name."""
    best = None
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, LOOPS) or not _only_grows(scope, name, loop):
            break
        best = loop
    return best


def _only_grows(scope: FunctionScope, name: str, loop: LoopNode) -> bool:
    ends = set()
    for mention in scope.mentions(name, loop):
        growth = _match_growth(scope.source.get_statement(mention))
        if not growth or growth[0] != name or any(name in get_names(part) for part in growth[1]):
            return False
        ends.add(growth[2])
    return len(ends) == 1


def _write_join(scope: FunctionScope, name: str, loop: LoopNode) -> CodeChange | None:
    source = scope.source
    empty = _get_empty(scope, name)
    # A handler could read the text after an error in the loop.
    if empty is None or source.is_error_caught(loop) or loop.orelse or not scope.is_local(name):
        return None
    if scope.parameter(name) or not scope.is_assigned_before(name, loop):
        return None
    parts = source.make_name(f"{name}_parts")
    edits: list[TextEdit] = [("before", loop, f"{parts} = [{name}]")]
    statements = {source.get_statement(mention) for mention in scope.mentions(name, loop)}
    is_front = False
    for statement in sorted(statements, key=lambda node: node.lineno):
        growth = _match_growth(statement)
        assert growth is not None
        added = [source.render(part) for part in growth[1]]
        code = f"{parts} += ({', '.join(added)})" if added[1:] else f"{parts}.append({added[0]})"
        edits.append(("replace", statement, code))
        is_front = growth[2]
    joined = f"{parts}[::-1]" if is_front else parts
    edits.append(("after", loop, f"{name} = {empty}.join({joined})"))
    description = f"the parts of {name} are joined after the loop"
    return CodeChange(description, loop.lineno, scope.name, tuple(edits))


def _get_empty(scope: FunctionScope, name: str) -> str | None:
    """Return the empty literal of a name's type if all its values are strings, or all bytes."""
    literals = set()
    for bound in scope.bindings(name):
        if _match_growth(scope.source.get_statement(bound)):
            continue
        match scope.get_value(bound):
            case ast.Constant(value=str()) | ast.JoinedStr():
                literals.add('""')
            case ast.Constant(value=bytes()):
                literals.add('b""')
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join")):
                literals.add('""')
            case _:
                return None
    return literals.pop() if len(literals) == 1 else None
