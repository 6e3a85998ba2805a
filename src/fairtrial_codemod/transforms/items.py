"""Dictionaries whose values are looked up key by key: key and value come together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.attributes import values_of
from fairtrial_codemod.transforms.analysis.effects import is_used_up
from fairtrial_codemod.transforms.analysis.iterables import kind_of, kinds_of
from fairtrial_codemod.transforms.analysis.matching import same
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    INNER_SCOPES,
    LOOPS,
    Change,
    Comprehension,
    Edit,
    Source,
)
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope

_READING = {"get", "keys", "values", "items", "copy", "most_common", "total"}
_MAPPINGS = {"dict", "defaultdict", "ordereddict", "counter", "mapping", "mutablemapping"}
_METHODS = {"items", "values", "get", "setdefault", "most_common"}
"""What has these has pairs."""
_WAITING = (ast.Yield, ast.YieldFrom, ast.Await)


def find_items(source: Source) -> Iterator[Change]:
    """``for key in table: ... table[key] ...``."""
    for scope in scopes_of(source):
        if scope.is_opaque:
            continue
        # Loops in each other need names of their own.
        taken: list[str] = []
        for node in own_nodes(scope, ast.For, ast.comprehension):
            change = None
            if isinstance(node, ast.For):
                change = _give_items(scope, taken, node, node.target, node.iter, node.body)
            elif isinstance(node, ast.comprehension):
                around = source.parents[node]
                assert isinstance(around, COMPREHENSIONS)
                if not node.is_async:
                    change = _give_items(
                        scope, taken, around, node.target, node.iter, _repeated(around, node)
                    )
            if change:
                yield change


def _repeated(around: Comprehension, each: ast.comprehension) -> list[ast.AST]:
    """What a comprehension does for each key."""
    later = around.generators[around.generators.index(each) + 1 :]
    parts: list[ast.AST] = [*each.ifs, *later]
    if isinstance(around, ast.DictComp):
        return [*parts, around.key, around.value]
    return [*parts, around.elt]


def _give_items(
    scope: Scope,
    taken: list[str],
    loop: ast.AST,
    key: ast.expr,
    given: ast.expr,
    parts: list[ast.stmt] | list[ast.AST],
) -> Change | None:
    table = _table(given)
    if table is None or not isinstance(key, ast.Name) or not _is_mapping(scope, table):
        return None
    inside = [node for part in parts for node in ast.walk(part)]
    keys = [node for node in inside if isinstance(node, ast.Name) and node.id == key.id]
    reads, stores = _lookups(scope, loop, table, key.id, inside)
    if not reads or any(not isinstance(each.ctx, ast.Load) for each in keys):
        return None
    if not _stays(scope, loop, table, given, inside, {*reads, *stores}):
        return None
    if not _come_last(scope, loop, stores, reads):
        return None
    source = scope.source
    name = ast.unparse(table)
    value = source.fresh(f"{name.rpartition('.')[2]}_value", *taken)
    taken.append(value)
    needless = {each.slice for each in reads}
    is_needed = any(each not in needless for each in keys)
    if isinstance(loop, ast.For):
        mine = {key, *keys}
        is_needed = is_needed or any(each not in mine for each in scope.mentions(key.id))
        is_needed = is_needed or not scope.is_local(key.id)
    edits: list[Edit] = [("replace", each, value) for each in reads]
    method, target = ("items", f"{key.id}, {value}") if is_needed else ("values", value)
    edits += [("replace", key, target), ("replace", given, f"{name}.{method}()")]
    what = f"{name}.{method}() instead of a look-up of each key"
    return Change(what, key.lineno, scope.name, tuple(edits))


def _table(given: ast.expr) -> ast.expr | None:
    """The dictionary whose keys are gone through."""
    match given:
        case ast.Call(func=ast.Attribute(value=it, attr="keys"), args=[], keywords=[]):
            return it if _is_plain(it) else None
        case _:
            return given if _is_plain(given) else None


def _is_plain(node: ast.expr) -> bool:
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name()):
            return True
    return False


def _is_mapping(scope: Scope, table: ast.expr) -> bool:
    """Whether something says that it is one: a list of places is gone through like that, too."""
    source = scope.source
    if isinstance(table, ast.Name):
        kinds = kinds_of(scope, table.id)
    else:
        assert isinstance(table, ast.Attribute)
        kinds = {kind_of(source, each) for each in values_of(source, table.attr)}
    said = kinds - {""}
    if said:
        return said <= _MAPPINGS
    # Who asks what it is says that it may be something else: what has keys need not have items.
    return not _is_questioned(scope, table) and any(
        isinstance(node, ast.Attribute) and node.attr in _METHODS and same(node.value, table)
        for node in source.walk(scope.function)
    )


def _is_questioned(scope: Scope, table: ast.expr) -> bool:
    for node in scope.source.walk(scope.function):
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "isinstance"), args=[asked, *_]):
                if same(asked, table):
                    return True
    return False


def _lookups(
    scope: Scope, loop: ast.AST, table: ast.expr, key: str, inside: list[ast.AST]
) -> tuple[list[ast.Subscript], list[ast.Subscript]]:
    """Where the value of the key is read, and where it is set."""
    reads, stores = [], []
    for node in inside:
        match node:
            case ast.Subscript(value=it, slice=ast.Name(id=at)) if at == key and same(it, table):
                if isinstance(node.ctx, ast.Load) and not _is_later(scope, node, loop):
                    reads.append(node)
                elif isinstance(node.ctx, ast.Store):
                    stores.append(node)
    return reads, stores


def _is_later(scope: Scope, node: ast.AST, loop: ast.AST) -> bool:
    """Whether it is in a function that may run when the loop has gone on."""
    for each in scope.source.around(node):
        if each is loop:
            return False
        if isinstance(each, INNER_SCOPES):
            return True
    return True


def _stays(
    scope: Scope,
    loop: ast.AST,
    table: ast.expr,
    given: ast.expr,
    inside: list[ast.AST],
    lookups: set[ast.Subscript],
) -> bool:
    """Whether nothing in the loop changes the dictionary but at the key itself."""
    if isinstance(loop, ast.For) and any(isinstance(each, _WAITING) for each in inside):
        return False
    root = table.id if isinstance(table, ast.Name) else ""
    is_later = isinstance(loop, ast.GeneratorExp) and not is_used_up(scope, loop)
    if is_later and len(scope.bindings(root)) + (scope.parameter(root) is not None) != 1:
        return False  # each value would be looked up in what the name stands for by then
    is_mine = bool(root) and scope.is_local(root) and not scope.has_alias(root)
    if not is_mine and any(_may_change(scope.source, each) for each in inside):
        return False
    if not root:
        assert isinstance(table, ast.Attribute)
        if any(_reaches(each, table, scope.source) for each in inside):
            return False
    own = set(ast.walk(given))
    for node in ast.walk(loop):
        if isinstance(node, ast.expr) and same(node, table) and node not in own:
            above = scope.source.parents[node]
            if above not in lookups and not _is_read(scope, node):
                return False
    return True


def _may_change(source: Source, node: ast.AST) -> bool:
    """Whether it may call a function that knows what isn't the function's own."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in PURE or not source.is_builtin(name)
    return False


def _reaches(node: ast.AST, table: ast.Attribute, source: Source) -> bool:
    """Whether it may change an attribute: its object is handed on, or asked to do something."""
    assert isinstance(table.value, ast.Name)
    if not isinstance(node, ast.Name) or node.id != table.value.id:
        return False
    above = source.parents[node]
    if not isinstance(above, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return True
    if not isinstance(above.ctx, ast.Load):
        return True
    call = source.parents[above]
    return isinstance(call, ast.Call) and call.func is above


def _is_read(scope: Scope, node: ast.expr) -> bool:
    above = scope.source.parents[node]
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    match above:
        case ast.Subscript(value=it, ctx=ast.Load()):
            return it is node
        case ast.Compare():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in PURE and scope.source.is_builtin(name)
        case ast.Attribute(attr=name):
            call = scope.source.parents[above]
            return name in _READING and isinstance(call, ast.Call) and call.func is above
        case ast.For() | ast.comprehension():
            return True
    return False


def _come_last(
    scope: Scope, loop: ast.AST, stores: list[ast.Subscript], reads: list[ast.Subscript]
) -> bool:
    """Whether the value is never set before it is read."""
    for store in stores:
        statement = scope.source.statement_of(store)
        if not isinstance(loop, ast.For) or not isinstance(statement, ast.Assign | ast.AugAssign):
            return False
        if isinstance(statement, ast.Assign) and statement.targets != [store]:
            return False
        for each in scope.source.around(statement):
            if each is loop:
                break
            if isinstance(each, LOOPS):
                return False
        end = (statement.end_lineno or 0, statement.end_col_offset or 0)
        if any((each.lineno, each.col_offset) >= end for each in reads):
            return False
    return True
