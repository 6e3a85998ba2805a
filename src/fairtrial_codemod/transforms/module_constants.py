"""Make tables of constants once for the module instead of in each call of a function."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse, list_scopes
from fairtrial_codemod.analysis.source_file import (
    CodeChange,
    SourceFile,
    TextEdit,
    get_bound_names,
)

MIN_ENTRIES = 3
_READING_METHODS = {"get", "keys", "values", "items", "copy", "index", "count", "union"}
_READING_METHODS |= {"difference", "symmetric_difference", "isdisjoint", "issubset", "issuperset"}
_READING_METHODS |= {"intersection"}
_STABLE_MODULES = {"operator", "math", "ast", "re", "string", "datetime", "decimal"}
_TYPES = {name for name, value in vars(builtins).items() if isinstance(value, type)}


def find_module_constants(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``names = {...}`` of constants that is only read, and ``{...}[x]``."""
    taken: list[str] = []
    for scope in list_scopes(source):
        for node in scope.own_nodes(ast.expr):
            wish = _get_wish(scope, node) if _is_table(source, node) else None
            if wish is None:
                continue
            name = source.make_name(wish, *taken)
            taken.append(name)
            edits: tuple[TextEdit, ...] = (
                ("before", source.get_top_statement(node), f"{name} = {source.render(node)}"),
                ("replace", node, name),
            )
            yield CodeChange(f"{name} is made once", node.lineno, scope.name, edits)


def _is_table(source: SourceFile, node: ast.expr) -> bool:
    """Return whether an expression is a collection of constants that is worth storing."""
    match node:
        case ast.Dict(keys=keys, values=values):
            parts = [*keys, *values]
            count = len(keys)
        case ast.List(elts=parts, ctx=ast.Load()) | ast.Set(elts=parts):
            count = len(parts)
        case ast.Call(func=func, args=[ast.Constant(value=str()), *_] as parts, keywords=[]):
            name = ast.unparse(func)
            if not _can_make(name, parts) or not source.is_builtin(name.partition(".")[0]):
                return False
            count = MIN_ENTRIES
        case _:
            return False
    return count >= MIN_ENTRIES and all(_is_stable(source, part, node) for part in parts)


def _can_make(function: str, parts: list[ast.expr]) -> bool:
    """Return whether a call surely works: an error must be raised where it is now."""
    if function in ("set", "frozenset"):
        return len(parts) == 1
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    texts = [text for text in constants if isinstance(text, str)]
    is_complete = function == "str.maketrans" and len(texts) == len(parts)
    return is_complete and 2 <= len(texts) <= 3 and len(texts[0]) == len(texts[1])


def _is_stable(source: SourceFile, node: ast.expr | None, table: ast.expr) -> bool:
    """Return whether a part of a table is always the same and can't be changed."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(_is_stable(source, part, table) for part in parts)
        case ast.Name(id=name):
            return name in _TYPES and _is_builtin(source, name, table)
        case ast.Call(func=ast.Name(id="type"), args=[ast.Constant(value=None)], keywords=[]):
            return _is_builtin(source, "type", table)
        case ast.Attribute(value=ast.Name(id=name)):
            top = source.get_top_statement(table)
            return name in _STABLE_MODULES and _is_imported_before(source, name, top)
    return False


def _is_builtin(source: SourceFile, name: str, node: ast.expr) -> bool:
    """Return whether a name means the builtin at a node; methods of that name don't matter."""
    if source.is_builtin(name):
        return True
    visible: set[ast.AST | None] = {None, *source.ancestors(node)}
    visible = {up for up in visible if not isinstance(up, ast.ClassDef)}
    return "*" not in source.binders and not any(
        name in get_bound_names(other)
        and (
            source.get_scope_node(other) in visible or isinstance(other, ast.Global | ast.Nonlocal)
        )
        for other in source.walk(source.tree)
    )


def _is_imported_before(source: SourceFile, name: str, top: ast.stmt) -> bool:
    return source.has_import(name) and any(
        isinstance(node, ast.Import) and any(alias.name == name for alias in node.names)
        for node in source.tree.body[: source.tree.body.index(top)]
    )


def _get_wish(scope: FunctionScope, node: ast.expr) -> str | None:
    """Return a name for a table that is only read; None if it may be changed or stored."""
    parent = scope.source.parents[node]
    match parent:
        case ast.Subscript(value=it, ctx=ast.Load()) if it is node:
            return "_TABLE"
        case ast.Attribute(value=it, attr=method) if it is node and not isinstance(node, ast.Call):
            call = scope.source.parents[parent]
            is_called = isinstance(call, ast.Call) and call.func is parent
            return "_TABLE" if is_called and method in _READING_METHODS else None
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            pass
        case ast.Call(func=ast.Attribute(attr="translate"), args=[it]) if it is node:
            return "_TABLE"
        case _:
            return None
    if not scope.is_local(name) or scope.parameter(name) or len(scope.bindings(name)) != 1:
        return None
    mentions = [mention for mention in scope.mentions(name) if isinstance(mention.ctx, ast.Load)]
    if not mentions or scope.has_alias(name):
        return None
    is_read = all(_is_read(scope, mention) for mention in mentions)
    return f"_{name.strip('_').upper()}" if is_read else None


def _is_read(scope: FunctionScope, mention: ast.Name) -> bool:
    match scope.classify(mention):
        case NameUse.READ | NameUse.TEST:
            return True
        case NameUse.METHOD:
            return scope.get_method_call(mention)[0] in _READING_METHODS
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Attribute(attr="translate"), args=[it], keywords=[]):
            return it is mention
    return False
