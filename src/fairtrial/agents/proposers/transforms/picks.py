"""Everything sorted to get at the first of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.source import Change, Source

_BUILTINS = ("sorted", "min", "max")


def find_picks(source: Source) -> Iterator[Change]:
    """``sorted(items)[0]``: `min` finds it in one pass; ``sorted(items)[:3]``: `heapq`."""
    if not all(map(source.is_builtin, _BUILTINS)):
        return
    for qualified, function in source.functions:
        for node in source.walk(function):
            if source.function_of(node) is not function or not isinstance(node, ast.Subscript):
                continue
            picked = _pick(source, node)
            if picked and not _is_guarded(source, node):
                code, imports = picked
                what = f"{code.partition('(')[0]} instead of sorting"
                edit = ("replace", node, code)
                yield Change(what, node.lineno, qualified, (edit,), imports)


def _pick(source: Source, node: ast.Subscript) -> tuple[str, tuple[str, ...]] | None:
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
    given = f"{source.say(items)}{key}"
    match ast.unparse(node.slice):
        case "0":
            return f"{'max' if is_reversed else 'min'}({given})", ()
        case "-1" if not key:  # of equal ones it is the last: with a key one could tell
            return f"{'min' if is_reversed else 'max'}({given})", ()
    return _few(source, node, given, is_reversed)


def _few(
    source: Source, node: ast.Subscript, given: str, is_reversed: bool
) -> tuple[str, tuple[str, ...]] | None:
    match node.slice:
        case ast.Slice(lower=None, upper=ast.Constant(value=int(count)), step=None) if count > 0:
            if source.can_import("heapq"):
                name = "nlargest" if is_reversed else "nsmallest"
                return f"heapq.{name}({count}, {given})", ("heapq",)
    return None


def _is_guarded(source: Source, node: ast.AST) -> bool:
    """Whether an error is expected: of nothing, `min` raises another one than a subscript."""
    return any(isinstance(each, ast.Try) for each in source.around(node))
