"""Make a set, before a loop, of a list that the loop tests for membership and doesn't change.

The list may be a name, an attribute, a subscript, a call or a comprehension. Its type is usually
unknown: the new code makes a set of lists and tuples only and keeps every other object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.code_patterns import is_same_code
from fairtrial_codemod.analysis.effects import (
    get_attribute_values,
    is_left_meanwhile,
)
from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.hashability import is_hashable, is_visibly_unhashable
from fairtrial_codemod.analysis.python_facts import (
    TEXT_METHODS,
    is_new_list,
)
from fairtrial_codemod.analysis.source_file import (
    CodeChange,
    ComprehensionNode,
    LoopNode,
    SourceFile,
    TextEdit,
)
from fairtrial_codemod.analysis.stability import is_stable

_NO_LISTS = frozenset(
    {"str", "bytes", "set", "frozenset", "dict", "range", "int", "float", "bool", "len", "sum"}
    | {"Counter", "defaultdict", "OrderedDict", "deque", "open", "input", "iter", "map", "filter"}
    | {"zip", "enumerate", "reversed", "vars", "globals", "locals", "type", "super", "keys"}
    | {"items", "values", "union", "intersection", "difference"}
)
"""Functions and methods that never return a list or a tuple."""
_LIST_METHODS = frozenset({"split", "rsplit", "splitlines", "values", "get"})
"""Reading methods whose result may be a list or is worth to become one."""
_OPEN_TYPES = frozenset({"Sequence", "Collection", "Iterable", "Container", "Any", "object"})
"""Types that lists have, too; annotated lists are handled by `growing_sets`."""
_TABLE_METHODS = frozenset({"get", "keys", "values", "items"})


def find_lookup_sets(source: SourceFile) -> Iterator[CodeChange]:
    """Find tests like ``x in known`` or ``x in article["tags"]`` in loops."""
    if not source.is_builtin("set", "type", "list", "tuple", "TypeError"):
        return
    for scope in list_scopes(source):
        done: set[str] = set()
        taken: list[str] = []
        for node in scope.own_nodes(ast.Compare):
            searched = _get_searched(node)
            if searched is None or ast.unparse(searched) in done:
                continue
            loop = _find_loop(scope, node, searched)
            if loop is None or not _may_be_list(scope, searched):
                continue
            change = _write_set(scope, searched, loop, taken)
            if change:
                done.add(ast.unparse(searched))
                yield change


def _get_searched(node: ast.AST) -> ast.expr | None:
    """Return the right side of a membership test."""
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[searched]):
            return searched
    return None


def _find_loop(
    scope: FunctionScope, test: ast.AST, searched: ast.expr
) -> LoopNode | ComprehensionNode | None:
    """Return the largest loop around a test in which the searched object stays the same."""
    best = scope.find_largest_loop(
        test,
        lambda loop: not is_left_meanwhile(scope, loop) and is_stable(scope, searched, loop),
    )
    return best if best is not None and scope.can_insert_before(best) else None


def _may_be_list(scope: FunctionScope, searched: ast.expr) -> bool:
    """Return whether the searched object may be a list or tuple that no other set stands for."""
    source = scope.source
    match searched:
        case ast.ListComp(elt=item) | ast.SetComp(elt=item):
            return not is_visibly_unhashable(item)
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in _LIST_METHODS
        case ast.Call(func=ast.Name(id="list" | "set" | "tuple" | "sorted")):
            return True
        case ast.Call():
            return False
    text = ast.unparse(searched)
    for node in source.walk(scope.function):
        if type(node) is not type(searched) or not isinstance(node, ast.expr):
            continue
        if ast.unparse(node) == text and _shows_other_type(scope, node):
            return False
    match searched:
        case ast.Attribute(attr=attr):
            return all(map(_may_return_list, get_attribute_values(source, attr)))
        case ast.Name(id=name):
            return _may_name_list(scope, name)
    return True


def _may_name_list(scope: FunctionScope, name: str) -> bool:
    source, parameter = scope.source, scope.parameter(name)
    values = scope.get_values(name)
    if parameter is not None:
        is_open = parameter.annotation is None or _is_open_type(parameter.annotation)
        is_self = isinstance(source.parents[scope.function], ast.ClassDef) and (
            parameter in scope.function.args.args[:1]
        )
        return is_open and not is_self and all(_is_default(scope, name, value) for value in values)
    # If all values are new lists, `growing_sets` handles the name.
    is_unknown = any(not is_new_list(value, source) for value in values)
    return is_unknown and all(_is_own_or_returned(scope, value) for value in values)


def _is_default(scope: FunctionScope, name: str, value: ast.expr | None) -> bool:
    """Return whether a parameter gets a new list, perhaps by ``items = items or []``."""
    match value:
        case ast.BoolOp(op=ast.Or(), values=[ast.Name(id=given), ast.List() | ast.Tuple()]):
            return given == name
    return is_new_list(value, scope.source)


def _is_own_or_returned(scope: FunctionScope, value: ast.expr | None) -> bool:
    """Return whether a value may be a list, and no other name of the function stands for it."""
    match value:
        case ast.BoolOp(op=ast.Or(), values=[ast.Name(id=given), ast.List() | ast.Tuple()]):
            return not scope.bindings(given)
        case ast.Call():
            return _may_return_list(value)
    return is_new_list(value, scope.source)


def _may_return_list(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=made) | ast.Attribute(attr=made)):
            return made not in _NO_LISTS and made not in TEXT_METHODS
        case ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp() | ast.JoinedStr():
            return False
        case ast.Constant(value=constant):
            return constant is None
    return True


def _is_open_type(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _OPEN_TYPES
        case ast.Subscript(value=value):
            return _is_open_type(value)
        case ast.Constant(value=str(text)):
            return text.partition("[")[0] in _OPEN_TYPES
    return False


def _shows_other_type(scope: FunctionScope, node: ast.expr) -> bool:
    """Return whether the use of an object shows that it is a string or a dictionary."""
    match scope.source.parents[node]:
        case ast.Attribute(attr=attr):
            return attr in _TABLE_METHODS or attr in TEXT_METHODS
        case ast.Subscript(value=value, slice=ast.Constant(value=str())):
            return value is node
        case ast.Subscript(value=value, slice=place) if value is node:
            return any(
                is_same_code(place, test.left) and is_same_code(node, test.comparators[0])
                for test in scope.source.walk(scope.function)
                if isinstance(test, ast.Compare)
            )
        case ast.Compare(left=ast.Constant(value=str() | bytes())):
            return True
    return False


def _write_set(
    scope: FunctionScope,
    searched: ast.expr,
    loop: LoopNode | ComprehensionNode,
    taken: list[str],
) -> CodeChange | None:
    source, text = scope.source, ast.unparse(searched)
    name = source.make_name(f"{_get_label(searched)}_set", *taken)
    edits: list[TextEdit] = []
    for node in ast.walk(loop):
        other = _get_searched(node)
        if other is not None and ast.unparse(other) == text:
            assert isinstance(node, ast.Compare)
            if not is_hashable(scope, node.left):
                return None
            edits.append(("replace", other, name))
    taken.append(name)
    value = source.render(searched)
    match searched:
        case ast.Call(func=ast.Attribute(attr="values")):
            value = f"list({value})"
    code = (
        f"{name} = {value}\n"
        f"if type({name}) in (list, tuple):\n"
        "    try:\n"
        f"        {name} = set({name})\n"
        "    except TypeError:\n"
        "        pass"
    )
    line = min(node.lineno for _, node, _ in edits if isinstance(node, ast.expr))
    before: TextEdit = ("before", source.get_statement(loop), code)
    description = f"if {text} is a list, a set of it is searched"
    return CodeChange(description, line, scope.name, (before, *edits))


def _get_label(searched: ast.expr) -> str:
    """Return a word for a searched expression, to name its set after."""
    match searched:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_") or "known"
        case ast.Subscript(slice=ast.Constant(value=str(key))) if key.isidentifier():
            return key.lstrip("_") or "known"
        case ast.Subscript(value=ast.Name(id=name)):
            return f"{name}_item"
    return "known"
