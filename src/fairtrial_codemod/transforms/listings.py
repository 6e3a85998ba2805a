"""Generators that are gone through at once, to the end: lists are made faster."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source

_EATING = {"sum", "max", "min", "tuple", "sorted", "frozenset"}
_ODD = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def find_listings(source: Source) -> Iterator[Change]:
    """``"".join(... for ...)``, ``sum(... for ...)``; not `any` and `all`, which may stop early."""
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.Call):
            given = _given(source, node)
            if given is not None and _is_plain(given):
                edit = _list(source, node, given)
                what = f"a list for {ast.unparse(node.func)[-20:]}()"
                yield Change(what, node.lineno, scope.name, (edit,))


def _given(source: Source, call: ast.Call) -> ast.GeneratorExp | None:
    """The generator that is eaten up."""
    match call:
        case ast.Call(func=ast.Attribute(attr="join"), args=[ast.GeneratorExp() as it]):
            return None if call.keywords else it
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as it, *others]):
            if name not in _EATING or not source.is_builtin(name):
                return None
            # A key would be asked for after all values, not in turn with them.
            is_plain = name in ("sorted", "sum") or not (call.keywords or others)
            return it if is_plain else None
    return None


def _is_plain(given: ast.GeneratorExp) -> bool:
    """Whether a list has the same: nothing waits, nothing ends it from within."""
    for node in ast.walk(given):
        if isinstance(node, _ODD):
            return False
        match node:
            case ast.comprehension(is_async=1) | ast.Call(func=ast.Name(id="next")):
                return False
            case ast.Attribute(attr="__next__"):
                return False
    return True


def _list(source: Source, call: ast.Call, given: ast.GeneratorExp) -> Edit:
    """The same as a list, as it is written if possible."""
    listed = ast.ListComp(given.elt, given.generators)
    code = f"[{_text(source, given)[1:-1]}]"
    try:
        is_same = ast.dump(ast.parse(code, mode="eval").body) == ast.dump(listed)
    except (SyntaxError, ValueError):
        is_same = False
    code = code if is_same else ast.unparse(listed)
    if given.lineno == given.end_lineno or len(call.args) + len(call.keywords) > 1:
        return "replace", given, code
    # Its brackets are the call's, with lines between them: only the call can be found.
    return "replace", call, f"{source.say(call.func)}({code})"


def _text(source: Source, given: ast.GeneratorExp) -> str:
    lines = [line.encode() for line in source.lines[given.lineno - 1 : given.end_lineno]]
    lines[-1] = lines[-1][: given.end_col_offset]
    return b"".join([lines[0][given.col_offset :], *lines[1:]]).decode()
