"""Append to a list and reverse it once, instead of inserting each item at index 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.code_patterns import match_code
from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse, list_scopes
from fairtrial_codemod.analysis.python_facts import is_new_list
from fairtrial_codemod.analysis.source_file import (
    LOOPS,
    CodeChange,
    LoopNode,
    SourceFile,
    TextEdit,
)

_FORMS = ("__l.insert(0, __x)", "__l = [__x] + __l")


def find_prepends(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``path.insert(0, x)`` in loops that do nothing else with `path`."""
    for scope in list_scopes(source):
        done: set[tuple[str, LoopNode]] = set()
        for node in scope.own_nodes(ast.stmt):
            growth = match_prepend(node)
            loop = _find_loop(scope, growth[0], node) if growth else None
            if growth is None or loop is None or (growth[0], loop) in done:
                continue
            done.add((growth[0], loop))
            change = _write_reversal(scope, growth[0], loop)
            if change:
                yield change


def match_prepend(node: ast.stmt) -> tuple[str, ast.expr] | None:
    """Return the name that a statement inserts into at index 0, and the item."""
    for form in _FORMS:
        found = match_code(form, node)
        name = found["__l"] if found else None
        if found and isinstance(name, ast.Name) and not isinstance(found["__x"], ast.Starred):
            return name.id, found["__x"]
    return None


def _find_loop(scope: FunctionScope, name: str, node: ast.stmt) -> LoopNode | None:
    """Return the largest loop around that only inserts into a list or reads its length."""
    best = None
    for loop in reversed(scope.loops(node)):
        if not isinstance(loop, LOOPS):
            break
        if not all(_is_allowed(scope, mention) for mention in scope.mentions(name, loop)):
            break
        best = loop
    return best


def _is_allowed(scope: FunctionScope, mention: ast.Name) -> bool:
    growth = match_prepend(scope.source.get_statement(mention))
    if growth and growth[0] == mention.id and mention not in set(ast.walk(growth[1])):
        return True
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Name(id="len"), args=[it]) if it is mention:
            return scope.source.is_builtin("len")
    return isinstance(mention.ctx, ast.Load) and scope.is_truth_test(mention)


def _write_reversal(scope: FunctionScope, name: str, loop: LoopNode) -> CodeChange | None:
    source = scope.source
    start = _get_start(scope, name, loop)
    if start is None or source.is_error_caught(loop) or loop.orelse:
        return None
    earlier = [
        mention
        for mention in scope.mentions(name)
        if (mention.lineno, mention.col_offset) < (loop.lineno, loop.col_offset)
        if scope.classify(mention) is not NameUse.BIND
    ]
    allowed = (NameUse.READ, NameUse.TEST, NameUse.METHOD)
    if scope.has_alias(name) or any(scope.classify(node) not in allowed for node in earlier):
        return None
    edits: list[TextEdit] = []
    if not isinstance(start, ast.List) or len(start.elts) > 1 or earlier:
        edits.append(("before", loop, f"{name}.reverse()"))
    statements = {source.get_statement(mention) for mention in scope.mentions(name, loop)}
    for statement in sorted(statements - {loop}, key=lambda node: node.lineno):
        growth = match_prepend(statement)
        if growth:
            edits.append(("replace", statement, f"{name}.append({source.render(growth[1])})"))
    edits.append(("after", loop, f"{name}.reverse()"))
    description = f"{name} is appended to and reversed after the loop"
    return CodeChange(description, loop.lineno, scope.name, tuple(edits))


def _get_start(scope: FunctionScope, name: str, loop: LoopNode) -> ast.expr | None:
    """Return the new list that a name stands for when the loop begins, if bound nowhere else."""
    if not scope.is_local(name) or scope.parameter(name):
        return None
    inside = set(ast.walk(loop))
    outer = [bound for bound in scope.bindings(name) if bound not in inside]
    if len(outer) != 1:
        return None
    value = scope.get_value(outer[0])
    if scope.source.get_statement(outer[0]) not in scope.source.get_preceding(loop):
        return None
    return value if is_new_list(value, scope.source) else None
