"""Iterate over the items of a dictionary instead of looking up the value of each key."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial_codemod.analysis.code_patterns import is_same_code
from fairtrial_codemod.analysis.effects import get_attribute_values, is_consumed
from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.iterables import DICTIONARIES, get_type_name, get_type_names
from fairtrial_codemod.analysis.python_facts import PURE_BUILTINS
from fairtrial_codemod.analysis.source_file import (
    COMPREHENSIONS,
    INNER_SCOPES,
    LOOPS,
    CodeChange,
    ComprehensionNode,
    SourceFile,
    TextEdit,
)

_READING_METHODS = {"get", "keys", "values", "items", "copy", "most_common", "total"}
_MAPPINGS = DICTIONARIES | {"mapping", "mutablemapping"}
_MAPPING_METHODS = {"items", "values", "get", "setdefault", "most_common"}
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True)
class _KeyLoop:
    """A loop, or a part of a comprehension, over the keys of a dictionary.

    scope: the function
    node: the loop or the comprehension
    key: the name of the key
    iterable: what is iterated
    table: the dictionary
    inside: all nodes that are evaluated for each key
    """

    scope: FunctionScope
    node: ast.For | ComprehensionNode
    key: ast.Name
    iterable: ast.expr
    table: ast.Name | ast.Attribute
    inside: list[ast.AST]


def find_items(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``for key in table: ... table[key] ...``."""
    for scope in list_scopes(source):
        if scope.is_opaque:
            continue
        taken: list[str] = []
        for node in scope.own_nodes(ast.For, ast.comprehension):
            loop = _read_loop(scope, node)
            change = _write_items(loop, taken) if loop else None
            if change:
                yield change


def _read_loop(scope: FunctionScope, node: ast.AST) -> _KeyLoop | None:
    match node:
        case ast.For(target=ast.Name() as key, iter=iterable, body=body):
            parts: list[ast.AST] = [*body]
            around: ast.AST = node
        case ast.comprehension(target=ast.Name() as key, iter=iterable, is_async=0, ifs=ifs):
            around = scope.source.parents[node]
            assert isinstance(around, COMPREHENSIONS)
            parts = [*ifs, *around.generators[around.generators.index(node) + 1 :]]
            if isinstance(around, ast.DictComp):
                parts += [around.key, around.value]
            else:
                parts.append(around.elt)
        case _:
            return None
    match iterable:
        case ast.Call(func=ast.Attribute(value=table, attr="keys"), args=[], keywords=[]):
            pass
        case _:
            table = iterable
    assert isinstance(around, ast.For | ComprehensionNode)
    if isinstance(table, ast.Name) or (
        isinstance(table, ast.Attribute) and isinstance(table.value, ast.Name)
    ):
        inside = [child for part in parts for child in ast.walk(part)]
        return _KeyLoop(scope, around, key, iterable, table, inside)
    return None


def _write_items(loop: _KeyLoop, taken: list[str]) -> CodeChange | None:
    scope, source, key = loop.scope, loop.scope.source, loop.key
    if not _is_mapping(scope, loop.table):
        return None
    keys = [node for node in loop.inside if isinstance(node, ast.Name) and node.id == key.id]
    reads, stores = _find_subscripts(loop)
    if not reads or any(not isinstance(node.ctx, ast.Load) for node in keys):
        return None
    if not _is_kept(loop, {*reads, *stores}) or not _are_stored_last(loop, stores, reads):
        return None
    table = ast.unparse(loop.table)
    value = source.make_name(f"{table.rpartition('.')[2]}_value", *taken)
    taken.append(value)
    replaced = {node.slice for node in reads}
    is_needed = any(node not in replaced for node in keys)
    if isinstance(loop.node, ast.For):
        known = {key, *keys}
        is_needed = is_needed or any(node not in known for node in scope.mentions(key.id))
        is_needed = is_needed or not scope.is_local(key.id)
    edits: list[TextEdit] = [("replace", node, value) for node in reads]
    method, target = ("items", f"{key.id}, {value}") if is_needed else ("values", value)
    edits += [("replace", key, target), ("replace", loop.iterable, f"{table}.{method}()")]
    description = f"{table}.{method}() instead of a lookup of each key"
    return CodeChange(description, key.lineno, scope.name, tuple(edits))


def _is_mapping(scope: FunctionScope, table: ast.Name | ast.Attribute) -> bool:
    """Return whether the code shows that an object is a dictionary."""
    source = scope.source
    if isinstance(table, ast.Name):
        types = get_type_names(scope, table.id)
    else:
        types = {get_type_name(source, each) for each in get_attribute_values(source, table.attr)}
    if types - {""}:
        return types - {""} <= _MAPPINGS
    has_methods = False
    for node in source.walk(scope.function):
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "isinstance"), args=[tested, *_]):
                if is_same_code(tested, table):
                    return False  # it may be something else that has keys
            case ast.Attribute(value=value, attr=attr) if attr in _MAPPING_METHODS:
                has_methods = has_methods or is_same_code(value, table)
    return has_methods


def _find_subscripts(loop: _KeyLoop) -> tuple[list[ast.Subscript], list[ast.Subscript]]:
    """Return where the value of the key is read, and where it is stored."""
    reads, stores = [], []
    for node in loop.inside:
        match node:
            case ast.Subscript(value=it, slice=ast.Name(id=place)) if place == loop.key.id:
                if not is_same_code(it, loop.table):
                    continue
                if isinstance(node.ctx, ast.Load) and not _is_deferred(loop, node):
                    reads.append(node)
                elif isinstance(node.ctx, ast.Store):
                    stores.append(node)
    return reads, stores


def _is_deferred(loop: _KeyLoop, node: ast.AST) -> bool:
    """Return whether a node is in a function that may run when the loop has gone on."""
    for up in loop.scope.source.ancestors(node):
        if up is loop.node:
            return False
        if isinstance(up, INNER_SCOPES):
            return True
    return True


def _is_kept(loop: _KeyLoop, subscripts: set[ast.Subscript]) -> bool:
    """Return whether the loop changes the dictionary at most at the current key."""
    scope, table, source = loop.scope, loop.table, loop.scope.source
    if isinstance(loop.node, ast.For) and any(isinstance(n, _SUSPENDING) for n in loop.inside):
        return False
    root = table.id if isinstance(table, ast.Name) else ""
    is_lazy = isinstance(loop.node, ast.GeneratorExp) and not is_consumed(scope, loop.node)
    if is_lazy and len(scope.bindings(root)) + (scope.parameter(root) is not None) != 1:
        return False  # the name may stand for another dictionary by then
    is_private = bool(root) and scope.is_local(root) and not scope.has_alias(root)
    for node in loop.inside:
        match node:
            case ast.Call(func=ast.Name(id=name)) if not is_private:
                if name not in PURE_BUILTINS or not source.is_builtin(name):
                    return False
        if isinstance(table, ast.Attribute) and _may_change_attribute(source, node, table):
            return False
    own = set(ast.walk(loop.iterable))
    return all(
        source.parents[node] in subscripts or _is_read(scope, node)
        for node in ast.walk(loop.node)
        if isinstance(node, ast.expr) and node not in own and is_same_code(node, table)
    )


def _may_change_attribute(source: SourceFile, node: ast.AST, table: ast.Attribute) -> bool:
    """Return whether a node hands on the owner of an attribute, or calls a method of it."""
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


def _is_read(scope: FunctionScope, node: ast.expr) -> bool:
    above = scope.source.parents[node]
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    match above:
        case ast.Subscript(value=it, ctx=ast.Load()):
            return it is node
        case ast.Call(func=ast.Name(id=name)):
            return name in PURE_BUILTINS and scope.source.is_builtin(name)
        case ast.Attribute(attr=name):
            call = scope.source.parents[above]
            return name in _READING_METHODS and isinstance(call, ast.Call) and call.func is above
    return isinstance(above, ast.Compare | ast.For | ast.comprehension)


def _are_stored_last(
    loop: _KeyLoop, stores: list[ast.Subscript], reads: list[ast.Subscript]
) -> bool:
    """Return whether no value is stored before it is read."""
    for store in stores:
        statement = loop.scope.source.get_statement(store)
        if not isinstance(loop.node, ast.For):
            return False
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            return False
        if isinstance(statement, ast.Assign) and statement.targets != [store]:
            return False
        for up in loop.scope.source.ancestors(statement):
            if up is loop.node:
                break
            if isinstance(up, LOOPS):
                return False
        end = (statement.end_lineno or 0, statement.end_col_offset or 0)
        if any((node.lineno, node.col_offset) >= end for node in reads):
            return False
    return True
