"""Whether names are set where code is moved to, and what they stand for stays as it is."""

from __future__ import annotations

import ast
from functools import partial

from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.source import Function, Source, binds
from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope, Use


def is_set_before(scope: Scope, name: str, statement: ast.stmt) -> bool:
    """Whether a name of a function is always set when a statement of it begins."""
    bindings = scope.bindings(name)
    if any(isinstance(each.ctx, ast.Del) for each in bindings):
        return False
    if scope.parameter(name) is not None:
        return True
    above = [statement, *scope.source.around(statement)]
    for bound in bindings:
        made = scope.source.statement_of(bound)
        if made is statement:
            continue
        if made in above:
            return True
        while _sets_always(scope.source.parents[made], name):
            made = scope.source.statement_of(scope.source.parents[made])
        block = scope.source.block_of(made)
        if any(each in block[block.index(made) :] for each in above if isinstance(each, ast.stmt)):
            return True
    return False


def _sets_always(node: ast.AST, name: str) -> bool:
    """Whether a name is set after a statement, whichever branch was taken."""
    match node:
        case ast.If(body=body, orelse=orelse):
            return all(map(partial(_sets_or_leaves, name), (body, orelse)))
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Name) and each.id == name for each in targets)
    return False


def _sets_or_leaves(name: str, block: list[ast.stmt]) -> bool:
    leaving = ast.Return | ast.Raise | ast.Continue | ast.Break
    is_left = bool(block) and isinstance(block[-1], leaving)
    return is_left or any(_sets_always(each, name) for each in block)


def is_stable(source: Source, nested: Function, name: str, is_brief: bool) -> bool:
    """Whether a name that a nested function reads always stands for the same values.

    is_brief: it needs to be so during one call only, in which nothing is changed
    """
    outer = next(
        (
            each
            for each in source.around(nested)
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            and _binds_itself(source, each, name)
        ),
        None,
    )
    if outer is None:
        return is_brief or _is_constant(source, name)
    scope = Scope(source, "", outer)
    if is_brief:
        return all(is_lasting(scope.assignment(each)) for each in scope.bindings(name))
    is_declared = any(
        isinstance(node, ast.Global | ast.Nonlocal) and name in node.names
        for node in source.walk(outer)
    )
    if is_declared or scope.has_alias(name):
        return False
    return all(
        _is_done(scope, mention, nested) or _only_reads(scope, mention, nested.name)
        for mention in scope.mentions(name)
    )


def _binds_itself(source: Source, function: Function, name: str) -> bool:
    return any(
        name in binds(node)
        and (source.function_of(node) is function or source.parents[node] is function.args)
        for node in source.walk(function)
        if node is not function
    )


def _is_constant(source: Source, name: str) -> bool:
    """Whether the module binds a name once, to a number or text, and nothing else does."""
    binders = [node for node in source.walk(source.tree) if name in binds(node)]
    if len(binders) != 1:
        return False
    match source.parents[binders[0]]:
        case ast.Assign(targets=[_], value=ast.Constant() | ast.UnaryOp()) as statement:
            return source.parents[statement] is source.tree
    return False


def _is_done(scope: Scope, mention: ast.Name, nested: Function) -> bool:
    """Whether it happens before the nested function is made, and leaves no iterator behind."""
    if mention.lineno >= nested.lineno or scope.source.function_of(mention) is not scope.function:
        return False
    if scope.use(mention) is not Use.BIND:
        return True
    value = scope.assignment(mention)
    # Others may hold, and change, what was taken out of something.
    return is_lasting(value) and not isinstance(value, ast.Attribute | ast.Subscript)


def is_lasting(value: ast.expr | None) -> bool:
    """Whether what a name is set to is no iterator, which is used up."""
    match value:
        case ast.GeneratorExp():
            return False
        case ast.Call(func=ast.Name(id=made)):
            return made in PURE - KEEPING
        case ast.Call(func=ast.Attribute(attr=made)):
            return made in READING
    return not isinstance(value, ast.Call)


def _only_reads(scope: Scope, mention: ast.Name, asked: str) -> bool:
    """Whether neither it nor a part of it is changed or handed on, but to who is asked."""
    source = scope.source
    node: ast.expr = mention
    while True:
        parent = source.parents[node]
        match parent:
            case ast.Subscript(value=value) | ast.Attribute(value=value) if value is node:
                node = parent
            case _:
                break
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return False
    if isinstance(parent, ast.Call):
        if parent.func is node:
            return isinstance(node, ast.Attribute) and node.attr in READING
        if isinstance(parent.func, ast.Attribute) and parent.func.attr in READING:
            return True
        called = parent.func.id if isinstance(parent.func, ast.Name) else ""
        is_known = called == asked or (called in PURE and source.is_builtin(called))
        return is_known or (node is mention and scope.use(mention) is Use.READ)
    return node is not mention or scope.only_reads(mention) or scope.use(mention) is Use.GIVE
