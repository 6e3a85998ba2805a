"""Replace lists that shrink or grow in front by deques, and copies that grow by `append`."""

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
            found["__l"].id
            for node in scope.own_nodes(ast.Call)
            for pattern in ("__l.pop(0)", "__l.insert(0, __x)")
            if scope.loops(node)
            if (found := match_code(pattern, node)) and isinstance(found["__l"], ast.Name)
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


def find_appends(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``items = items + [x]`` in loops, which copies the list each time."""
    for scope in list_scopes(source):
        for node in scope.own_nodes(ast.stmt):
            found = _match_growth(node)
            if found and scope.loops(node):
                change = _append(scope, node, *found)
                if change:
                    yield change


def _match_growth(node: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    found = match_code("__l = __l + __m", node) or match_code("__l += __m", node)
    return (found["__l"], found["__m"]) if found else None


def _append(
    scope: FunctionScope, node: ast.stmt, items: ast.expr, added: ast.expr
) -> CodeChange | None:
    if not isinstance(items, ast.Name):
        return None
    if not _is_list(scope, added) and not (
        isinstance(node, ast.Assign) and _begins_empty(scope, items.id)
    ):
        return None
    parts = added.elts if isinstance(added, ast.List) else []
    if any(isinstance(part, ast.Starred) for part in parts):
        return None
    if len(parts) != 1 and not isinstance(node, ast.Assign):
        return None
    if not _is_private_list(scope, items.id):
        return None
    code = f"{items.id} += {scope.source.render(added)}"
    if len(parts) == 1:
        code = f"{items.id}.append({scope.source.render(parts[0])})"
    description = f"{items.id} grows in place"
    return CodeChange(description, node.lineno, scope.name, (("replace", node, code),))


def _is_list(scope: FunctionScope, added: ast.expr) -> bool:
    """Return whether an operand surely is a list: other types define what adding them means."""
    match added:
        case ast.List(elts=parts):
            return bool(parts)
        case ast.Call(func=ast.Name(id="list" | "sorted" as name)):
            return scope.source.is_builtin(name)
    return isinstance(added, ast.ListComp)


def _begins_empty(scope: FunctionScope, name: str) -> bool:
    """Return whether a name stands for a list that is empty at first: arrays are added to lists of
    their own length, never to those.
    """
    values = [
        scope.get_value(bound)
        for bound in scope.bindings(name)
        if not _match_growth(scope.source.get_statement(bound))
    ]
    return bool(values) and all(isinstance(value, ast.List) and not value.elts for value in values)


def _is_private_list(scope: FunctionScope, name: str) -> bool:
    """Return whether nobody else can hold the list that is changed in place."""
    if not scope.is_local(name) or scope.parameter(name):
        return False
    for mention in scope.mentions(name):
        statement = scope.source.get_statement(mention)
        growth = _match_growth(statement)
        if growth and isinstance(growth[0], ast.Name) and growth[0].id == name:
            if scope.mentions(name, growth[1]):
                return False
            continue
        match scope.classify(mention):
            case NameUse.BIND:
                if not is_new_list(scope.get_value(mention), scope.source):
                    return False
            case NameUse.OTHER:
                return False
            case NameUse.READ if isinstance(scope.source.parents[mention], ast.For):
                # Changed in place, it would grow while it is iterated.
                loop = scope.source.parents[mention]
                if any(isinstance(node.ctx, ast.Store) for node in scope.mentions(name, loop)):
                    return False
    return True
