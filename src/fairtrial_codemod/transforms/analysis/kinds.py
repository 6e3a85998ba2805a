"""What names of methods and types tell about what they belong to."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.source import Function

TEXT_METHODS = frozenset(
    {"startswith", "endswith", "find", "rfind", "rindex", "partition", "rpartition", "split"}
    | {"rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title"}
    | {"capitalize", "swapcase", "isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower"}
    | {"isidentifier", "isnumeric", "isdecimal", "encode", "decode", "join", "format", "replace"}
    | {"translate", "zfill", "ljust", "rjust", "center", "removeprefix", "removesuffix"}
    | {"expandtabs", "format_map"}
)
"""What only texts and bytes can do, and what leaves them as they are."""
READING = TEXT_METHODS | frozenset(
    {"count", "index", "get", "keys", "values", "items", "copy", "most_common", "issubset"}
    | {"issuperset", "isdisjoint", "union", "intersection", "difference", "symmetric_difference"}
)
"""Methods of texts, lists, tuples, dictionaries and sets that change nothing."""
_FIXED = frozenset({"str", "bytes", "int", "float", "complex", "bool", "tuple", "frozenset"})
"""Types of which nothing can be changed."""


def is_fixed_type(annotation: ast.expr | None) -> bool:
    """Whether an annotation names a type of which nothing can be changed."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in _FIXED


def is_optional(function: Function, parameter: ast.arg) -> bool:
    """Whether a parameter is None if it isn't given."""
    given = function.args
    placed = [*given.posonlyargs, *given.args]
    defaults: dict[ast.arg, ast.expr | None] = {}
    defaults.update(zip(placed[::-1], given.defaults[::-1], strict=False))
    defaults.update(zip(given.kwonlyargs, given.kw_defaults, strict=True))
    default = defaults.get(parameter)
    return isinstance(default, ast.Constant) and default.value is None
