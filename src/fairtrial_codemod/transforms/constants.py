"""Tables of constants that a function makes anew in each call: made once, for the module."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source, binds
from fairtrial_codemod.transforms.analysis.uses import Scope, Use

FEWEST = 3
"""Entries, from which on it is worth it."""
_READING = {"get", "keys", "values", "items", "copy", "index", "count", "union", "intersection"}
_READING |= {"difference", "symmetric_difference", "isdisjoint", "issubset", "issuperset"}
_STEADY = {"operator", "math", "ast", "re", "string", "datetime", "decimal"}
"""Modules whose names nobody binds anew."""
_TYPES = {name for name, each in vars(builtins).items() if isinstance(each, type)}


def find_constants(source: Source) -> Iterator[Change]:
    """``names = {...}`` of constants that is only read, and ``{...}[x]``, ``{...}.get(x)``."""
    taken: list[str] = []
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.expr):
            wish = _wish(scope, node) if _is_table(source, node) else None
            if wish is None:
                continue
            name = source.fresh(wish, *taken)
            taken.append(name)
            edits: tuple[Edit, ...] = (
                ("before", source.top_of(node), f"{name} = {source.say(node)}"),
                ("replace", node, name),
            )
            yield Change(f"{name} is made once", node.lineno, scope.name, edits)


def _is_table(source: Source, node: ast.expr) -> bool:
    match node:
        case ast.Dict(keys=keys, values=values):
            parts = [*keys, *values]
            count = len(keys)
        case ast.List(elts=parts, ctx=ast.Load()) | ast.Set(elts=parts):
            count = len(parts)
        case ast.Call(func=func, args=[ast.Constant(value=str()), *_] as parts, keywords=[]):
            if ast.unparse(func) not in ("str.maketrans", "set", "frozenset"):
                return False
            if not source.is_builtin(ast.unparse(func).partition(".")[0]):
                return False
            if not _can_make(ast.unparse(func), parts):
                return False
            count = FEWEST
        case _:
            return False
    return count >= FEWEST and all(_is_steady(source, each, node) for each in parts)


def _can_make(func: str, parts: list[ast.expr]) -> bool:
    """Whether a call works: one that doesn't must fail where it is, not for the module."""
    given = [each.value for each in parts if isinstance(each, ast.Constant)]
    if func != "str.maketrans":
        return len(parts) == 1
    is_several = len(given) == len(parts) and 2 <= len(given) <= 3
    are_texts = all(isinstance(each, str) for each in given)
    return is_several and are_texts and len(given[0]) == len(given[1])  # type: ignore[arg-type]


def _is_steady(source: Source, node: ast.expr | None, table: ast.expr) -> bool:
    """Whether it is the same whenever it is asked for, and can't be changed."""
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(_is_steady(source, each, table) for each in parts)
        case ast.Name(id=name):
            return name in _TYPES and _is_builtin(source, name, table)
        case ast.Call(func=ast.Name(id="type"), args=[ast.Constant(value=None)], keywords=[]):
            return _is_builtin(source, "type", table)
        case ast.Attribute(value=ast.Name(id=name)):
            return name in _STEADY and _is_imported(source, name, source.top_of(table))
    return False


def _is_builtin(source: Source, name: str, node: ast.expr) -> bool:
    """Whether a name means the builtin there; methods of that name don't matter."""
    if source.is_builtin(name):
        return True
    seen: set[ast.AST | None] = {None, *source.around(node)}
    seen = {each for each in seen if not isinstance(each, ast.ClassDef)}
    return "*" not in source.bound and not any(
        name in binds(each)
        and (source.function_of(each) in seen or isinstance(each, ast.Global | ast.Nonlocal))
        for each in source.walk(source.tree)
    )


def _is_imported(source: Source, name: str, top: ast.stmt) -> bool:
    """Whether a module is there before a statement is reached."""
    return source.has_import(name) and any(
        isinstance(each, ast.Import) and any(alias.name == name for alias in each.names)
        for each in source.tree.body[: source.tree.body.index(top)]
    )


def _wish(scope: Scope, node: ast.expr) -> str | None:
    """What to call a table that is only read; None if it may be changed or kept."""
    above = scope.source.parents[node]
    match above:
        case ast.Subscript(value=it, ctx=ast.Load()) if it is node:
            return "_TABLE"
        case ast.Attribute(value=it, attr=method) if it is node and not isinstance(node, ast.Call):
            call = scope.source.parents[above]
            is_called = isinstance(call, ast.Call) and call.func is above
            return "_TABLE" if is_called and method in _READING else None
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            pass
        case ast.Call(func=ast.Attribute(attr="translate"), args=[it]) if it is node:
            return "_TABLE"
        case _:
            return None
    if not scope.is_local(name) or scope.parameter(name) or len(scope.bindings(name)) != 1:
        return None
    mentions = [each for each in scope.mentions(name) if isinstance(each.ctx, ast.Load)]
    if not mentions or scope.has_alias(name):
        return None
    return (
        f"_{name.strip('_').upper()}" if all(_is_read(scope, each) for each in mentions) else None
    )


def _is_read(scope: Scope, mention: ast.Name) -> bool:
    match scope.use(mention):
        case Use.READ | Use.TEST:
            return True
        case Use.METHOD:
            return scope.method(mention)[0] in _READING
    above = scope.source.parents[mention]
    match above:
        case ast.Call(func=ast.Attribute(attr="translate"), args=[it], keywords=[]):
            return it is mention
    return False
