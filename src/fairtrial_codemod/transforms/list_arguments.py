"""Pass list comprehensions instead of generators to functions that read all items."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, find_at_nodes
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit

_CONSUMERS = {"sum", "max", "min", "tuple", "sorted", "frozenset"}
_UNMOVABLE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def find_list_arguments(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``sum(... for ...)`` and the like; not `any` and `all`, which may stop early."""
    yield from find_at_nodes(source, ast.Call, _write_list)


def _write_list(scope: FunctionScope, call: ast.Call) -> CodeChange | None:
    generator = _get_generator(scope.source, call)
    if generator is None or not _is_plain(generator):
        return None
    edit = _make_edit(scope.source, call, generator)
    description = f"a list for {ast.unparse(call.func)[-20:]}()"
    return CodeChange(description, call.lineno, scope.name, (edit,))


def _get_generator(source: SourceFile, call: ast.Call) -> ast.GeneratorExp | None:
    """Return the generator that a call reads completely."""
    match call:
        case ast.Call(func=ast.Attribute(attr="join"), args=[ast.GeneratorExp() as generator]):
            return None if call.keywords else generator
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as generator, *others]):
            if name not in _CONSUMERS or not source.is_builtin(name):
                return None
            # A key function would run after all values, not in turn with them.
            is_plain = name in ("sorted", "sum") or not (call.keywords or others)
            return generator if is_plain else None
    return None


def _is_plain(generator: ast.GeneratorExp) -> bool:
    """Return whether a list has the same items: nothing suspends or ends the generator."""
    for node in ast.walk(generator):
        if isinstance(node, _UNMOVABLE):
            return False
        match node:
            case ast.comprehension(is_async=1) | ast.Call(func=ast.Name(id="next")):
                return False
            case ast.Attribute(attr="__next__"):
                return False
    return True


def _make_edit(source: SourceFile, call: ast.Call, generator: ast.GeneratorExp) -> TextEdit:
    listed = ast.ListComp(generator.elt, generator.generators)
    start, end = source.get_span(generator)
    code = f"[{source.text[start + 1 : end - 1]}]"
    try:
        is_same = ast.dump(ast.parse(code, mode="eval").body) == ast.dump(listed)
    except (SyntaxError, ValueError):
        is_same = False
    code = code if is_same else ast.unparse(listed)
    is_shared = end == source.get_span(call)[1]  # its parentheses are those of the call
    return "replace", generator, f"({code})" if is_shared else code
