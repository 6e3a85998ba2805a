"""Loops that count: a `Counter` counts without a step of the interpreter for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.loop_ends import (
    has_comment,
    is_forgotten,
    is_plain,
    is_pure,
    mentions,
    say_target,
)
from fairtrial_codemod.transforms.analysis.matching import match, same
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.uses import Scope

_COUNTS = (
    "__d[__k] = __d.get(__k, 0) + 1",
    "if __k in __d:\n __d[__k] += 1\nelse:\n __d[__k] = 1",
    "if __k in __d:\n __d[__k] = __d[__k] + 1\nelse:\n __d[__k] = 1",
    "if __k not in __d:\n __d[__k] = 1\nelse:\n __d[__k] += 1",
    "if __k not in __d:\n __d[__k] = 1\nelse:\n __d[__k] = __d[__k] + 1",
    "try:\n __d[__k] += 1\nexcept KeyError:\n __d[__k] = 1",
)
_COUNTS_BY_ITSELF = ("__d[__k] += 1", "__d[__k] = __d[__k] + 1")
_BEGINNINGS = ("if __k not in __d:\n __d[__k] = 0", "__d.setdefault(__k, 0)")


def find_counters(source: Source) -> Iterator[Change]:
    """``counts = {}; for x in items: counts[x] = counts.get(x, 0) + 1``."""
    if not source.can_import("collections.Counter"):
        return
    if not all(map(source.is_builtin, ("dict", "iter"))):
        return
    yield from find_each(source, ast.For, _count)


def _count(scope: Scope, loop: ast.For) -> Change | None:
    source = scope.source
    body, test = loop.body, None
    found = _counted(body)
    match body:
        case [ast.If(test=condition, body=inner, orelse=[])] if found is None:
            test, found = condition, _counted(inner)
    block = source.block_of(loop)
    place = block.index(loop) if loop in block else 0
    if found is None or not place or loop.orelse or has_comment(source, loop):
        return None
    name, key, is_by_itself = found
    start = _start(source, block[place - 1], name)
    if start is None or (is_by_itself and start == "{}") or not scope.is_local(name):
        return None
    tests = [] if test is None else [test]
    if mentions(name, key, loop.iter, loop.target, *tests) or not is_pure(source, key, *tests):
        return None
    if not is_forgotten(scope, loop) or not is_plain(loop) or source.is_watched(loop):
        return None
    return _write(scope, loop, name, key, test, start)


def _counted(body: list[ast.stmt]) -> tuple[str, ast.expr, bool] | None:
    """The dictionary that counts, what it counts, and if a missing one must be 0 by itself."""
    found = None
    is_by_itself = False
    if len(body) == 1:
        found = next((it for form in _COUNTS if (it := match(form, body[0]))), None)
        if found is None:
            is_by_itself = True
            found = next((it for form in _COUNTS_BY_ITSELF if (it := match(form, body[0]))), None)
    elif len(body) == 2:
        first = next((it for form in _BEGINNINGS if (it := match(form, body[0]))), None)
        found = next((it for form in _COUNTS_BY_ITSELF if (it := match(form, body[1]))), None)
        if not first or not found or not all(same(first[at], found[at]) for at in first):
            return None
    if not found or not isinstance(found["__d"], ast.Name):
        return None
    return found["__d"].id, found["__k"], is_by_itself


def _start(source: Source, first: ast.stmt, name: str) -> str | None:
    """What the dictionary is before the loop: ``{}``, or what is called without elements."""
    match first:
        case (
            ast.Assign(targets=[ast.Name(id=bound)], value=value)
            | ast.AnnAssign(target=ast.Name(id=bound), value=ast.expr() as value)
        ) if bound == name:
            said = ast.unparse(value)
        case _:
            return None
    if said in ("{}", "dict()"):
        return "{}"
    called, _, given = said.partition("(")
    if called in ("Counter", "defaultdict"):
        is_known = called in source.bound and source.can_import(f"collections.{called}")
    elif called in ("collections.Counter", "collections.defaultdict"):
        is_known = source.has_import("collections")
    else:
        return None
    expected = "int)" if called.endswith("defaultdict") else ")"
    return called if is_known and given == expected else None


def _write(
    scope: Scope, loop: ast.For, name: str, key: ast.expr, test: ast.expr | None, start: str
) -> Change:
    source = scope.source
    if same(key, loop.target) and isinstance(key, ast.Name) and test is None:
        # A mapping would be taken for counts.
        given = f"iter({source.say(loop.iter)})"
    else:
        condition = "" if test is None else f" if {source.say(test)}"
        items = ast.unparse(loop.iter)
        given = f"[{source.say(key)} for {say_target(loop)} in {items}{condition}]"
    if start.endswith("Counter"):
        code = f"{start}({given})"
    else:
        outer = "dict(" if start == "{}" else f"{start}(int, "
        code = f"{outer}Counter({given}))"
    block = source.block_of(loop)
    first = block[block.index(loop) - 1]
    assert isinstance(first, ast.Assign | ast.AnnAssign)
    assert first.value is not None
    between = source.lines[(first.end_lineno or first.lineno) - 1 : loop.lineno - 1]
    edits: tuple[Edit, ...] = (("replace", first.value, code), ("replace", loop, ""))
    if any("#" in line for line in between):
        # What is said of the loop stays.
        edits = (("replace", loop, f"{name} = {code}"),)
    imports = () if start.endswith("Counter") else ("collections.Counter",)
    return Change(f"{name} by a Counter", loop.lineno, scope.name, edits, imports)
