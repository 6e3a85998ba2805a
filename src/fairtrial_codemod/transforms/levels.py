"""Levels of a graph that are peeled off one by one: what needs what is looked up, not rebuilt."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.loop_ends import has_comment, mentions
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.uses import Scope, Use

_FREE = tuple(
    f"__r = {form.format(f'__k for __k, __v in __d.items() if {test}')}"
    for form in ("{{{}}}", "set({})", "set([{}])")
    for test in ("not __v", "len(__v) == 0", "__v == set()")
)
_REBUILT = (
    "__d = {__k: __v - __r for __k, __v in __d.items() if __k not in __r}",
    "__d = {__k: __v.difference(__r) for __k, __v in __d.items() if __k not in __r}",
)
_READING = {"items", "keys", "values", "get"}


@dataclass(frozen=True, slots=True)
class _Peeled:
    """A loop that takes off, level by level, what needs nothing any more.

    table: the name of the dictionary of sets of needs
    level: the name of what needs nothing
    free: the statement that finds it
    rebuilt: the statement that makes the dictionary anew without it
    """

    table: str
    level: str
    free: ast.Assign
    rebuilt: ast.Assign


def find_levels(source: Source) -> Iterator[Change]:
    """A loop that makes a dictionary of needs anew for each level, until nothing is left."""
    if not all(map(source.is_builtin, ("set", "sorted", "enumerate", "len"))):
        return
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.While):
            peeled = _peels(scope, node)
            if peeled and _owns_sets(scope, node, peeled):
                yield _look_up(scope, node, peeled)


def _peels(scope: Scope, loop: ast.While) -> _Peeled | None:
    first, last = loop.body[0], loop.body[-1]
    if loop.orelse or not isinstance(first, ast.Assign) or not isinstance(last, ast.Assign):
        return None
    found = next((it for form in _FREE if (it := match(form, first))), None)
    again = next((it for form in _REBUILT if (it := match(form, last))), None)
    if (
        not found
        or not again
        or has_comment(scope.source, first)
        or has_comment(scope.source, last)
    ):
        return None
    table, level = found["__d"], found["__r"]
    if not isinstance(table, ast.Name) or not isinstance(level, ast.Name):
        return None
    if ast.unparse(again["__d"]) != table.id or ast.unparse(again["__r"]) != level.id:
        return None
    if ast.unparse(loop.test) not in ("True", "1", table.id):
        return None
    if any(isinstance(each, ast.Continue) for each in ast.walk(loop)):
        return None
    for each in loop.body[1:-1]:
        # Where nothing is free any more, what is left may be told.
        is_end = isinstance(each, ast.If) and ast.unparse(each.test) == f"not {level.id}"
        if mentions(table.id, each) and not (is_end and _leaves(each)):
            return None
    is_changed = any(
        not _is_only_read(scope, each, first) for each in scope.mentions(level.id, loop)
    )
    if is_changed or not scope.is_local(table.id) or not scope.is_local(level.id):
        return None
    return _Peeled(table.id, level.id, first, last)


def _leaves(node: ast.AST) -> bool:
    last = node.body[-1] if isinstance(node, ast.If) else None
    return isinstance(last, ast.Break | ast.Raise | ast.Return)


def _is_only_read(scope: Scope, mention: ast.Name, first: ast.Assign) -> bool:
    """Whether a level isn't changed there, nor bound; who gets it is trusted."""
    if mention is first.targets[0]:
        return True
    use = scope.use(mention)
    return use not in (Use.BIND, Use.METHOD)


def _owns_sets(scope: Scope, loop: ast.While, peeled: _Peeled) -> bool:
    """Whether the dictionary and its sets are made here, before the loop, for nobody else."""
    inside = set(ast.walk(loop))
    block = scope.source.block_of(loop)
    bound = [each for each in scope.bindings(peeled.table) if each not in inside]
    if len(bound) != 1 or loop not in block or scope.has_alias(peeled.table):
        return False
    statement = scope.source.statement_of(bound[0])
    value = scope.assignment(bound[0])
    if statement not in block[: block.index(loop)] or not _makes_sets(value):
        return False
    start = (statement.end_lineno or 0, statement.end_col_offset or 0)
    between = [
        each
        for each in scope.mentions(peeled.table)
        if start < (each.lineno, each.col_offset) < (loop.lineno, loop.col_offset)
    ]
    return all(_is_harmless(scope, each) for each in between)


def _makes_sets(value: ast.expr | None) -> bool:
    return isinstance(value, ast.DictComp) and _is_own_set(value.value)


def _is_own_set(value: ast.expr) -> bool:
    match value:
        case ast.SetComp() | ast.Set() | ast.Call(func=ast.Name(id="set")):
            return True
        case ast.BinOp(left=left, op=ast.Sub() | ast.BitAnd() | ast.BitOr()):
            return _is_own_set(left)
    return False


def _is_harmless(scope: Scope, mention: ast.Name) -> bool:
    use = scope.use(mention)
    if use is not Use.METHOD:
        return use in (Use.READ, Use.TEST)
    method, call = scope.method(mention)
    match method, call.args:
        case "update", [given]:
            return not call.keywords and _makes_sets(given)
        case "setdefault", [_, given]:
            return _is_own_set(given)
    return method in _READING


def _look_up(scope: Scope, loop: ast.While, peeled: _Peeled) -> Change:
    source, table, level = scope.source, peeled.table, peeled.level
    place, needed = source.fresh(f"{table}_place"), source.fresh(f"{table}_needing")
    following, key = source.fresh(f"{level}_next"), source.fresh("key")
    at = source.fresh("at")
    need, needs, found = source.fresh("need"), source.fresh("needs"), source.fresh("freed")
    # A level's elements come in the dictionary's order, as they did: sets may show it.
    before = f"""\
{place} = {{{key}: {at} for {at}, {key} in enumerate({table})}}
{needed} = {{}}
for {key}, {needs} in {table}.items():
    for {need} in {needs}:
        {needed}.setdefault({need}, []).append({key})
{following} = {source.say(peeled.free.value)}"""
    rebuilt = f"""\
{found} = []
for {need} in {level}:
    del {table}[{need}]
    for {key} in {needed}.get({need}, ()):
        {needs} = {table}[{key}]
        {needs}.discard({need})
        if not {needs}:
            {found}.append({key})
{following} = set(sorted({found}, key={place}.__getitem__))"""
    edits: tuple[Edit, ...] = (
        ("before", loop, before),
        ("replace", peeled.free, f"{level} = {following}"),
        ("replace", peeled.rebuilt, rebuilt),
    )
    what = f"{table} is not made anew for each level"
    return Change(what, loop.lineno, scope.name, edits)
