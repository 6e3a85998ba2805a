"""Whether an expression has the same value in every round of a loop."""

from __future__ import annotations

import ast

from fairtrial_codemod.analysis.effects import (
    is_called,
    is_unchanged,
    is_unchanged_attribute,
    may_change_shared,
)
from fairtrial_codemod.analysis.function_scope import FunctionScope
from fairtrial_codemod.analysis.python_facts import LAZY_BUILTINS, PURE_BUILTINS, READING_METHODS
from fairtrial_codemod.analysis.source_file import COMPREHENSIONS, ComprehensionNode, LoopNode

_UNMOVABLE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)


def is_stable(scope: FunctionScope, node: ast.expr, loop: LoopNode | ComprehensionNode) -> bool:
    """Return whether an expression has the same value in every round of a loop."""
    statement = scope.source.get_statement(loop)
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            is_set = scope.is_assigned_before(name, statement)
            return is_set and is_unchanged(scope, name, loop)
        case ast.Attribute(value=ast.Name(id=owner)):
            if scope.parameter(owner) is not None and not scope.bindings(owner):
                return is_unchanged_attribute(scope, node, loop)
            is_same = _is_stable_owner(scope, owner, loop)
            return is_same and _is_only_read(scope, node, loop)
        case ast.Subscript(value=value, slice=ast.Name() | ast.Constant() as place):
            is_same = is_stable(scope, value, loop) and is_stable(scope, place, loop)
            return is_same and _is_only_read(scope, node, loop)
    if isinstance(node, ast.Call | ast.ListComp | ast.SetComp):
        return _is_stable_computation(scope, node, loop)
    return False


def _is_stable_owner(scope: FunctionScope, owner: str, loop: LoopNode | ComprehensionNode) -> bool:
    """Return whether a loop only reads attributes of an object that a local name stands for."""
    source = scope.source
    if not scope.is_local(owner):
        return False
    for mention in scope.mentions(owner, loop):
        parent = source.parents[mention]
        if not isinstance(parent, ast.Attribute) or is_called(source, parent):
            return False
    return scope.is_assigned_before(owner, source.get_statement(loop))


def _is_only_read(scope: FunctionScope, node: ast.expr, loop: ast.AST) -> bool:
    """Return whether a loop changes no part of objects that others may hold, and the function
    has no other name for a part like this.
    """
    root = ast.unparse(node.value) if isinstance(node, ast.Attribute | ast.Subscript) else ""
    for part in scope.source.walk(scope.function):
        if isinstance(part, ast.Attribute | ast.Subscript) and type(part) is type(node):
            if ast.unparse(part.value) != root:
                continue
            parent = scope.source.parents[part]
            if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                return False
            is_inside = part in set(scope.source.walk(loop))
            if is_inside and not scope.is_read(part):
                return False
    return not may_change_shared(scope, loop)


def _is_stable_computation(
    scope: FunctionScope, node: ast.expr, loop: LoopNode | ComprehensionNode
) -> bool:
    """The same for a call or a comprehension: all that it reads stays the same."""
    own = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    written = {
        part.attr
        for part in ast.walk(loop)
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load)
    }
    # The first iterable of a comprehension is evaluated outside of it.
    outside = {
        part
        for comprehension in ast.walk(node)
        if isinstance(comprehension, COMPREHENSIONS)
        for part in ast.walk(comprehension.generators[0].iter)
    }
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Load()) if name not in own or part in outside:
                is_pure = name in PURE_BUILTINS and scope.source.is_builtin(name)
                if not is_pure and not _stays_usable(scope, part, loop):
                    return False
            case ast.Call(func=ast.Attribute(attr=method)) if method in READING_METHODS:
                pass
            case ast.Call(func=func) if not isinstance(func, ast.Name) or func.id in own:
                return False
            case ast.Attribute(attr=attr) if attr in written:
                return False
        if isinstance(part, _UNMOVABLE):
            return False
    return True


def _stays_usable(scope: FunctionScope, name: ast.Name, loop: LoopNode | ComprehensionNode) -> bool:
    """Return whether a name stays the same, is never tested for None, and is no iterator."""
    if not is_stable(scope, name, loop) or scope.may_be_none(name.id, loop):
        return False
    for value in scope.get_values(name.id):
        match value:
            case ast.GeneratorExp() | ast.Call(func=ast.Attribute()):
                return False
            case ast.Call(func=ast.Name(id=made)):
                if made not in PURE_BUILTINS or made in LAZY_BUILTINS:
                    return False
    return True
