"""Index a list once, before a loop that searches it by `count` or `index` in each round."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.effects import is_left_meanwhile, is_unchanged
from fairtrial_codemod.analysis.function_scope import FunctionScope, find_at_nodes
from fairtrial_codemod.analysis.hashability import is_hashable, is_text, is_unhashable
from fairtrial_codemod.analysis.iterables import get_type_names
from fairtrial_codemod.analysis.source_file import (
    LOOPS,
    CodeChange,
    ComprehensionNode,
    LoopNode,
    SourceFile,
    TextEdit,
)

_NO_LISTS = {"str", "bytes", "deque", "range"}


def find_scan_indexes(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``items.count(x)`` and ``items.index(x)`` in loops that don't change `items`."""
    yield from find_at_nodes(source, ast.Call, _write_index)


def _write_index(scope: FunctionScope, call: ast.Call) -> CodeChange | None:
    source = scope.source
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="count" | "index" as method),
            args=[sought],
            keywords=[],
        ):
            pass
        case _:
            return None
    parent = source.parents[call]
    if isinstance(parent, ast.IfExp) and isinstance(parent.body, ast.Subscript):
        return None  # an index is asked first already
    loop = _find_loop(scope, call, name)
    if not isinstance(sought, ast.Name | ast.Constant | ast.Attribute | ast.Subscript):
        return None  # it is evaluated twice
    if is_unhashable(scope, sought) or not is_hashable(scope, sought):
        return None
    if loop is None or not _may_be_list(scope, name):
        return None
    is_item = _is_item(scope, sought, name, call)
    if method == "index" and not is_item and source.is_error_caught(call):
        return None  # the error that says that there is none may be expected
    if not source.is_builtin("enumerate", "type", "list", "tuple", "TypeError"):
        return None
    wish = f"{name}_counts" if method == "count" else f"{name}_places"
    index, item = source.make_name(wish), source.make_name(f"{name}_item")
    text = source.render(sought)
    if method == "count":
        code = f"for {item} in {name}:\n    {index}[{item}] = {index}.get({item}, 0) + 1"
    else:
        place = source.make_name(f"{name}_place")
        code = f"for {place}, {item} in enumerate({name}):\n"
        code += f"    {index}.setdefault({item}, {place})"
    answer = f"{index}[{text}]"
    if not is_item:
        inner = code.replace("\n", "\n        ")
        code = f"if type({name}) in (list, tuple):\n    try:\n        {inner}\n"
        code += f"    except TypeError:\n        {index} = {{}}"
        answer = f"({answer} if {text} in {index} else {name}.{method}({text}))"
    edits: tuple[TextEdit, ...] = (
        ("before", source.get_statement(loop), f"{index} = {{}}\n{code}"),
        ("replace", call, answer),
    )
    what = "counts" if method == "count" else "first places"
    description = f"the {what} of the items of {name} are computed once"
    return CodeChange(description, call.lineno, scope.name, edits)


def _find_loop(
    scope: FunctionScope, call: ast.Call, name: str
) -> LoopNode | ComprehensionNode | None:
    """Return the largest loop around a search in which the list stays the same."""
    best = None
    for loop in reversed(scope.loops(call)):
        if is_left_meanwhile(scope, loop) or not is_unchanged(scope, name, loop):
            break
        if not scope.is_assigned_before(name, scope.source.get_statement(loop)):
            break
        if scope.can_insert_before(loop):
            best = loop
    return best


def _may_be_list(scope: FunctionScope, name: str) -> bool:
    return not is_text(scope, name) and get_type_names(scope, name).isdisjoint(_NO_LISTS)


def _is_item(scope: FunctionScope, sought: ast.expr, name: str, call: ast.Call) -> bool:
    """Return whether the sought value surely is an item: it comes from a loop over the list."""
    if not isinstance(sought, ast.Name):
        return False
    for loop in scope.loops(call):
        parts = loop.generators if not isinstance(loop, LOOPS) else [loop]
        for part in parts:
            if isinstance(part, ast.While):
                continue
            if isinstance(part.target, ast.Name) and part.target.id == sought.id:
                inside = set(ast.walk(loop))
                count = sum(bound in inside for bound in scope.bindings(sought.id))
                return count == 1 and _iterates(scope, part.iter, name)
    return False


def _iterates(scope: FunctionScope, iterable: ast.expr, name: str) -> bool:
    match iterable:
        case ast.Name(id=iterated):
            return iterated == name
        case ast.Call(
            func=ast.Name(id="set" | "sorted" | "list" as builtin), args=[ast.Name(id=iterated)]
        ):
            return iterated == name and scope.source.is_builtin(builtin)
    return False
