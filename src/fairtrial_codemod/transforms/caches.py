"""Pure recursive functions that meet the same arguments again: remembered.

In a dictionary beside the function: with `functools.lru_cache` each call would be two, and the
interpreter would give up at half the depth.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    LOOPS,
    Change,
    Edit,
    Source,
)
from fairtrial_codemod.transforms.analysis.unhashables import is_unhashable
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope, unhashable

_MUTABLE = ("list", "dict", "set", "List", "Dict", "Set", "MutableMapping", "MutableSequence")
_FRESH = ("list", "dict", "set", "sorted", "enumerate", "zip", "reversed")


def find_caches(source: Source) -> Iterator[Change]:
    """A function that calls itself more than once, and nothing else but pure builtins."""
    if not source.is_builtin("type"):
        return
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and _branches(node) and _is_pure(source, node):
            what = f"what {node.name} gives is remembered"
            known = source.fresh(f"_{node.name.lstrip('_')}_known")
            edits = remember(source, node, known, _constants(source, node))
            yield Change(what, node.lineno, node.name, tuple(edits))


def say_key(names: Sequence[str], constants: Sequence[str] = ()) -> str:
    """By what a call is remembered, as code."""
    # 1, 1.0 and True are equal, but what comes of them may not be; and constants may be changed.
    parts = [*names, *(f"type({name})" for name in names), *constants]
    return f"({', '.join(parts)})"


def remember(
    source: Source, function: ast.FunctionDef, known: str, constants: Sequence[str] = ()
) -> Iterator[Edit]:
    """A function gets a dictionary of what it gave, and looks there first."""
    asked = source.fresh("asked")
    key = say_key([each.arg for each in _parameters(function)], constants)
    has_docstring = ast.get_docstring(function, clean=False) is not None
    body = function.body[1:] if has_docstring else function.body
    yield "before", function, f"{known} = {{}}"
    yield (
        "before",
        body[0],
        f"{asked} = {key}\nif {asked} in {known}:\n    return {known}[{asked}]",
    )
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            value = f"{known}.setdefault({asked}, {source.say(node.value)})"
            yield "replace", node.value, value


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _constants(source: Source, function: ast.FunctionDef) -> list[str]:
    """The constants of the module that a function reads."""
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return sorted(name for name in read if _is_constant(source, name))


def _own_calls(function: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in ast.walk(function) if _calls(node, function.name)]


def _calls(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    match node:
        case ast.Call(func=ast.Name(id=called)):
            return called == name
    return False


def _branches(function: ast.FunctionDef) -> bool:
    """Whether it calls itself in two places, or in a loop: else no call comes twice."""
    calls = _own_calls(function)
    loops = [node for node in ast.walk(function) if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    repeated = {node for loop in loops for node in ast.walk(loop)}
    return len(calls) > 1 or any(call in repeated for call in calls)


def _is_pure(source: Source, function: ast.FunctionDef) -> bool:
    given = function.args
    if (
        function.decorator_list
        or given.vararg
        or given.kwarg
        or not (given.args or given.kwonlyargs)
    ):
        return False
    parameters = _parameters(function)
    defaults = [*given.defaults, *(each for each in given.kw_defaults if each)]
    if any(_is_mutable(each.annotation) for each in parameters) or any(map(unhashable, defaults)):
        return False
    if _is_mutable(function.returns) or _is_bound_again(source, function.name):
        return False
    if _may_get_lists(source, function):
        return False
    return _does_nothing_else(source, function) and _gives_values(function)


def _may_get_lists(source: Source, function: ast.FunctionDef) -> bool:
    """Whether it is called with a list, or hands on unchanged what may well be one.

    A text would do, but of what is a table for all calls one can't tell.
    """
    calls = [node for node in source.walk(source.tree) if _calls(node, function.name)]
    given = [each for call in calls for each in (*call.args, *(one.value for one in call.keywords))]
    if any(_is_fresh(each) for each in given):
        return True
    scope = Scope(source, function.name, function)
    if any(is_unhashable(scope, ast.Name(each.arg)) for each in _parameters(function)):
        return True
    own = _own_calls(function)
    if any(_is_taken_apart(function, each) for call in own for each in call.args):
        return True
    places = [*function.args.posonlyargs, *function.args.args]
    return any(
        not _is_value(parameter.annotation)
        and _is_container(function, parameter.arg)
        and all(_hands_on(call, place, parameter.arg) for call in own)
        for place, parameter in enumerate(places)
    )


def _is_taken_apart(function: ast.FunctionDef, given: ast.expr) -> bool:
    """Whether it is called with each element of what it was given: those are lists in lists."""
    names = {each.arg for each in _parameters(function) if not _is_value(each.annotation)}
    for node in ast.walk(function):
        match node:
            case (
                ast.For(target=ast.Name(id=target), iter=ast.Name(id=items))
                | ast.comprehension(target=ast.Name(id=target), iter=ast.Name(id=items))
            ) if items in names:
                if isinstance(given, ast.Name) and given.id == target:
                    return True
    return False


def _hands_on(call: ast.Call, place: int, name: str) -> bool:
    """Whether a call gives a parameter what the caller was given."""
    given = [call.args[place]] if place < len(call.args) else []
    given += [each.value for each in call.keywords if each.arg == name]
    return any(isinstance(each, ast.Name) and each.id == name for each in given)


def _is_container(function: ast.FunctionDef, name: str) -> bool:
    """Whether its elements are asked for."""
    for node in ast.walk(function):
        match node:
            case (
                ast.Subscript(value=ast.Name(id=used))
                | ast.For(iter=ast.Name(id=used))
                | ast.comprehension(iter=ast.Name(id=used))
                | ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=used)])
                | ast.Call(func=ast.Name(id="len" | "sum" | "sorted"), args=[ast.Name(id=used)])
            ):
                if used == name:
                    return True
    return False


def _is_value(annotation: ast.expr | None) -> bool:
    """Whether it says that something can be hashed."""
    match annotation:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return name in ("str", "bytes", "int", "tuple", "Tuple", "frozenset", "range")
        case ast.Constant(value=str(name)):
            return name in ("str", "bytes", "int", "range")
    return False


def _is_mutable(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in _MUTABLE
        for node in ast.walk(annotation)
    )


def _is_bound_again(source: Source, name: str) -> bool:
    """Whether anything else has its name, or it is written to."""
    for node in source.walk(source.tree):
        match node:
            case ast.Name(id=bound, ctx=ast.Store() | ast.Del()) | ast.arg(arg=bound):
                if bound == name:
                    return True
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound):
                if bound == name and source.parents[node] is not source.tree:
                    return True
            case ast.alias(name=bound, asname=asname) if (asname or bound) == name:
                return True
    functions = [node for node in source.tree.body if isinstance(node, ast.FunctionDef)]
    return sum(each.name == name for each in functions) != 1


def _does_nothing_else(source: Source, function: ast.FunctionDef) -> bool:
    """Whether it only computes: from its arguments, constants, itself and pure builtins."""
    own = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    own |= {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for statement in function.body:
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    if name not in own and not _is_known(source, function, name):
                        return False
                case ast.Attribute() | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    return False
                case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Await():
                    return False
                case ast.Lambda() | ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                    return False
                case ast.Import() | ast.ImportFrom() | ast.With() | ast.Try() | ast.Delete():
                    return False
                case ast.Call(func=func) if not isinstance(func, ast.Name) or func.id in own:
                    return False
                case ast.AugAssign(target=ast.Name(id=name)) if _is_parameter(function, name):
                    return False  # a list that is given would grow
    return True


def _is_parameter(function: ast.FunctionDef, name: str) -> bool:
    return any(each.arg == name for each in _parameters(function))


def _is_known(source: Source, function: ast.FunctionDef, name: str) -> bool:
    if name == function.name or (name in PURE and source.is_builtin(name)):
        return True
    return _is_constant(source, name)


def _is_constant(source: Source, name: str) -> bool:
    """Whether the module binds a name once, to a number or text."""
    values = []
    for node in source.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            parent = source.parents[node]
            is_top = source.parents.get(parent) is source.tree
            values.append(parent.value if isinstance(parent, ast.Assign) and is_top else None)
    return len(values) == 1 and isinstance(values[0], ast.Constant)


def _gives_values(function: ast.FunctionDef) -> bool:
    """Whether arguments of its own calls look hashable, and nobody could change a result."""
    fresh = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_fresh(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def may_change(node: ast.expr | None) -> bool:
        match node:
            case ast.Name(id=name):
                return name in fresh
            case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
                return any(map(may_change, parts))
            case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
                return may_change(one) or may_change(other)
        return node is not None and _is_fresh(node)

    returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    if not any(returns) or any(map(may_change, returns)):
        return False
    calls = _own_calls(function)
    given = [*(each for call in calls for each in call.args)]
    given += [each.value for call in calls for each in call.keywords]
    return not any(isinstance(each, ast.Starred) or may_change(each) for each in given)


def _is_fresh(node: ast.expr) -> bool:
    if unhashable(node) or isinstance(node, ast.GeneratorExp):
        return True
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _FRESH
    return False
