"""Whether the value of an expression can be hashed, as far as the function around it shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse
from fairtrial_codemod.analysis.iterables import get_type_names
from fairtrial_codemod.analysis.python_facts import TEXT_METHODS, is_immutable_type, is_new_list
from fairtrial_codemod.analysis.source_file import COMPREHENSIONS, SourceFile

_UNHASHABLE_NODES = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_HASHABLE_RESULTS = frozenset(
    {"abs", "bool", "bytes", "chr", "float", "frozenset", "hash", "id", "int", "len", "ord"}
    | {"repr", "round", "str", "tuple", "type"}
)
"""Builtins with hashable results."""
_COLLECTION_BUILTINS = frozenset(
    {"all", "any", "dict", "enumerate", "filter", "isinstance", "iter", "len", "list", "map"}
    | {"max", "min", "next", "reversed", "set", "sorted", "sum", "tuple", "zip"}
)
"""Builtins that take collections; an argument of `isinstance` may be anything."""
_TELLING_TEXT_METHODS = TEXT_METHODS - {"join", "format", "replace"}
"""Methods that show that their object is a string; other classes have the rest, too."""
_TEXT_RESULTS = TEXT_METHODS - {"split", "rsplit", "splitlines"}
_UNHASHABLE_TYPES = frozenset(
    {"list", "dict", "set", "deque", "defaultdict", "counter", "ordereddict", "mapping"}
    | {"mutablemapping", "mutablesequence", "bytearray"}
)
_COLLECTION_METHODS = frozenset(
    {"append", "extend", "items", "keys", "values", "get", "update", "setdefault"}
)
"""Methods of lists and dictionaries."""


def is_visibly_unhashable(node: ast.expr) -> bool:
    """Return whether an expression makes a list, set or dictionary."""
    return isinstance(node, _UNHASHABLE_NODES)


def is_hashable(scope: FunctionScope, node: ast.expr) -> bool:
    """Return whether a value looks hashable and nothing shows that it is a collection."""
    if not isinstance(node, ast.Constant) and _handles_type_error(scope, node):
        return False
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return True
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return all(is_hashable(scope, part) for part in parts)
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            return is_hashable(scope, one) and is_hashable(scope, other)
        case ast.UnaryOp(operand=one):
            return is_hashable(scope, one)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as parts):
            is_builtin = scope.source.is_builtin("min", "max")
            return is_builtin and all(is_hashable(scope, part) for part in parts)
        case ast.Call(func=ast.Name(id=name)):
            return name in _HASHABLE_RESULTS and scope.source.is_builtin(name)
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _TEXT_RESULTS
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()):
            return is_text(scope, name)
        case ast.Name(id=name):
            return _is_hashable_name(scope, name)
        case ast.Attribute() | ast.Subscript():
            is_slice = isinstance(getattr(node, "slice", None), ast.Slice)
            return not is_slice and not is_used_as_collection(scope, ast.unparse(node))
    return False


def is_validated(source: SourceFile, test: ast.AST) -> bool:
    """Return whether a test rejects unknown values: it may be given anything, lists too."""
    below = test
    for up in source.ancestors(test):
        match up:
            case ast.BoolOp() | ast.UnaryOp():
                below = up
            case ast.Assert():
                return True
            case ast.If(test=it, body=[*_, last]):
                return it is below and isinstance(last, ast.Raise)
            case _:
                return False
    return False


def is_text(scope: FunctionScope, name: str) -> bool:
    """Return whether a name is annotated as a string, or used as only strings can be."""
    parameter = scope.parameter(name)
    annotation = parameter.annotation if parameter else None
    if isinstance(annotation, ast.Name) and annotation.id in ("str", "bytes"):
        return True
    return any(
        scope.classify(mention) is NameUse.METHOD
        and scope.get_method_call(mention)[0] in _TELLING_TEXT_METHODS
        for mention in scope.mentions(name)
    )


def _is_hashable_name(scope: FunctionScope, name: str) -> bool:
    parameter = scope.parameter(name)
    if parameter is not None and is_mutable_type(parameter.annotation):
        return False
    if parameter is not None and is_immutable_type(parameter.annotation):
        return True
    is_hashed = any(_is_hashed(scope.source, mention) for mention in scope.mentions(name))
    if is_hashed or is_text(scope, name):
        return True
    for value in scope.get_values(name):
        if value is not None and (is_visibly_unhashable(value) or is_new_list(value, scope.source)):
            return False
        if isinstance(value, ast.Tuple) and is_hashable(scope, value):
            return True
    return not is_used_as_collection(scope, name)


def is_mutable_type(annotation: ast.expr | None) -> bool:
    """Return whether an annotation mentions lists, sets or dictionaries."""
    names = {"list", "dict", "set", "List", "Dict", "Set", "bytearray", "deque"}
    names |= {"MutableMapping", "MutableSequence"}
    return annotation is not None and any(
        isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in names
        for node in ast.walk(annotation)
    )


def _is_hashed(source: SourceFile, mention: ast.Name) -> bool:
    """Return whether a value is put into a set, or is a key of a dictionary."""
    match source.parents[mention]:
        case ast.Call(func=ast.Attribute(attr="add" | "discard" | "setdefault"), args=[it, *_]):
            return it is mention
        case ast.Dict(keys=keys):
            return mention in keys
        case ast.Set():
            return True
    return False


def is_used_as_collection(scope: FunctionScope, text: str) -> bool:
    """Return whether the function uses an expression as one uses collections."""
    source = scope.source
    for node, parent in _list_same_code(scope, text):
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
            case ast.Call(func=ast.Name(id=name), args=args) if node in args:
                is_one_of_several = name in ("min", "max") and len(args) > 1
                if name in _COLLECTION_BUILTINS and not is_one_of_several:
                    return source.is_builtin(name)
    return False


def _list_same_code(scope: FunctionScope, text: str) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield all expressions of the function with the same code, with their parents."""
    kinds = ast.Name if text.isidentifier() else ast.Attribute | ast.Subscript
    for node in scope.source.walk(scope.function):
        if isinstance(node, kinds) and ast.unparse(node) == text:
            yield node, scope.source.parents[node]


def is_unhashable(scope: FunctionScope, node: ast.expr) -> bool:
    """Return whether the function shows that a value is a list, a set or a dictionary."""
    if _handles_type_error(scope, node):
        return True
    if not isinstance(node, ast.Name):
        return is_visibly_unhashable(node)
    types = get_type_names(scope, node.id)
    if types & _UNHASHABLE_TYPES or _is_item_of_lists(scope, node.id):
        return True
    return any(_shows_collection(scope, mention) for mention in scope.mentions(node.id))


def _handles_type_error(scope: FunctionScope, node: ast.expr) -> bool:
    """Return whether a node is in the handler of a TypeError, which a hash may have raised."""
    for up in scope.source.ancestors(node):
        match up:
            case ast.ExceptHandler(type=None):
                return True
            case ast.ExceptHandler(type=ast.expr() as caught):
                names = {part.id for part in ast.walk(caught) if isinstance(part, ast.Name)}
                return not names.isdisjoint({"TypeError", "Exception", "BaseException"})
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return False
    return False


def _shows_collection(scope: FunctionScope, mention: ast.Name) -> bool:
    match scope.source.parents[mention]:
        case ast.Attribute(attr=method):
            return method in _COLLECTION_METHODS
        case ast.Subscript(value=it, slice=ast.Constant(value=str())):
            return it is mention
        case ast.Subscript(value=it, ctx=ast.Store() | ast.Del()):
            return it is mention
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, types]):
            names = {node.id for node in ast.walk(types) if isinstance(node, ast.Name)}
            return not names.isdisjoint(_UNHASHABLE_TYPES)
    return False


def _is_item_of_lists(scope: FunctionScope, name: str) -> bool:
    """Return whether a name is the item of a loop over ``rows: list[list[int]]``."""
    for node in scope.source.walk(scope.function):
        parts = node.generators if isinstance(node, COMPREHENSIONS) else [node]
        for part in parts:
            match part:
                case (
                    ast.For(target=ast.Name(id=target), iter=ast.Name(id=items))
                    | ast.comprehension(target=ast.Name(id=target), iter=ast.Name(id=items))
                ) if target == name:
                    if _holds_lists(scope, items):
                        return True
    return False


def _holds_lists(scope: FunctionScope, items: str) -> bool:
    parameter = scope.parameter(items)
    annotation = parameter.annotation if parameter else None
    if not isinstance(annotation, ast.Subscript):
        return False
    inner = annotation.slice
    inner = inner.value if isinstance(inner, ast.Subscript) else inner
    return isinstance(inner, ast.Name) and inner.id.lower() in _UNHASHABLE_TYPES
