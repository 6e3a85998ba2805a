"""Attributes that grow in a loop: a local name grows faster, and texts in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    INNER_SCOPES,
    LOOPS,
    Change,
    Edit,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope

_LEAVING = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, *INNER_SCOPES)


def find_accumulators(source: Source) -> Iterator[Change]:
    """``self.text += part`` in a loop that doesn't ask `self` for anything else it does."""
    defined = {name.rpartition(".")[2] for name, _ in source.functions}
    for scope in scopes_of(source):
        seen: set[tuple[str, ast.AST]] = set()
        for node in own_nodes(scope, ast.AugAssign):
            match node.target:
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if _is_steady(scope, owner):
                    pass
                case _:
                    continue
            loop = _outermost(scope, owner, name, node, defined)
            is_new = (f"{owner}.{name}", loop) not in seen
            if loop is not None and is_new and _is_there(scope, owner, name, loop):
                seen.add((f"{owner}.{name}", loop))
                yield _keep(scope, owner, name, loop)


def _is_steady(scope: Scope, owner: str) -> bool:
    """Whether a name is a parameter that always stands for the same."""
    return bool(scope.parameter(owner)) and scope.is_local(owner) and not scope.bindings(owner)


def _outermost(
    scope: Scope, owner: str, name: str, node: ast.AST, defined: set[str]
) -> Loop | None:
    best = None
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, LOOPS) or loop.orelse or name in defined:
            break
        if not _is_unseen(scope, owner, name, loop, defined):
            break
        best = loop
    if best is None or any(
        isinstance(each, ast.Try | ast.With) for each in scope.source.around(best)
    ):
        return None
    return best


def _is_unseen(scope: Scope, owner: str, name: str, loop: Loop, defined: set[str]) -> bool:
    """Whether the loop only adds to the attribute, and hands its owner to nobody."""
    source = scope.source
    for node in ast.walk(loop):
        if isinstance(node, _LEAVING):
            return False
        match node:
            case ast.Call(func=ast.Name(id=called)):
                # A function may know the owner by another way.
                if called not in PURE or not source.is_builtin(called):
                    return False
            case ast.Call(func=ast.Attribute(attr=called)) if called in defined:
                return False
            case ast.Attribute(value=ast.Name(id=other), attr=asked) if asked == name:
                # Another name may stand for the same object.
                if other != owner:
                    return False
            case ast.Attribute(attr=asked) if asked == name:
                return False
    for mention in scope.mentions(owner, loop):
        part = source.parents[mention]
        if not isinstance(part, ast.Attribute):
            return False
        above = source.parents[part]
        if part.attr == name:
            if not isinstance(above, ast.AugAssign) or above.target is not part:
                return False
        elif part.attr in defined or (isinstance(above, ast.Call) and above.func is part):
            return False
    return True


def _is_there(scope: Scope, owner: str, name: str, loop: Loop) -> bool:
    """Whether an object has the attribute, as far as one sees, even if the loop has no steps."""
    source = scope.source
    for each in (loop, *source.around(loop)):
        if each is scope.function:
            break
        if isinstance(each, ast.stmt):
            block = source.block_of(each)
            before = block[: block.index(each)] if each in block else []
            if any(_sets(earlier, owner, name) for earlier in before):
                return True
    around = source.parents[scope.function]
    parameters = [*scope.function.args.posonlyargs, *scope.function.args.args]
    if not isinstance(around, ast.ClassDef) or [each.arg for each in parameters][:1] != [owner]:
        return False
    return any(_begins_with(each, name) for each in around.body)


def _begins_with(statement: ast.stmt, name: str) -> bool:
    """Whether each object of a class has an attribute because of a statement in the class."""
    match statement:
        case ast.FunctionDef(name="__init__", args=ast.arguments(args=[first, *_]), body=body):
            return any(_sets(each, first.arg, name) for each in body)
        case ast.Assign(targets=[ast.Name(id=bound)]):
            return bound == name
        case ast.AnnAssign(target=ast.Name(id=bound), value=value):
            return bound == name and value is not None
    return False


def _sets(statement: ast.stmt, owner: str, name: str) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            pass
        case ast.AnnAssign(target=target, value=ast.expr()):
            targets = [target]
        case _:
            return False
    parts = [part for each in targets for part in getattr(each, "elts", [each])]
    return any(ast.unparse(part) == f"{owner}.{name}" for part in parts)


def _keep(scope: Scope, owner: str, name: str, loop: Loop) -> Change:
    source = scope.source
    local = source.fresh(f"{owner}_{name.strip('_')}")
    edits: list[Edit] = [("before", loop, f"{local} = {owner}.{name}")]
    edits += [
        ("replace", node, local)
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == f"{owner}.{name}"
    ]
    edits.append(("after", loop, f"{owner}.{name} = {local}"))
    what = f"{owner}.{name} grows as {local}"
    return Change(what, loop.lineno, scope.name, tuple(edits))
