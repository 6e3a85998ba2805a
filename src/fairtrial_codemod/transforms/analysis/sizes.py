"""How many places a list has that a function makes, and whether an index surely is one of them."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.equalities import names_in
from fairtrial_codemod.transforms.analysis.source import INNER_SCOPES, Source, binds
from fairtrial_codemod.transforms.analysis.uses import Scope


def is_place(scope: Scope, made: ast.expr, index: ast.expr, at: ast.AST) -> bool:
    """Whether a list that was just made has a place at an index, as far as a node is reached."""
    number = _number(index)
    if isinstance(made, ast.List) and not _has_star(made):
        return number is not None and -len(made.elts) <= number < len(made.elts)
    size = _size(scope.source, made)
    if size is None:
        return False
    if number is not None:
        known = _number(size)
        return known is not None and -known <= number < known
    return isinstance(index, ast.Name) and _is_below(scope, index.id, size, at)


def elements_of(source: Source, made: ast.expr) -> list[ast.expr]:
    """What the places of a list that is made hold, if that can be seen; nothing if it can't."""
    match made:
        case ast.List(elts=held) if not _has_star(made):
            return held
        case ast.ListComp(elt=held, generators=[given]) if _size(source, made) is not None:
            # What differs from place to place has no one size.
            return [] if names_in(given.target) & _read_in(held) else [held]
        case ast.BinOp(left=ast.List() as held) | ast.BinOp(right=ast.List() as held):
            return held.elts if _size(source, made) is not None else []
    return []


def _read_in(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, ast.Load)}


def _size(source: Source, made: ast.expr) -> ast.expr | None:
    """What says how many places there are: ``[0] * n``, ``[... for _ in range(n)]``."""
    match made:
        case ast.BinOp(op=ast.Mult(), left=ast.List(elts=[held]), right=size):
            return None if isinstance(held, ast.Starred) else size
        case ast.BinOp(op=ast.Mult(), left=size, right=ast.List(elts=[held])):
            return None if isinstance(held, ast.Starred) else size
        case ast.ListComp(generators=[ast.comprehension(iter=given, ifs=[], is_async=0)]):
            return _stop(source, given)
    return None


def _stop(source: Source, given: ast.expr) -> ast.expr | None:
    """The end of a range that begins at 0."""
    match given:
        case (
            ast.Call(func=ast.Name(id="range"), args=[stop], keywords=[])
            | ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=0), stop], keywords=[])
        ) if source.is_builtin("range"):
            return stop
    return None


def _is_below(scope: Scope, index: str, size: ast.expr, at: ast.AST) -> bool:
    """Whether a loop around gives an index all numbers below a size, and nobody else gives one."""
    if not isinstance(size, ast.Constant) and not _is_settled(scope, size):
        return False
    binders = _binders(scope, index)
    for each in binders:
        loop = scope.source.parents[each]
        if not isinstance(loop, ast.For) or loop.target is not each:
            return False
        if not _counts_up_to(scope.source, loop.iter, size):
            return False
    return any(isinstance(each, ast.For) and each.target in binders for each in scope.loops(at))


def _counts_up_to(source: Source, given: ast.expr, size: ast.expr) -> bool:
    if not isinstance(given, ast.Call) or given.keywords or not source.is_builtin("range"):
        return False
    match given:
        case ast.Call(func=ast.Name(id="range"), args=[stop]):
            return ast.unparse(stop) == ast.unparse(size)
        case ast.Call(func=ast.Name(id="range"), args=[start, stop, *_]):
            number = _number(start)
            is_upwards = len(given.args) == 2 or (_number(given.args[2]) or 0) > 0
            is_same = ast.unparse(stop) == ast.unparse(size)
            return number is not None and number >= 0 and is_upwards and is_same
    return False


def _is_settled(scope: Scope, size: ast.expr) -> bool:
    """Whether it is a name of the function that never stands for two different numbers."""
    binders = _binders(scope, size.id) if isinstance(size, ast.Name) else []
    if len(binders) != 1:
        return False
    (only,) = binders
    if isinstance(only, ast.arg):
        return only is scope.parameter(only.arg)
    return isinstance(only, ast.Name) and not scope.loops(only)


def _binders(scope: Scope, name: str) -> list[ast.AST]:
    """What binds a name of this function, or says that it is another's."""
    return [
        node
        for node in scope.source.walk(scope.function)
        if name in binds(node) and node is not scope.function and _is_here(scope, node)
    ]


def _is_here(scope: Scope, node: ast.AST) -> bool:
    """Whether it isn't bound by a comprehension, or in a function in this one, for them alone."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    below = node
    for each in scope.source.around(node):
        if isinstance(each, ast.comprehension) and below is each.target:
            return False
        if isinstance(each, INNER_SCOPES):
            return each is scope.function
        below = each
    return False


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    return None


def _has_star(made: ast.List) -> bool:
    return any(isinstance(each, ast.Starred) for each in made.elts)
