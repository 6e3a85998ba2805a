"""Cells of tables that grow in a loop: a local name grows faster."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.analysis.loop_ends import is_watched, mentions
from fairtrial.agents.proposers.transforms.analysis.source import (
    INNER_SCOPES,
    Change,
    Edit,
    Source,
    binds,
)
from fairtrial.agents.proposers.transforms.analysis.uses import PURE, Scope, is_fresh_list

_LEAVING = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, *INNER_SCOPES)
_PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Subscript)


def find_cells(source: Source) -> Iterator[Change]:
    """``table[i][j] += x`` in a loop that binds no index and mentions `table` nowhere else."""
    for qualified, function in source.functions:
        scope = Scope(source, qualified, function)
        taken: list[str] = []
        seen: set[tuple[str, ast.AST]] = set()
        for node in source.walk(function):
            if source.function_of(node) is not function or not isinstance(node, ast.AugAssign):
                continue
            table = _table(node.target)
            loop = _outermost(scope, table, node) if table else None
            said = ast.unparse(node.target)
            if table is None or loop is None or (said, loop) in seen or not _is_own(scope, table):
                continue
            if not _is_unknown(scope, table, loop):
                continue
            seen.add((said, loop))
            name = source.fresh("cell", *taken)
            taken.append(name)
            edits: list[Edit] = [("before", loop, f"{name} = {said}")]
            edits += [("replace", each.target, name) for each in _steps(loop, said)]
            edits.append(("after", loop, f"{said} = {name}"))
            yield Change(f"{said} grows as {name}", loop.lineno, qualified, tuple(edits))


def _table(target: ast.expr) -> str | None:
    """The name of the table, if a target is a cell of one at plain indexes."""
    parts = [each for each in ast.walk(target) if isinstance(each, ast.expr)]
    if not isinstance(target, ast.Subscript) or not all(isinstance(each, _PLAIN) for each in parts):
        return None
    base: ast.expr = target
    while isinstance(base, ast.Subscript):
        base = base.value
    return base.id if isinstance(base, ast.Name) else None


def _steps(loop: ast.AST, said: str) -> list[ast.AugAssign]:
    return [
        each
        for each in ast.walk(loop)
        if isinstance(each, ast.AugAssign) and ast.unparse(each.target) == said
    ]


def _outermost(scope: Scope, table: str, node: ast.AugAssign) -> ast.For | None:
    """The largest loop around in which it is always the same cell, and nothing else is asked."""
    best = None
    names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, ast.For) or loop.orelse:
            break
        inside = list(ast.walk(loop))
        if any(isinstance(each, _LEAVING) or names.intersection(binds(each)) for each in inside):
            break
        targets = {each.target for each in _steps(loop, ast.unparse(node.target))}
        mine = {each for target in targets for each in ast.walk(target)}
        if any(each not in mine for each in scope.mentions(table, loop)):
            break
        best = loop
    return None if best is None or is_watched(scope.source, best) else best


def _is_own(scope: Scope, table: str) -> bool:
    """Whether it is a list that is made here and never handed to anybody but who asked for it."""
    if not scope.is_local(table) or scope.parameter(table):
        return False
    values = [scope.assignment(each) for each in scope.bindings(table)]
    if not all(is_fresh_list(each, scope.source) for each in values):
        return False
    return all(_is_harmless(scope, each) for each in scope.mentions(table))


def _is_harmless(scope: Scope, mention: ast.Name) -> bool:
    above = scope.source.parents[mention]
    if isinstance(above, ast.Tuple) and isinstance(mention.ctx, ast.Load):
        above = scope.source.parents[above]
    match above:
        case ast.Subscript(value=it):
            return it is mention
        case ast.Call(func=ast.Name(id=name)):
            return name in PURE and scope.source.is_builtin(name)
        case ast.Return():
            return True
        case ast.For(iter=it) | ast.comprehension(iter=it):
            return it is mention
    return not isinstance(mention.ctx, ast.Load)


def _is_unknown(scope: Scope, table: str, loop: ast.For) -> bool:
    """Whether no other name in the loop may stand for a part of the table: ``row = table[i]``."""
    used = {each.id for each in ast.walk(loop) if isinstance(each, ast.Name)} - {table}
    for node in scope.source.walk(scope.function):
        given: ast.AST | None = None
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            given = node.value
        elif isinstance(node, ast.For | ast.comprehension):
            given = node.iter
        if given is None or not mentions(table, given):
            continue
        if any(used.intersection(binds(each)) for each in ast.walk(node)):
            return False
    return True
