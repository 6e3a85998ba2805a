"""Loops that look for the largest or smallest: `max` and `min` do so faster."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.loop_ends import (
    has_comment,
    is_begun,
    is_forgotten,
    is_plain,
    is_pure,
    mentions,
    say_target,
)
from fairtrial_codemod.transforms.analysis.matching import match, same
from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import Change, Source
from fairtrial_codemod.transforms.analysis.uses import Scope

_FORMS = {
    "if __e > __b:\n __b = __e": "max",
    "if __b < __e:\n __b = __e": "max",
    "if __e < __b:\n __b = __e": "min",
    "if __b > __e:\n __b = __e": "min",
    "__b = max(__b, __e)": "max",
    "__b = min(__b, __e)": "min",
}


def find_bests(source: Source) -> Iterator[Change]:
    """``for x in items: if x > best: best = x``."""
    if not all(map(source.is_builtin, ("max", "min"))):
        return
    yield from find_each(source, ast.For, _choose)


def _choose(scope: Scope, loop: ast.For) -> Change | None:
    source = scope.source
    if len(loop.body) != 1 or loop.orelse or has_comment(source, loop):
        return None
    for form, name in _FORMS.items():
        found = match(form, loop.body[0])
        if not found or not isinstance(found["__b"], ast.Name):
            continue
        best, value = found["__b"].id, found["__e"]
        if source.is_watched(loop) or not is_plain(loop) or not is_pure(source, value):
            return None
        if not scope.is_local(best) or not is_begun(scope, best, loop):
            return None
        if mentions(best, value, loop.iter, loop.target) or not is_forgotten(scope, loop):
            return None
        code = f"{best} = {name}({_given(scope, loop, best, value)})"
        what = f"{best} by {name}()"
        return Change(what, loop.lineno, scope.name, (("replace", loop, code),))
    return None


def _given(scope: Scope, loop: ast.For, best: str, value: ast.expr) -> str:
    """All that is compared; what was the best before comes first, as in the loop."""
    source = scope.source
    if not same(value, loop.target):
        items = ast.unparse(loop.iter)
        return f"[{best}, *[{source.say(value)} for {say_target(loop)} in {items}]]"
    block = source.block_of(loop)
    before = block[block.index(loop) - 1] if loop in block and block.index(loop) else None
    begun = match("__b = __x[0]", before) if isinstance(before, ast.Assign) else None
    if begun and isinstance(begun["__x"], ast.Name) and ast.unparse(begun["__b"]) == best:
        rest = match("__x[1:]", loop.iter)
        if rest and same(begun["__x"], rest["__x"]):
            return begun["__x"].id
    is_whole = isinstance(loop.iter, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    items = source.say(loop.iter)
    return f"[{best}, *{items}]" if is_whole else f"[{best}, *({items})]"
