"""Everything sorted to get at the first of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Source

Picked = tuple[str, tuple[str, ...]]
"""The new code, and what it imports."""
Picker = Callable[[Source, ast.Subscript, str, bool], Picked | None]
_BUILTINS = ("sorted", "min", "max")


def find_picks(source: Source) -> Iterator[Change]:
    """``sorted(items)[0]``: one pass finds the smallest; ``sorted(items)[:1]``, too."""
    return _find(source, _pick)


def find_few(source: Source) -> Iterator[Change]:
    """``sorted(items)[:3]``: `heapq` keeps three of them. Of few items, sorting is faster."""
    return _find(source, _few)


def _find(source: Source, pick: Picker) -> Iterator[Change]:
    if not all(map(source.is_builtin, _BUILTINS)):
        return
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.Subscript):
            sort = _sorting(source, node)
            picked = pick(source, node, *sort) if sort else None
            if picked and not source.is_watched(node):
                code, imports = picked
                what = f"{code.partition('(')[0]} instead of sorting"
                edit = ("replace", node, code)
                yield Change(what, node.lineno, scope.name, (edit,), imports)


def _sorting(source: Source, node: ast.Subscript) -> tuple[str, bool] | None:
    """What is sorted, as arguments, and whether the largest come first."""
    if not isinstance(node.ctx, ast.Load):
        return None
    match node.value:
        case ast.Call(func=ast.Name(id="sorted"), args=[items], keywords=keywords):
            pass
        case _:
            return None
    names = {each.arg: each.value for each in keywords}
    if isinstance(items, ast.Starred) or not names.keys() <= {"key", "reverse"}:
        return None
    reverse = names.get("reverse")
    if reverse is not None and not isinstance(reverse, ast.Constant):
        return None
    is_reversed = isinstance(reverse, ast.Constant) and bool(reverse.value)
    key = f", key={source.say(names['key'])}" if "key" in names else ""
    return f"{source.say(items)}{key}", is_reversed


def _pick(source: Source, node: ast.Subscript, given: str, is_reversed: bool) -> Picked | None:
    assert isinstance(node.value, ast.Call)
    has_key = any(each.arg == "key" for each in node.value.keywords)
    match ast.unparse(node.slice):
        case ":1":
            return _keep(source, 1, given, is_reversed)
        # Of nothing, `min` would raise another error than a subscript.
        case "0":
            return _first(_keep(source, 1, given, is_reversed))
        case "-1" if not has_key and all(map(source.is_builtin, ("list", "reversed"))):
            # Of equal ones it is the last.
            return _first(_keep(source, 1, f"reversed(list({given}))", not is_reversed))
    return None


def _first(picked: Picked | None) -> Picked | None:
    return (f"{picked[0]}[0]", picked[1]) if picked else None


def _few(source: Source, node: ast.Subscript, given: str, is_reversed: bool) -> Picked | None:
    match node.slice:
        case ast.Slice(lower=None, upper=ast.Constant(value=int(count)), step=None) if count > 1:
            return _keep(source, count, given, is_reversed)
    return None


def _keep(source: Source, count: int, given: str, is_reversed: bool) -> Picked | None:
    if not source.can_import("heapq"):
        return None
    name = "nlargest" if is_reversed else "nsmallest"
    return f"heapq.{name}({count}, {given})", ("heapq",)
