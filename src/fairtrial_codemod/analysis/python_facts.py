"""Facts about Python's builtins, and about single expressions, parameters and annotations."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fairtrial_codemod.analysis.source_file import FunctionNode, SourceFile

PURE_BUILTINS = frozenset(
    {"abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "float"}
    | {"frozenset", "hash", "int", "isinstance", "len", "list", "max", "min", "ord", "pow"}
    | {"range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"}
)
"""Builtins that change nothing."""
LAZY_BUILTINS = frozenset({"enumerate", "reversed", "zip"})
"""Those of them whose result still reads their arguments."""
TEXT_METHODS = frozenset(
    {"startswith", "endswith", "find", "rfind", "rindex", "partition", "rpartition", "split"}
    | {"rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title"}
    | {"capitalize", "swapcase", "isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower"}
    | {"isidentifier", "isnumeric", "isdecimal", "encode", "decode", "join", "format", "replace"}
    | {"translate", "zfill", "ljust", "rjust", "center", "removeprefix", "removesuffix"}
    | {"expandtabs", "format_map"}
)
"""Methods that only strings and bytes have."""
READING_METHODS = TEXT_METHODS | frozenset(
    {"count", "index", "get", "keys", "values", "items", "copy", "most_common", "issubset"}
    | {"issuperset", "isdisjoint", "union", "intersection", "difference", "symmetric_difference"}
)
"""Methods of strings, lists, tuples, dictionaries and sets that change nothing."""
_IMMUTABLE_TYPES = ("str", "bytes", "int", "float", "complex", "bool", "tuple", "frozenset")


def list_parameters(function: FunctionNode) -> list[ast.arg]:
    """Return the parameters that can be given by position or by name."""
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def is_immutable_type(annotation: ast.expr | None) -> bool:
    """Return whether an annotation names an immutable type."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in _IMMUTABLE_TYPES


def get_defaults(function: FunctionNode) -> dict[str, ast.expr]:
    """Return the defaults of parameters by name."""
    arguments = function.args
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    defaults = dict(zip(positional[::-1], arguments.defaults[::-1], strict=False))
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            defaults[parameter.arg] = default
    return defaults


def bind_arguments(
    call: ast.Call, positional: Sequence[str], keyword_only: Sequence[str] = ()
) -> dict[str, ast.expr] | None:
    """Return the arguments of a call by the names of the parameters; None if they aren't visible
    or don't fit.
    """
    is_starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if is_starred or len(call.args) > len(positional):
        return None
    arguments = dict(zip(positional, call.args, strict=False))
    for keyword in call.keywords:
        name = keyword.arg
        if name is None or name in arguments or name not in (*positional, *keyword_only):
            return None
        arguments[name] = keyword.value
    return arguments


def is_optional(function: FunctionNode, parameter: ast.arg) -> bool:
    """Return whether the default of a parameter is None."""
    default = get_defaults(function).get(parameter.arg)
    return isinstance(default, ast.Constant) and default.value is None


def is_new_list(value: ast.expr | None, source: SourceFile) -> bool:
    """Return whether an expression surely makes a new list."""
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.Call(func=ast.Name(id="list" | "sorted" as name)):
            return source.is_builtin(name)
        case ast.Call(func=ast.Attribute(attr="split" | "rsplit" | "splitlines" | "readlines")):
            return True
        case ast.BinOp(left=ast.List(), op=ast.Mult()) | ast.BinOp(right=ast.List(), op=ast.Mult()):
            return True
    return False
