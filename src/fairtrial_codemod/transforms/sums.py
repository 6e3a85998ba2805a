"""Replace loops that only add up or test items by `sum`, `any` and `all`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.code_patterns import match_code
from fairtrial_codemod.analysis.function_scope import FunctionScope, find_at_nodes
from fairtrial_codemod.analysis.iterables import calls_only_pure_builtins, may_stop_early
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit, get_names

_FORMS = (
    ("__t = 0", "__t += __e", "sum"),
    ("__t = False", "if __e:\n __t = True", "any"),
    ("__t = True", "if not __e:\n __t = False", "all"),
)
"""The statement before the loop, the body of the loop, and the builtin."""


def find_sums(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``total = 0; for x in items: total += x``, and flags that are set in a loop."""
    yield from find_at_nodes(source, ast.For, _sum)


def _sum(scope: FunctionScope, loop: ast.For) -> CodeChange | None:
    source, preceding = scope.source, scope.source.get_preceding(loop)
    if loop.orelse or not preceding or len(loop.body) != 1 or source.is_error_caught(loop):
        return None
    if not isinstance(loop.target, ast.Name) or not scope.is_local(loop.target.id):
        return None
    item = loop.target.id
    inside = set(ast.walk(loop))
    if any(mention not in inside for mention in scope.mentions(item)):
        return None
    for start, step, builtin in _FORMS:
        begun, done = match_code(start, preceding[-1]), match_code(step, loop.body[0])
        if not begun or not done or ast.unparse(begun["__t"]) != ast.unparse(done["__t"]):
            continue
        total, value = done["__t"], done["__e"]
        if not isinstance(total, ast.Name) or not source.is_builtin(builtin):
            return None
        is_pure = calls_only_pure_builtins(source, value)
        if not is_pure or total.id in get_names(value) | get_names(loop.iter):
            return None
        if not scope.is_local(total.id):
            return None
        argument = _get_argument(scope, builtin, value, item, loop.iter)
        edits: tuple[TextEdit, ...] = (
            ("replace", preceding[-1], f"{total.id} = {builtin}({argument})"),
            ("replace", loop, ""),
        )
        return CodeChange(f"{total.id} by {builtin}()", loop.lineno, scope.name, edits)
    return None


def _get_argument(
    scope: FunctionScope, builtin: str, value: ast.expr, item: str, items: ast.expr
) -> str:
    if builtin == "sum" and isinstance(value, ast.Name) and value.id == item:
        return scope.source.render(items)
    inner = f"{scope.source.render(value)} for {item} in {ast.unparse(items)}"
    # An iterator must be used up, as by the loop.
    is_whole = builtin == "sum" or not may_stop_early(scope, value, items)
    return f"[{inner}]" if is_whole else inner
