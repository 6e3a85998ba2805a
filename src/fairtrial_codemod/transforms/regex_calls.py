"""Calls of the functions of `re`, however they are imported, and constants of a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.python_facts import bind_arguments
from fairtrial_codemod.analysis.source_file import SourceFile

ModuleValues = Mapping[str, tuple[int, ast.expr]]
"""The names that a module binds exactly once: the line and the value."""
_PARAMETERS = {
    "compile": ("pattern", "flags"),
    "split": ("pattern", "string", "maxsplit", "flags"),
    "sub": ("pattern", "repl", "string", "count", "flags"),
    "subn": ("pattern", "repl", "string", "count", "flags"),
} | dict.fromkeys(
    ("match", "search", "fullmatch", "findall", "finditer"), ("pattern", "string", "flags")
)


@dataclass(frozen=True, slots=True)
class RegexCall:
    """One call of a function of `re` whose arguments are visible.

    scope: the function that it is in
    call: the call
    method: the name of the function: ``sub``
    module: the name of `re` in this module
    arguments: the arguments by the names of the parameters
    rest: the arguments without pattern and flags, as code
    """

    scope: FunctionScope
    call: ast.Call
    method: str
    module: str
    arguments: Mapping[str, ast.expr]
    rest: str


def find_regex_calls(source: SourceFile) -> Iterator[RegexCall]:
    """Yield every call of a function of `re` in a function, in source order."""
    modules, functions = _read_imports(source)
    if not modules and not functions:
        return
    for scope in list_scopes(source):
        calls = [node for node in source.walk(scope.function) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            match call.func:
                case ast.Attribute(value=ast.Name(id=module), attr=method) if module in modules:
                    line = modules[module]
                case ast.Name(id=name) if name in functions:
                    (method, line), module = functions[name], "re"
                case _:
                    continue
            if _get_function(source, call) is not scope.function:
                continue
            names = _PARAMETERS.get(method, ())
            arguments = bind_arguments(call, names) if names else None
            # The new code is written before the function, so that must come after the import.
            if arguments is None or line >= source.get_top_statement(call).lineno:
                continue
            if not {"pattern", "string", "repl"}.intersection(names) <= arguments.keys():
                continue
            rest = _render_rest(source, call, arguments)
            yield RegexCall(scope, call, method, module, arguments, rest)


def _read_imports(source: SourceFile) -> tuple[dict[str, int], dict[str, tuple[str, int]]]:
    """Return the names of `re` and of its functions, with the lines of their imports."""
    modules: dict[str, int] = {}
    functions: dict[str, tuple[str, int]] = {}
    if "*" in source.binders:
        return modules, functions
    for statement in source.tree.body:
        for alias in getattr(statement, "names", ()):
            if not isinstance(alias, ast.alias):
                continue
            name = alias.asname or alias.name
            if len(source.binders.get(name, ())) != 1:
                continue
            match statement:
                case ast.Import() if alias.name == "re":
                    modules[name] = statement.lineno
                case ast.ImportFrom(module="re", level=0) if source.can_import("re"):
                    functions[name] = (alias.name, statement.lineno)
    return modules, functions


def _get_function(source: SourceFile, node: ast.AST) -> ast.AST | None:
    """Return the innermost function or class around a node, not counting lambdas."""
    around = source.get_scope_node(node)
    while isinstance(around, ast.Lambda):
        around = source.get_scope_node(around)
    return around


def _render_rest(source: SourceFile, call: ast.Call, arguments: Mapping[str, ast.expr]) -> str:
    left_out = (arguments.get("pattern"), arguments.get("flags"))
    texts = [source.render(value) for value in call.args if value not in left_out]
    texts += [
        f"{keyword.arg}={source.render(keyword.value)}"
        for keyword in call.keywords
        if keyword.value not in left_out
    ]
    return ", ".join(texts)


def read_flags(node: ast.expr | None, module: str) -> int | None:
    """Return the value of constant flags, 0 if there are none; None if unknown or ``DEBUG``."""
    match node:
        case None:
            return 0
        case ast.Attribute(value=ast.Name(id=name), attr=flag) if name == module:
            value = getattr(re, flag, None)
            if isinstance(value, re.RegexFlag) and value is not re.DEBUG:
                return int(value)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            one, other = read_flags(left, module), read_flags(right, module)
            return None if one is None or other is None else one | other
    return None


def read_module_values(source: SourceFile) -> ModuleValues:
    """Return the names that a module binds once, at its top."""
    values = {}
    for statement in source.tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if len(source.binders[name]) == 1:
                values[name] = (statement.lineno, value)
    return values


def read_constant(
    node: ast.expr, values: ModuleValues, line: int, depth: int = 5
) -> str | bytes | None:
    """Return the constant text of an expression, also by names that are bound before a line."""
    match node:
        case ast.Constant(value=str(text) | bytes(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one = read_constant(left, values, line, depth)
            other = read_constant(right, values, line, depth)
            if isinstance(one, str) and isinstance(other, str):
                return one + other
            if isinstance(one, bytes) and isinstance(other, bytes):
                return one + other
        case ast.Name(id=name) if name in values and depth:
            bound, value = values[name]
            return read_constant(value, values, bound, depth - 1) if bound < line else None
    return None


def can_compile(pattern: str | bytes, flags: int = 0) -> bool:
    """Return whether a pattern is valid: an invalid one must fail where it is used."""
    try:
        re.compile(pattern, flags)
    except (re.error, ValueError, RecursionError, OverflowError):
        return False
    return True
