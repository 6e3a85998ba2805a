"""What an object holds, ``self.known``: whether a loop leaves it as it is."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.source import Source
from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope


def is_untouched_attribute(scope: Scope, held: ast.Attribute, loop: ast.AST) -> bool:
    """Whether an attribute of a parameter is only read in a loop, and its owner not handed on."""
    source = scope.source
    if not isinstance(held.value, ast.Name):
        return False
    owner = held.value.id
    if scope.parameter(owner) is None or scope.bindings(owner) or not scope.is_local(owner):
        return False
    if held.attr in {function.name for _, function in source.functions} or _has_alias(scope, held):
        return False
    for mention in scope.mentions(owner, loop):
        attribute = source.parents[mention]
        if not isinstance(attribute, ast.Attribute):
            return False
        if attribute.attr == held.attr:
            if not _only_reads(source, attribute):
                return False
        elif _is_called(source, attribute):
            return False  # it may change anything of the object
    return True


def is_questioned_attribute(scope: Scope, held: ast.Attribute, loop: ast.AST) -> bool:
    """Whether code in a loop asks if there is anything at all."""
    text = ast.unparse(held)
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == text:
            match scope.source.parents[node]:
                case ast.If() | ast.While() | ast.IfExp() | ast.UnaryOp() | ast.BoolOp():
                    return True
                case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                    return True
    return False


def values_of(source: Source, name: str) -> list[ast.expr | None]:
    """What the module ever sets an attribute of that name to."""
    found: list[ast.expr | None] = []
    for node in source.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == name:
            match source.parents[node]:
                case ast.Assign(targets=[target], value=value) if target is node:
                    found.append(value)
                case ast.AnnAssign(target=target, value=value) if target is node:
                    found.append(value)
    return found


def _has_alias(scope: Scope, held: ast.Attribute) -> bool:
    """Whether the function has another name for it, or for a method of it."""
    text = ast.unparse(held)
    for node in scope.source.walk(scope.function):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == text:
            parent = scope.source.parents[node]
            if isinstance(
                parent, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Tuple | ast.List
            ):
                return True
            if isinstance(parent, ast.Attribute) and not _is_called(scope.source, parent):
                return True
    return False


def _is_called(source: Source, attribute: ast.Attribute) -> bool:
    above = source.parents[attribute]
    return isinstance(above, ast.Call) and above.func is attribute


def _only_reads(source: Source, held: ast.Attribute) -> bool:
    if not isinstance(held.ctx, ast.Load):
        return False
    parent = source.parents[held]
    match parent:
        case ast.Compare() | ast.If() | ast.While() | ast.UnaryOp():
            return True
        case ast.Subscript(value=value, ctx=ast.Load()) if value is held:
            return True
        case ast.For(iter=given) | ast.comprehension(iter=given):
            return given is held
        case ast.Call(func=ast.Name(id=name)):
            return name in PURE - KEEPING and source.is_builtin(name)
        case ast.Attribute(attr=method):
            return method in READING and _is_called(source, parent)
    return False
