"""Compute what is the same in every round of a loop once, before the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.code_patterns import match_code
from fairtrial_codemod.analysis.effects import (
    is_left_meanwhile,
    is_read_later,
    is_unchanged,
    may_change_shared,
)
from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.python_facts import is_optional
from fairtrial_codemod.analysis.source_file import (
    CodeChange,
    ComprehensionNode,
    LoopNode,
    SourceFile,
    TextEdit,
    catches_errors,
)
from fairtrial_codemod.analysis.stability import is_stable

_NUMBERS = ("len", "sum", "max", "min")
_COLLECTIONS = ("sorted", "set", "list", "tuple", "frozenset")
_TEXT_METHODS = ("lower", "upper", "casefold", "strip", "lstrip", "rstrip", "title", "capitalize")
_TYPE_TESTS = ("isinstance", "issubclass", "hasattr", "callable", "type", "bool", "id")
AnyLoop = LoopNode | ComprehensionNode


def find_hoists(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``x / sum(items)`` in loops that don't change `items`."""
    for scope in list_scopes(source):
        groups: dict[tuple[str, AnyLoop], list[ast.Call]] = {}
        for node in scope.own_nodes(ast.Call):
            loop = _find_loop(scope, node)
            if loop is None or not scope.can_insert_before(loop):
                continue
            if not _is_guarded(scope, node, loop):
                groups.setdefault((ast.dump(node), loop), []).append(node)
        taken: list[str] = []
        for (_, loop), calls in groups.items():
            yield _write_hoist(scope, loop, calls, taken)


def _find_loop(scope: FunctionScope, call: ast.Call) -> AnyLoop | None:
    """Return the largest loop in which a call has the same result each time."""
    match call:
        case ast.Call(func=ast.Name(id=name), args=[items], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id=text), attr=name), keywords=[]):
            is_plain = all(isinstance(argument, ast.Constant) for argument in call.args)
            is_method = name in _TEXT_METHODS and is_plain
            return _find_text_loop(scope, call, text) if is_method else None
        case _:
            return None
    if name not in _NUMBERS + _COLLECTIONS or not scope.source.is_builtin(name):
        return None
    if name in _COLLECTIONS and not scope.is_read(call):
        return None
    best = None
    for loop in reversed(scope.loops(call)):
        if not _is_same(scope, items, loop):
            break
        # Nothing has a maximum if it is empty; but then a loop over it has no rounds.
        if name not in ("max", "min") or _iterates(loop, items):
            best = loop
    return best


def _is_same(scope: FunctionScope, items: ast.expr, loop: AnyLoop) -> bool:
    if isinstance(items, ast.Name):
        is_assigned = _is_assigned_in(scope, items.id, loop)
        return not is_assigned and is_unchanged(scope, items.id, loop)
    if isinstance(items, ast.Constant | ast.ListComp | ast.SetComp) or is_left_meanwhile(
        scope, loop
    ):
        return False
    return is_stable(scope, items, loop) and not may_change_shared(scope, loop)


def _find_text_loop(scope: FunctionScope, call: ast.Call, name: str) -> AnyLoop | None:
    """Return the largest loop in which a string is always the same."""
    best = None
    for loop in reversed(scope.loops(call)):
        if not scope.is_local(name) or _is_assigned_in(scope, name, loop):
            break
        if is_read_later(scope, name, loop):
            break
        best = loop
    return best


def _is_assigned_in(scope: FunctionScope, name: str, loop: ast.AST) -> bool:
    inside = set(ast.walk(loop))
    return any(bound in inside for bound in scope.bindings(name))


def _get_subject(call: ast.Call) -> ast.expr:
    """Return the object that a call reads."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]


def _is_guarded(scope: FunctionScope, call: ast.Call, loop: AnyLoop) -> bool:
    """Return whether a call is made only if a test of its object allows it."""
    subject = _get_subject(call)
    text = ast.unparse(subject)
    if isinstance(subject, ast.Name) and _may_be_none(scope, text) and not _iterates(loop, subject):
        return True

    def tests_type(test: ast.AST) -> bool:
        return any(
            _is_type_test(scope, node)
            for node in ast.walk(test)
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == text
        )

    below: ast.AST = call
    for up in scope.source.ancestors(call):
        if catches_errors(up) or any(map(tests_type, _list_conditions(scope, up, below))):
            return True
        if up is loop:
            break
        below = up
    return any(
        tests_type(node)
        for iterable in _list_iterables(loop)
        for node in ast.walk(iterable)
        if isinstance(node, ast.BoolOp | ast.IfExp)
    )


def _is_type_test(scope: FunctionScope, mention: ast.expr) -> bool:
    """Return whether a mention tests the type or the truth of an object."""
    match scope.source.parents[mention]:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[it]):
            return it is not mention
        case ast.Call(func=ast.Name(id=name)):
            return name in _TYPE_TESTS
        case ast.Subscript() | ast.Attribute() | ast.For() | ast.comprehension() | ast.Call():
            return False
    return True


def _list_conditions(scope: FunctionScope, around: ast.AST, below: ast.AST) -> list[ast.expr]:
    """Return the conditions that are tested before control reaches a part of a node."""
    tests: list[ast.expr] = []
    match around:
        case ast.BoolOp(values=values):
            tests += values[: values.index(below)] if below in values else []
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            tests += [] if below is test else [test]
        case ast.comprehension(ifs=ifs):
            tests += ifs[: ifs.index(below)] if below in ifs else []
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            tests += [test for part in around.generators if part is not below for test in part.ifs]
    if isinstance(below, ast.stmt):
        preceding = scope.source.get_preceding(below)
        tests += [node.test for node in preceding if isinstance(node, ast.If | ast.Assert)]
    return tests


def _list_iterables(loop: ast.AST) -> list[ast.expr]:
    if isinstance(loop, ast.For | ast.AsyncFor):
        return [loop.iter]
    return [part.iter for part in getattr(loop, "generators", ())]


def _may_be_none(scope: FunctionScope, name: str) -> bool:
    """Return whether a parameter may be None, and the function gives it no other value."""
    parameter = scope.parameter(name)
    if parameter is None or scope.bindings(name):
        return False
    annotation = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    is_none = is_optional(scope.function, parameter)
    return is_none or "None" in annotation or "Optional" in annotation


def _iterates(loop: ast.AST, items: ast.expr) -> bool:
    """Return whether a loop has a round for each of the items, and so none without items."""
    iterable = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(loop, ast.ListComp | ast.SetComp | ast.DictComp):
        iterable = loop.generators[0].iter
    if iterable is None:
        return False
    text = ast.unparse(items)
    forms = (text, f"enumerate({text})", f"range(len({text}))", f"reversed({text})")
    return any(match_code(form, iterable) is not None for form in forms)


def _write_hoist(
    scope: FunctionScope, loop: AnyLoop, calls: list[ast.Call], taken: list[str]
) -> CodeChange:
    source, call = scope.source, calls[0]
    subject = _get_subject(call)
    match subject:
        case ast.Name(id=label) | ast.Attribute(attr=label):
            pass
        case ast.Subscript(slice=ast.Constant(value=str(label))) if label.isidentifier():
            pass
        case _:
            label = "items"
    function = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    name = source.make_name(f"{label.lstrip('_')}_{function}", *taken)
    taken.append(name)
    code = f"{name} = {source.render(call)}"
    if function in ("max", "min"):
        code = f"{name} = {function}({source.render(subject)}, default=None)"
    edits: list[TextEdit] = [("before", source.get_statement(loop), code)]
    edits += [("replace", node, name) for node in calls]
    description = f"{source.render(call)} is computed once, before the loop"
    return CodeChange(description, call.lineno, scope.name, tuple(edits))
