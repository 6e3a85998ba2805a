"""Items that are looked for among those before or after them: their places are noted first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.hashability import is_hashable
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    Change,
    Comprehension,
    Edit,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.stability import is_set_before
from fairtrial_codemod.transforms.analysis.uses import Scope

_BEFORE, _AFTER = "__l[:__i]", "__l[__i + 1:]"


def find_earlier(source: Source) -> Iterator[Change]:
    """``[x for i, x in enumerate(xs) if x not in xs[:i]]``."""
    if not all(map(source.is_builtin, ("enumerate", "range", "len"))):
        return
    for scope in scopes_of(source):
        taken: list[str] = []
        for node in own_nodes(scope, ast.Compare):
            match node.ops:
                case [ast.In() | ast.NotIn()]:
                    change = _note_places(scope, node, taken)
                    if change:
                        yield change


def _note_places(scope: Scope, test: ast.Compare, taken: list[str]) -> Change | None:
    source = scope.source
    (asked,) = test.comparators
    is_before = match(_BEFORE, asked)
    found = is_before or match(_AFTER, asked)
    if not found:
        return None
    items, place = found["__l"], found["__i"]
    if not isinstance(items, ast.Name) or not isinstance(place, ast.Name):
        return None
    loop = _loop_of(scope, test, items.id, place.id)
    if loop is None or not is_hashable(scope, test.left):
        return None
    noted, at, one = (
        source.fresh(f"{items.id}_{word}", *taken)
        for word in ("first" if is_before else "last", "place", "item")
    )
    taken.append(noted)
    note = f"{noted}.setdefault({one}, {at})" if is_before else f"{noted}[{one}] = {at}"
    code = f"{noted} = {{}}\nfor {at}, {one} in enumerate({items.id}):\n    {note}"
    places = f"range({place.id})" if is_before else f"range({place.id} + 1, len({items.id}))"
    edits: tuple[Edit, ...] = (
        ("before", source.statement_of(loop), code),
        ("replace", test.left, f"{noted}[{source.say(test.left)}]"),
        ("replace", asked, places),
    )
    where = "first" if is_before else "last"
    what = f"the {where} place of each item of {items.id} is noted once"
    return Change(what, test.lineno, scope.name, edits)


def _loop_of(
    scope: Scope, test: ast.Compare, items: str, place: str
) -> Loop | Comprehension | None:
    """The largest loop around in which the items stay, if what is looked for is one of them."""
    best, is_item = None, False
    for loop in reversed(scope.loops(test)):
        statement = scope.source.statement_of(loop)
        if not is_untouched(scope, items, loop) or not is_set_before(scope, items, statement):
            break
        is_item = is_item or _counts(scope, loop, test.left, items, place)
        if is_item and scope.can_precede(loop):
            best = loop
    return best


def _counts(
    scope: Scope, loop: Loop | Comprehension, sought: ast.expr, items: str, place: str
) -> bool:
    """Whether a loop goes over items and places, and what is sought is the item at the place."""
    for part in loop.generators if isinstance(loop, COMPREHENSIONS) else [loop]:
        if not isinstance(part, ast.For | ast.comprehension):
            continue
        match part.target:
            case ast.Name(id=index):
                starts = ("", "0, ", "1, ")
                is_over = any(
                    match(f"range({x}len({items}))", part.iter) is not None for x in starts
                )
                is_found = match(f"{items}[{index}]", sought) is not None
                names = {index}
            case ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=item)]):
                is_over = match(f"enumerate({items})", part.iter) is not None
                is_found = isinstance(sought, ast.Name) and sought.id == item
                names = {index, item}
            case _:
                continue
        if is_over and is_found and index == place:
            inside = set(ast.walk(loop))
            bound = [each for name in names for each in scope.bindings(name) if each in inside]
            return len(bound) == len(names)
    return False
