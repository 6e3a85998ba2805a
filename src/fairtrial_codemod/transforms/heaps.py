"""Lists whose smallest element is taken again and again: heaps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.matching import match, same
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import LOOPS, Change, Edit, Loop, Source
from fairtrial_codemod.transforms.analysis.uses import Scope, Use, is_fresh_list

# The smallest is looked for, then taken out: in two statements, ...
_PAIRS = (
    ("__x = min(__l)", "__l.remove(__x)"),
    ("__l.sort()", "__x = __l.pop(0)"),
    ("__l.sort(reverse=True)", "__x = __l.pop()"),
    ("__l = sorted(__l)", "__x = __l.pop(0)"),
)
# ... or in one.
_SINGLES = ("__x = __l.pop(__l.index(min(__l)))",)


def find_heaps(source: Source) -> Iterator[Change]:
    """``x = min(todo); todo.remove(x)`` in a loop."""
    if not source.is_builtin("min") or not source.can_import("heapq") or has_own_order(source):
        return
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.stmt):
            if isinstance(node, LOOPS):
                yield from _find_in(scope, node.body)


def _find_in(scope: Scope, block: list[ast.stmt]) -> Iterator[Change]:
    for at, statement in enumerate(block):
        following = block[at + 1] if at + 1 < len(block) else None
        for first, second in _PAIRS:
            found = match(first, statement)
            again = match(second, following) if found and following else None
            if found and following and again and all(same(again[key], found[key]) for key in found):
                taken: list[Edit] = [("replace", statement, ""), ("replace", following, "")]
                yield from _make_heap(scope, {**found, **again}, statement, taken)
        for pattern in _SINGLES:
            found = match(pattern, statement)
            if found:
                yield from _make_heap(scope, found, statement, [("replace", statement, "")])


def _make_heap(
    scope: Scope, found: dict[str, ast.expr], at: ast.stmt, taken: list[Edit]
) -> Iterator[Change]:
    items, target = found["__l"], found["__x"]
    if not isinstance(items, ast.Name) or not isinstance(target, ast.Name):
        return
    inside = {node for _, part, _ in taken for node in ast.walk(part)}
    start = _start(scope, items.id, inside)
    loop = next((each for each in scope.loops(at) if start not in set(ast.walk(each))), None)
    if start is None or not isinstance(loop, LOOPS):
        return
    pushes = _pushes(scope, items.id, loop, inside)
    if pushes is None or scope.source.is_watched(at) or _is_object(scope, target.id):
        return
    name = items.id
    code = f"{target.id} = heapq.heappop({name})"
    if not _is_never_empty(scope, name, at):
        # Of nothing, there is the same error as before.
        made = next(each.value for _, each, _ in taken if isinstance(each, ast.Assign))
        code = f"{code} if {name} else {scope.source.say(made)}"
    taken[0] = ("replace", taken[0][1], code)
    what = f"the smallest of {name} is taken off a heap"
    edits = [("before", loop, f"heapq.heapify({name})"), *taken, *pushes]
    yield Change(what, at.lineno, scope.name, tuple(edits), ("heapq",))


def has_own_order(source: Source) -> bool:
    """Whether a class says what is smaller: of those that are alike, a heap takes any."""
    for node in source.walk(source.tree):
        match node:
            case ast.FunctionDef(name="__lt__"):
                return True
            case ast.ClassDef(decorator_list=[*_] as decorators):
                if any("order=" in ast.unparse(each) for each in decorators):
                    return True
    return "total_ordering" in source.identifiers


def _is_object(scope: Scope, name: str) -> bool:
    """Whether it has attributes: then it may be like another, and yet not the same."""
    return any(
        isinstance(scope.source.parents[each], ast.Attribute) for each in scope.mentions(name)
    )


def _is_never_empty(scope: Scope, name: str, at: ast.stmt) -> bool:
    """Whether the innermost loop only goes on while there is something."""
    loop = scope.loops(at)[-1]
    if not isinstance(loop, ast.While):
        return False
    test = loop.test
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(isinstance(each, ast.Name) and each.id == name for each in parts)


def _start(scope: Scope, name: str, inside: set[ast.AST]) -> ast.Name | None:
    """Where it is made, if it is a list of this function's own that is made in one place."""
    if not scope.is_local(name) or scope.parameter(name) or scope.has_alias(name):
        return None
    bindings = [each for each in scope.bindings(name) if each not in inside]
    if len(bindings) != 1 or not is_fresh_list(scope.assignment(bindings[0]), scope.source):
        return None
    return bindings[0]


def _pushes(scope: Scope, name: str, loop: Loop, inside: set[ast.AST]) -> list[Edit] | None:
    """What becomes of the places that add something; None if something else is done in the loop."""
    pushes: list[Edit] = []
    in_loop = set(ast.walk(loop))
    for mention in scope.mentions(name):
        if mention in inside:
            continue
        if mention not in in_loop:
            # Afterwards its order shows.
            if mention.lineno > loop.lineno and not is_orderless(scope, mention):
                return None
            continue
        if scope.use(mention) is Use.BIND:
            return None
        if scope.use(mention) is Use.METHOD and scope.method(mention)[0] == "append":
            call = scope.method(mention)[1]
            if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
                return None
            item = scope.source.say(call.args[0])
            pushes.append(("replace", call, f"heapq.heappush({name}, {item})"))
        elif not is_orderless(scope, mention):
            return None
    return pushes


def is_orderless(scope: Scope, mention: ast.Name) -> bool:
    """Whether it doesn't matter in which order the elements are."""
    if scope.is_truth(mention):
        return True
    match scope.source.parents[mention]:
        case ast.Call(func=ast.Name(id="len" | "sorted" | "set" | "max" | "min")):
            return scope.use(mention) is Use.READ
    return scope.use(mention) is Use.TEST
