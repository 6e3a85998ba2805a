"""What can be gone through: of which kind it is, whether only once, and whether to its end."""

from __future__ import annotations

import ast

from fairtrial_codemod.transforms.analysis.kinds import READING
from fairtrial_codemod.transforms.analysis.source import Source
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope, is_fresh_list

_MAKING = frozenset({"list", "dict", "set", "tuple", "frozenset", "str", "bytes", "range"})
_CLASSES = frozenset({"deque", "defaultdict", "Counter", "OrderedDict"})
_SEQUENCES = frozenset({"list", "tuple", "str", "bytes", "range", "sequence", "mutablesequence"})
_DICTIONARIES = frozenset({"dict", "defaultdict", "ordereddict", "counter"})
_OTHERS = frozenset({"set", "frozenset", "deque", "mapping", "mutablemapping", "collection"})


def kind_of(source: Source, value: ast.expr | None) -> str:
    """What an expression makes: ``list``, ``dict``, ...; "" if it may be anything."""
    match value:
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.Tuple():
            return "tuple"
        case ast.JoinedStr():
            return "str"
        case ast.Constant(value=constant):
            return type(constant).__name__
        case ast.Call(func=ast.Name(id=name)) if name in _MAKING and source.is_builtin(name):
            return name
        case (
            ast.Call(func=ast.Name(id=name))
            | ast.Call(func=ast.Attribute(value=ast.Name(id="collections"), attr=name))
        ) if name in _CLASSES:
            return name.lower()
    return "list" if is_fresh_list(value, source) else ""


def kinds_of(scope: Scope, name: str) -> set[str]:
    """What a name of a function stands for, as far as annotations and assignments say."""
    kinds = {
        kind_of(scope.source, scope.assignment(each))
        for each in scope.bindings(name)
        if not isinstance(scope.source.parents[each], ast.AugAssign)  # that changes no kind
    }
    parameter = scope.parameter(name)
    if parameter is not None:
        kinds.add(_named(parameter.annotation))
    return kinds if scope.is_local(name) else {""}


def is_sequence(scope: Scope, name: str) -> bool:
    """Whether it has places from 0 on, in the order in which one goes through it."""
    kinds = kinds_of(scope, name)
    return bool(kinds) and kinds <= _SEQUENCES


def is_dictionary(scope: Scope, node: ast.expr) -> bool:
    """Whether it is a dictionary beyond doubt: others have keys, too, but look elsewhere."""
    if isinstance(node, ast.Name):
        kinds = kinds_of(scope, node.id)
        return bool(kinds) and kinds <= _DICTIONARIES
    return kind_of(scope.source, node) in _DICTIONARIES


def is_repeatable(scope: Scope, items: ast.expr) -> bool:
    """Whether it can be gone through again and again: no iterator, which is used up."""
    match items:
        case ast.Call(func=ast.Attribute(attr=method)) if method in READING:
            return True
        case ast.Subscript(value=value, slice=ast.Slice()):
            return is_repeatable(scope, value)
        case ast.Name(id=name):
            kinds = kinds_of(scope, name)
            if kinds and kinds <= _SEQUENCES | _DICTIONARIES | _OTHERS:
                return True
            is_said = all(kind_of(scope.source, each) for each in _values(scope, name))
            return is_said and any(_is_sized(scope, each) for each in scope.mentions(name))
    return kind_of(scope.source, items) != ""


def may_stop_early(scope: Scope, condition: ast.expr, items: ast.expr) -> bool:
    """Whether nobody notices that the last of some items are no longer asked for."""
    given = [items]
    match items:
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" as name)):
            given = items.args if scope.source.is_builtin(name) else given
    return is_simple(scope.source, condition) and all(is_repeatable(scope, each) for each in given)


def is_simple(source: Source, node: ast.expr) -> bool:
    """Whether it may be left out once the answer is known: it calls nothing but pure builtins."""
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Name(id=name)):
                if name not in PURE or not source.is_builtin(name):
                    return False
            case ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
                return False
    return True


def _values(scope: Scope, name: str) -> list[ast.expr]:
    """What is assigned to a name by itself; loops and the like give it something else."""
    values = [scope.assignment(each) for each in scope.bindings(name)]
    return [each for each in values if each is not None]


def _is_sized(scope: Scope, mention: ast.Name) -> bool:
    """Whether its length, or one of its elements, is asked for: no iterator can tell."""
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Name(id="len"), args=[it]) | ast.Subscript(value=it):
            return it is mention
    return False


def _named(annotation: ast.expr | None) -> str:
    """The type that an annotation names, without what is in it; "" if it may be another."""
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if isinstance(annotation, ast.Attribute):
        return annotation.attr.lower()
    return annotation.id.lower() if isinstance(annotation, ast.Name) else ""
