"""Remember the results of pure recursive functions that meet the same arguments again.

The results are kept in a dictionary: `functools.lru_cache` would halve the depth of the recursion.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from fairtrial_codemod.analysis.function_scope import (
    PURE_BUILTINS,
    READING_METHODS,
    FunctionScope,
    is_new_list,
    list_parameters,
    list_scopes,
)
from fairtrial_codemod.analysis.hashability import (
    is_hashable,
    is_mutable_type,
    is_text,
    is_unhashable,
    is_visibly_unhashable,
)
from fairtrial_codemod.analysis.source_file import (
    COMPREHENSIONS,
    LOOPS,
    CodeChange,
    SourceFile,
    TextEdit,
    get_bound_names,
)

_FORBIDDEN = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda)
_FORBIDDEN += (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_FORBIDDEN += (ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Delete, ast.AsyncFor, ast.Match)
_FORBIDDEN += (ast.Starred,)
_LIST_METHODS = frozenset({"append", "extend", "insert", "sort", "reverse"})
_MUTABLE_RESULTS = frozenset({"list", "dict", "set", "sorted", "enumerate", "zip", "reversed"})


def find_caches(source: SourceFile) -> Iterator[CodeChange]:
    """Find functions that call themselves more than once and only compute."""
    if not source.is_builtin("type"):
        return
    for scope in list_scopes(source):
        if not _is_plain(scope) or not _branches(scope) or not _is_pure(scope):
            continue
        if _returns_values(scope) and _takes_values(scope) and _has_stable_names(scope):
            yield _write_cache(scope)


def _is_plain(scope: FunctionScope) -> bool:
    function, source = scope.function, scope.source
    around = source.get_scope_node(function)
    arguments = function.args
    return (
        isinstance(function, ast.FunctionDef)
        and not (function.decorator_list or arguments.vararg or arguments.kwarg)
        and bool(list_parameters(function))
        and not isinstance(around, ast.ClassDef | ast.Lambda)
        and len(source.binders[function.name]) == 1
        and not scope.is_opaque
    )


def _list_own_calls(scope: FunctionScope) -> list[ast.Call]:
    name = scope.function.name
    return [node for node in scope.source.walk(scope.function) if _calls(node, name)]  # type: ignore[misc]


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _branches(scope: FunctionScope) -> bool:
    """Return whether it calls itself in two places, or in a loop: else no call comes twice."""
    calls = _list_own_calls(scope)
    nodes = scope.source.walk(scope.function)
    loops = [node for node in nodes if isinstance(node, (*LOOPS, *COMPREHENSIONS))]
    repeated = {node for loop in loops for node in ast.walk(loop)}
    return len(calls) > 1 or any(call in repeated for call in calls)


def _is_pure(scope: FunctionScope) -> bool:
    """Return whether a function changes nothing but lists that it makes itself."""
    return all(
        _is_harmless(scope, node)
        for statement in scope.function.body
        for node in scope.source.walk(statement)
    )


def _is_harmless(scope: FunctionScope, node: ast.AST) -> bool:
    if isinstance(node, _FORBIDDEN):
        return False
    source = scope.source
    match node:
        case ast.Call(func=ast.Name(id=name)):
            is_builtin = (name in PURE_BUILTINS or _is_error(name)) and source.is_builtin(name)
            return name == scope.function.name or is_builtin
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            return source.has_import("math")
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            if method in _LIST_METHODS:
                return _is_own_list(scope, name)
            return method in READING_METHODS
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in READING_METHODS
        case ast.Call():
            return False
        case ast.Attribute(ctx=ast.Load()):
            parent = source.parents[node]
            is_called = isinstance(parent, ast.Call) and parent.func is node
            return is_called or ast.unparse(node.value) == "math"
        case ast.Attribute():
            return False
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return isinstance(value, ast.Name) and _is_own_list(scope, value.id)
        case ast.AugAssign(target=ast.Name(id=name)):
            return scope.parameter(name) is None  # a list of the caller would grow
    return True


def _is_error(name: str) -> bool:
    value = getattr(builtins, name, None)
    return isinstance(value, type) and issubclass(value, Exception)


def _is_own_list(scope: FunctionScope, name: str) -> bool:
    """Return whether a name is the only one for a list that the function makes."""
    values = scope.get_values(name)
    is_private = scope.is_local(name) and scope.parameter(name) is None
    is_new = bool(values) and all(is_new_list(value, scope.source) for value in values)
    return is_private and is_new and not scope.has_alias(name)


def _returns_values(scope: FunctionScope) -> bool:
    """Return whether a function returns something, and nothing that its caller could change."""
    nodes = scope.source.walk(scope.function)
    mutable: set[str] = set()
    while True:
        more = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and _may_be_mutable(scope, node.value, mutable)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if more <= mutable:
            break
        mutable |= more
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    if not any(returned) or is_mutable_type(scope.function.returns):
        return False
    return not any(
        value is not None and _may_be_mutable(scope, value, mutable)
        for value in (*returned, *_list_collected(scope))
    )


def _list_collected(scope: FunctionScope) -> list[ast.expr]:
    """Return what is put into lists: one of the items may be returned."""
    items: list[ast.expr] = []
    for node in scope.source.walk(scope.function):
        match node:
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                items.append(item)
            case ast.Call(func=ast.Attribute(attr="append" | "extend" | "insert"), args=args):
                items += args
    return items


def _may_be_mutable(scope: FunctionScope, node: ast.expr, mutable: set[str]) -> bool:
    if is_visibly_unhashable(node) or isinstance(node, ast.GeneratorExp):
        return True
    if is_new_list(node, scope.source):
        return True
    match node:
        case ast.Name(id=name):
            return name in mutable
        case ast.Tuple(elts=parts) | ast.BoolOp(values=parts):
            return any(_may_be_mutable(scope, part, mutable) for part in parts)
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return _may_be_mutable(scope, one, mutable) or _may_be_mutable(scope, other, mutable)
        case ast.Subscript(value=value, slice=ast.Slice()):
            return not (isinstance(value, ast.Name) and is_text(scope, value.id))
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as parts):
            return any(_may_be_mutable(scope, part, mutable) for part in parts)
        case ast.Call(func=ast.Name(id=name)):
            return name in _MUTABLE_RESULTS
        case ast.Call(func=ast.Attribute(attr="copy" | "split" | "union" | "difference")):
            return True
    return False


def _takes_values(scope: FunctionScope) -> bool:
    """Return whether the arguments look hashable, in the function and in all its calls."""
    source, function = scope.source, scope.function
    defaults = [*function.args.defaults, *(each for each in function.args.kw_defaults if each)]
    for parameter in list_parameters(function):
        name = ast.Name(parameter.arg, ast.Load())
        if is_mutable_type(parameter.annotation) or is_unhashable(scope, name):
            return False
        if not is_hashable(scope, name):
            return False
    own = set(_list_own_calls(scope))
    calls = [node for node in source.walk(source.tree) if _calls(node, function.name)]
    for call in calls:
        assert isinstance(call, ast.Call)
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(is_visibly_unhashable(value) or is_new_list(value, source) for value in values):
            return False
        if call in own and not all(
            _calls(value, function.name) or is_hashable(scope, value) for value in values
        ):
            return False
    return not any(map(is_visibly_unhashable, defaults))


def _list_free_names(scope: FunctionScope) -> set[str]:
    """Return the names that a function reads and doesn't bind, without builtins and itself."""
    source, function = scope.source, scope.function
    own = {name for node in source.walk(function) for name in get_bound_names(node)}
    return {
        node.id
        for statement in function.body
        for node in source.walk(statement)
        if isinstance(node, ast.Name) and node.id not in own | {"math"}
        if not ((node.id in PURE_BUILTINS or _is_error(node.id)) and source.is_builtin(node.id))
    }


def _has_stable_names(scope: FunctionScope) -> bool:
    """Return whether the names from outside always have the same values while results are kept."""
    source = scope.source
    outer = source.get_scope_node(scope.function)
    if outer is None:
        return all(_is_module_constant(source, name) for name in _list_free_names(scope))
    if not isinstance(outer, ast.FunctionDef):
        return False
    around = FunctionScope(source, "", outer)
    for mention in around.mentions(scope.function.name):
        call = source.parents[mention]
        if not isinstance(call, ast.Call) or call.func is not mention:
            return False  # it may be called when the outer function has returned
        if not all(is_hashable(around, value) for value in call.args):
            return False
    for name in _list_free_names(scope):
        if _is_module_constant(source, name):
            continue
        if not around.is_closure_local(name) or around.has_alias(name):
            return False
        later = [node for node in around.mentions(name) if node.lineno > scope.function.lineno]
        if not all(map(around.is_read, later)) or around.loops(scope.function):
            return False
    return True


def _is_module_constant(source: SourceFile, name: str) -> bool:
    """Return whether the module binds a name once, to a number or a string."""
    binders = source.binders.get(name, [])
    if len(binders) != 1:
        return False
    match source.parents[binders[0]]:
        case ast.Assign(targets=[_], value=ast.Constant() | ast.UnaryOp()) as statement:
            return source.parents[statement] is source.tree
    return False


def _write_cache(scope: FunctionScope) -> CodeChange:
    source, function = scope.source, scope.function
    outer = source.get_scope_node(function)
    wish = f"_{function.name.lstrip('_')}_results" if outer is None else f"{function.name}_results"
    results, key = source.make_name(wish), source.make_name("key")
    names = [parameter.arg for parameter in list_parameters(function)]
    # 1, 1.0 and True are equal, but their results may differ; and constants may be changed.
    constants = [] if outer else sorted(_list_free_names(scope))
    parts = ", ".join([*names, *(f"type({name})" for name in names), *constants])
    has_docstring = ast.get_docstring(function, clean=False) is not None
    first = function.body[1 if has_docstring else 0]
    start = f"{key} = ({parts})\nif {key} in {results}:\n    return {results}[{key}]"
    edits: list[TextEdit] = [("before", function, f"{results} = {{}}"), ("before", first, start)]
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            value = f"{results}.setdefault({key}, {source.render(node.value)})"
            edits.append(("replace", node.value, value))
    description = f"results of {function.name} are remembered"
    return CodeChange(description, function.lineno, scope.name, tuple(edits))
