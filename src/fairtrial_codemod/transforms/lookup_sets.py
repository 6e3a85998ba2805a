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
    is_called,
    is_left_meanwhile,
    is_read_expression,
    is_unchanged,
    is_unchanged_attribute,
    may_change_shared,
)
from fairtrial_codemod.analysis.function_scope import (
    LAZY_BUILTINS,
    PURE_BUILTINS,
    READING_METHODS,
    TEXT_METHODS,
    FunctionScope,
    is_new_list,
    list_scopes,
)
from fairtrial_codemod.analysis.hashability import is_hashable, is_visibly_unhashable
from fairtrial_codemod.analysis.source_file import (
    COMPREHENSIONS,
    CodeChange,
    ComprehensionNode,
    LoopNode,
    SourceFile,
    TextEdit,
)

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
_UNMOVABLE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)


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
    best = None
    for loop in reversed(scope.loops(test)):
        if is_left_meanwhile(scope, loop) or not _is_stable(scope, searched, loop):
            break
        best = loop
    return best if best is not None and scope.can_insert_before(best) else None


def _is_stable(scope: FunctionScope, node: ast.expr, loop: LoopNode | ComprehensionNode) -> bool:
    """Return whether an expression has the same value in every round of a loop."""
    statement = scope.source.get_statement(loop)
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            is_set = scope.is_assigned_before(name, statement)
            return is_set and is_unchanged(scope, name, loop)
        case ast.Attribute(value=ast.Name(id=owner)):
            if scope.parameter(owner) is not None and not scope.bindings(owner):
                return is_unchanged_attribute(scope, node, loop)
            is_same = _is_stable_owner(scope, owner, loop)
            return is_same and _is_only_read(scope, node, loop)
        case ast.Subscript(value=value, slice=ast.Name() | ast.Constant() as place):
            is_same = _is_stable(scope, value, loop) and _is_stable(scope, place, loop)
            return is_same and _is_only_read(scope, node, loop)
    if isinstance(node, ast.Call | ast.ListComp | ast.SetComp):
        return _is_stable_computation(scope, node, loop)
    return False


def _is_stable_owner(scope: FunctionScope, owner: str, loop: LoopNode | ComprehensionNode) -> bool:
    """Return whether a loop only reads attributes of an object that a local name stands for."""
    source = scope.source
    if not scope.is_local(owner):
        return False
    for mention in scope.mentions(owner, loop):
        parent = source.parents[mention]
        if not isinstance(parent, ast.Attribute) or is_called(source, parent):
            return False
    return scope.is_assigned_before(owner, source.get_statement(loop))


def _is_only_read(scope: FunctionScope, node: ast.expr, loop: ast.AST) -> bool:
    """Return whether a loop changes no part of objects that others may hold, and the function
    has no other name for a part like this.
    """
    root = ast.unparse(node.value) if isinstance(node, ast.Attribute | ast.Subscript) else ""
    for part in scope.source.walk(scope.function):
        if isinstance(part, ast.Attribute | ast.Subscript) and type(part) is type(node):
            if ast.unparse(part.value) != root:
                continue
            parent = scope.source.parents[part]
            if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                return False
            is_inside = part in set(scope.source.walk(loop))
            if is_inside and not is_read_expression(scope, part):
                return False
    return not may_change_shared(scope, loop)


def _is_stable_computation(
    scope: FunctionScope, node: ast.expr, loop: LoopNode | ComprehensionNode
) -> bool:
    """The same for a call or a comprehension: all that it reads stays the same."""
    own = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    written = {
        part.attr
        for part in ast.walk(loop)
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load)
    }
    # The first iterable of a comprehension is evaluated outside of it.
    outside = {
        part
        for comprehension in ast.walk(node)
        if isinstance(comprehension, COMPREHENSIONS)
        for part in ast.walk(comprehension.generators[0].iter)
    }
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Load()) if name not in own or part in outside:
                is_pure = name in PURE_BUILTINS and scope.source.is_builtin(name)
                if not is_pure and not _stays_usable(scope, part, loop):
                    return False
            case ast.Call(func=ast.Attribute(attr=method)) if method in READING_METHODS:
                pass
            case ast.Call(func=func) if not isinstance(func, ast.Name) or func.id in own:
                return False
            case ast.Attribute(attr=attr) if attr in written:
                return False
        if isinstance(part, _UNMOVABLE):
            return False
    return True


def _stays_usable(scope: FunctionScope, name: ast.Name, loop: LoopNode | ComprehensionNode) -> bool:
    """Return whether a name stays the same, is never tested for None, and is no iterator."""
    if not _is_stable(scope, name, loop) or scope.may_be_none(name.id, loop):
        return False
    for value in scope.get_values(name.id):
        match value:
            case ast.GeneratorExp() | ast.Call(func=ast.Attribute()):
                return False
            case ast.Call(func=ast.Name(id=made)):
                if made not in PURE_BUILTINS or made in LAZY_BUILTINS:
                    return False
    return True


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
        return is_open and not is_self and all(_is_default(scope, name, each) for each in values)
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
