"""Beginnings of a list that are added up again for each place: running totals."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    Change,
    Comprehension,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.uses import Scope


def find_prefixes(source: Source) -> Iterator[Change]:
    """``sum(xs[:i])`` in a loop over the places of `xs`."""
    if not all(map(source.is_builtin, ("sum", "max", "min", "range", "len", "enumerate"))):
        return
    if not source.can_import("itertools.accumulate"):
        return
    yield from find_each(source, ast.Call, _accumulate)


def _accumulate(scope: Scope, call: ast.Call) -> Change | None:
    for builtin in ("sum", "max", "min"):
        for pattern, step in ((f"{builtin}(__l[:__i])", 0), (f"{builtin}(__l[:__i + 1])", 1)):
            found = match(pattern, call)
            is_known = step or builtin == "sum"  # there is no largest of nothing
            if found and is_known and isinstance(found["__i"], ast.Name):
                return _replace(scope, call, found["__l"], found["__i"], builtin, step)
    return None


def _replace(
    scope: Scope, call: ast.Call, items: ast.expr, index: ast.expr, builtin: str, step: int
) -> Change | None:
    if not isinstance(items, ast.Name) or not isinstance(index, ast.Name):
        return None
    loops = [each for each in scope.loops(call) if is_untouched(scope, items.id, each)]
    if not any(_counts(scope, each, items.id, index.id) for each in loops):
        return None
    if not scope.can_precede(loops[0]):
        return None
    source = scope.source
    name = source.fresh(f"{items.id}_{builtin}s")
    if builtin == "sum":
        made = f"list(accumulate({items.id}, initial=0))"  # what sum() begins with
        place = f"{index.id} + 1" if step else index.id
    else:
        made, place = f"list(accumulate({items.id}, {builtin}))", index.id
    edits = (
        ("before", source.statement_of(loops[0]), f"{name} = {made}"),
        ("replace", call, f"{name}[{place}]"),
    )
    what = f"{source.say(call)} is taken from running values"
    return Change(what, call.lineno, scope.name, edits, ("itertools.accumulate",))


def _counts(scope: Scope, loop: Loop | Comprehension, items: str, index: str) -> bool:
    """Whether a loop lets the index go over the places of the items, and nothing else sets it."""
    inside = set(ast.walk(loop))
    if len([each for each in scope.bindings(index) if each in inside]) != 1:
        return False
    parts = loop.generators if isinstance(loop, COMPREHENSIONS) else [loop]
    for part in parts:
        match part:
            case ast.For(target=target, iter=given) | ast.comprehension(target=target, iter=given):
                pass
            case _:
                continue
        if isinstance(target, ast.Name) and target.id == index:
            return any(
                match(pattern, given) is not None
                for pattern in (f"range(len({items}))", f"range(1, len({items}))")
            )
        if isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            is_ours = target.elts[0].id == index
            if is_ours and match(f"enumerate({items})", given) is not None:
                return True
    return False
