"""Calls of the module `re`, however they are spelled, and what a module's names stand for."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.scopes import scopes_of
from fairtrial_codemod.transforms.analysis.source import Function, Source, binds

_PARAMETERS = {
    "compile": ("pattern", "flags"),
    "split": ("pattern", "string", "maxsplit", "flags"),
    "sub": ("pattern", "repl", "string", "count", "flags"),
    "subn": ("pattern", "repl", "string", "count", "flags"),
} | dict.fromkeys(
    ("match", "search", "fullmatch", "findall", "finditer"), ("pattern", "string", "flags")
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a function of `re`, with arguments that are seen.

    scope: the function that it is in
    function: the same
    call: the call
    method: which function: ``sub``
    module: what `re` is called there
    given: the arguments by their names
    rest: the arguments without pattern and flags, as they are written
    """

    scope: str
    function: Function
    call: ast.Call
    method: str
    module: str
    given: Mapping[str, ast.expr]
    rest: str


def find_asked(source: Source) -> Iterator[Asked]:
    """Every call of a function of `re` in a function, in order of the text."""
    modules, functions = _spellings(source)
    if not modules and not functions:
        return
    for scope in scopes_of(source):
        calls = [node for node in source.walk(scope.function) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
            match call.func:
                case ast.Attribute(value=ast.Name(id=module), attr=method) if module in modules:
                    start = modules[module]
                case ast.Name(id=name) if name in functions:
                    (method, start), module = functions[name], "re"
                case _:
                    continue
            if _named_function_of(source, call) is not scope.function:
                continue
            given = bind(call, _PARAMETERS.get(method, ()))
            # What is made before the function is made after the import.
            if given is None or start >= source.top_of(call).lineno:
                continue
            rest = say_rest(source, call, given)
            yield Asked(scope.name, scope.function, call, method, module, given, rest)


def _spellings(source: Source) -> tuple[dict[str, int], dict[str, tuple[str, int]]]:
    """The names of the module and of its functions, with the lines of their imports."""
    counts = Counter(name for node in source.walk(source.tree) for name in binds(node))
    modules: dict[str, int] = {}
    functions: dict[str, tuple[str, int]] = {}
    if "*" in source.bound:
        return modules, functions
    for statement in source.tree.body:
        for alias in getattr(statement, "names", ()):
            if not isinstance(alias, ast.alias) or counts[alias.asname or alias.name] != 1:
                continue
            name = alias.asname or alias.name
            match statement:
                case ast.Import() if alias.name == "re":
                    modules[name] = statement.lineno
                case ast.ImportFrom(module="re", level=0) if source.can_import("re"):
                    functions[name] = (alias.name, statement.lineno)
    return modules, functions


def _named_function_of(source: Source, node: ast.AST) -> ast.AST | None:
    found = source.function_of(node)
    while isinstance(found, ast.Lambda):
        found = source.function_of(found)
    return found


def bind(call: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr] | None:
    """The arguments of a call by name; None if they can't be told."""
    if not names or len(call.args) > len(names):
        return None
    given = dict(zip(names, call.args, strict=False))
    for each in call.keywords:
        if each.arg is None or each.arg in given or each.arg not in names:
            return None
        given[each.arg] = each.value
    required = {"pattern", "string", "repl"}.intersection(names)
    if not required <= given.keys() or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    return given


def say_rest(source: Source, call: ast.Call, given: Mapping[str, ast.expr]) -> str:
    """The arguments of a call without pattern and flags."""
    left = (given.get("pattern"), given.get("flags"))
    said = [source.say(each) for each in call.args if each not in left]
    said += [
        f"{each.arg}={source.say(each.value)}" for each in call.keywords if each.value not in left
    ]
    return ", ".join(said)


def read_flags(node: ast.expr | None, module: str) -> int | None:
    """The number that constant flags are, 0 if there are none; None if they can't be told.

    Nor are they told if a pattern is to be explained each time that it is compiled.
    """
    match node:
        case None:
            return 0
        case ast.Attribute(value=ast.Name(id=name), attr=flag) if name == module:
            known = getattr(re, flag, None)
            if isinstance(known, re.RegexFlag) and known is not re.DEBUG:
                return int(known)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            one, other = read_flags(left, module), read_flags(right, module)
            return None if one is None or other is None else one | other
    return None


def read_values(source: Source) -> dict[str, tuple[int, ast.expr]]:
    """The names that a module binds once and nobody binds again: in which line, and to what."""
    counts = Counter(name for node in source.walk(source.tree) for name in binds(node))
    found = {}
    for statement in source.tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if counts[name] == 1:
                found[name] = (statement.lineno, value)
    return found


def read_constant(
    node: ast.expr, values: Mapping[str, tuple[int, ast.expr]], line: int, depth: int = 5
) -> str | bytes | None:
    """The constant text that an expression is, also by names that are bound before a line."""
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
    """Whether it is a pattern at all: one that isn't must fail where it is used, not before."""
    try:
        re.compile(pattern, flags)
    except (re.error, ValueError, RecursionError, OverflowError):
        return False
    return True
