"""Whether a function that calls itself only computes: then the same call always gives the same.

What it reads besides its arguments may be anything, as long as nothing is changed while it runs.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Set

from fairtrial_codemod.transforms.analysis.hashability import is_hashable, is_text
from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.recursions import (
    Recursion,
    is_own_call,
    parameters,
)
from fairtrial_codemod.transforms.analysis.source import Source, binds
from fairtrial_codemod.transforms.analysis.uses import (
    PURE,
    Scope,
    is_fresh_list,
    unhashable,
)

_GROWING = frozenset({"append", "extend", "insert", "sort", "reverse"})
_MAKING = frozenset({"list", "dict", "set", "sorted", "enumerate", "zip", "reversed", "bytearray"})


def defined_names(source: Source) -> frozenset[str]:
    """The names that a module ever gives to functions, classes, modules and the like."""
    return frozenset(
        name
        for node in source.walk(source.tree)
        if not isinstance(node, ast.Name | ast.arg)
        for name in binds(node)
    )


def is_pure(recursion: Recursion, defined: Set[str]) -> bool:
    """Whether it changes nothing but lists that it makes itself.

    defined: the names that may stand for a function, a class or a module
    """
    return all(
        _is_harmless(recursion, node, defined)
        for statement in recursion.function.body
        for node in ast.walk(statement)
    )


def _is_harmless(recursion: Recursion, node: ast.AST, defined: Set[str]) -> bool:
    scope = recursion.scope
    match node:
        case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Await():
            return False
        case ast.Lambda() | ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return False
        case ast.Import() | ast.ImportFrom() | ast.With() | ast.AsyncWith() | ast.Try():
            return False
        case ast.TryStar() | ast.Delete() | ast.AsyncFor() | ast.Match():
            return False
        case ast.Call(func=func):
            return _is_harmless_call(recursion, node, func)
        case ast.Attribute():
            return _is_harmless_attribute(recursion, node)
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return isinstance(value, ast.Name) and _is_own_list(scope, value.id)
        case ast.AugAssign(target=ast.Name(id=name)):
            return _is_own_value(recursion, name)
        case ast.Name(id=name, ctx=ast.Load()):
            return _is_data(recursion, node, defined)
    return True


def _is_harmless_call(recursion: Recursion, call: ast.Call, func: ast.expr) -> bool:
    if is_own_call(call, recursion.function.name, recursion.receiver):
        return True
    source = recursion.scope.source
    match func:
        case ast.Name(id=name):
            return (name in PURE or _is_error(name)) and source.is_builtin(name)
        case ast.Attribute(value=ast.Name(id="math")) if source.has_import("math"):
            return True
        case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _GROWING:
            return _is_own_list(recursion.scope, name)
        case ast.Attribute(value=value, attr=method):
            # The object's own method may do anything, whatever it is called.
            is_own = isinstance(value, ast.Name) and value.id == recursion.receiver
            return method in READING and not is_own
    return False


def _is_harmless_attribute(recursion: Recursion, node: ast.Attribute) -> bool:
    source = recursion.scope.source
    parent = source.parents[node]
    if not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(parent, ast.Call) and parent.func is node:
        return True  # as a call
    root: ast.expr = node
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id == "math":
        return source.has_import("math")
    # A property would be a function of that name.
    is_plain = node.attr not in {function.name for _, function in source.functions}
    return is_plain and root.id in (*recursion.kept, recursion.receiver)


def _is_data(recursion: Recursion, name: ast.Name, defined: Set[str]) -> bool:
    """Whether a name stands for no function, class or module, or for a known one."""
    source = recursion.scope.source
    parent = source.parents[name]
    if isinstance(parent, ast.Call) and parent.func is name:
        return True  # as a call
    if name.id == recursion.receiver:
        return isinstance(parent, ast.Attribute)
    if name.id == "math" and source.has_import("math"):
        return True
    if (name.id in PURE or _is_error(name.id)) and source.is_builtin(name.id):
        return True
    return name.id in source.bound and name.id not in defined


def _is_error(name: str) -> bool:
    """Whether it is what Python calls one of its errors."""
    known = getattr(builtins, name, None)
    return isinstance(known, type) and issubclass(known, Exception)


def _is_own_list(scope: Scope, name: str) -> bool:
    """Whether it is a list that the function makes, under one name."""
    bindings = scope.bindings(name)
    return (
        bool(bindings)
        and scope.is_local(name)
        and scope.parameter(name) is None
        and not scope.has_alias(name)
        and all(is_fresh_list(scope.assignment(each), scope.source) for each in bindings)
    )


def _is_own_value(recursion: Recursion, name: str) -> bool:
    """Whether adding to it can't change what somebody else holds."""
    scope = recursion.scope
    if name in recursion.varying:
        return True
    for bound in scope.bindings(name):
        if isinstance(scope.source.parents[bound], ast.AugAssign):
            continue
        value = scope.assignment(bound)
        is_new = isinstance(
            value, ast.Constant | ast.BinOp | ast.Compare | ast.UnaryOp | ast.Call
        ) or is_fresh_list(value, scope.source)
        if not is_new:
            return False
    return scope.is_local(name)


def gives_values(recursion: Recursion) -> bool:
    """Whether it returns something, and nothing that whoever gets it could change."""
    function, scope = recursion.function, recursion.scope
    fresh: set[str] = set()
    while True:
        more = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _may_change(scope, node.value, fresh)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if more <= fresh:
            break
        fresh |= more
    returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    if any(isinstance(node, ast.AugAssign) for node in ast.walk(function)):
        fresh.update(recursion.kept)  # a result that is a list of the caller's would grow
    return any(returns) and not any(
        each is not None and _may_change(scope, each, fresh)
        for each in (*returns, *_collected(function))
    )


def _collected(function: ast.FunctionDef) -> list[ast.expr]:
    """What is put into lists: one of them may be returned."""
    found: list[ast.expr] = []
    for node in ast.walk(function):
        match node:
            case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each):
                found.append(each)
            case ast.Call(func=ast.Attribute(attr="append" | "extend" | "insert"), args=given):
                found += given
    return found


def _may_change(scope: Scope, node: ast.expr, fresh: set[str]) -> bool:
    if unhashable(node) or isinstance(node, ast.GeneratorExp) or is_fresh_list(node, scope.source):
        return True
    match node:
        case ast.Name(id=name):
            return name in fresh
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return any(_may_change(scope, each, fresh) for each in parts)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return _may_change(scope, one, fresh) or _may_change(scope, other, fresh)
        case ast.Subscript(value=value, slice=ast.Slice()):
            return not (isinstance(value, ast.Name) and is_text(scope, value.id))
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as given):
            return any(_may_change(scope, each, fresh) for each in given)
        case ast.Call(func=ast.Name(id=name)):
            return name in _MAKING
        case ast.Call(func=ast.Attribute(attr="copy" | "split" | "union" | "difference")):
            return True
    return False


def takes_values(recursion: Recursion) -> bool:
    """Whether what differs between calls can be hashed, for all that one sees."""
    scope, name = recursion.scope, recursion.function.name
    given = recursion.function.args
    defaults = [*given.defaults, *(each for each in given.kw_defaults if each)]
    if any(map(unhashable, defaults)):
        return False
    return all(
        is_hashable(scope, ast.Name(each, ast.Load())) for each in recursion.varying
    ) and all(
        is_own_call(each[varying], name, recursion.receiver) or is_hashable(scope, each[varying])
        for each in recursion.given
        for varying in recursion.varying
    )


def reads_elsewhere(recursion: Recursion) -> set[str]:
    """The names that it reads and doesn't bind itself, other than builtins and its own."""
    function, source = recursion.function, recursion.scope.source
    own = {*parameters(function), function.name}
    own |= {name for node in source.walk(function) for name in binds(node)}
    return {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and node.id not in own
        and not ((node.id in PURE or _is_error(node.id)) and source.is_builtin(node.id))
        and not (node.id == "math" and source.has_import("math"))
    }
