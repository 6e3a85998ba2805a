"""Group items by what an inner loop compares, before the loops, instead of scanning all of them.

    for order in orders:                            customers_by = {}
        for customer in customers:                  for customer in customers:
            if customer.id == order.customer:           customers_by.setdefault(...)
                ...                                 for order in orders:
                                                        for customer in customers_by.get(...)

The comparison itself stays where it is, so that a group that is too large does no harm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.analysis.effects import (
    is_consumed,
    is_left_meanwhile,
    may_change_shared,
)
from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.hashability import is_hashable, is_unhashable
from fairtrial_codemod.analysis.iterables import calls_only_pure_builtins
from fairtrial_codemod.analysis.python_facts import READING_METHODS
from fairtrial_codemod.analysis.source_file import (
    COMPREHENSIONS,
    CodeChange,
    ComprehensionNode,
    LoopNode,
    SourceFile,
    TextEdit,
    get_names,
)
from fairtrial_codemod.analysis.stability import is_stable

Scan = tuple[ast.expr, ast.expr, ast.expr]
"""The target of an inner loop, what it goes through, and its first condition."""


def find_nested_scans(source: SourceFile) -> Iterator[CodeChange]:
    """Find ``for y in ys: if y.key == x.key: ...`` in loops that don't change `ys`."""
    if not source.is_builtin("range", "len", "enumerate"):
        return
    for scope in list_scopes(source):
        taken: list[str] = []
        for node in scope.own_nodes(ast.AST):
            for scan in _list_scans(scope, node):
                change = _write_groups(scope, scan, taken)
                if change:
                    yield change


def _list_scans(scope: FunctionScope, node: ast.AST) -> Iterator[Scan]:
    """Yield the parts of a loop or a comprehension whose first condition is an equality."""
    match node:
        case ast.For(orelse=[], body=[ast.If(test=test, orelse=[])]):
            yield node.target, node.iter, _get_first_condition(test)
        case ast.GeneratorExp() if not is_consumed(scope, node):
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for part in node.generators:
                if part.ifs and not part.is_async:
                    yield part.target, part.iter, _get_first_condition(part.ifs[0])


def _get_first_condition(test: ast.expr) -> ast.expr:
    while isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test = test.values[0]
    return test


def _write_groups(scope: FunctionScope, scan: Scan, taken: list[str]) -> CodeChange | None:
    source, (target, items, condition) = scope.source, scan
    own = get_names(target)
    sides = _split_equality(condition, own)
    if sides is None or not all(_is_only_bound_by_loops(scope, name) for name in own):
        return None
    key, sought = sides
    if not is_hashable(scope, sought) or is_unhashable(scope, key):
        return None
    if not all(calls_only_pure_builtins(source, side) for side in sides):
        return None
    loop = _find_loop(scope, items, key, sought, own)
    if loop is None:
        return None
    groups = source.make_name(f"{_get_label(items, 'items')}_by_{_get_label(key, 'key')}", *taken)
    taken.append(groups)
    item = ast.unparse(target)
    value = f"({item.strip('()')})" if isinstance(target, ast.Tuple) else item
    code = (
        f"{groups} = {{}}\n"
        f"for {item} in {source.render(items)}:\n"
        f"    {groups}.setdefault({source.render(key)}, []).append({value})"
    )
    edits: tuple[TextEdit, ...] = (
        ("before", source.get_statement(loop), code),
        ("replace", items, f"{groups}.get({source.render(sought)}, ())"),
    )
    description = f"{ast.unparse(items)} is grouped by {ast.unparse(key)} before the loop"
    return CodeChange(description, items.lineno, scope.name, edits)


def _split_equality(condition: ast.expr, own: set[str]) -> tuple[ast.expr, ast.expr] | None:
    """Return the side of an equality that depends on the item, and the other one."""
    match condition:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            for key, sought in ((left, right), (right, left)):
                is_variable = not isinstance(sought, ast.Constant)
                if own & get_names(key) and is_variable and not own & get_names(sought):
                    return key, sought
    return None


def _is_only_bound_by_loops(scope: FunctionScope, name: str) -> bool:
    """Return whether every mention of a name is in a loop that gives it a value."""
    source = scope.source
    if scope.is_opaque or scope.parameter(name) is not None:
        return False
    for mention in scope.mentions(name):
        if source.get_scope_node(mention) is not scope.function:
            return False
        targets = []
        for up in source.ancestors(mention):
            if isinstance(up, ast.For):
                is_repeated = mention not in source.walk(up.iter) and not any(
                    mention in source.walk(statement) for statement in up.orelse
                )
                targets += [up.target] if is_repeated else []
            elif isinstance(up, COMPREHENSIONS):
                targets += [part.target for part in up.generators]
        if not any(name in get_names(target) for target in targets):
            return False
        if not isinstance(mention.ctx, ast.Load) and not any(
            mention in source.walk(target) for target in targets
        ):
            return False
    return True


def _find_loop(
    scope: FunctionScope, items: ast.expr, key: ast.expr, sought: ast.expr, own: set[str]
) -> LoopNode | ComprehensionNode | None:
    """Return the largest loop around in which the items and their keys stay the same, but the
    sought value doesn't.
    """
    inner = scope.source.parents[items]
    parts = (items, key, sought)
    best = scope.find_largest_loop(
        items,
        lambda loop: (
            not is_left_meanwhile(scope, loop)
            and not may_change_shared(scope, loop)
            and not _sets_attribute(loop, parts)
            and all(_is_same(scope, part, loop, own) for part in (items, key))
        ),
    )
    if best is None or best is inner or not scope.can_insert_before(best):
        return None
    names = get_names(sought)
    is_new = bool(names & _list_changed_names(best))
    return best if is_new and not names & _list_changed_names(inner) else None


def _sets_attribute(loop: ast.AST, parts: tuple[ast.expr, ...]) -> bool:
    """Return whether a loop sets an attribute of a name that one of the parts reads."""
    read = {
        node.attr for part in parts for node in ast.walk(part) if isinstance(node, ast.Attribute)
    }
    return any(
        isinstance(node, ast.Attribute) and node.attr in read
        for node in ast.walk(loop)
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    )


def _list_changed_names(loop: ast.AST) -> set[str]:
    """Return the names that a loop binds, or whose objects it changes."""
    changed: set[str] = set()
    for node in ast.walk(loop):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                changed.add(name)
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                changed |= _get_owner(value)
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                changed |= set() if method in READING_METHODS else _get_owner(value)
    return changed


def _get_owner(node: ast.expr) -> set[str]:
    """Return the name at the beginning of an expression like ``table[key].part``."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return get_names(node)


def _is_same(
    scope: FunctionScope, node: ast.expr, loop: LoopNode | ComprehensionNode, own: set[str]
) -> bool:
    """Return whether all that an expression reads, except for the item, is the same in each
    round.
    """
    match node:
        case ast.Name(id=name) if name in own:
            return True
        case ast.Name(id="len" | "range" | "enumerate" as name):
            return scope.source.is_builtin(name)
        case ast.Name() | ast.Constant():
            return is_stable(scope, node, loop)
        case ast.Attribute(value=ast.Name(id=name)) if name not in own:
            return is_stable(scope, node, loop)
        case ast.Attribute(value=value) | ast.UnaryOp(operand=value):
            return _is_same(scope, value, loop, own)
        case ast.Subscript(value=value, slice=place):
            return _is_same(scope, value, loop, own) and _is_same(scope, place, loop, own)
        case ast.Tuple(elts=parts):
            return all(_is_same(scope, part, loop, own) for part in parts)
        case ast.BinOp(left=left, right=right):
            return _is_same(scope, left, loop, own) and _is_same(scope, right, loop, own)
        case ast.Call(func=ast.Name() as func, args=parts, keywords=[]):
            return all(_is_same(scope, part, loop, own) for part in (func, *parts))
    return False


def _get_label(node: ast.expr, otherwise: str) -> str:
    """Return the last name in an expression: ``id`` for ``customer["id"]``."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.strip("_") or otherwise
        case ast.Subscript(slice=ast.Constant(value=str(name))) if name.isidentifier():
            return name.strip("_") or otherwise
        case ast.Call(args=[argument]):
            return _get_label(argument, otherwise)
    return otherwise
