"""Regular expressions that are looked up again in each call: compiled once, for the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.source import Change, Source

_MOST = {"match": 2, "search": 2, "fullmatch": 2, "findall": 2, "finditer": 2, "split": 2}
_EXACTLY = {"sub": 3, "subn": 3}


def find_patterns(source: Source) -> Iterator[Change]:
    """``re.compile("...")`` and ``re.sub("...", ...)`` in functions, with constant patterns."""
    if not source.has_import("re"):
        return
    names: dict[str, str] = {}
    for qualified, function in source.functions:
        calls = [node for node in source.walk(function) if isinstance(node, ast.Call)]
        for node in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
            if source.function_of(node) is not function:
                continue
            match node.func:
                case ast.Attribute(value=ast.Name(id="re"), attr=method):
                    written = _write(source, node, method)
                case _:
                    continue
            if written is None:
                continue
            compiled, rest = written
            # Each place defines its own: one may be dropped without the other.
            name = source.fresh("_PATTERN", *names)
            names[name] = compiled
            edits = (
                ("before", source.top_of(node), f"{name} = {compiled}"),
                ("replace", node, f"{name}{rest}"),
            )
            what = f"{name} is compiled once"
            yield Change(what, node.lineno, qualified, edits)


def _write(source: Source, call: ast.Call, method: str) -> tuple[str, str] | None:
    """What is compiled, and what is said of it afterwards."""
    if call.keywords or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    say = source.say
    if method == "compile":
        if not all(isinstance(each, ast.Constant) or _is_flag(each) for each in call.args):
            return None
        return f"re.compile({', '.join(map(say, call.args))})", ""
    count = len(call.args)
    rest = ", ".join(map(say, call.args[1:]))
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if count == _MOST.get(method) or count == _EXACTLY.get(method):
        return f"re.compile({say(call.args[0])})", f".{method}({rest})"
    if method in _MOST and method != "split" and count == 3 and _is_flag(call.args[2]):
        compiled = f"re.compile({say(call.args[0])}, {say(call.args[2])})"
        return compiled, f".{method}({say(call.args[1])})"
    return None


def _is_flag(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="re")):
            return True
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_flag(left) and _is_flag(right)
    return False
