"""Types of iterables as far as annotations and assignments show them."""

from __future__ import annotations

import ast

from fairtrial_codemod.analysis.function_scope import FunctionScope
from fairtrial_codemod.analysis.python_facts import PURE_BUILTINS, READING_METHODS, is_new_list
from fairtrial_codemod.analysis.source_file import SourceFile

DICTIONARIES = frozenset({"dict", "defaultdict", "ordereddict", "counter"})
_BUILTIN_TYPES = frozenset({"list", "dict", "set", "tuple", "frozenset", "str", "bytes", "range"})
_COLLECTION_CLASSES = frozenset({"deque", "defaultdict", "Counter", "OrderedDict"})
_REPEATABLE = (
    DICTIONARIES
    | _BUILTIN_TYPES
    | frozenset({"deque", "mapping", "mutablemapping", "collection", "sequence", "mutablesequence"})
)


def get_type_name(source: SourceFile, value: ast.expr | None) -> str:
    """Return the type that an expression makes: ``list``, ``dict``, ...; "" if unknown."""
    match value:
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.Tuple():
            return "tuple"
        case ast.JoinedStr():
            return "str"
        case ast.Constant(value=constant):
            return type(constant).__name__
        case ast.Call(func=ast.Name(id=name)) if name in _BUILTIN_TYPES:
            return name if source.is_builtin(name) else ""
        case (
            ast.Call(func=ast.Name(id=name))
            | ast.Call(func=ast.Attribute(value=ast.Name(id="collections"), attr=name))
        ) if name in _COLLECTION_CLASSES:
            return name.lower()
    return "list" if is_new_list(value, source) else ""


def get_type_names(scope: FunctionScope, name: str) -> set[str]:
    """Return the types of the values of a local name; "" among them if one is unknown."""
    types = {
        get_type_name(scope.source, scope.get_value(bound))
        for bound in scope.bindings(name)
        if not isinstance(scope.source.parents[bound], ast.AugAssign)  # it keeps the type
    }
    parameter = scope.parameter(name)
    if parameter is not None:
        types.add(get_annotated_type(parameter.annotation))
    return types if scope.is_closure_local(name) else {""}


def get_annotated_type(annotation: ast.expr | None) -> str:
    """Return the type that an annotation names, in lower case and without its parameters."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if isinstance(annotation, ast.Attribute):
        return annotation.attr.lower()
    return annotation.id.lower() if isinstance(annotation, ast.Name) else ""


def is_repeatable(scope: FunctionScope, items: ast.expr) -> bool:
    """Return whether an iterable can be iterated again: it is no iterator."""
    match items:
        case ast.Call(func=ast.Attribute(attr=method)) if method in READING_METHODS:
            return True
        case ast.Subscript(value=value, slice=ast.Slice()):
            return is_repeatable(scope, value)
        case ast.Name(id=name):
            types = get_type_names(scope, name)
            if types and types <= _REPEATABLE:
                return True
            values = [value for value in scope.get_values(name) if value is not None]
            has_known_types = all(get_type_name(scope.source, value) for value in values)
            return has_known_types and any(_is_sized(scope, node) for node in scope.mentions(name))
    return get_type_name(scope.source, items) != ""


def may_stop_early(scope: FunctionScope, condition: ast.expr, items: ast.expr) -> bool:
    """Return whether the last items may stay unread: there is no side effect and no iterator."""
    iterables = [items]
    match items:
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" as name)):
            iterables = items.args if scope.source.is_builtin(name) else iterables
    is_simple = calls_only_pure_builtins(scope.source, condition)
    return is_simple and all(is_repeatable(scope, iterable) for iterable in iterables)


def calls_only_pure_builtins(source: SourceFile, node: ast.expr) -> bool:
    """Return whether an expression calls nothing but pure builtins, and binds nothing."""
    for child in ast.walk(node):
        match child:
            case ast.Call(func=ast.Name(id=name)):
                if name not in PURE_BUILTINS or not source.is_builtin(name):
                    return False
            case ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
                return False
    return True


def _is_sized(scope: FunctionScope, mention: ast.Name) -> bool:
    """Return whether its length or one of its elements is read, which no iterator allows."""
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Name(id="len"), args=[it]) | ast.Subscript(value=it):
            return it is mention
    return False
