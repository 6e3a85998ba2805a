"""Loops by hand for what the interpreter does faster by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import may_change_elsewhere
from fairtrial_codemod.transforms.analysis.iterables import (
    is_sequence,
    is_simple,
    may_stop_early,
)
from fairtrial_codemod.transforms.analysis.loop_ends import mentions
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.uses import Scope


def find_sums(source: Source) -> Iterator[Change]:
    """``total = 0; for x in items: total += x``; likewise a flag that says if there is any."""
    yield from find_each(source, ast.For, _sum)


def _sum(scope: Scope, loop: ast.For) -> Change | None:
    source = scope.source
    block = source.block_of(loop)
    place = block.index(loop) if loop in block else 0
    if loop.orelse or not place or len(loop.body) != 1 or source.is_watched(loop):
        return None
    first, (step,) = block[place - 1], loop.body
    if not isinstance(loop.target, ast.Name) or not scope.is_local(loop.target.id):
        return None
    item = loop.target.id
    if any(each not in set(ast.walk(loop)) for each in scope.mentions(item)):
        return None
    for start, pattern, code, name in (
        ("__t = 0", "__t += __e", "sum", "__e"),
        ("__t = False", "if __c:\n __t = True", "any", "__c"),
        ("__t = True", "if not __c:\n __t = False", "all", "__c"),
    ):
        begun, done = match(start, first), match(pattern, step)
        if begun and done and ast.unparse(begun["__t"]) == ast.unparse(done["__t"]):
            if not isinstance(done["__t"], ast.Name) or not source.is_builtin(code):
                return None
            total = done["__t"].id
            if not is_simple(source, done[name]) or mentions(total, done[name], loop.iter):
                return None
            if not scope.is_local(total):
                return None
            given = _given(scope, code, done[name], item, loop.iter)
            edits: tuple[Edit, ...] = (
                ("replace", first, f"{total} = {code}({given})"),
                ("replace", loop, ""),
            )
            what = f"{total} by {code}()"
            return Change(what, loop.lineno, scope.name, edits)
    return None


def _given(scope: Scope, code: str, each: ast.expr, item: str, items: ast.expr) -> str:
    if code == "sum" and isinstance(each, ast.Name) and each.id == item:
        return scope.source.say(items)
    inner = f"{scope.source.say(each)} for {item} in {ast.unparse(items)}"
    # Iterators must be used up, as by the loop.
    is_whole = code == "sum" or not may_stop_early(scope, each, items)
    return f"[{inner}]" if is_whole else inner


def find_enumerations(source: Source) -> Iterator[Change]:
    """``for i in range(len(items))`` that only reads ``items[i]``."""
    if not all(map(source.is_builtin, ("range", "len", "enumerate"))):
        return
    yield from find_each(source, ast.For, _enumerate)


def _enumerate(scope: Scope, loop: ast.For) -> Change | None:
    source, index = scope.source, loop.target
    found = match("range(len(__l))", loop.iter)
    if not found or not isinstance(found["__l"], ast.Name) or not isinstance(index, ast.Name):
        return None
    items = found["__l"].id
    if not scope.is_local(items) or not scope.is_local(index.id):
        return None
    # Of a dictionary, one goes through the keys; what grows meanwhile has more items than places.
    if not is_sequence(scope, items) or may_change_elsewhere(scope, items, loop):
        return None
    item = source.fresh(f"{items}_item")
    in_iter = set(ast.walk(loop.iter))
    edits: list[Edit] = []
    seen: set[ast.AST] = set()
    for mention in scope.mentions(items, loop):
        if mention in in_iter:
            continue
        match source.parents[mention]:
            case ast.Subscript(slice=ast.Name(id=at), ctx=ast.Load()) as part if at == index.id:
                edits.append(("replace", part, item))
                seen |= {part.slice}
            case _:
                return None
    inside = [each for each in scope.mentions(index.id, loop) if each is not index]
    if not edits or any(not isinstance(each.ctx, ast.Load) for each in inside):
        return None
    if any(each not in seen for each in inside) or _is_needed_after(scope, loop, index.id):
        edits += [
            ("replace", loop.iter, f"enumerate({items})"),
            ("replace", index, f"{index.id}, {item}"),
        ]
        what = f"enumerate({items}) instead of an index"
    else:
        edits += [("replace", loop.iter, items), ("replace", index, item)]
        what = f"{items} is gone through without an index"
    return Change(what, loop.lineno, scope.name, tuple(edits))


def _is_needed_after(scope: Scope, loop: ast.For, index: str) -> bool:
    """Whether the last index may be read outside of the loop: not by loops that set it anew."""
    inside = set(ast.walk(loop))
    for mention in scope.mentions(index):
        is_set_anew = any(
            isinstance(each, ast.For)
            and each is not loop
            and isinstance(each.target, ast.Name)
            and each.target.id == index
            and loop not in set(ast.walk(each))
            for each in scope.source.around(mention)
        )
        if mention not in inside and not is_set_anew:
            return True
    return False
