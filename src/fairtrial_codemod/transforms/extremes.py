"""The smallest or largest of two or three: comparing them is faster than calling for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.scopes import find_each
from fairtrial_codemod.transforms.analysis.source import Change, Source
from fairtrial_codemod.transforms.analysis.uses import Scope

MOST = 3
_SIGNS = {"min": "<", "max": ">"}
_ODD = (ast.Starred, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def find_extremes(source: Source) -> Iterator[Change]:
    """``min(a, b)`` of two names, ``cell = min(one, two, three)``, ``return max(...)``."""
    yield from find_each(source, ast.AST, _compare_at)


def _compare_at(scope: Scope, node: ast.AST) -> Change | None:
    if isinstance(node, ast.Call):
        return _compare(scope, node)
    if isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.Call):
        return _compare_by_steps(scope, node, node.value)
    return None


def _sign(scope: Scope, call: ast.Call) -> str | None:
    """What says that a later one is better, if it is a call of this kind."""
    match call:
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args, keywords=[]):
            parts = (part for each in args for part in ast.walk(each))
            if not 2 <= len(args) <= MOST or any(isinstance(part, _ODD) for part in parts):
                return None
            return _SIGNS[name] if scope.source.is_builtin(name) else None
    return None


def _compare(scope: Scope, call: ast.Call) -> Change | None:
    sign = _sign(scope, call)
    if not sign or not _are_two_names(call):
        return None
    one, other = map(ast.unparse, call.args)
    code = f"{other} if {other} {sign} {one} else {one}"
    if not isinstance(scope.source.parents[call], ast.Assign | ast.Return):
        code = f"({code})"
    what = f"{one} and {other} are compared"
    return Change(what, call.lineno, scope.name, (("replace", call, code),))


def _are_two_names(call: ast.Call) -> bool:
    is_plain = all(isinstance(each, ast.Name | ast.Constant) for each in call.args)
    return len(call.args) == 2 and is_plain


def _compare_by_steps(
    scope: Scope, statement: ast.Assign | ast.Return, call: ast.Call
) -> Change | None:
    """As the builtin does: the first is the best, until a later one is better."""
    sign = _sign(scope, call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not sign or _are_two_names(call) or _has_comment(scope.source, statement, statement):
        return None
    if isinstance(target, ast.Tuple | ast.List) or len(getattr(statement, "targets", "1")) != 1:
        return None
    source = scope.source
    first, *others = call.args
    is_own = isinstance(target, ast.Name) and _is_free(scope, target.id, statement, call)
    best = ast.unparse(target) if target and is_own else source.fresh("best")
    lines = [f"{best} = {source.say(first)}"]
    if ast.unparse(first) == best:
        lines = []
    names: list[str] = []
    for each in others:
        if _is_steady(scope, each):
            names.append(ast.unparse(each))
            continue
        names.append(source.fresh(f"{best}_or", *names))
        lines.append(f"{names[-1]} = {source.say(each)}")
    lines += [f"if {name} {sign} {best}:\n    {best} = {name}" for name in names]
    if target is None:
        lines.append(f"return {best}")
    elif not is_own:
        lines.append(f"{ast.unparse(target)} = {best}")
    what = f"{len(call.args)} values are compared one by one"
    edit = ("replace", statement, "\n".join(lines))
    return Change(what, statement.lineno, scope.name, (edit,))


def _is_free(scope: Scope, name: str, statement: ast.stmt, call: ast.Call) -> bool:
    """Whether a name may be bound step by step: nobody looks in between."""
    is_watched = scope.source.is_watched(statement)
    if is_watched or not scope.is_local(name) or _has_comment(scope.source, statement, None):
        return False
    first, *others = call.args
    return ast.unparse(first) == name or not any(scope.mentions(name, each) for each in others)


def _is_steady(scope: Scope, node: ast.expr) -> bool:
    """Whether it is the same if it is asked for a little later."""
    if isinstance(node, ast.Name):
        return scope.is_local(node.id)
    return isinstance(node, ast.Constant)


def _has_comment(source: Source, statement: ast.stmt, within: ast.stmt | None) -> bool:
    """Whether a comment would be lost: in a statement, or behind it."""
    last = (statement.end_lineno or statement.lineno) - 1
    end = source.lines[last].encode()[: statement.end_col_offset]
    if within is None:
        return b"#" in source.lines[last].encode()[len(end) :]
    return b"#" in "".join(source.lines[statement.lineno - 1 : last]).encode() + end
