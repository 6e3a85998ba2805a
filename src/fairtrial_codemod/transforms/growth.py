"""Strings and lists that grow in a loop, each time by a copy of all that they hold.

Parts of a string are collected and joined after the loop; a list is appended to in place, and
reversed once if it grows in front.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from fairtrial_codemod.analysis.code_patterns import match_code
from fairtrial_codemod.analysis.function_scope import (
    FunctionScope,
    NameUse,
    find_at_nodes,
    list_scopes,
)
from fairtrial_codemod.analysis.python_facts import is_new_list
from fairtrial_codemod.analysis.source_file import (
    LOOPS,
    CodeChange,
    LoopNode,
    SourceFile,
    TextEdit,
    get_names,
)

Growth = tuple[str, list[ast.expr], bool]
"""The name that a statement adds to, the parts that it adds, and whether it adds in front."""


def _find_growth(
    source: SourceFile,
    match: Callable[[ast.stmt], Growth | None],
    is_allowed: Callable[[FunctionScope, ast.Name], bool],
) -> Iterator[tuple[FunctionScope, str, LoopNode]]:
    """Yield the names that grow in a loop, with the largest loop that allows all their mentions.

    match: says whether a statement adds to a name
    is_allowed: says whether the loop may have a mention of the name
    """
    for scope in list_scopes(source):
        done: set[tuple[str, LoopNode]] = set()
        for node in scope.own_nodes(ast.stmt):
            growth = match(node)
            if growth is None:
                continue
            name = growth[0]
            loop = _find_loop(scope, name, node, is_allowed)
            if loop is None or (name, loop) in done:
                continue
            done.add((name, loop))
            # A handler could read what has grown after an error in the loop.
            is_plain = not loop.orelse and not source.is_error_caught(loop)
            if is_plain and scope.is_local(name) and scope.parameter(name) is None:
                yield scope, name, loop


def _find_loop(
    scope: FunctionScope,
    name: str,
    node: ast.stmt,
    is_allowed: Callable[[FunctionScope, ast.Name], bool],
) -> LoopNode | None:
    def is_fit(loop: ast.AST) -> bool:
        mentions = scope.mentions(name, loop)
        return isinstance(loop, LOOPS) and all(is_allowed(scope, mention) for mention in mentions)

    loop = scope.find_largest_loop(node, is_fit)
    return loop if isinstance(loop, LOOPS) else None


def _list_growing(
    scope: FunctionScope, name: str, loop: LoopNode, match: Callable[[ast.stmt], Growth | None]
) -> Iterator[tuple[ast.stmt, Growth]]:
    """Yield the statements of a loop that add to a name."""
    statements = {scope.source.get_statement(mention) for mention in scope.mentions(name, loop)}
    for statement in sorted(statements, key=lambda node: node.lineno):
        growth = match(statement)
        if growth is not None:
            yield statement, growth


def find_joins(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``text += part`` and ``text = part + text`` in loops that don't read `text`."""
    for scope, name, loop in _find_growth(source, _match_text, _only_adds):
        empty = _get_empty(scope, name)
        growing = list(_list_growing(scope, name, loop, _match_text))
        fronts = {is_front for _, (_, _, is_front) in growing}
        if empty is None or len(fronts) != 1 or not scope.is_assigned_before(name, loop):
            continue
        parts = source.make_name(f"{name}_parts")
        edits: list[TextEdit] = [("before", loop, f"{parts} = [{name}]")]
        for statement, (_, added, _) in growing:
            texts = [source.render(part) for part in added]
            code = f"{parts}.append({texts[0]})"
            edits.append(
                ("replace", statement, f"{parts} += ({', '.join(texts)})" if texts[1:] else code)
            )
        joined = f"{parts}[::-1]" if fronts == {True} else parts
        edits.append(("after", loop, f"{name} = {empty}.join({joined})"))
        description = f"the parts of {name} are joined after the loop"
        yield CodeChange(description, loop.lineno, scope.name, tuple(edits))


def _match_text(node: ast.stmt) -> Growth | None:
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=added):
            return name, [added], False
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value):
            parts = _split_sum(value)
            if len(parts) > 1 and isinstance(parts[0], ast.Name) and parts[0].id == name:
                return name, parts[1:], False
            if isinstance(value.op, ast.Add) and isinstance(value.right, ast.Name):
                return (name, [value.left], True) if value.right.id == name else None
    return None


def _split_sum(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_split_sum(value.left), value.right]
    return [value]


def _only_adds(scope: FunctionScope, mention: ast.Name) -> bool:
    growth = _match_text(scope.source.get_statement(mention))
    return (
        growth is not None
        and growth[0] == mention.id
        and not any(mention.id in get_names(part) for part in growth[1])
    )


def _get_empty(scope: FunctionScope, name: str) -> str | None:
    """Return the empty literal of a name's type if all its values are strings, or all bytes."""
    literals = set()
    for bound in scope.bindings(name):
        if _match_text(scope.source.get_statement(bound)):
            continue
        match scope.get_value(bound):
            case ast.Constant(value=str()) | ast.JoinedStr():
                literals.add('""')
            case ast.Constant(value=bytes()):
                literals.add('b""')
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join")):
                literals.add('""')
            case _:
                return None
    return literals.pop() if len(literals) == 1 else None


def find_prepends(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``path.insert(0, x)`` in loops that do nothing else with `path`."""
    for scope, name, loop in _find_growth(source, match_prepend, _only_prepends):
        start = _get_start(scope, name, loop)
        earlier = [
            mention
            for mention in scope.mentions(name)
            if (mention.lineno, mention.col_offset) < (loop.lineno, loop.col_offset)
            if scope.classify(mention) is not NameUse.BIND
        ]
        allowed = (NameUse.READ, NameUse.TEST, NameUse.METHOD)
        is_hidden = scope.has_alias(name)
        if (
            start is None
            or is_hidden
            or any(scope.classify(node) not in allowed for node in earlier)
        ):
            continue
        edits: list[TextEdit] = []
        if not isinstance(start, ast.List) or len(start.elts) > 1 or earlier:
            edits.append(("before", loop, f"{name}.reverse()"))
        for statement, (_, (item,), _) in _list_growing(scope, name, loop, match_prepend):
            edits.append(("replace", statement, f"{name}.append({source.render(item)})"))
        edits.append(("after", loop, f"{name}.reverse()"))
        description = f"{name} is appended to and reversed after the loop"
        yield CodeChange(description, loop.lineno, scope.name, tuple(edits))


def match_prepend(node: ast.stmt) -> Growth | None:
    """Return the name that a statement inserts into at index 0, and the item."""
    for form in ("__l.insert(0, __x)", "__l = [__x] + __l"):
        match match_code(form, node):
            case {"__l": ast.Name(id=name), "__x": item} if not isinstance(item, ast.Starred):
                return name, [item], True
    return None


def _only_prepends(scope: FunctionScope, mention: ast.Name) -> bool:
    """Return whether a mention adds in front, or reads the length or the truth."""
    growth = match_prepend(scope.source.get_statement(mention))
    if growth and growth[0] == mention.id and mention not in set(ast.walk(growth[1][0])):
        return True
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Name(id="len"), args=[it]) if it is mention:
            return scope.source.is_builtin("len")
    return isinstance(mention.ctx, ast.Load) and scope.is_truth_test(mention)


def _get_start(scope: FunctionScope, name: str, loop: LoopNode) -> ast.expr | None:
    """Return the new list that a name stands for when the loop begins, if bound nowhere else."""
    inside = set(ast.walk(loop))
    outer = [bound for bound in scope.bindings(name) if bound not in inside]
    if len(outer) != 1:
        return None
    value = scope.get_value(outer[0])
    if scope.source.get_statement(outer[0]) not in scope.source.get_preceding(loop):
        return None
    return value if is_new_list(value, scope.source) else None


def find_appends(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``items = items + [x]`` in loops, which copies the list each time."""
    yield from find_at_nodes(source, ast.stmt, _append)


def _match_list(node: ast.stmt) -> Growth | None:
    match match_code("__l = __l + __m", node) or match_code("__l += __m", node):
        case {"__l": ast.Name(id=name), "__m": added}:
            return name, [added], False
    return None


def _append(scope: FunctionScope, node: ast.stmt) -> CodeChange | None:
    growth = _match_list(node)
    if growth is None or not scope.loops(node):
        return None
    name, (added,), _ = growth
    is_copied = isinstance(node, ast.Assign)
    if not _is_list(scope, added) and not (is_copied and _begins_empty(scope, name)):
        return None
    parts = added.elts if isinstance(added, ast.List) else []
    if any(isinstance(part, ast.Starred) for part in parts):
        return None
    if (len(parts) != 1 and not is_copied) or not _is_private_list(scope, name):
        return None
    code = f"{name} += {scope.source.render(added)}"
    if len(parts) == 1:
        code = f"{name}.append({scope.source.render(parts[0])})"
    return CodeChange(f"{name} grows in place", node.lineno, scope.name, (("replace", node, code),))


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
        if not _match_list(scope.source.get_statement(bound))
    ]
    return bool(values) and all(isinstance(value, ast.List) and not value.elts for value in values)


def _is_private_list(scope: FunctionScope, name: str) -> bool:
    """Return whether nobody else can hold the list that is changed in place."""
    if not scope.is_local(name) or scope.parameter(name):
        return False
    for mention in scope.mentions(name):
        statement = scope.source.get_statement(mention)
        growth = _match_list(statement)
        if growth and growth[0] == name:
            if scope.mentions(name, growth[1][0]):
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
