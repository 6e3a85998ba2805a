"""Find out whether a Python file can read its own source, line numbers or names of variables.

Two candidates that differ only in these may share a verdict, but only if nothing in them can tell
the difference. The analysis is conservative: a file passes if it uses nothing but names, attributes
and modules that are known to be harmless. Unchanged modules of the project are trusted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

_MODULES = frozenset(
    (
        *("__future__", "abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib"),
        *("copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"),
        *("hashlib", "heapq", "itertools", "json", "math", "numbers", "operator", "random", "re"),
        *("statistics", "string", "struct", "textwrap", "time", "typing", "unicodedata", "zlib"),
    )
)
"""Modules whose functions don't reveal the code that calls them."""
_NAMES = frozenset(
    (
        *("open", "eval", "exec", "compile", "getattr", "setattr", "delattr", "vars", "locals"),
        *("globals", "dir", "help", "breakpoint", "input"),
        *("attrgetter", "methodcaller", "get_type_hints", "Template", "Formatter"),
        *("ExitStack", "AsyncExitStack"),
    )
)
"""Functions that reach attributes, variables or files by names that are not in the syntax tree."""
_DUNDERS = frozenset(
    (
        *("__init__", "__name__", "__class__", "__len__", "__iter__", "__next__", "__contains__"),
        *("__getitem__", "__setitem__", "__hash__", "__eq__", "__lt__", "__call__", "__enter__"),
        *("__exit__", "__new__", "__post_init__", "__all__", "__debug__", "__add__", "__mul__"),
    )
)
_GET_EXCEPTIONS = ("__exit__", "__aexit__", "throw")
"""Methods that are called with an exception, whose text may name variables."""
_FRAME_ATTRIBUTE = re.compile(r"(f|tb|co|gi|cr|ag)_\w")
_FORMAT_ATTRIBUTE = re.compile(r"[.\[](_|(f|tb|co|gi|cr|ag)_)")
_PLAIN_ERRORS = frozenset(
    (
        *("ArithmeticError", "AttributeError", "ImportError", "IndexError", "KeyError"),
        *("LookupError", "OSError", "OverflowError", "RecursionError", "StopIteration"),
        *("TypeError", "UnicodeError", "ValueError", "ZeroDivisionError"),
    )
)
"""Exceptions whose messages name no local variables."""


def may_see_source(tree: ast.Module, packages: Collection[str] = ()) -> bool:
    """Return whether code may read its source, line numbers, frames or names of variables.

    packages: top-level modules of the project, which may be imported
    """
    return any(_is_revealing(node, packages) for node in ast.walk(tree))


def _is_revealing(node: ast.AST, packages: Collection[str]) -> bool:
    if isinstance(node, ast.Import):
        return not all(_is_harmless(alias.name, packages) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names]
        is_known = node.level > 0 or _is_harmless(node.module or "", packages)
        return not is_known or any(name in _NAMES or name == "*" for name in names)
    if isinstance(node, ast.Name):
        is_dunder = node.id.startswith("__") and isinstance(node.ctx, ast.Load)
        return node.id in _NAMES or (is_dunder and node.id not in _DUNDERS)
    if isinstance(node, ast.Attribute):
        return _is_revealing_attribute(node)
    if isinstance(node, ast.MatchClass):
        return any(map(_is_revealing_name, node.kwd_attrs))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name in _GET_EXCEPTIONS
    if isinstance(node, ast.ExceptHandler):
        return node.name is not None and not _catches_plain_errors(node.type)
    return False


def _is_harmless(module: str, packages: Collection[str]) -> bool:
    top = module.partition(".")[0]
    return top in _MODULES or top in packages


def _is_revealing_attribute(node: ast.Attribute) -> bool:
    if node.attr in ("format", "format_map"):  # a template may name attributes
        template = node.value.value if isinstance(node.value, ast.Constant) else None
        return not isinstance(template, str) or bool(_FORMAT_ATTRIBUTE.search(template))
    return _is_revealing_name(node.attr)


def _is_revealing_name(name: str) -> bool:
    """Return whether an attribute of this name may reveal code, frames or variables."""
    if name.startswith("__"):
        return name not in _DUNDERS
    return name in _NAMES or bool(_FRAME_ATTRIBUTE.match(name))


def _catches_plain_errors(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return all(isinstance(item, ast.Name) and item.id in _PLAIN_ERRORS for item in kinds)
