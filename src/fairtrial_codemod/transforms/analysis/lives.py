"""A name that is bound several times, as several names: which bindings reach which mentions.

Two bindings that no mention could both see are as good as two variables. All ways through a
function are looked at, rather too many than too few: a ``try`` may fail anywhere in it, a ``with``
may go on after an error, a loop may be left or begun anew at any time.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairtrial_codemod.transforms.analysis.uses import KEEPING, PURE, Scope

State = frozenset[ast.AST] | None
"""The bindings that may hold; None where nobody comes."""


@dataclass(frozen=True)
class Life(Scope):
    """A function, as one of the lives of a name sees it: other mentions of it are not there.

    of: the name
    own: the bindings of this life, and what may see one of them
    """

    of: str
    own: frozenset[ast.AST] = field(repr=False)

    def mentions(self, name: str, within: ast.AST | None = None) -> list[ast.Name]:
        """Every mention of a name; of this one, those of this life."""
        found = super().mentions(name, within)
        return [each for each in found if each in self.own] if name == self.of else found

    def parameter(self, name: str) -> ast.arg | None:
        """The parameter of that name, if what was given is what this life is about."""
        given = super().parameter(name)
        return None if name == self.of and given not in self.own else given

    def is_local(self, name: str) -> bool:
        """Whether a name is a variable or parameter of this function and of no other's."""
        return Scope(self.source, self.name, self.function).is_local(name)


def lives_of(scope: Scope, name: str) -> list[Scope]:
    """The lives of a name, in the order of the text; the function as it is if there is but one."""
    if len(scope.bindings(name)) + bool(scope.parameter(name)) < 2 or not scope.is_local(name):
        return [scope]
    groups = _Ways(scope, name).groups()
    if len(groups) < 2:
        return [scope]
    return [Life(scope.source, scope.name, scope.function, name, each) for each in groups]


def life_of(scope: Scope, mention: ast.Name) -> Scope:
    """The life of a name that a mention belongs to."""
    for each in lives_of(scope, mention.id):
        if mention in each.mentions(mention.id):
            return each
    return scope


class _Ways:
    """All ways through a function, and the bindings of one name on them."""

    def __init__(self, scope: Scope, name: str) -> None:
        self.scope, self.name = scope, name
        self.group: dict[ast.AST, set[ast.AST]] = {}
        self.ends: list[tuple[set[ast.AST], set[ast.AST]]] = []
        """For each loop around: what may hold where it goes on, and where it is left."""

    def groups(self) -> list[frozenset[ast.AST]]:
        """What belongs together; nothing if not all is understood."""
        given = self.scope.parameter(self.name)
        self.block(self.scope.function.body, frozenset({given} if given else ()))
        inside = self.mentions(*self.scope.function.body)
        if not all(each in self.group for each in inside):
            return []
        found: list[frozenset[ast.AST]] = []
        for each in ([given] if given else []) + inside:
            if not any(each in group for group in found):
                found.append(frozenset(self.group.get(each, {each})))
        return found

    def mentions(self, *nodes: ast.AST) -> list[ast.Name]:
        """The mentions in some nodes, in order of the text."""
        return [found for each in nodes for found in self.scope.mentions(self.name, each)]

    def bindings(self, *nodes: ast.AST) -> frozenset[ast.AST]:
        """What some nodes bind or delete."""
        return frozenset(
            each for each in self.mentions(*nodes) if not isinstance(each.ctx, ast.Load)
        )

    def unite(self, node: ast.AST, state: State) -> None:
        """A mention may see what is bound there: they belong together."""
        group = self.group.setdefault(node, {node})
        for each in state or ():
            other = self.group.setdefault(each, {each})
            if other is not group:
                group |= other
                for one in other:
                    self.group[one] = group

    def block(self, statements: Sequence[ast.stmt], state: State) -> State:
        """What may hold after some statements."""
        for each in statements:
            state = self.statement(each, state)
        return state

    def statement(self, node: ast.stmt, state: State) -> State:
        """What may hold after a statement."""
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                state = self.plain([test], state)
                return _or(self.block(body, state), self.block(orelse, state))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self.loop(node, state)
            case ast.Try() | ast.TryStar():
                return self.attempt(node, state)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                state = self.plain(items, state)
                return _or(_or(self.block(body, state), state), self.bindings(*body))
            case ast.Match(subject=subject, cases=cases):
                state = self.plain([subject], state)
                for case in cases:
                    state = self.plain([each for each in (case.guard,) if each], state)
                ends = [self.block(case.body, state) for case in cases]
                for end in ends:
                    state = _or(state, end)
                return state
            case ast.Return() | ast.Raise():
                self.plain([node], state)
                return None
            case ast.Continue() | ast.Break():
                self.ends[-1][isinstance(node, ast.Break)].update(state or ())
                return None
        return self.simple(node, state)

    def simple(self, node: ast.stmt, state: State) -> State:
        """A statement that isn't made of others: what it binds is bound when it is over."""
        value = getattr(node, "value", None)
        before = self.mentions(value) if isinstance(value, ast.expr) else []
        bound = self.bindings(node)
        if bound and bound.isdisjoint(before):
            for each in before:
                self.see(each, state)
            for each in set(self.mentions(node)).difference(before):
                # What it adds to is what it was; so is what is thrown away, or let go.
                is_on = _goes_on(node) or each not in bound
                self.see(each, _or(state, bound) if is_on else frozenset({each}))
            is_said = isinstance(node, ast.AnnAssign) and node.value is None
            return state if is_said or state is None else bound
        return self.plain([node], state)

    def plain(self, nodes: Sequence[ast.AST], state: State) -> State:
        """Expressions; what ``:=`` binds may hold or not, and be seen or not."""
        state = _or(state, self.bindings(*nodes)) if state is not None else None
        for each in self.mentions(*nodes):
            self.see(each, state)
        return state

    def see(self, mention: ast.Name, state: State) -> None:
        """A mention may see what is bound there, or later if it waits for it."""
        is_late = any(map(self.is_late, self.scope.source.around(mention)))
        self.unite(mention, self.bindings(*self.scope.function.body) if is_late else state)

    def is_late(self, node: ast.AST) -> bool:
        """Whether it is a generator that isn't gone through where it stands."""
        if not isinstance(node, ast.GeneratorExp):
            return False
        match self.scope.source.parents[node]:
            case ast.Call(func=ast.Name(id=name)):
                return name not in PURE - KEEPING or not self.scope.source.is_builtin(name)
        return True

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> State:
        """A loop: what a round leaves is there in the next one."""
        first: list[ast.AST] = [node.test] if isinstance(node, ast.While) else [node.iter]
        target = [] if isinstance(node, ast.While) else [node.target]
        known: State = None
        again, left = set[ast.AST](), set[ast.AST]()
        if target:
            state = self.plain(first, state)
        while known != state:
            known = state
            self.ends.append((again, left))
            begun = self.plain(target or first, state)
            end = self.block(node.body, begun)
            self.ends.pop()
            if state is not None:
                state = frozenset({*state, *(begun or ()), *(end or ()), *again})
        return _or(self.block(node.orelse, state), frozenset(left) if state is not None else None)

    def attempt(self, node: ast.Try | ast.TryStar, state: State) -> State:
        """A ``try``: it may fail anywhere in it, and what is at its end is done in any case."""
        broken = _or(state, self.bindings(*node.body)) if state is not None else None
        end = self.block(node.orelse, self.block(node.body, state))
        for handler in node.handlers:
            kinds = [handler.type] if handler.type else []
            end = _or(end, self.block(handler.body, self.plain(kinds, broken)))
        if not node.finalbody:
            return end
        parts = [*node.body, *node.handlers, *node.orelse]
        final = _or(broken, self.bindings(*parts)) if state is not None else None
        after = self.block(node.finalbody, final)
        for some in self.ends[-1] if self.ends else ():
            some.update(self.bindings(*node.finalbody))
        return None if end is None else after


def _goes_on(node: ast.stmt) -> bool:
    match node:
        case ast.AugAssign() | ast.Delete() | ast.Assign(value=ast.Constant(value=None)):
            return True
    return False


def _or(one: State, other: State) -> State:
    if one is None or other is None:
        return one if other is None else other
    return one | other
