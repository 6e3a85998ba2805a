"""Lists that are searched for what has the same key as something else: indexed by that key."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.attributes import (
    is_questioned_attribute,
    is_untouched_attribute,
    values_of,
)
from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.equalities import (
    Sides,
    first_test,
    is_rewritten,
    names_in,
    renamed,
    split_sides,
)
from fairtrial_codemod.transforms.analysis.hashability import is_hashable
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    COMPREHENSIONS,
    Change,
    Comprehension,
    Edit,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.stability import is_lasting, is_set_before
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope, is_fresh_list


@dataclass(frozen=True, slots=True)
class _Search:
    """One search: a loop, or a part of a comprehension, in which only equal keys matter.

    node: the loop or the comprehension
    target: what each item is called
    given: what is gone through
    sides: the key of an item, and what it must be equal to
    """

    node: ast.For | Comprehension
    target: ast.expr
    given: ast.expr
    sides: Sides

    @property
    def held(self) -> ast.Attribute | None:
        """What an object holds, if that is gone through."""
        return self.given if isinstance(self.given, ast.Attribute) else None

    @property
    def base(self) -> str:
        """The name of what is gone through."""
        match self.given:
            case ast.Name(id=name):
                return name
            case ast.Attribute(value=ast.Name(), attr=name):
                return name.lstrip("_") or "held"
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="items" | "values"))
                | ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=name)])
            ) if not self.given.keywords:
                return name
        return ""


def find_matches(source: Source) -> Iterator[Change]:
    """``for a in ones: for b in others: if a.key == b.key``: others are indexed by their key."""
    for scope in scopes_of(source):
        known: set[str] = set()
        for node in own_nodes(scope, ast.For, *COMPREHENSIONS):
            for search in _searches(scope, node):
                loop = _outermost(scope, search)
                if loop is None:
                    continue
                change = _write_index(scope, loop, search)
                # Another index of the same items gets another name, in the next round.
                if search.base not in known:
                    known.add(search.base)
                    yield change


def _searches(scope: Scope, node: ast.AST) -> Iterator[_Search]:
    match node:
        case ast.For(target=target, iter=given, body=[ast.If() as test, *rest]):
            equal = _test_of(test, rest)
            sides = split_sides(scope.source, equal, names_in(target)) if equal else None
            if sides and _is_private(scope, node) and not _writes_sides(node, sides):
                yield _Search(node, target, given, sides)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if not _is_used_at_once(scope, node):
                return
            for part in node.generators:
                equal = _condition_of(scope, node, part)
                sides = split_sides(scope.source, equal, names_in(part.target)) if equal else None
                if sides and _is_clear(node, part, sides):
                    yield _Search(node, part.target, part.iter, sides)


def _is_clear(node: Comprehension, part: ast.comprehension, sides: Sides) -> bool:
    """Whether each name means the same in the condition and where the items come from."""
    bound = [each for one in node.generators for each in sorted(names_in(one.target))]
    is_outside = part is node.generators[0]
    return (
        all(bound.count(each) == 1 for each in names_in(part.target))
        and not (is_outside and names_in(sides.sought) & set(bound))
        and not part.is_async
    )


def _test_of(test: ast.If, rest: list[ast.stmt]) -> ast.Compare | None:
    """The equality without which a loop's body does nothing."""
    if test.orelse:
        return None
    if not rest:
        return first_test(test.test, ast.And, ast.Eq)
    is_skipped = len(test.body) == 1 and isinstance(test.body[0], ast.Continue)
    return first_test(test.test, ast.Or, ast.NotEq) if is_skipped else None


def _condition_of(scope: Scope, node: Comprehension, part: ast.comprehension) -> ast.Compare | None:
    """The equality without which a part of a comprehension gives nothing that matters."""
    if part.ifs:
        return first_test(part.ifs[0], ast.And, ast.Eq)
    if len(node.generators) != 1 or not isinstance(node, ast.GeneratorExp | ast.ListComp):
        return None
    match scope.source.parents[node]:
        case ast.Call(func=ast.Name(id=name), args=[_], keywords=[]):
            if not scope.source.is_builtin(name):
                return None
            if name == "any":
                return first_test(node.elt, ast.And, ast.Eq)
            if name == "all":
                return first_test(node.elt, ast.Or, ast.NotEq)
            if name == "sum" and isinstance(node.elt, ast.Compare):
                return first_test(node.elt, ast.And, ast.Eq)
    return None


def _is_used_at_once(scope: Scope, node: Comprehension) -> bool:
    """Whether a generator is run through before what its key must be equal to can change."""
    if not isinstance(node, ast.GeneratorExp):
        return True
    match scope.source.parents[node]:
        case ast.Call(func=ast.Name(id=name)):
            is_known = name == "next" or (name in PURE and name not in ("enumerate", "zip"))
            return is_known and scope.source.is_builtin(name)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join")):
            return True
    return False


def _is_private(scope: Scope, loop: ast.For) -> bool:
    """Whether the names of a loop's items mean nothing outside it, so that nobody misses some."""
    inside = {each for part in (loop.target, *loop.body) for each in ast.walk(part)}
    for name in names_in(loop.target):
        if not scope.is_local(name):
            return False
        for mention in scope.mentions(name):
            if mention not in inside and not _is_bound_around(scope, mention):
                return False
    return True


def _is_bound_around(scope: Scope, mention: ast.Name) -> bool:
    """Whether a loop around binds a name anew."""
    for each in scope.source.around(mention):
        if isinstance(each, ast.For) and mention.id in names_in(each.target):
            parts = (each.target, *each.body)
            return any(mention is one for part in parts for one in ast.walk(part))
    return False


def _writes_sides(loop: ast.For, sides: Sides) -> bool:
    names = names_in(sides.mine) | names_in(sides.sought)
    target = set(ast.walk(loop.target))
    return any(
        isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        and not isinstance(node.ctx, ast.Load)
        and node not in target
        and bool(names_in(node) & names)
        for node in ast.walk(loop)
    )


def _outermost(scope: Scope, search: _Search) -> Loop | Comprehension | None:
    """The largest loop around in which the index stays right."""
    if not search.base or not _is_lasting(scope, search) or not _has_names(search.target):
        return None
    if not is_hashable(scope, search.sides.sought) or not is_hashable(scope, search.sides.mine):
        return None
    loops: list[Loop | Comprehension] = scope.loops(search.node)
    if isinstance(search.node, COMPREHENSIONS) and search.given is not _first(search.node).iter:
        loops.append(search.node)
    best = None
    for loop in reversed(loops):
        if not _stays(scope, search, loop):
            break
        if scope.can_precede(loop):
            best = loop
    return best


def _has_names(target: ast.expr) -> bool:
    """Whether a target is names only: ``a``, ``(a, b)``."""
    if isinstance(target, ast.Tuple):
        return all(map(_has_names, target.elts))
    return isinstance(target, ast.Name)


def _first(node: Comprehension) -> ast.comprehension:
    return node.generators[0]


def _stays(scope: Scope, search: _Search, loop: Loop | Comprehension) -> bool:
    if is_rewritten(search.sides.mine, _items(scope, search), loop):
        return False
    inside = set(ast.walk(loop))
    if search.held is not None:
        return (
            is_untouched_attribute(scope, search.held, loop)
            and not is_questioned_attribute(scope, search.held, loop)
            and not any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for each in inside)
        )
    return (
        is_untouched(scope, search.base, loop)
        and not scope.is_questioned(search.base, loop)
        and is_set_before(scope, search.base, scope.source.statement_of(loop))
        and not any(each in inside for each in scope.bindings(search.base))
    )


def _items(scope: Scope, search: _Search) -> set[str]:
    """What items are called: in the search, and what is found by it."""
    statement = scope.source.statement_of(search.node)
    found = statement.targets if isinstance(statement, ast.Assign) else []
    return names_in(search.target).union(*map(names_in, found))


def _is_lasting(scope: Scope, search: _Search) -> bool:
    """Whether it can be gone through twice: a parameter, a list made here, a dictionary."""
    if search.held is not None:
        return all(map(is_lasting, values_of(scope.source, search.held.attr)))
    if isinstance(search.given, ast.Call):
        if isinstance(search.given.func, ast.Attribute):
            return not search.given.args
        if not scope.source.is_builtin("enumerate"):
            return False
    bindings = scope.bindings(search.base)
    return all(is_fresh_list(scope.assignment(each), scope.source) for each in bindings)


def _write_index(scope: Scope, loop: Loop | Comprehension, search: _Search) -> Change:
    source, base = scope.source, search.base
    index = source.fresh(f"{base}_index")
    target, mine = search.target, search.sides.mine
    if isinstance(target, ast.Name):
        names = {target.id: source.fresh(f"{base}_item")}
    else:
        names = {each: source.fresh(f"{base}_{each}") for each in sorted(names_in(target))}
    one = ast.unparse(renamed(target, names))
    key = ast.unparse(renamed(mine, names))
    code = (
        f"{index} = {{}}\n"
        f"for {one.removeprefix('(').removesuffix(')')} in {source.say(search.given)}:\n"
        f"    {index}.setdefault({key}, []).append({one})"
    )
    sought = source.say(search.sides.sought)
    edits: tuple[Edit, ...] = (
        ("before", source.statement_of(loop), code),
        ("replace", search.given, f"{index}.get({sought}, ())"),
    )
    what = f"{base} is indexed by {ast.unparse(mine)}"
    return Change(what, search.given.lineno, scope.name, edits)
