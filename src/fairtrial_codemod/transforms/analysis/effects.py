"""Whether code may change what a name stands for without a mention of it.

Who wants to compute something before a loop that the loop itself computes, asks here.
"""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.iterables import kinds_of
from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.source import Function, Source, binds
from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope, Use

_TELLING = frozenset({"print", "format", "getattr", "hasattr", "id", "iter", "slice", "type"})
"""Builtins that change nothing that a name here could stand for, besides the pure ones."""
_MODULES = frozenset(
    {"math", "cmath", "operator", "itertools", "re", "string", "copy"}
    | {"collections", "statistics", "json", "textwrap", "unicodedata", "datetime"}
)
_WAITING = ("sleep", "wait", "poll", "recv", "join", "select", "acquire", "get", "put", "submit")
"""Parts of names of functions during which somebody else may go on."""
_DEEPEST = 2
"""How far calls of the module's own functions are followed."""


def is_untouched(scope: Scope, name: str, within: ast.AST) -> bool:
    """Whether what a name stands for stays as it is in there, under whatever other name."""
    if is_asked_later(scope, name, within):
        return False
    return scope.is_untouched(name, within) and not may_change_elsewhere(scope, name, within)


def is_asked_later(scope: Scope, name: str, within: ast.AST) -> bool:
    """Whether a generator in there may ask for a name when it stands for something else."""
    return any(
        isinstance(node, ast.GeneratorExp)
        and not is_used_up(scope, node)
        and len(scope.mentions(name, node)) > len(scope.mentions(name, node.generators[0].iter))
        for node in scope.source.walk(within)
    )


def is_used_up(scope: Scope, generator: ast.GeneratorExp) -> bool:
    """Whether a generator is gone through, or forgotten, where it is made."""
    match scope.source.parents[generator]:
        case ast.Call(func=ast.Name(id=name)):
            return name in (PURE - KEEPING) | {"next"} and scope.source.is_builtin(name)
        case ast.Call(func=ast.Attribute(attr="join" | "extend" | "update")) | ast.Starred():
            return True
    return False


def may_change_elsewhere(scope: Scope, name: str, within: ast.AST) -> bool:
    """Whether something in there may change what a name stands for without a mention of it.

    ``while len(queue) < n: self.poll()`` is such a thing, if it was given the queue. Functions that
    are imported are taken for harmless, unless their names speak of waiting.
    """
    if scope.is_fixed(name) or _is_own(scope, name):
        return False
    return any(
        _may_change_others(scope, node, 0)
        for node in scope.source.walk(within)
        if not _is_mention(node, name)
    )


def _is_mention(node: ast.AST, name: str) -> bool:
    """Whether it is done to the name itself, as all can see: ``name.append(x)``."""
    match node:
        case (
            ast.Call(func=ast.Attribute(value=ast.Name(id=used)))
            | ast.Subscript(value=ast.Name(id=used))
        ):
            return used == name
    return False


def _is_own(scope: Scope, name: str) -> bool:
    """Whether the function makes it itself, and hands it to nobody who might keep it."""
    is_kept = any(scope.use(each) is Use.OTHER for each in scope.mentions(name))
    return not is_kept and scope.is_local(name) and _is_made_here(scope, name)


def _may_change_others(scope: Scope, node: ast.AST, depth: int) -> bool:
    match node:
        case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.AsyncFor() | ast.AsyncWith():
            return True  # whoever goes on meanwhile may do anything
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return not _is_own_value(scope, value)
        case ast.AugAssign(target=target, value=value):
            # What is added to may be a list of which there are other names.
            return not _is_number_or_text(scope, value) and not _is_own_value(scope, target)
        case ast.Call():
            return not _is_harmless(scope, node, depth)
    return False


def _is_number_or_text(scope: Scope, value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="len" | "int" | "float" | "str" | "ord" as name)):
            return scope.source.is_builtin(name)
    return isinstance(value, ast.Constant | ast.JoinedStr)


def _is_own_value(scope: Scope, value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and _is_made_here(scope, value.id)


def _is_made_here(scope: Scope, name: str) -> bool:
    """Whether a name only ever stands for collections that the function makes."""
    return scope.parameter(name) is None and "" not in (kinds_of(scope, name) or {""})


def _is_harmless(scope: Scope, call: ast.Call, depth: int) -> bool:
    """Whether a call can't change what others hold, as far as one sees."""
    source = scope.source
    match call.func:
        case ast.Name(id="next") if call.args and isinstance(call.args[0], ast.GeneratorExp):
            return source.is_builtin("next")
        case ast.Name(id="map" | "filter" as name):
            chosen = call.args[0] if call.args else None
            is_plain = isinstance(chosen, ast.Name) and chosen.id in PURE
            return is_plain and source.is_builtin(name)
        case ast.Name(id=name):
            is_known = name in PURE | _TELLING or name.endswith(("Error", "Exception"))
            if is_known and source.is_builtin(name):
                return True
            if source.is_imported(name):
                return not _may_wait(name)
            return _is_harmless_name(source, name, depth)
        case ast.Attribute(value=ast.Name(id=module), attr=name) if source.is_imported(module):
            return module in _MODULES or not _may_wait(name)
        case ast.Attribute(attr=method) if method in READING:
            return True
        case ast.Attribute(value=value):
            return _is_own_value(scope, value) or isinstance(value, ast.Constant)
    return False


def _may_wait(name: str) -> bool:
    return any(word in name.lower() for word in _WAITING)


def _is_harmless_name(source: Source, name: str, depth: int) -> bool:
    """Whether it is a function or class of the module, and of no other name, that is harmless."""
    found = [node for node in source.tree.body if getattr(node, "name", None) == name]
    if depth >= _DEEPEST or len(found) != 1 or _count_binders(source, name) != 1:
        return False
    (made,) = found
    if isinstance(made, ast.ClassDef):
        begun = [each for each in made.body if isinstance(each, ast.FunctionDef)]
        begun = [each for each in begun if each.name in ("__init__", "__post_init__", "__new__")]
        is_plain = all(isinstance(each, ast.Name) for each in made.bases)
        return is_plain and all(_is_harmless_function(source, each, depth) for each in begun)
    if not isinstance(made, ast.FunctionDef | ast.AsyncFunctionDef) or made.decorator_list:
        return False
    return _is_harmless_function(source, made, depth)


def _is_harmless_function(source: Source, function: Function, depth: int) -> bool:
    scope = Scope(source, function.name, function)
    inside = [node for each in function.body for node in source.walk(each)]
    is_told = any(isinstance(node, ast.Global | ast.Nonlocal) for node in inside)
    own = {node for node in inside if _calls(node, function.name)}
    return not is_told and not any(
        _may_change_others(scope, node, depth + 1) for node in inside if node not in own
    )


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _count_binders(source: Source, name: str) -> int:
    return sum(name in binds(node) for node in source.walk(source.tree))
