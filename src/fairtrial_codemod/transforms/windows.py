"""Parts of a list that are added up anew for each place: differences of running totals.

Of floats, a difference of totals isn't the sum: so the code that is written looks if all numbers
are whole ones, and if the part lies within the list. Else it adds up as before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.equalities import names_in
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    Change,
    Comprehension,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.stability import is_set_before
from fairtrial_codemod.transforms.analysis.uses import Scope

_BUILTINS = ("sum", "all", "type", "int", "list", "tuple", "len", "range")
_PARTS = (ast.Name, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Load)


def find_windows(source: Source) -> Iterator[Change]:
    """``sum(xs[i : i + width])`` in a loop ``for i in range(...)``."""
    if not all(map(source.is_builtin, _BUILTINS)) or not source.can_import("itertools.accumulate"):
        return
    yield from find_each(source, ast.Call, _subtract)


def _subtract(scope: Scope, call: ast.Call) -> Change | None:
    source = scope.source
    found = match("sum(__l[__a:__b])", call)
    around = source.parents[call]
    is_done = isinstance(around, ast.IfExp) and around.orelse is call
    if is_done or not found or not isinstance(found["__l"], ast.Name):
        return None
    items, first, end = found["__l"].id, found["__a"], found["__b"]
    loops = [each for each in scope.loops(call) if is_untouched(scope, items, each)]
    if not loops or not scope.can_precede(loops[0]):
        return None
    before = source.statement_of(loops[0])
    if not is_set_before(scope, items, before):
        return None
    places = {name for each in loops for name in _places(scope, each)}
    if not places & (names_in(first) | names_in(end)):
        return None
    if not _is_number(scope, first, places) or not _is_number(scope, end, places):
        return None
    totals, item = source.fresh(f"{items}_sums"), source.fresh(f"{items}_item")
    are_whole = f"all([type({item}) is int for {item} in {items}])"
    is_known = f"type({items}) in (list, tuple) and {are_whole}"
    made = f"{totals} = list(accumulate({items}, initial=0)) if {is_known} else None"
    one, other = ast.unparse(first), ast.unparse(end)
    is_within = f"{totals} and 0 <= {one} <= {other} < len({totals})"
    code = f"({totals}[{other}] - {totals}[{one}] if {is_within} else {source.say(call)})"
    edits = (("before", before, made), ("replace", call, code))
    what = f"{source.say(call)} is the difference of two totals"
    return Change(what, call.lineno, scope.name, edits, ("itertools.accumulate",))


def _places(scope: Scope, loop: Loop | Comprehension) -> Iterator[str]:
    """The names that go over a range in a loop, and are bound nowhere else in it."""
    inside = set(ast.walk(loop))
    for part in loop.generators if isinstance(loop, COMPREHENSIONS) else [loop]:
        match part:
            case (
                ast.For(target=ast.Name(id=name), iter=given)
                | ast.comprehension(target=ast.Name(id=name), iter=given)
            ):
                bound = [each for each in scope.bindings(name) if each in inside]
                is_range = isinstance(given, ast.Call) and ast.unparse(given.func) == "range"
                if is_range and len(bound) == 1:
                    yield name


def _is_number(scope: Scope, bound: ast.expr, places: set[str]) -> bool:
    """Whether it is one, or fails before anything is added up: an end may be None, a sum not."""
    match bound:
        case ast.Name(id=name):
            return name in places
        case ast.Constant(value=number):
            return type(number) is int
        case ast.BinOp():
            return all(isinstance(each, _PARTS) for each in ast.walk(bound)) and not any(
                isinstance(each, ast.Constant) and type(each.value) is not int
                for each in ast.walk(bound)
            )
    return False
