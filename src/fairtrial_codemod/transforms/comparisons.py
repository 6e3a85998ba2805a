"""Compare two or three values directly instead of calling `min` or `max`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, find_at_nodes
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile

MAX_VALUES = 3
_SIGNS = {"min": "<", "max": ">"}
_UNMOVABLE = (ast.Starred, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def find_comparisons(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``min(a, b)`` of names, ``cell = min(one, two, three)``, ``return max(...)``."""
    yield from find_at_nodes(source, ast.AST, _compare)


def _compare(scope: FunctionScope, node: ast.AST) -> CodeChange | None:
    if isinstance(node, ast.Call):
        return _compare_names(scope, node)
    if isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.Call):
        return _compare_by_steps(scope, node, node.value)
    return None


def _get_values(call: ast.Call) -> list[ast.expr]:
    """Return the values that a call compares: its arguments, or the items of a list or tuple."""
    match call.args:
        case [ast.List(elts=values) | ast.Tuple(elts=values)]:
            return values
    return call.args


def _get_sign(scope: FunctionScope, call: ast.Call) -> str | None:
    """Return the comparison by which a later value replaces the best so far."""
    match call:
        case ast.Call(func=ast.Name(id="min" | "max" as name), keywords=[]):
            args = _get_values(call)
            parts = (part for argument in args for part in ast.walk(argument))
            if not 2 <= len(args) <= MAX_VALUES:
                return None
            if any(isinstance(part, _UNMOVABLE) for part in parts):
                return None
            return _SIGNS[name] if scope.source.is_builtin(name) else None
    return None


def _compare_names(scope: FunctionScope, call: ast.Call) -> CodeChange | None:
    sign = _get_sign(scope, call)
    if not sign or not _are_two_names(call):
        return None
    one, other = map(ast.unparse, _get_values(call))
    code = f"{other} if {other} {sign} {one} else {one}"
    if not isinstance(scope.source.parents[call], ast.Assign | ast.Return):
        code = f"({code})"
    description = f"{one} and {other} are compared"
    return CodeChange(description, call.lineno, scope.name, (("replace", call, code),))


def _are_two_names(call: ast.Call) -> bool:
    values = _get_values(call)
    is_plain = all(isinstance(value, ast.Name | ast.Constant) for value in values)
    return len(values) == 2 and is_plain


def _compare_by_steps(
    scope: FunctionScope, statement: ast.Assign | ast.Return, call: ast.Call
) -> CodeChange | None:
    """Write what the builtin does: the first value is the best until a later one is better."""
    source, sign = scope.source, _get_sign(scope, call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not sign or _are_two_names(call) or _has_inner_comment(source, statement):
        return None
    if isinstance(target, ast.Tuple | ast.List) or len(getattr(statement, "targets", "1")) != 1:
        return None
    first, *others = _get_values(call)
    is_direct = isinstance(target, ast.Name) and _is_free(scope, target.id, statement, call)
    best = ast.unparse(target) if target and is_direct else source.make_name("best")
    lines = [] if ast.unparse(first) == best else [f"{best} = {source.render(first)}"]
    names: list[str] = []
    for value in others:
        if isinstance(value, ast.Constant) or (
            isinstance(value, ast.Name) and scope.is_local(value.id)
        ):
            names.append(ast.unparse(value))
            continue
        names.append(source.make_name(f"{best}_or", *names))
        lines.append(f"{names[-1]} = {source.render(value)}")
    lines += [f"if {name} {sign} {best}:\n    {best} = {name}" for name in names]
    if target is None:
        lines.append(f"return {best}")
    elif not is_direct:
        lines.append(f"{ast.unparse(target)} = {best}")
    description = f"{len(others) + 1} values are compared one by one"
    edit = ("replace", statement, "\n".join(lines))
    return CodeChange(description, statement.lineno, scope.name, (edit,))


def _is_free(scope: FunctionScope, name: str, statement: ast.stmt, call: ast.Call) -> bool:
    """Return whether a name may be assigned step by step without being read in between."""
    if scope.source.is_error_caught(statement) or not scope.is_local(name):
        return False
    if scope.source.has_comment(statement):
        return False  # the last line of the new code must be a simple statement to keep it
    first, *others = _get_values(call)
    return ast.unparse(first) == name or not any(scope.mentions(name, value) for value in others)


def _has_inner_comment(source: SourceFile, statement: ast.stmt) -> bool:
    """Return whether there is a comment within a statement, not behind it."""
    last = (statement.end_lineno or statement.lineno) - 1
    end = source.lines[last].encode()[: statement.end_col_offset]
    return b"#" in "".join(source.lines[statement.lineno - 1 : last]).encode() + end
