"""Remember the results of pure recursive functions that meet the same arguments again.

The results are kept in a dictionary: `functools.lru_cache` would halve the depth of the recursion.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.hashability import (
    is_mutable_type,
    is_unhashable,
    is_used_as_collection,
    is_visibly_unhashable,
)
from fairtrial_codemod.analysis.python_facts import (
    PURE_BUILTINS,
    TEXT_METHODS,
    is_immutable_type,
    is_new_list,
    list_parameters,
)
from fairtrial_codemod.analysis.source_file import (
    CodeChange,
    SourceFile,
    TextEdit,
    get_bound_names,
)

_FORBIDDEN = (
    *(ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.Starred),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.With),
    *(ast.AsyncWith, ast.Try, ast.TryStar, ast.Delete, ast.AsyncFor, ast.Match),
)
_MUTABLE_RESULTS = frozenset({"list", "dict", "set", "sorted", "enumerate", "zip", "reversed"})
_LIST_RESULTS = frozenset({"split", "rsplit", "splitlines"})


def find_caches(source: SourceFile) -> Iterator[CodeChange]:
    """Find functions of the module that call themselves more than once and only compute."""
    if not source.is_builtin("type"):
        return
    for scope in list_scopes(source):
        if not _is_plain(scope) or not _branches(scope):
            continue
        is_pure = all(map(_Purity(scope).allows, _walk(scope)))
        if is_pure and _returns_values(scope) and _takes_values(scope):
            yield _write_cache(scope)


def _walk(scope: FunctionScope) -> list[ast.AST]:
    return [node for statement in scope.function.body for node in ast.walk(statement)]


def _is_plain(scope: FunctionScope) -> bool:
    function, arguments = scope.function, scope.function.args
    return (
        isinstance(function, ast.FunctionDef)
        and not isinstance(scope.source.get_scope_node(function), ast.ClassDef | ast.Lambda)
        and not (function.decorator_list or arguments.vararg or arguments.kwarg)
        and bool(list_parameters(function))
        and len(scope.source.binders[function.name]) == 1
    )


def _list_calls(scope: FunctionScope, within: ast.AST) -> list[ast.Call]:
    """Return the calls of a function in a node."""
    calls = [node for node in scope.source.walk(within) if isinstance(node, ast.Call)]
    name = scope.function.name
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _branches(scope: FunctionScope) -> bool:
    """Return whether it calls itself in two places, or in a loop: else no call comes twice."""
    calls = _list_calls(scope, scope.function)
    return len(calls) > 1 or any(scope.loops(call) for call in calls)


class _Purity:
    """What a function may do: compute from its arguments, constants, itself and pure builtins."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope, self.source = scope, scope.source
        self.own = {name for node in _walk(scope) for name in get_bound_names(node)}
        self.own |= {parameter.arg for parameter in list_parameters(scope.function)}

    def allows(self, node: ast.AST) -> bool:
        """Return whether a node has no effect and always the same value."""
        if isinstance(node, _FORBIDDEN):
            return False
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return name not in self.own
            case ast.Call(func=ast.Attribute(attr=method)):
                return method in TEXT_METHODS
            case ast.Attribute():
                parent = self.source.parents[node]
                return isinstance(parent, ast.Call) and parent.func is node
            case ast.Call() | ast.Subscript(ctx=ast.Store() | ast.Del()):
                return False
            case ast.AugAssign(target=ast.Name(id=name)):
                return self.scope.parameter(name) is None and all(
                    isinstance(self.source.parents[bound], ast.AugAssign)
                    or isinstance(self.scope.get_value(bound), ast.Constant | ast.BinOp)
                    for bound in self.scope.bindings(name)
                )
            case ast.Name(id=name, ctx=ast.Load()) if name not in self.own:
                return self._is_known(name)
        return True

    def _is_known(self, name: str) -> bool:
        value = getattr(builtins, name, None)
        is_error = isinstance(value, type) and issubclass(value, Exception)
        is_builtin = (name in PURE_BUILTINS or is_error) and self.source.is_builtin(name)
        is_itself = name == self.scope.function.name
        return is_builtin or is_itself or _is_constant(self.source, name)


def _is_constant(source: SourceFile, name: str) -> bool:
    """Return whether the module binds a name once, to a number or a string."""
    binders = source.binders.get(name, [])
    if len(binders) != 1:
        return False
    match source.parents[binders[0]]:
        case ast.Assign(targets=[_], value=ast.Constant() | ast.UnaryOp()) as statement:
            return source.parents[statement] is source.tree
    return False


def _returns_values(scope: FunctionScope) -> bool:
    """Return whether a function returns something, and nothing that its caller could change."""
    mutable: set[str] = set()
    assignments = [node for node in _walk(scope) if isinstance(node, ast.Assign)]
    for _ in assignments:  # one name may be assigned to the next
        mutable |= {
            target.id
            for node in assignments
            if _may_be_mutable(scope, node.value, mutable)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
    returned = [node.value for node in _walk(scope) if isinstance(node, ast.Return)]
    values = [value for value in returned if value is not None]
    is_mutable = any(_may_be_mutable(scope, value, mutable) for value in values)
    return bool(values) and not is_mutable and not is_mutable_type(scope.function.returns)


def _may_be_mutable(scope: FunctionScope, node: ast.expr, mutable: set[str]) -> bool:
    if is_visibly_unhashable(node) or isinstance(node, ast.GeneratorExp):
        return True
    match node:
        case ast.Name(id=name):
            return name in mutable
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return any(_may_be_mutable(scope, part, mutable) for part in parts)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return _may_be_mutable(scope, one, mutable) or _may_be_mutable(scope, other, mutable)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as parts):
            return any(_may_be_mutable(scope, part, mutable) for part in parts)
        case ast.Call(func=ast.Name(id=name)):
            return name in _MUTABLE_RESULTS
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _LIST_RESULTS
    return False


def _takes_values(scope: FunctionScope) -> bool:
    """Return whether nothing shows that an argument can't be hashed."""
    source, function = scope.source, scope.function
    own = _list_calls(scope, function)
    for parameter in list_parameters(function):
        name = ast.Name(parameter.arg, ast.Load())
        if is_mutable_type(parameter.annotation) or is_unhashable(scope, name):
            return False
        place = list_parameters(function).index(parameter)
        if len(scope.mentions(parameter.arg)) == sum(
            _hands_on(call, place, parameter.arg) for call in own
        ):
            return False  # nothing shows what it is
        # A table that every call hands on, or whose items are the next arguments, may be a list.
        if not is_immutable_type(parameter.annotation) and is_used_as_collection(
            scope, parameter.arg
        ):
            if all(_hands_on(call, place, parameter.arg) for call in own):
                return False
            items = _list_items(scope, parameter.arg)
            if any(ast.unparse(value) in items for call in own for value in call.args):
                return False
    calls = _list_calls(scope, source.tree)
    values = [
        *function.args.defaults,
        *(default for default in function.args.kw_defaults if default),
    ]
    values += [value for call in calls for value in call.args]
    values += [keyword.value for call in calls for keyword in call.keywords]
    return not any(
        is_new_list(value, source) or _may_be_mutable(scope, value, set()) for value in values
    )


def _hands_on(call: ast.Call, place: int, name: str) -> bool:
    """Return whether a call gives a parameter the value that the caller got for it."""
    values = call.args[place : place + 1]
    values += [keyword.value for keyword in call.keywords if keyword.arg == name]
    return any(isinstance(value, ast.Name) and value.id == name for value in values)


def _list_items(scope: FunctionScope, name: str) -> set[str]:
    """Return the variables of loops over a parameter."""
    parents = [scope.source.parents[mention] for mention in scope.mentions(name)]
    loops = [node for node in parents if isinstance(node, ast.For | ast.comprehension)]
    return {ast.unparse(loop.target) for loop in loops}


def _write_cache(scope: FunctionScope) -> CodeChange:
    source, function = scope.source, scope.function
    results = source.make_name(f"_{function.name.lstrip('_')}_results")
    key = source.make_name("key")
    names = [parameter.arg for parameter in list_parameters(function)]
    used = {node.id for node in _walk(scope) if isinstance(node, ast.Name)}
    # 1, 1.0 and True are equal, but their results may differ; and constants may be changed.
    constants = sorted(name for name in used if _is_constant(source, name))
    parts = ", ".join([*names, *(f"type({name})" for name in names), *constants])
    has_docstring = ast.get_docstring(function, clean=False) is not None
    first = function.body[1 if has_docstring else 0]
    start = f"{key} = ({parts})\nif {key} in {results}:\n    return {results}[{key}]"
    edits: list[TextEdit] = [("before", function, f"{results} = {{}}"), ("before", first, start)]
    for node in _walk(scope):
        if isinstance(node, ast.Return) and node.value is not None:
            value = f"{results}.setdefault({key}, {source.render(node.value)})"
            edits.append(("replace", node.value, value))
    description = f"results of {function.name} are remembered"
    return CodeChange(description, function.lineno, scope.name, tuple(edits))
