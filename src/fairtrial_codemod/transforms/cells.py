"""Cells of tables that grow in a loop: a local name grows faster."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.sizes import elements_of, is_place
from fairtrial_codemod.transforms.analysis.source import (
    INNER_SCOPES,
    LOOPS,
    Change,
    Edit,
    Source,
    binds,
    catches,
)
from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope

_LEAVING = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, *INNER_SCOPES)
_COMPLETE = (ast.ListComp, ast.SetComp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a table: ``table[i][j]``.

    table: its name
    places: the indexes, each a name or a number
    said: as code
    """

    table: str
    places: tuple[ast.expr, ...]
    said: str


def find_cells(source: Source) -> Iterator[Change]:
    """``table[i][j] += x`` in a loop that binds no index and mentions `table` nowhere else."""
    for scope in scopes_of(source):
        taken: list[str] = []
        seen: set[tuple[str, ast.AST]] = set()
        for node in own_nodes(scope, ast.AugAssign):
            cell = _read_cell(node.target)
            loop = _outermost(scope, cell, node) if cell else None
            if cell is None or loop is None or (cell.said, loop) in seen:
                continue
            if not _is_own(scope, cell, loop):
                continue
            seen.add((cell.said, loop))
            name = source.fresh("cell", *taken)
            taken.append(name)
            edits: list[Edit] = [("before", loop, f"{name} = {cell.said}")]
            edits += [("replace", each.target, name) for each in _steps(loop, cell)]
            edits.append(("after", loop, f"{cell.said} = {name}"))
            yield Change(f"{cell.said} grows as {name}", loop.lineno, scope.name, tuple(edits))


def _read_cell(target: ast.expr) -> _Cell | None:
    """The cell that a target is, if its indexes are names and numbers: no code runs for them."""
    places: list[ast.expr] = []
    base = target
    while isinstance(base, ast.Subscript):
        if not isinstance(base.slice, ast.Name | ast.Constant | ast.UnaryOp):
            return None
        places.insert(0, base.slice)
        base = base.value
    if not isinstance(base, ast.Name) or not places:
        return None
    return _Cell(base.id, tuple(places), ast.unparse(target))


def _steps(loop: ast.AST, cell: _Cell) -> list[ast.AugAssign]:
    return [
        each
        for each in ast.walk(loop)
        if isinstance(each, ast.AugAssign) and ast.unparse(each.target) == cell.said
    ]


def _outermost(scope: Scope, cell: _Cell, node: ast.AugAssign) -> ast.For | None:
    """The largest loop around in which it is always the same cell, and nothing else is asked."""
    best = None
    names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, ast.For) or loop.orelse:
            break
        inside = list(ast.walk(loop))
        if any(isinstance(each, _LEAVING) or names.intersection(binds(each)) for each in inside):
            break
        if any(map(catches, inside)):
            break
        mine = {each for step in _steps(loop, cell) for each in ast.walk(step.target)}
        if any(each not in mine for each in scope.mentions(cell.table, loop)):
            break
        best = loop
    return None if best is None or scope.source.is_watched(best) else best


def _is_own(scope: Scope, cell: _Cell, loop: ast.For) -> bool:
    """Whether the cell is there, if the loop has steps or not, and nobody else can look at it."""
    if not scope.is_local(cell.table) or scope.parameter(cell.table):
        return False
    values = [scope.assignment(each) for each in scope.bindings(cell.table)]
    if not all(each is not None and _has(scope, each, cell.places, loop) for each in values):
        return False
    return all(_is_harmless(scope, each, cell, loop) for each in scope.mentions(cell.table))


def _has(scope: Scope, made: ast.expr, places: Sequence[ast.expr], loop: ast.For) -> bool:
    """Whether a table that is made has a cell: lists in lists, all of them new."""
    if not places:
        return True
    first, *others = places
    held = elements_of(scope.source, made)
    is_seen = bool(held) or not others
    return (
        is_place(scope, made, first, loop)
        and is_seen
        and all(_has(scope, each, others, loop) for each in held)
    )


def _is_harmless(scope: Scope, mention: ast.Name, cell: _Cell, loop: ast.For) -> bool:
    """Whether a mention changes no size, and gives nobody a part of the table that has cells."""
    source = scope.source
    if not isinstance(mention.ctx, ast.Load) or _is_over(source, mention, loop):
        return True
    part: ast.expr = mention
    for _ in cell.places:
        above = source.parents[part]
        if not isinstance(above, ast.Subscript) or above.value is not part:
            break
        if isinstance(above.slice, ast.Slice | ast.Tuple):
            return False
        part = above
    else:
        return not isinstance(getattr(part, "ctx", None), ast.Del)
    match source.parents[part]:
        case ast.Call(func=ast.Name(id="len")):
            return source.is_builtin("len")
        case ast.Call(func=ast.Name(id=name)) if len(cell.places) == 1:
            return name in PURE - KEEPING and source.is_builtin(name)
        case ast.For(iter=it) if len(cell.places) == 1:
            return it is part
        case ast.comprehension(iter=it) as made if len(cell.places) == 1:
            return it is part and isinstance(source.parents[made], _COMPLETE)
    return False


def _is_over(source: Source, mention: ast.Name, loop: ast.For) -> bool:
    """Whether the loop can't run any more once a mention is reached."""
    if isinstance(source.statement_of(mention), ast.Return) and not source.is_watched(mention):
        return True
    around = set(source.around(mention))
    is_repeated = any(isinstance(each, LOOPS) and each in around for each in source.around(loop))
    return mention.lineno > (loop.end_lineno or loop.lineno) and not is_repeated
