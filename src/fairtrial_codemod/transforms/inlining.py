"""Write the expression of a one-line function in place of its calls in loops.

A call costs more than most such expressions. Only calls in the same module are changed, and only
where names mean the same and arguments are evaluated once, in the same order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.python_facts import (
    bind_arguments,
    get_defaults,
    list_parameters,
)
from fairtrial_codemod.analysis.source_file import (
    COMPREHENSIONS,
    CodeChange,
    SourceFile,
    TextEdit,
    get_bound_names,
    get_names,
)

MAX_NODES = 40
"""Larger expressions cost more than the call."""
_UNMOVABLE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, *COMPREHENSIONS)
_CLASS_NAMES = {"super", "__class__"}


def find_inlinable_calls(source: SourceFile) -> Iterator[CodeChange]:
    """Find calls of functions like ``def is_vowel(char): return char in "aeiou"`` in loops."""
    scopes = list(list_scopes(source))
    for scope in scopes:
        expression = _get_expression(scope)
        around = source.get_scope_node(scope.function)
        if expression is None or isinstance(around, ast.ClassDef | ast.Lambda):
            continue
        for caller in scopes:
            is_visible = around is None or caller.function is around
            if caller.function is scope.function or not is_visible:
                continue
            edits = list(_inline_calls(caller, scope, expression, around is None))
            if edits:
                description = f"{scope.function.name} is written out where a loop calls it"
                line = min(getattr(node, "lineno", 0) for _, node, _ in edits)
                yield CodeChange(description, line, caller.name, tuple(edits))


def _get_expression(scope: FunctionScope) -> ast.expr | None:
    """Return the expression of a function that does nothing but return it."""
    function, source = scope.function, scope.source
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    if function.args.vararg or function.args.kwarg or scope.is_opaque:
        return None
    if len(source.binders[function.name]) != 1 or "*" in source.binders:
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.Return(value=ast.expr() as expression)]:
            nodes = list(ast.walk(expression))
            names = get_names(expression)
            is_plain = not any(isinstance(node, _UNMOVABLE) for node in nodes)
            is_small = len(nodes) <= MAX_NODES and function.name not in names
            return expression if is_plain and is_small and not names & _CLASS_NAMES else None
    return None


def _inline_calls(
    caller: FunctionScope, called: FunctionScope, expression: ast.expr, is_global: bool
) -> Iterator[TextEdit]:
    parameters = {parameter.arg for parameter in list_parameters(called.function)}
    free = get_names(expression) - parameters
    if caller.is_opaque or (is_global and free & _list_local_names(caller)):
        return
    claimed: set[ast.AST] = set()
    for node in caller.own_nodes(ast.Call):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name == called.function.name:
                pass
            case _:
                continue
        if not caller.loops(node) or node in claimed or free & _list_bound_around(caller, node):
            continue
        values = _bind_arguments(called, node)
        if values is not None and _keeps_order(expression, values):
            claimed.update(ast.walk(node))
            yield "replace", node, f"({_substitute(expression, values)})"


def _list_local_names(caller: FunctionScope) -> set[str]:
    """Return the names that a function, or one around it, binds for itself."""
    functions = [
        caller.function,
        *(node for node in caller.source.ancestors(caller.function)),
    ]
    return {
        name
        for function in functions
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in caller.source.walk(function)
        if node is not function
        for name in get_bound_names(node)
    }


def _list_bound_around(caller: FunctionScope, node: ast.AST) -> set[str]:
    """Return the names that comprehensions around a node bind for themselves."""
    return {
        name
        for up in caller.source.ancestors(node)
        if isinstance(up, COMPREHENSIONS)
        for part in up.generators
        for name in get_names(part.target)
    }


def _bind_arguments(called: FunctionScope, call: ast.Call) -> dict[str, ast.expr] | None:
    """Return the argument, or the constant default, of each parameter; None if not visible."""
    arguments = called.function.args
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = [parameter.arg for parameter in arguments.kwonlyargs]
    given = bind_arguments(call, positional, keyword_only)
    if given is None:
        return None
    defaults = get_defaults(called.function)
    values = {name: given.get(name, defaults.get(name)) for name in (*positional, *keyword_only)}
    if any(not isinstance(values[name], ast.Constant) for name in values.keys() - given.keys()):
        return None
    return {name: value for name, value in values.items() if value is not None}


def _keeps_order(expression: ast.expr, values: Mapping[str, ast.expr]) -> bool:
    """Return whether each argument is a name or a constant; one may be computed if it is read
    once, and before anything else.
    """
    computed = [
        name for name, value in values.items() if not isinstance(value, ast.Name | ast.Constant)
    ]
    if not computed:
        return True
    if len(computed) > 1:
        return False
    (name,) = computed
    value = values[name]
    if any(isinstance(node, _UNMOVABLE) for node in ast.walk(value)):
        return False
    count = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(expression))
    return count == 1 and _get_first_read(expression) == name


def _get_first_read(node: ast.expr) -> str:
    """Return the name that an expression evaluates first; "" if that isn't a name."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Compare(left=first) | ast.BinOp(left=first) | ast.BoolOp(values=[first, *_]):
                node = first
            case ast.Call(func=ast.Name(id=called), args=[first, *_]):
                # The function is looked up first, which has no effect.
                node = first if called != "super" else ast.Constant(None)
            case ast.Call(func=ast.Attribute(value=first)) | ast.Attribute(value=first):
                node = first
            case ast.Subscript(value=first) | ast.UnaryOp(operand=first) | ast.IfExp(test=first):
                node = first
            case _:
                return ""
    return node.id


def _substitute(expression: ast.expr, values: Mapping[str, ast.expr]) -> str:
    """Return an expression as code, with arguments in place of parameters."""

    class Substitution(ast.NodeTransformer):
        """Replaces parameters."""

        def visit_Name(self, node: ast.Name) -> ast.AST:
            return values.get(node.id, node)

    return ast.unparse(Substitution().visit(ast.parse(ast.unparse(expression), mode="eval").body))
