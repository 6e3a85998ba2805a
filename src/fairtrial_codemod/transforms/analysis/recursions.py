"""Functions that call themselves: which parameters they hand on as they are, and which not."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.source import COMPREHENSIONS, LOOPS
from fairtrial_codemod.transforms.analysis.uses import Scope


@dataclass(frozen=True)
class Recursion:
    """A function that calls itself, more than once each time.

    scope: the function
    receiver: what it calls its object, if it is a method; else ""
    calls: where it calls itself
    given: what each call gives to which parameter, in the order of the calls
    kept: parameters that each call hands on unchanged
    """

    scope: Scope
    receiver: str
    calls: tuple[ast.Call, ...]
    given: tuple[dict[str, ast.expr], ...]
    kept: tuple[str, ...]

    @property
    def function(self) -> ast.FunctionDef:
        """The function itself."""
        assert isinstance(self.scope.function, ast.FunctionDef)
        return self.scope.function

    @property
    def varying(self) -> tuple[str, ...]:
        """The parameters whose values differ from call to call."""
        left_out = (*self.kept, self.receiver)
        return tuple(each for each in parameters(self.function) if each not in left_out)


def parameters(function: ast.FunctionDef) -> list[str]:
    """The names of all that can be given by place or by name."""
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def is_own_call(node: ast.AST, name: str, receiver: str) -> bool:
    """Whether it is a call of this function, of the same object if it is a method."""
    match node:
        case ast.Call(func=ast.Name(id=called)):
            return not receiver and called == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=whose), attr=called)):
            return bool(receiver) and (whose, called) == (receiver, name)
    return False


def read_recursion(scope: Scope) -> Recursion | None:
    """What a function does when it calls itself; None if it doesn't, or one can't tell."""
    function, source = scope.function, scope.source
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return None
    if function.args.vararg or function.args.kwarg or scope.is_opaque:
        return None
    receiver = ""
    if isinstance(source.parents[function], ast.ClassDef):
        named = parameters(function)
        if not named or _is_overridden(scope, function.name):
            return None
        receiver = named[0]
    calls = tuple(
        node
        for node in source.walk(function)
        if isinstance(node, ast.Call) and is_own_call(node, function.name, receiver)
    )
    if not _branches(function, calls):
        return None
    given = [_arguments(function, call, receiver) for call in calls]
    told = tuple(each for each in given if each is not None)
    if len(told) != len(calls):
        return None
    kept = tuple(
        name
        for name in parameters(function)
        if name != receiver
        and not scope.bindings(name)
        and all(isinstance(it := each[name], ast.Name) and it.id == name for each in told)
    )
    return Recursion(scope, receiver, calls, told, kept)


def _is_overridden(scope: Scope, name: str) -> bool:
    """Whether another class may have such a method, too: it may be the one that is called.

    One of another module, if neither the class nor the method is private or final.
    """
    owner = scope.source.parents[scope.function]
    assert isinstance(owner, ast.ClassDef)
    said = [ast.unparse(each) for each in (*owner.decorator_list, *scope.function.decorator_list)]
    is_final = any(each.rpartition(".")[2] == "final" for each in said)
    if not (is_final or owner.name.startswith("_") or name.startswith("_")):
        return True
    return sum(function.name == name for _, function in scope.source.functions) > 1


def _branches(function: ast.FunctionDef, calls: tuple[ast.Call, ...]) -> bool:
    """Whether it calls itself in two places, or in a loop: else no call comes twice."""
    loops = [node for node in ast.walk(function) if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    repeated = {node for loop in loops for node in ast.walk(loop)}
    return len(calls) > 1 or any(call in repeated for call in calls)


def _arguments(
    function: ast.FunctionDef, call: ast.Call, receiver: str
) -> dict[str, ast.expr] | None:
    """What a call gives to each parameter, if it says so for all of them."""
    placed = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    placed = placed[1:] if receiver else placed
    if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(placed):
        return None
    found = dict(zip(placed, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        found[keyword.arg] = keyword.value
    wanted = {each for each in parameters(function) if each != receiver}
    return found if found.keys() == wanted else None
