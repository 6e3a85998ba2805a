"""Lists that are used at both ends, or grow by copying: deques and `append`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.lives import lives_of
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.uses import Scope, Use, is_fresh_list

_SAME = {"append", "extend", "clear", "count", "remove", "reverse"}
"""Methods that a deque has, too, and that do the same."""
_ASKING = {"len", "list", "tuple", "set", "sum", "max", "min", "sorted", "any", "all", "bool"}


def find_queues(source: Source) -> Iterator[Change]:
    """``queue.pop(0)``: every other element moves up. A deque takes it from the end."""
    if not source.can_import("collections.deque"):
        return
    for scope in scopes_of(source):
        used = [
            found["__l"]
            for node in source.walk(scope.function)
            for pattern in ("__l.pop(0)", "__l.insert(0, __x)")
            if isinstance(node, ast.Call) and scope.loops(node)
            if (found := match(pattern, node)) and isinstance(found["__l"], ast.Name)
        ]
        for name in sorted({each.id for each in used}):
            for life in lives_of(scope, name):
                is_used = any(each in used for each in life.mentions(name))
                change = _make_deque(life, name) if is_used else None
                if change:
                    yield change


def _make_deque(scope: Scope, name: str) -> Change | None:
    if not scope.is_local(name) or scope.parameter(name):
        return None
    edits: list[Edit] = []
    for mention in scope.mentions(name):
        edit = _edit_of(scope, mention)
        if edit is None:
            return None
        edits += edit
    what = f"{name} is a deque"
    line = scope.mentions(name)[0].lineno
    return Change(what, line, scope.name, tuple(edits), ("collections.deque",))


def _edit_of(scope: Scope, mention: ast.Name) -> list[Edit] | None:
    """What becomes of one mention, if a deque can do what the list does there."""
    source, parent = scope.source, scope.source.parents[mention]
    match scope.use(mention):
        case Use.BIND:
            value = scope.assignment(mention)
            if value is None or not is_fresh_list(value, source):
                return None
            copied = match("list(__i)", value)
            is_empty = isinstance(value, ast.List) and not value.elts
            given = "" if is_empty else source.say(copied["__i"] if copied else value)
            code = f"{mention.id} = deque({given})"
            return [("replace", source.statement_of(mention), code)]
        case Use.METHOD:
            return _method_of(scope, mention)
        case Use.TEST:
            return []
        case Use.READ if isinstance(parent, ast.FormattedValue):
            return None  # it would show
        case Use.READ if isinstance(parent, ast.Subscript):
            index = ast.unparse(parent.slice)
            return [] if index in ("0", "-1") else None
        case Use.READ if isinstance(parent, ast.Call):
            return [] if isinstance(parent.func, ast.Name) and parent.func.id in _ASKING else None
        case Use.READ if isinstance(parent, ast.For):
            # A deque can't be changed while it is gone through.
            inside = scope.mentions(mention.id, parent)
            is_changed = any(scope.use(each) is Use.METHOD for each in inside)
            return None if is_changed else []
        case Use.READ:
            return []
    return None


def _method_of(scope: Scope, mention: ast.Name) -> list[Edit] | None:
    method, call = scope.method(mention)
    arguments = [ast.unparse(each) for each in call.args]
    if call.keywords:
        return None
    if method == "pop" and not _is_asked_before(scope, mention):
        return None
    if method == "pop" and arguments == ["0"]:
        return [("replace", call, f"{mention.id}.popleft()")]
    if method == "insert" and len(arguments) == 2 and arguments[0] == "0":
        return [("replace", call, f"{mention.id}.appendleft({scope.source.say(call.args[1])})")]
    is_same = method in _SAME or (method == "pop" and not arguments)
    return [] if is_same else None


def _is_asked_before(scope: Scope, mention: ast.Name) -> bool:
    """Whether a condition around speaks of the queue: an empty deque fails in other words."""
    return any(
        isinstance(each, ast.While | ast.If | ast.IfExp) and scope.mentions(mention.id, each.test)
        for each in scope.source.around(mention)
    )


def find_appends(source: Source) -> Iterator[Change]:
    """``items = items + [x]`` in a loop copies the list each time."""
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.stmt):
            for pattern in ("__l = __l + __m", "__l += __m"):
                found = match(pattern, node)
                if found and scope.loops(node):
                    change = _append(scope, node, found["__l"], found["__m"])
                    if change:
                        yield change


def _append(scope: Scope, node: ast.stmt, items: ast.expr, added: ast.expr) -> Change | None:
    if not isinstance(items, ast.Name) or not _is_list(scope, added):
        return None
    parts = added.elts if isinstance(added, ast.List) else []
    if any(isinstance(each, ast.Starred) for each in parts):
        return None
    is_copied = isinstance(node, ast.Assign)
    if len(parts) != 1 and not is_copied:
        return None
    if not _is_own(scope, items.id):
        return None
    if len(parts) == 1:
        code = f"{items.id}.append({scope.source.say(parts[0])})"
    else:
        code = f"{items.id} += {scope.source.say(added)}"
    what = f"{items.id} grows in place"
    return Change(what, node.lineno, scope.name, (("replace", node, code),))


def _is_list(scope: Scope, added: ast.expr) -> bool:
    """Whether it is a list beyond doubt: anything else may say itself what adding it means."""
    match added:
        case ast.List(elts=parts):
            return bool(parts)
        case ast.Call(func=ast.Name(id="list" | "sorted" as name)):
            return scope.source.is_builtin(name)
    return isinstance(added, ast.ListComp)


def _is_own(scope: Scope, name: str) -> bool:
    """Whether nobody else can hold the list that is changed in place."""
    if not scope.is_local(name) or scope.parameter(name):
        return False
    for mention in scope.mentions(name):
        statement = scope.source.statement_of(mention)
        grows = match("__l = __l + __m", statement) or match("__l += __m", statement)
        if grows and isinstance(grows["__l"], ast.Name) and grows["__l"].id == name:
            if any(
                each.id == name for each in ast.walk(grows["__m"]) if isinstance(each, ast.Name)
            ):
                return False
            continue
        match scope.use(mention):
            case Use.BIND:
                if not is_fresh_list(scope.assignment(mention), scope.source):
                    return False
            case Use.GIVE:
                if not isinstance(statement, ast.Return):
                    return False
            case Use.OTHER:
                return False
            case Use.READ if isinstance(scope.source.parents[mention], ast.For):
                # Changed in place it would be longer while it is gone through.
                if name in _grown_in(scope.source.parents[mention]):
                    return False
    return True


def _grown_in(loop: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
