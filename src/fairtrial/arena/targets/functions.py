"""Functions of a source file: where they are, of what kind, and the file with recorders on them."""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_BELOW = {"staticmethod", "classmethod"}
"""Decorators whose result is no function: a recorder goes below them."""
_MAKERS = {"__init__", "__new__", "__del__", "__post_init__"}
_PROPERTIES = {"property", "cached_property", "setter", "getter", "deleter"}


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """A function or class of a source file.

    name: `function` or `Class.method`; for one inside a function `outer.<locals>.inner`
    kind: `function`, `method`, `class`, `property`, `nested`
    first, last: its first and last line, with decorators; lines count from 1
    line: the line of its `def`
    record_line: the line before which a recorder's decorator goes
    indent: the indentation of that line
    owner: the class of a class method; else empty
    is_async: whether it is a coroutine function
    has_hints: whether all of its parameters have type hints
    parameters: its parameters that have no default, with their hints, without `self` and `cls`
    positions: the names of the parameters that a recorded call's arguments stand for, in order
    doc: the first line of its docstring
    """

    name: str
    kind: str
    first: int
    last: int
    line: int
    record_line: int = 0
    indent: str = ""
    owner: str = ""
    is_async: bool = False
    has_hints: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    positions: tuple[str, ...] = ()
    doc: str = ""

    @property
    def makes_itself(self) -> bool:
        """Whether it makes or ends the object that it is called on."""
        return self.kind == "method" and self.name.rpartition(".")[2] in _MAKERS

    @property
    def can_be_recorded(self) -> bool:
        """Whether its calls can be recorded and made again."""
        return self.kind in ("function", "method") and not self.makes_itself


def parse_source(content: bytes) -> ast.Module:
    """Parse a source file; raises SyntaxError or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(content)


def list_functions(content: bytes) -> list[SourceFunction]:
    """Return all functions and classes of a source file; raises SyntaxError or ValueError."""
    lines = content.decode("utf-8", "replace").splitlines()
    body = parse_source(content).body
    return list(_walk(body, "", "module", lines, _list_aliases(body)))


def _list_aliases(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Return the values of the names that a module defines, which type hints may use."""
    aliases: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            aliases[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            aliases[node.target.id] = node.value
        elif isinstance(node, ast.If):
            aliases = {**_list_aliases(node.body), **aliases}
    return aliases


class _Expander(ast.NodeTransformer):
    """Puts the values of aliases into a type hint."""

    def __init__(self, aliases: Mapping[str, ast.expr]) -> None:
        self.aliases, self.left = aliases, 20

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name, and the names in its value."""
        value = self.aliases.get(node.id)
        if value is None or self.left <= 0:
            return node
        self.left -= 1
        expanded: ast.expr = self.visit(copy.deepcopy(value))
        return expanded


def _walk(
    body: list[ast.stmt],
    prefix: str,
    inside: str,
    lines: list[str],
    aliases: Mapping[str, ast.expr],
) -> Iterator[SourceFunction]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _describe(node, prefix, inside, lines, aliases)
            yield from _walk(
                node.body, f"{prefix}{node.name}.<locals>.", "function", lines, aliases
            )
        elif isinstance(node, ast.ClassDef):
            name = f"{prefix}{node.name}"
            yield SourceFunction(name, "class", node.lineno, node.end_lineno or 0, node.lineno)
            within = "class" if inside != "function" else "function"
            yield from _walk(node.body, f"{name}.", within, lines, aliases)
        else:
            for part in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(node, part, [])
                for item in inner if isinstance(inner, list) else ():
                    if isinstance(item, ast.ExceptHandler):
                        yield from _walk(item.body, prefix, inside, lines, aliases)
                    elif isinstance(item, ast.stmt):
                        yield from _walk([item], prefix, inside, lines, aliases)


def _describe(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    prefix: str,
    inside: str,
    lines: list[str],
    aliases: Mapping[str, ast.expr],
) -> SourceFunction:
    names = [_last_name(decorator) for decorator in node.decorator_list]
    kind = {"module": "function", "class": "method", "function": "nested"}[inside]
    if kind == "method" and _PROPERTIES & set(names):
        kind = "property"
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    record_line = first
    for decorator, name in zip(node.decorator_list, names, strict=True):
        if name in _BELOW:
            record_line = (decorator.end_lineno or decorator.lineno) + 1
    text = lines[node.lineno - 1] if node.lineno <= len(lines) else ""
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    positions = tuple(parameter.arg for parameter in parameters)
    owner = prefix.rstrip(".") if kind == "method" and "classmethod" in names else ""
    if kind == "method" and "staticmethod" not in names:
        parameters = parameters[1:]
    required = len(parameters) - len(arguments.defaults)
    hinted = tuple(
        (parameter.arg, _spell_hint(parameter.annotation, aliases))
        for parameter in parameters[: max(required, 0)]
    )
    doc = (ast.get_docstring(node) or "").strip().split("\n")[0]
    return SourceFunction(
        f"{prefix}{node.name}",
        kind,
        first,
        node.end_lineno or node.lineno,
        node.lineno,
        record_line,
        text[: len(text) - len(text.lstrip())],
        owner,
        isinstance(node, ast.AsyncFunctionDef),
        bool(hinted) and all(hint for _, hint in hinted),
        hinted,
        positions[1:] if owner else positions,
        doc,
    )


def _spell_hint(hint: ast.expr | None, aliases: Mapping[str, ast.expr]) -> str:
    return ast.unparse(_Expander(aliases).visit(copy.deepcopy(hint))) if hint else ""


def _last_name(decorator: ast.expr) -> str:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _own_parts(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions inside of it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield node
            yield from _own_parts(node)


def add_recorders(content: bytes, numbers: Mapping[SourceFunction, int], module: str) -> bytes:
    """Return a source file in which functions have the recorder's decorator.

    numbers: the functions, with the numbers by which their calls are told apart
    module: the name by which candidates import the file
    """
    lines = content.splitlines(keepends=True)
    for function in sorted(numbers, key=lambda item: -item.record_line):
        arguments = f"{numbers[function]}, {module!r}, {function.owner!r}"
        decorator = f'@__import__("fairtrial_recorder").record({arguments})\n'
        lines.insert(function.record_line - 1, (function.indent + decorator).encode())
    return b"".join(lines)


def has_doctests(content: bytes) -> bool:
    """Return whether a file has examples in docstrings."""
    return b">>>" in content


def has_main_guard(content: bytes) -> bool:
    """Return whether a file tests whether it is run as a script."""
    return any(map(_is_main_guard, _parse_body(content)))


def is_script(content: bytes) -> bool:
    """Return whether a file does something when it is run as a script.

    It has a guard for that, or calls its own functions or classes at its top level, as exported
    notebooks do.
    """
    body = _parse_body(content)
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in body if isinstance(node, defined)}
    return any(
        _is_main_guard(node) or (not isinstance(node, defined) and _calls_any(node, names))
        for node in body
    )


def _parse_body(content: bytes) -> list[ast.stmt]:
    try:
        return parse_source(content).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def _calls_any(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement of a module calls one of some functions when it is run."""
    parts = [statement, *_own_parts(statement)]
    calls = (part.func for part in parts if isinstance(part, ast.Call))
    return any(isinstance(name, ast.Name) and name.id in names for name in calls)
