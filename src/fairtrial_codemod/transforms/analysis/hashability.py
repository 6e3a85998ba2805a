"""Whether what an expression gives can be hashed, as far as the function around it tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.kinds import TEXT_METHODS, is_fixed_type
from fairtrial_codemod.transforms.analysis.source import Source
from fairtrial_codemod.transforms.analysis.unhashables import is_left_over
from fairtrial_codemod.transforms.analysis.uses import (
    Scope,
    Use,
    is_fresh_list,
    unhashable,
)

_GIVING_VALUES = frozenset(
    {"abs", "bool", "bytes", "chr", "float", "frozenset", "hash", "id", "int", "len", "ord"}
    | {"repr", "round", "str", "tuple", "type"}
)
_GOING_THROUGH = frozenset(
    {"all", "any", "dict", "enumerate", "filter", "isinstance", "iter", "len", "list", "map"}
    | {"max", "min", "next", "reversed", "set", "sorted", "sum", "tuple", "zip"}
)
"""Builtins that are given collections; who is asked for its type may be anything."""
_TELLING = TEXT_METHODS - {"join", "format", "replace"}
"""Methods that show a text; the others are common names."""
_GIVING_TEXTS = TEXT_METHODS - {"split", "rsplit", "splitlines"}


def is_hashable(scope: Scope, node: ast.expr) -> bool:
    """Whether it looks like what can be hashed, and nothing says that it is a collection."""
    if not isinstance(node, ast.Constant) and is_left_over(scope, node):
        return False
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return all(is_hashable(scope, each) for each in parts)
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            return is_hashable(scope, one) and is_hashable(scope, other)
        case ast.UnaryOp(operand=one):
            return is_hashable(scope, one)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as parts):
            is_known = scope.source.is_builtin("min") and scope.source.is_builtin("max")
            return is_known and all(is_hashable(scope, each) for each in parts)
        case ast.Call(func=ast.Name(id=name)):
            return name in _GIVING_VALUES and scope.source.is_builtin(name)
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _GIVING_TEXTS
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()):
            return is_text(scope, name)
        case ast.Name(id=name):
            return _is_hashable_name(scope, name)
        case ast.Attribute() | ast.Subscript():
            return not isinstance(getattr(node, "slice", None), ast.Slice) and not _is_collection(
                scope, ast.unparse(node)
            )
    return False


def is_checked(source: Source, test: ast.AST) -> bool:
    """Whether a test refuses what isn't known: who does so may be given anything, a list too."""
    below = test
    for each in source.around(test):
        match each:
            case ast.BoolOp() | ast.UnaryOp():
                below = each
            case ast.Assert():
                return True
            case ast.If(test=it, body=[*_, last]):
                return it is below and isinstance(last, ast.Raise)
            case _:
                return False
    return False


def is_text(scope: Scope, name: str) -> bool:
    """Whether something is done with a name that only texts can do."""
    parameter = scope.parameter(name)
    annotation = parameter.annotation if parameter else None
    if isinstance(annotation, ast.Name) and annotation.id in ("str", "bytes"):
        return True
    return any(
        scope.use(each) is Use.METHOD and scope.method(each)[0] in _TELLING
        for each in scope.mentions(name)
    )


def _is_hashable_name(scope: Scope, name: str) -> bool:
    parameter = scope.parameter(name)
    if parameter is not None and _is_changeable_type(parameter.annotation):
        return False
    if parameter is not None and is_fixed_type(parameter.annotation):
        return True
    if is_text(scope, name) or any(_is_hashed(scope.source, each) for each in scope.mentions(name)):
        return True
    for value in (scope.assignment(each) for each in scope.bindings(name)):
        if value is not None and (unhashable(value) or is_fresh_list(value, scope.source)):
            return False
        if isinstance(value, ast.Tuple) and is_hashable(scope, value):
            return True
    return not _is_collection(scope, name)


def _is_changeable_type(annotation: ast.expr | None) -> bool:
    names = ("list", "dict", "set", "List", "Dict", "Set", "bytearray", "deque")
    return annotation is not None and any(
        isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in names
        for node in ast.walk(annotation)
    )


def _is_hashed(source: Source, mention: ast.Name) -> bool:
    """Whether it is put into a set, or is a key of what is a dictionary beyond doubt."""
    match source.parents[mention]:
        case ast.Call(func=ast.Attribute(attr="add" | "discard" | "setdefault"), args=[it, *_]):
            return it is mention
        case ast.Dict(keys=keys):
            return mention in keys
        case ast.Set():
            return True
    return False


def _is_collection(scope: Scope, text: str) -> bool:
    """Whether something is done in the function with such a thing that one does to collections."""
    source = scope.source
    for node, parent in _alike(scope, text):
        match parent:
            case ast.For(iter=it) | ast.comprehension(iter=it) if it is node:
                return True
            case ast.Subscript(value=it) | ast.Attribute(value=it, attr="append" | "extend"):
                if it is node:
                    return True
            case ast.Attribute(attr="items" | "keys" | "values" | "get" | "update"):
                return True
            case ast.Starred():
                return True
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[it]) if it is node:
                return True
            case ast.Call(func=ast.Name(id=name), args=given) if node in given:
                is_of_several = name in ("min", "max") and len(given) > 1
                if name in _GOING_THROUGH and not is_of_several and source.is_builtin(name):
                    return True
    return False


def _alike(scope: Scope, text: str) -> Iterator[tuple[ast.AST, ast.AST]]:
    """All that is written the same in the function, each with what is around it."""
    kinds = ast.Name if text.isidentifier() else ast.Attribute | ast.Subscript
    for node in scope.source.walk(scope.function):
        if isinstance(node, kinds) and ast.unparse(node) == text:
            yield node, scope.source.parents[node]
