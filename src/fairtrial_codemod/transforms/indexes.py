"""Lists that are searched for each element of another: an index is made first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import LOOPS, Change, Edit, Source
from fairtrial_codemod.transforms.analysis.unhashables import is_unhashable
from fairtrial_codemod.transforms.analysis.uses import Scope


def find_counts(source: Source) -> Iterator[Change]:
    """``items.count(x)`` and ``items.index(x)`` in a loop over the items."""
    yield from find_each(source, ast.Call, _ask_index)


def _ask_index(scope: Scope, call: ast.Call) -> Change | None:
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
    loops = [each for each in scope.loops(call) if is_untouched(scope, name, each)]
    if not loops or not scope.can_precede(loops[0]):
        return None
    if is_unhashable(scope, sought) or not _is_of(scope, sought, name, call):
        return None
    before = source.statement_of(loops[0])
    if method == "count":
        if not source.can_import("collections.Counter"):
            return None
        index = source.fresh(f"{name}_counts")
        edits: tuple[Edit, ...] = (
            ("before", before, f"{index} = Counter({name})"),
            ("replace", call, f"{index}[{source.say(sought)}]"),
        )
        what = f"{name} is counted once"
        return Change(what, call.lineno, scope.name, edits, ("collections.Counter",))
    if not all(map(source.is_builtin, ("enumerate", "reversed", "len"))):
        return None
    index, place, item = (source.fresh(f"{name}_{word}") for word in ("places", "place", "item"))
    code = (
        f"{index} = {{}}\n"
        f"for {place}, {item} in enumerate({name}):\n"
        f"    {index}.setdefault({item}, {place})"
    )
    edits = (("before", before, code), ("replace", call, f"{index}[{source.say(sought)}]"))
    what = f"the first place of each item of {name} is noted once"
    return Change(what, call.lineno, scope.name, edits)


def _is_of(scope: Scope, sought: ast.expr, name: str, call: ast.Call) -> bool:
    """Whether what is sought is surely one of the items: then a text is asked for characters."""
    if not isinstance(sought, ast.Name):
        return False
    for loop in scope.loops(call):
        generators: list[ast.For | ast.comprehension] = []
        if isinstance(loop, ast.For):
            generators.append(loop)
        elif not isinstance(loop, LOOPS):
            generators += loop.generators
        for each in generators:
            if isinstance(each.target, ast.Name) and each.target.id == sought.id:
                bound = [node for node in scope.bindings(sought.id) if node in set(ast.walk(loop))]
                is_kept = len(bound) == 1
                return is_kept and _iterates(scope, each.iter, name)
    return False


def _iterates(scope: Scope, given: ast.expr, name: str) -> bool:
    match given:
        case ast.Name(id=it):
            return it == name
        case ast.Call(
            func=ast.Name(id="set" | "sorted" | "list" as builtin), args=[ast.Name(id=it)]
        ):
            return it == name and scope.source.is_builtin(builtin)
    return False
