"""Replace lists that shrink or grow in front by deques."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.code_patterns import match_code
from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse, list_scopes
from fairtrial_codemod.analysis.python_facts import is_new_list
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit

_SAME_METHODS = {"append", "extend", "clear", "count", "remove", "reverse"}
"""Methods that lists and deques share."""
_READING_BUILTINS = {"len", "list", "tuple", "set", "sum", "max", "min", "sorted", "any", "all"}
_READING_BUILTINS |= {"bool"}


def find_deques(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``queue.pop(0)`` and ``queue.insert(0, x)`` in loops, which move all other items."""
    if not source.can_import("collections.deque"):
        return
    for scope in list_scopes(source):
        names = {
            parts["__l"].id
            for node in scope.own_nodes(ast.Call)
            for pattern in ("__l.pop(0)", "__l.insert(0, __x)")
            if scope.loops(node)
            if (parts := match_code(pattern, node)) and isinstance(parts["__l"], ast.Name)
        }
        for name in sorted(names):
            change = _make_deque(scope, name)
            if change:
                yield change


def _make_deque(scope: FunctionScope, name: str) -> CodeChange | None:
    if not scope.is_local(name) or scope.parameter(name):
        return None
    edits: list[TextEdit] = []
    for mention in scope.mentions(name):
        more = _change_mention(scope, mention)
        if more is None:
            return None
        edits += more
    line = scope.mentions(name)[0].lineno
    imports = ("collections.deque",)
    return CodeChange(f"{name} is a deque", line, scope.name, tuple(edits), imports)


def _change_mention(scope: FunctionScope, mention: ast.Name) -> list[TextEdit] | None:
    """Return the edits that let a deque do what the list does; None if it can't."""
    source, parent = scope.source, scope.source.parents[mention]
    match scope.classify(mention):
        case NameUse.BIND:
            value = scope.get_value(mention)
            if value is None or not is_new_list(value, source):
                return None
            copied = match_code("list(__i)", value)
            is_empty = isinstance(value, ast.List) and not value.elts
            items = "" if is_empty else source.render(copied["__i"] if copied else value)
            statement = source.get_statement(mention)
            if isinstance(statement, ast.AnnAssign):  # its annotation says that it is a list
                return [("replace", statement, f"{mention.id} = deque({items})")]
            return [("replace", value, f"deque({items})")]
        case NameUse.METHOD:
            return _change_method(scope, mention)
        case NameUse.TEST:
            return []
        case NameUse.READ if isinstance(parent, ast.FormattedValue):
            return None  # the text would differ
        case NameUse.READ if isinstance(parent, ast.Subscript):
            return [] if ast.unparse(parent.slice) in ("0", "-1") else None
        case NameUse.READ if isinstance(parent, ast.Call):
            is_plain = isinstance(parent.func, ast.Name) and parent.func.id in _READING_BUILTINS
            return [] if is_plain else None
        case NameUse.READ if isinstance(parent, ast.For):
            # A deque can't be changed while it is iterated.
            inside = scope.mentions(mention.id, parent)
            is_changed = any(scope.classify(node) is NameUse.METHOD for node in inside)
            return None if is_changed else []
        case NameUse.READ:
            return []
    return None


def _change_method(scope: FunctionScope, mention: ast.Name) -> list[TextEdit] | None:
    method, call = scope.get_method_call(mention)
    arguments = [ast.unparse(argument) for argument in call.args]
    if call.keywords:
        return None
    if method == "pop" and not _is_tested_before(scope, mention):
        return None
    if method == "pop" and arguments == ["0"]:
        return [("replace", call, f"{mention.id}.popleft()")]
    if method == "insert" and len(arguments) == 2 and arguments[0] == "0":
        return [("replace", call, f"{mention.id}.appendleft({scope.source.render(call.args[1])})")]
    is_same = method in _SAME_METHODS or (method == "pop" and not arguments)
    return [] if is_same else None


def _is_tested_before(scope: FunctionScope, mention: ast.Name) -> bool:
    """Return whether a condition mentions the queue: an empty deque has another message."""
    return any(
        isinstance(up, ast.While | ast.If | ast.IfExp) and scope.mentions(mention.id, up.test)
        for up in scope.source.ancestors(mention)
    )
