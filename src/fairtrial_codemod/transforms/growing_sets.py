"""Keep a set beside a list that grows and is tested for membership in a loop or a recursion."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.effects import may_change_elsewhere
from fairtrial_codemod.analysis.function_scope import FunctionScope, NameUse, list_scopes
from fairtrial_codemod.analysis.hashability import (
    is_hashable,
    is_unhashable,
    is_visibly_unhashable,
)
from fairtrial_codemod.analysis.iterables import is_repeatable
from fairtrial_codemod.analysis.python_facts import is_new_list
from fairtrial_codemod.analysis.source_file import (
    LOOPS,
    SUSPENDING,
    CodeChange,
    SourceFile,
    TextEdit,
)

_UNAFFECTED = ("count", "index", "copy", "sort", "reverse")
"""Methods of lists that leave the set of their items unchanged."""
_LIST_TYPES = {"list", "List", "tuple", "Tuple"}


def find_growing_sets(source: SourceFile) -> Iterator[CodeChange]:
    """Find lists like `seen` in ``if x not in seen: seen.append(x)``."""
    if not source.is_builtin("set"):
        return
    for scope in list_scopes(source):
        for name in sorted(set(_list_tested_names(scope))):
            change = _add_set(scope, name)
            if change:
                yield change


def _list_tested_names(scope: FunctionScope) -> Iterator[str]:
    """Yield the names that are tested for membership repeatedly."""
    for node in scope.source.walk(scope.function):
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=name)]):
                if _list_repeating_nodes(scope, node):
                    yield name


def _list_repeating_nodes(scope: FunctionScope, node: ast.AST) -> list[ast.AST]:
    """Return the loops around a node; for one in a nested function, what repeats its calls."""
    nested = scope.source.get_scope_node(node)
    if nested is scope.function:
        return [*scope.loops(node)]
    if not isinstance(nested, ast.FunctionDef):
        return []
    if scope.source.get_scope_node(nested) is not scope.function:
        return []
    repeating: list[ast.AST] = []
    for mention in scope.mentions(nested.name):
        if scope.source.get_scope_node(mention) is nested:
            repeating.append(nested)
        else:
            repeating += scope.loops(mention)
    return repeating


def _add_set(scope: FunctionScope, name: str) -> CodeChange | None:
    source = scope.source
    is_shared = not scope.is_local(name)
    if is_shared and not _is_safe_closure(scope, name):
        return None
    tests = [node for node in scope.mentions(name) if scope.classify(node) is NameUse.TEST]
    if any(is_unhashable(scope, _get_sought(scope, test)) for test in tests):
        return None
    added = source.make_name(f"{name}_set")
    starts = _get_starts(scope, name, added)
    if not starts or not _pays(scope, tests, starts):
        return None
    edits: list[TextEdit] = []
    for mention in scope.mentions(name):
        more = _mirror_use(scope, mention, added)
        if more is None:
            if is_shared or not _is_after_tests(scope, mention, tests, starts):
                return None
            continue
        edits += more
    is_computed = any(kind == "replace" and isinstance(node, ast.stmt) for kind, node, _ in edits)
    if is_computed and not all(is_hashable(scope, _get_sought(scope, test)) for test in tests):
        return None
    is_grown = any(isinstance(node, ast.stmt) for _, node, _ in edits)
    if not is_grown and all(code.endswith(" = set()") for *_, code in starts):
        return None  # the list stays empty
    description = f"a set beside {name} answers whether an item is in it"
    return CodeChange(description, tests[0].lineno, scope.name, (*starts, *edits))


def _is_safe_closure(scope: FunctionScope, name: str) -> bool:
    """Return whether nested functions that mention a list are only called, never handed on."""
    source = scope.source
    if not scope.is_closure_local(name) or scope.parameter(name):
        return False
    for mention in scope.mentions(name):
        nested = source.get_scope_node(mention)
        if nested is scope.function:
            continue
        if not isinstance(nested, ast.FunctionDef) or nested.decorator_list:
            return False
        if scope.classify(mention) is NameUse.RETURN:
            return False
        if any(isinstance(node, SUSPENDING) for node in source.walk(nested)):
            return False
        for call in scope.mentions(nested.name):
            parent = source.parents[call]
            if not isinstance(parent, ast.Call) or parent.func is not call:
                return False
    return True


def _get_sought(scope: FunctionScope, tested: ast.Name) -> ast.expr:
    """Return the left side of a membership test."""
    test = scope.source.parents[tested]
    assert isinstance(test, ast.Compare)
    return test.left


def _get_starts(scope: FunctionScope, name: str, added: str) -> list[TextEdit] | None:
    """Return the edits that begin the set wherever the list begins; None if that isn't visible."""
    starts: list[TextEdit] = []
    for bound in scope.bindings(name):
        if isinstance(scope.source.parents[bound], ast.AugAssign):
            continue
        value = scope.get_value(bound)
        if value is None or not is_new_list(value, scope.source):
            return None
        if isinstance(value, ast.List) and any(map(is_visibly_unhashable, value.elts)):
            return None
        if isinstance(value, ast.ListComp) and is_visibly_unhashable(value.elt):
            return None
        is_empty = isinstance(value, ast.List) and not value.elts
        code = f"{added} = set()" if is_empty else f"{added} = set({name})"
        starts.append(("after", scope.source.get_statement(bound), code))
    parameter = scope.parameter(name)
    if parameter is None:
        return starts
    if starts or not (_is_list_type(parameter.annotation) or _is_appended_to(scope, name)):
        return None
    # The set is made before the function tests whether it has a list at all.
    if scope.may_be_none(name, scope.function):
        return None
    if may_change_elsewhere(scope, name, scope.function):
        return None
    body = scope.function.body
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return [("after" if has_docstring else "before", body[0], f"{added} = set({name})")]


def _is_appended_to(scope: FunctionScope, name: str) -> bool:
    """Return whether items are appended to it: then it is no string."""
    return any(
        scope.classify(mention) is NameUse.METHOD and scope.get_method_call(mention)[0] == "append"
        for mention in scope.mentions(name)
    )


def _is_list_type(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in _LIST_TYPES


def _pays(scope: FunctionScope, tests: list[ast.Name], starts: list[TextEdit]) -> bool:
    """Return whether a test is repeated by something that doesn't begin the list anew."""
    begun = {node for kind, node, _ in starts if kind == "after"}
    return any(
        begun.isdisjoint(scope.source.walk(repeating))
        for test in tests
        for repeating in _list_repeating_nodes(scope, test)
    )


def _is_after_tests(
    scope: FunctionScope, mention: ast.Name, tests: list[ast.Name], starts: list[TextEdit]
) -> bool:
    """Return whether the list isn't tested any more, unless it begins anew before."""
    if scope.classify(mention) is not NameUse.OTHER:
        return False
    if mention.lineno <= max(test.lineno for test in tests):
        return False
    begun = [node for _, node, _ in starts]
    for loop in scope.loops(mention):
        is_tested = any(test in set(ast.walk(loop)) for test in tests)
        body = loop.body if isinstance(loop, LOOPS) else []
        if is_tested and not all(node in body for node in begun):
            return False
    return True


def _mirror_use(scope: FunctionScope, mention: ast.Name, added: str) -> list[TextEdit] | None:
    """Return what has to change where a list is mentioned; None if that isn't known."""
    match scope.classify(mention):
        case NameUse.READ | NameUse.OPERAND | NameUse.RETURN:
            return []
        case NameUse.TEST:
            return [("replace", mention, added)]
        case NameUse.BIND:
            statement = scope.source.get_statement(mention)
            match statement:
                case ast.AugAssign(op=ast.Add(), value=ast.List(elts=items)):
                    return _add_items(scope, mention.id, statement, items, added)
                case ast.AugAssign():
                    return None
            return []
        case NameUse.METHOD:
            return _mirror_method(scope, mention, added)
    return None


def _mirror_method(scope: FunctionScope, mention: ast.Name, added: str) -> list[TextEdit] | None:
    method, call = scope.get_method_call(mention)
    if method in _UNAFFECTED:
        return []
    statement = scope.source.get_statement(call)
    if not (isinstance(statement, ast.Expr) and statement.value is call) or call.keywords:
        return None
    match method, call.args:
        case "clear", []:
            return [("after", statement, f"{added}.clear()")]
        case "append", [item]:
            return _add_items(scope, mention.id, statement, [item], added)
        case "extend", [ast.List(elts=items) | ast.Tuple(elts=items)]:
            return _add_items(scope, mention.id, statement, items, added)
        case "extend", [ast.Name() as items] if is_repeatable(scope, items):
            return [("after", statement, f"{added}.update({items.id})")]
        case "insert", [(ast.Name() | ast.Constant()) as place, item]:
            method_form = f"insert({scope.source.render(place)}, {{}})"
            return _add_items(scope, mention.id, statement, [item], added, method_form)
    return None


def _add_items(
    scope: FunctionScope,
    name: str,
    statement: ast.stmt,
    items: list[ast.expr],
    added: str,
    method_form: str = "append({})",
) -> list[TextEdit] | None:
    """Add items to the list and to the set; computed ones are evaluated once."""
    source = scope.source
    match items:
        case [ast.Name() | ast.Constant() as item]:
            return [("after", statement, f"{added}.add({source.render(item)})")]
        case []:
            return None
    if not all(is_hashable(scope, item) for item in items):
        return None
    local = source.make_name(f"{name}_item" if len(items) == 1 else f"{name}_items")
    if len(items) == 1:
        code = f"{local} = {source.render(items[0])}\n"
        code += f"{name}.{method_form.format(local)}\n{added}.add({local})"
    else:
        values = ", ".join(map(source.render, items))
        code = f"{local} = [{values}]\n{name}.extend({local})\n{added}.update({local})"
    return [("replace", statement, code)]
