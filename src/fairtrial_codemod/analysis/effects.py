"""Whether code in a loop may change an object that is read before the loop instead of in it."""

from __future__ import annotations

import ast

from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse
from fairtrial_codemod.analysis.iterables import get_type_name, get_type_names
from fairtrial_codemod.analysis.python_facts import LAZY_BUILTINS, PURE_BUILTINS, READING_METHODS
from fairtrial_codemod.analysis.source_file import SUSPENDING, FunctionNode, SourceFile

_HARMLESS_BUILTINS = frozenset({"print", "format", "getattr", "hasattr", "id", "iter", "slice"})
_HARMLESS_BUILTINS |= {"type"}
_PURE_MODULES = frozenset(
    {"math", "cmath", "operator", "itertools", "re", "string", "copy"}
    | {"collections", "statistics", "json", "textwrap", "unicodedata", "datetime"}
)
_WAITING_WORDS = (
    *("sleep", "wait", "poll", "recv", "join", "select", "acquire", "get", "put", "submit"),
)
"""Parts of the names of functions during which other code may run."""
_OWN_PARTS = frozenset({"list", "dict", "set"})
_CALL_DEPTH = 2
"""How far calls of the module's own functions are followed."""


def is_unchanged(scope: FunctionScope, name: str, within: ast.AST) -> bool:
    """Return whether a local name keeps its value, and the value its content, within a node."""
    if is_read_later(scope, name, within):
        return False
    return scope.is_only_read(name, within) and not may_change_elsewhere(scope, name, within)


def is_unchanged_attribute(scope: FunctionScope, held: ast.Attribute, loop: ast.AST) -> bool:
    """Return whether a loop only reads an attribute of a parameter and hands its owner to
    nobody.
    """
    source = scope.source
    if not isinstance(held.value, ast.Name):
        return False
    owner = held.value.id
    if scope.parameter(owner) is None or scope.bindings(owner) or not scope.is_local(owner):
        return False
    methods = {function.name for _, function in source.functions}
    if held.attr in methods or _has_attribute_alias(scope, held):
        return False
    for mention in scope.mentions(owner, loop):
        attribute = source.parents[mention]
        if not isinstance(attribute, ast.Attribute):
            return False
        if attribute.attr == held.attr:
            if not scope.is_read(attribute):
                return False
        elif is_called(source, attribute):
            return False  # a method may change anything of its object
    return True


def _has_attribute_alias(scope: FunctionScope, held: ast.Attribute) -> bool:
    """Return whether the function has another name for an attribute, or for a method of it."""
    text = ast.unparse(held)
    naming = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Tuple | ast.List
    for node in scope.source.walk(scope.function):
        if isinstance(node, ast.Attribute) and node.attr == held.attr and ast.unparse(node) == text:
            parent = scope.source.parents[node]
            if isinstance(parent, naming):
                return True
            if isinstance(parent, ast.Attribute) and not is_called(scope.source, parent):
                return True
    return False


def is_called(source: SourceFile, node: ast.expr) -> bool:
    """Return whether an expression is the function of a call."""
    above = source.parents[node]
    return isinstance(above, ast.Call) and above.func is node


def get_attribute_values(source: SourceFile, name: str) -> list[ast.expr | None]:
    """Return the values that the module assigns to attributes of that name."""
    values: list[ast.expr | None] = []
    for node in source.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == name:
            match source.parents[node]:
                case ast.Assign(targets=[target], value=value) if target is node:
                    values.append(value)
                case ast.AnnAssign(target=target, value=value) if target is node:
                    values.append(value)
    return values


def is_read_later(scope: FunctionScope, name: str, within: ast.AST) -> bool:
    """Return whether a generator in a node may read a name after its value has changed."""
    return any(
        isinstance(node, ast.GeneratorExp)
        and not is_consumed(scope, node)
        and len(scope.mentions(name, node)) > len(scope.mentions(name, node.generators[0].iter))
        for node in scope.source.walk(within)
    )


def is_consumed(scope: FunctionScope, generator: ast.GeneratorExp) -> bool:
    """Return whether a generator is used up, or dropped, where it is made."""
    match scope.source.parents[generator]:
        case ast.Call(func=ast.Name(id=name)):
            is_eager = name in (PURE_BUILTINS - LAZY_BUILTINS) | {"next"}
            return is_eager and scope.source.is_builtin(name)
        case ast.Call(func=ast.Attribute(attr="join" | "extend" | "update")) | ast.Starred():
            return True
    return False


def may_change_elsewhere(scope: FunctionScope, name: str, within: ast.AST) -> bool:
    """Return whether a node may change the value of a name without a mention of it.

    ``while len(queue) < n: self.poll()`` may, if the queue is a parameter. Imported functions count
    as harmless unless their names say that they wait.
    """
    if scope.is_immutable(name) or _is_private(scope, name):
        return False
    return any(
        _may_change_others(scope, node, 0)
        for node in scope.source.walk(within)
        if not _is_done_to(node, name)
    )


def may_change_shared(scope: FunctionScope, within: ast.AST) -> bool:
    """Return whether a node may change any object that the function didn't make itself."""
    return any(_may_change_others(scope, node, 0) for node in scope.source.walk(within))


def is_left_meanwhile(scope: FunctionScope, loop: ast.AST) -> bool:
    """Return whether other code may run between two rounds of a loop."""
    for node in ast.walk(loop):
        if isinstance(node, SUSPENDING):
            return True
        if isinstance(node, ast.GeneratorExp) and not is_consumed(scope, node):
            return True
    return False


def _is_done_to(node: ast.AST, name: str) -> bool:
    """Return whether a node is an operation on the name itself: ``name.append(x)``."""
    match node:
        case (
            ast.Call(func=ast.Attribute(value=ast.Name(id=used)))
            | ast.Subscript(value=ast.Name(id=used))
        ):
            return used == name
    return False


def _is_private(scope: FunctionScope, name: str) -> bool:
    """Return whether the function makes the object and hands it to nobody who may store it."""
    is_stored = any(scope.classify(node) is NameUse.OTHER for node in scope.mentions(name))
    return not is_stored and scope.is_local(name) and _is_made_here(scope, name)


def _may_change_others(scope: FunctionScope, node: ast.AST, depth: int) -> bool:
    if isinstance(node, SUSPENDING):
        return True
    match node:
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return not _is_own_value(scope, value)
        case ast.AugAssign(target=target, value=value):
            # The target may be a list that has other names.
            return not _is_number_or_text(scope, value) and not _is_own_value(scope, target)
        case ast.Call():
            return not _is_harmless(scope, node, depth)
    return False


def _is_number_or_text(scope: FunctionScope, value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="len" | "int" | "float" | "str" | "ord" as name)):
            return scope.source.is_builtin(name)
    return isinstance(value, ast.Constant | ast.JoinedStr)


def _is_own_value(scope: FunctionScope, value: ast.expr) -> bool:
    """Return whether an object was made by the function: a collection, or a part of one whose
    parts the function has all made.
    """
    match value:
        case ast.Name(id=name):
            return _is_made_here(scope, name)
        case ast.Subscript(value=ast.Name(id=name)):
            return _is_made_here(scope, name) and _has_own_parts(scope, name)
    return False


def _has_own_parts(scope: FunctionScope, name: str) -> bool:
    """Return whether all parts of a collection are new lists, sets or dictionaries."""
    for value in scope.get_values(name):
        match value:
            case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Call(args=[], keywords=[]):
                continue
            case ast.ListComp(elt=part) | ast.DictComp(value=part):
                if get_type_name(scope.source, part) in _OWN_PARTS:
                    continue
            case ast.Call(func=ast.Name(id="defaultdict"), args=[ast.Name(id="list" | "set")]):
                continue
        return False
    for mention in scope.mentions(name):
        parent = scope.source.parents[mention]
        match parent, scope.source.parents.get(parent):
            case ast.Subscript(ctx=ast.Load()), _:
                continue
            case ast.Subscript(ctx=ast.Store()), ast.Assign(value=value):
                if get_type_name(scope.source, value) in _OWN_PARTS:
                    continue
            case ast.Attribute(attr="append"), ast.Call(args=[value]):
                if get_type_name(scope.source, value) in _OWN_PARTS:
                    continue
            case _ if scope.classify(mention) in (NameUse.BIND, NameUse.TEST, NameUse.RETURN):
                continue
            case _ if scope.is_read(mention):
                continue
        return False
    return True


def _is_made_here(scope: FunctionScope, name: str) -> bool:
    """Return whether all values of a name are collections that the function makes."""
    return scope.parameter(name) is None and "" not in (get_type_names(scope, name) or {""})


def _is_harmless(scope: FunctionScope, call: ast.Call, depth: int) -> bool:
    """Return whether a call can't change objects of others, as far as the module shows."""
    source = scope.source
    match call.func:
        case ast.Name(id="next") if call.args and isinstance(call.args[0], ast.GeneratorExp):
            return source.is_builtin("next")
        case ast.Name(id="map" | "filter" as name):
            applied = call.args[0] if call.args else None
            is_pure = isinstance(applied, ast.Name) and applied.id in PURE_BUILTINS
            return is_pure and source.is_builtin(name)
        case ast.Name(id=name):
            is_pure = name in PURE_BUILTINS | _HARMLESS_BUILTINS
            if (is_pure or name.endswith(("Error", "Exception"))) and source.is_builtin(name):
                return True
            if source.is_imported(name):
                return not _may_wait(name)
            return _is_harmless_name(source, name, depth)
        case ast.Attribute(value=ast.Name(id=module), attr=name) if source.is_imported(module):
            return module in _PURE_MODULES or not _may_wait(name)
        case ast.Attribute(attr=method) if method in READING_METHODS:
            return True
        case ast.Attribute(value=value):
            return _is_own_value(scope, value) or isinstance(value, ast.Constant)
    return False


def _may_wait(name: str) -> bool:
    return any(word in name.lower() for word in _WAITING_WORDS)


def _is_harmless_name(source: SourceFile, name: str, depth: int) -> bool:
    """Return whether a name is bound once, to a harmless function or class of the module."""
    definitions = [node for node in source.tree.body if getattr(node, "name", None) == name]
    if depth >= _CALL_DEPTH or len(definitions) != 1 or len(source.binders[name]) != 1:
        return False
    (definition,) = definitions
    if isinstance(definition, ast.ClassDef):
        methods = [node for node in definition.body if isinstance(node, ast.FunctionDef)]
        created = ("__init__", "__post_init__", "__new__")
        is_plain = all(isinstance(base, ast.Name) for base in definition.bases)
        return is_plain and all(
            _is_harmless_function(source, method, depth)
            for method in methods
            if method.name in created
        )
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return not definition.decorator_list and _is_harmless_function(source, definition, depth)


def _is_harmless_function(source: SourceFile, function: FunctionNode, depth: int) -> bool:
    scope = FunctionScope(source, function.name, function)
    nodes = [node for statement in function.body for node in source.walk(statement)]
    if any(isinstance(node, ast.Global | ast.Nonlocal) for node in nodes):
        return False
    return not any(
        _may_change_others(scope, node, depth + 1)
        for node in nodes
        if not _calls(node, function.name)
    )


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
