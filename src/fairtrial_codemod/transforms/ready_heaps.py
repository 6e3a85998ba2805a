"""What is ready, found anew in each step by looking at all that waits: a heap and an index.

The plain way to sort topologically::

    while waiting:
        ready = [node for node, needs in waiting.items() if not needs]
        node = min(ready)
        del waiting[node]
        for needs in waiting.values():
            needs.discard(node)

Each step looks at everything. Only those that needed the node can have become ready.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.matching import Found, match, same
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.uses import Scope
from fairtrial_codemod.transforms.heaps import has_own_order, is_orderless

_READY = (
    "__r = [__k for __k, __v in __w.items() if not __v]",
    "__r = [__k for __k, __v in __w.items() if len(__v) == 0]",
    "__r = [__k for __k in __w if not __w[__k]]",
    "__r = sorted(__k for __k, __v in __w.items() if not __v)",
)
_SMALLEST = ("__x = min(__r)", "__x = sorted(__r)[0]")
_GONE = ("del __w[__x]", "__w.pop(__x)", "__w.pop(__x, None)")
_LEFT = (
    "for __u in __w.values():\n __u.discard(__x)",
    "for __u in __w.values():\n if __x in __u:\n  __u.remove(__x)",
    "for __i, __u in __w.items():\n __u.discard(__x)",
    "for __i in __w:\n __w[__i].discard(__x)",
)


@dataclass(frozen=True)
class _Steps:
    """The statements of such a loop, and what its names are."""

    ready: ast.stmt
    smallest: ast.stmt
    gone: ast.stmt
    left: ast.stmt
    found: Found

    def name(self, key: str) -> str:
        node = self.found.get(key)
        return node.id if isinstance(node, ast.Name) else ""

    @property
    def all(self) -> tuple[ast.stmt, ...]:
        return (self.ready, self.smallest, self.gone, self.left)


def find_ready_heaps(source: Source) -> Iterator[Change]:
    """The loop above, with whatever else it does between these steps."""
    if not all(map(source.is_builtin, ("min", "sorted", "set", "len"))):
        return
    if not source.can_import("heapq") or has_own_order(source):
        return
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.While):
            steps = _read_steps(node.body)
            if steps and _is_safe(scope, node, steps):
                yield _make_heap(scope, node, steps)


def _read_steps(body: list[ast.stmt]) -> _Steps | None:
    found: Found = {}
    steps: list[ast.stmt] = []
    for patterns in (_READY, _SMALLEST, _GONE, _LEFT):
        rest = body[body.index(steps[-1]) + 1 :] if steps else body
        step = _first(rest, patterns, found)
        if step is None:
            return None
        steps.append(step)
    ready, smallest, gone, left = steps
    return _Steps(ready, smallest, gone, left, found)


def _first(statements: list[ast.stmt], patterns: tuple[str, ...], found: Found) -> ast.stmt | None:
    """The first statement that fits one of the patterns and what is known already."""
    for statement in statements:
        for pattern in patterns:
            more = match(pattern, statement)
            if more and all(same(more[key], found[key]) for key in more if key in found):
                found.update(more)
                return statement
    return None


def _is_safe(scope: Scope, loop: ast.While, steps: _Steps) -> bool:
    """Whether nobody else changes what waits, and the names mean the same all the time."""
    waiting, ready, node = steps.name("__w"), steps.name("__r"), steps.name("__x")
    if not all((waiting, ready, node)) or len({waiting, ready, node}) != 3:
        return False
    if not scope.is_local(waiting) or scope.parameter(waiting) or not scope.is_local(ready):
        return False
    if scope.has_alias(waiting) or not _holds_own_sets(scope, waiting, loop):
        return False
    inside = {each for step in steps.all for each in ast.walk(step)}
    if _may_skip_steps(loop, steps):
        return False
    for mention in scope.mentions(ready):
        if mention not in inside and not _asks_in_time(scope, mention, loop, steps):
            return False
    for mention in scope.mentions(waiting, loop):
        if mention in inside or scope.source.parents[mention] is loop:
            continue
        if not _only_asks(scope, mention, loop):
            return False
    in_loop = set(ast.walk(loop))
    if any(each in in_loop and each not in inside for each in scope.bindings(node)):
        return False
    # The loop over what is left binds other names from now on.
    return not any(
        each not in inside and (each in in_loop or each.lineno > loop.lineno)
        for key in ("__u", "__i")
        for each in scope.mentions(steps.name(key))
    )


def _may_skip_steps(loop: ast.While, steps: _Steps) -> bool:
    """Whether a round may end after the smallest is taken, and before what needed it is told."""
    body = loop.body
    between = body[body.index(steps.smallest) : body.index(steps.left)]
    return any(isinstance(each, ast.Continue) for step in between for each in ast.walk(step))


def _asks_in_time(scope: Scope, mention: ast.Name, loop: ast.While, steps: _Steps) -> bool:
    """Whether it is asked how much is ready, before one is taken: in a heap it has no order."""
    body = loop.body
    between = body[body.index(steps.ready) + 1 : body.index(steps.smallest)]
    is_in_time = any(mention in set(ast.walk(each)) for each in between)
    return is_in_time and is_orderless(scope, mention)


def _only_asks(scope: Scope, mention: ast.Name, loop: ast.While) -> bool:
    """Whether a mention asks if there is anything, or stands in a branch that leaves the loop."""
    parent = scope.source.parents[mention]
    if isinstance(parent, ast.UnaryOp | ast.If) and isinstance(mention.ctx, ast.Load):
        return True
    for each in scope.source.around(mention):
        if each is loop:
            return False
        if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Raise | ast.Return):
            return isinstance(mention.ctx, ast.Load) and not each.orelse
    return False


def _holds_own_sets(scope: Scope, waiting: str, loop: ast.While) -> bool:
    """Whether each key has a set that nothing else holds, as far as one sees."""
    bindings = scope.bindings(waiting)
    if len(bindings) != 1 or bindings[0].lineno > loop.lineno:
        return False
    value = scope.assignment(bindings[0])
    return isinstance(value, ast.DictComp) and (
        isinstance(value.value, ast.SetComp) or match("set(__s)", value.value) is not None
    )


def _take(scope: Scope, loop: ast.While, steps: _Steps) -> str:
    """How the smallest is taken; if there may be none, the error is the same as before."""
    ready = steps.name("__r")
    taken = f"heapq.heappop({ready})"
    between = loop.body[loop.body.index(steps.ready) + 1 : loop.body.index(steps.smallest)]
    for each in between:
        match each:
            case ast.If(body=[*_, ast.Raise() | ast.Return() | ast.Break()], test=test):
                if ast.unparse(test) == f"not {ready}":
                    return taken
    assert isinstance(steps.smallest, ast.Assign)
    return f"{taken} if {ready} else {scope.source.say(steps.smallest.value)}"


def _make_heap(scope: Scope, loop: ast.While, steps: _Steps) -> Change:
    waiting, ready, node = steps.name("__w"), steps.name("__r"), steps.name("__x")
    fresh = scope.source.fresh
    index, key = fresh(f"{waiting}_by_need"), fresh("key")
    needs, need = fresh("left"), fresh("need")
    before = (
        f"{index} = {{}}\n"
        f"for {key}, {needs} in {waiting}.items():\n"
        f"    for {need} in {needs}:\n"
        f"        {index}.setdefault({need}, []).append({key})\n"
        f"{ready} = [{key} for {key}, {needs} in {waiting}.items() if not {needs}]\n"
        f"heapq.heapify({ready})"
    )
    left = (
        f"for {key} in {index}.get({node}, ()):\n"
        f"    {needs} = {waiting}[{key}]\n"
        f"    {needs}.discard({node})\n"
        f"    if not {needs}:\n"
        f"        heapq.heappush({ready}, {key})"
    )
    edits: tuple[Edit, ...] = (
        ("before", loop, before),
        ("replace", steps.ready, ""),
        ("replace", steps.smallest, f"{node} = {_take(scope, loop, steps)}"),
        ("replace", steps.left, left),
    )
    what = f"what is ready is kept in a heap, and {waiting} is indexed by what is needed"
    return Change(what, loop.lineno, scope.name, edits, ("heapq",))
