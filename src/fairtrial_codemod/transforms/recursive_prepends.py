"""Append in recursive functions that insert at index 0, and reverse the list after their calls.

The list is either a parameter that every call hands on, or a variable of the function around::

    def visit(node, order):             def sort(graph):
        for other in graph[node]:           order = []
            visit(other, order)             for node in graph:
        order.insert(0, node)                   visit(node, order)
                                            return order
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse, list_scopes
from fairtrial_codemod.analysis.python_facts import bind_arguments, list_parameters
from fairtrial_codemod.analysis.source_file import (
    SUSPENDING,
    CodeChange,
    SourceFile,
    TextEdit,
)
from fairtrial_codemod.transforms.growth import match_prepend

Filling = tuple[FunctionScope, str, set[ast.expr | None], list[ast.stmt]]
"""The function that makes a list, the name of the list there, the mentions of it that are part of
filling it, and the statements that fill it."""


def find_recursive_prepends(source: SourceFile) -> Iterator[CodeChange]:
    """Find recursive functions that insert at index 0 of a list that another function makes."""
    scopes = list(list_scopes(source))
    for scope in scopes:
        names = {growth[0] for node in scope.own_nodes(ast.stmt) if (growth := match_prepend(node))}
        for name in sorted(names):
            calls = _find_calls(source, scope.function)
            if calls is None or not _is_plain_recursion(scope):
                continue
            change = _write_change(scope, name, calls, scopes)
            if change:
                yield change


def _write_change(
    scope: FunctionScope, name: str, calls: list[ast.Call], scopes: list[FunctionScope]
) -> CodeChange | None:
    source = scope.source
    inside = set(source.walk(scope.function))
    handed_on: set[ast.expr | None] = set()
    if scope.parameter(name) is not None:
        passed = {call: _get_argument(scope, call, name) for call in calls}
        handed_on = {given for call, given in passed.items() if call in inside}
        is_known = scope.is_local(name) and None not in passed.values()
        fillings = list(_list_fillings(passed, scopes, inside)) if is_known else []
    else:
        around = source.get_scope_node(scope.function)
        outer = [other for other in scopes if other.function is around]
        statements = [source.get_statement(call) for call in calls if call not in inside]
        mentions: set[ast.expr | None] = {*scope.mentions(name)}
        fillings = [(other, name, mentions, statements) for other in outer]
    outside = [call for call in calls if call not in inside]
    if not fillings or not all(
        any(source.get_scope_node(call) is filling[0].function for filling in fillings)
        for call in outside
    ):
        return None
    edits = [_get_append(scope, node) for node in scope.mentions(name) if node not in handed_on]
    edits += [_write_reversal(*filling) for filling in fillings]
    written = tuple(edit for edit in edits if edit is not None)
    if len(written) < len(edits):
        return None
    description = f"{scope.function.name} appends to {name}, which is reversed after its calls"
    return CodeChange(description, scope.function.lineno, scope.name, written)


def _list_fillings(
    passed: dict[ast.Call, ast.expr | None], scopes: list[FunctionScope], inside: set[ast.AST]
) -> Iterator[Filling]:
    """Yield the lists that calls from outside of a function hand to it."""
    for caller in scopes:
        own = set(caller.own_nodes(ast.Call)) - inside
        given = {passed[call] for call in passed if call in own}
        for list_name in {node.id if isinstance(node, ast.Name) else "" for node in given}:
            same = [node for node in given if getattr(node, "id", "") == list_name]
            statements = [caller.source.get_statement(node) for node in same if node is not None]
            yield caller, list_name, given, statements


def _is_plain_recursion(scope: FunctionScope) -> bool:
    """Return whether a function calls itself and is no generator, coroutine or decorated."""
    function = scope.function
    nodes = scope.source.walk(function)
    is_recursive = any(
        isinstance(node, ast.Call) and _get_called_name(node) == function.name for node in nodes
    )
    is_plain = isinstance(function, ast.FunctionDef) and not function.decorator_list
    has_stars = function.args.vararg is not None or function.args.kwarg is not None
    is_left = any(isinstance(node, SUSPENDING) for node in nodes)
    return is_recursive and is_plain and not has_stars and not is_left and not scope.is_opaque


def _find_calls(source: SourceFile, function: ast.AST) -> list[ast.Call] | None:
    """Return all calls of a function in its module; None if it is mentioned in other ways."""
    name = getattr(function, "name", "")
    is_method = isinstance(source.parents[function], ast.ClassDef)
    kind = ast.Attribute if is_method else ast.Name
    for node in source.binders[name]:
        is_other_kind = isinstance(source.parents[node], ast.ClassDef) is not is_method
        if node is not function and not is_other_kind:
            return None
    calls: list[ast.Call] = []
    for node in source.walk(source.tree):
        if isinstance(node, kind) and getattr(node, "attr", getattr(node, "id", "")) == name:
            call = source.parents[node]
            if not isinstance(call, ast.Call) or call.func is not node:
                return None
            calls.append(call)
    return calls


def _get_called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _get_argument(scope: FunctionScope, call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call gives to a parameter; None if that isn't visible."""
    names = [parameter.arg for parameter in list_parameters(scope.function)]
    is_method = isinstance(scope.source.parents[scope.function], ast.ClassDef)
    names = names[1:] if is_method and isinstance(call.func, ast.Attribute) else names
    return (bind_arguments(call, names) or {}).get(name)


def _get_append(scope: FunctionScope, mention: ast.Name) -> TextEdit | None:
    """Return the edit that appends instead of inserting at index 0, if a mention does that."""
    statement = scope.source.get_statement(mention)
    growth = match_prepend(statement) if isinstance(statement, ast.Expr) else None
    if not growth or growth[0] != mention.id or scope.mentions(mention.id, growth[1][0]):
        return None
    return "replace", statement, f"{mention.id}.append({scope.source.render(growth[1][0])})"


def _write_reversal(
    caller: FunctionScope, name: str, known: set[ast.expr | None], statements: list[ast.stmt]
) -> TextEdit | None:
    """Reverse a list after the last statement that fills it; None if it may be read before.

    known: the mentions of the list that are part of filling it
    statements: the statements with calls that fill it
    """
    source = caller.source
    if caller.parameter(name) or not statements or not caller.is_closure_local(name):
        return None
    bindings = caller.bindings(name)
    if len(bindings) != 1:
        return None
    value, begun = caller.get_value(bindings[0]), source.get_statement(bindings[0])
    if not isinstance(value, ast.List) or len(value.elts) > 1 or source.is_error_caught(begun):
        return None
    block = source.get_block(begun)
    tops = []
    for statement in statements:
        chain = [statement, *source.ancestors(statement)]
        top = next((node for node in chain if node in block), None)
        if not isinstance(top, ast.Expr | ast.For | ast.While | ast.If):
            return None
        if block.index(top) <= block.index(begun) or getattr(top, "orelse", None):
            return None
        tops.append(top)
    last = max(tops, key=block.index)
    end = last.end_lineno or last.lineno
    for mention in caller.mentions(name):
        if mention in known or mention in bindings:
            continue
        is_own = source.get_scope_node(mention) is caller.function
        if not is_own or mention.lineno <= end or caller.classify(mention) is NameUse.BIND:
            return None
    return "after", last, f"{name}.reverse()"
