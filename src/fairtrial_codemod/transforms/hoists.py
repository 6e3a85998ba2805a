"""Work that is the same in every round of a loop: done before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import is_asked_later, is_untouched
from fairtrial_codemod.transforms.analysis.kinds import is_optional
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    LOOPS,
    Change,
    Comprehension,
    Edit,
    Loop,
    Source,
    catches,
)
from fairtrial_codemod.transforms.analysis.uses import Scope

_NUMBERS = ("len", "sum", "max", "min")
_COLLECTIONS = ("sorted", "set", "list", "tuple", "frozenset")
_TEXTS = ("lower", "upper", "casefold", "strip", "lstrip", "rstrip", "title", "capitalize")
"""Methods of texts: nothing that can be changed has them."""
_ASKING = ("isinstance", "issubclass", "hasattr", "callable", "type", "bool", "id")
_MODULES = ("math", "cmath", "operator", "itertools", "bisect", "heapq", "functools")
"""Modules whose functions nobody replaces."""


def find_hoists(source: Source) -> Iterator[Change]:
    """``x / sum(items)`` in a loop that doesn't change `items`."""
    for scope in scopes_of(source):
        groups: dict[tuple[str, ast.AST], list[ast.Call]] = {}
        for node in own_nodes(scope, ast.Call):
            around = _hoistable(scope, node)
            if around is None or not scope.can_precede(around):
                continue
            if not _is_guarded(scope, node, around):
                groups.setdefault((ast.dump(node), around), []).append(node)
        taken: list[str] = []
        for (_, loop), calls in groups.items():
            yield _hoist(scope, loop, calls, taken)


def _hoistable(scope: Scope, call: ast.Call) -> Loop | Comprehension | None:
    """The outermost loop in which a call gives the same each time."""
    match call:
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=items)], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id=items), attr=name), keywords=[]):
            is_plain = all(isinstance(each, ast.Constant) for each in call.args)
            return _same_text(scope, call, items) if name in _TEXTS and is_plain else None
        case _:
            return None
    if name not in _NUMBERS + _COLLECTIONS or not scope.source.is_builtin(name):
        return None
    if name in _COLLECTIONS and not _only_asked(scope, call):
        return None
    best = None
    for loop in reversed(scope.loops(call)):
        if not is_untouched(scope, items, loop) or _is_made_in(scope, items, loop):
            break
        # Of nothing there is no largest; but then the loop over it has no rounds.
        if name not in ("max", "min") or _goes_through(loop, items):
            best = loop
    return best


def _same_text(scope: Scope, call: ast.Call, name: str) -> Loop | Comprehension | None:
    """The outermost loop in which a text is always the same one."""
    best = None
    for loop in reversed(scope.loops(call)):
        if not scope.is_local(name) or _is_made_in(scope, name, loop):
            break
        if is_asked_later(scope, name, loop):
            break
        best = loop
    return best


def _is_made_in(scope: Scope, name: str, loop: ast.AST) -> bool:
    inside = set(ast.walk(loop))
    return any(each in inside for each in scope.bindings(name))


def _only_asked(scope: Scope, call: ast.Call) -> bool:
    """Whether a collection is not kept or changed by whoever asked for it."""
    match scope.source.parents[call]:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[it]):
            return it is call
        case ast.Subscript(value=it, ctx=ast.Load()):
            return it is call
        case ast.Compare():
            return True
        case ast.For(iter=it) | ast.comprehension(iter=it):
            return it is call
        case ast.Call(func=ast.Name(id="len" | "sum" | "max" | "min")):
            return True
    return False


def _is_guarded(scope: Scope, call: ast.Call, loop: Loop | Comprehension) -> bool:
    """Whether a call is made only if what it is made with allows for it, as far as one sees."""
    given = call.args[0] if isinstance(call.func, ast.Name) else _value(call.func)
    name = given.id if isinstance(given, ast.Name) else ""
    if _may_be_none(scope, name) and not _goes_through(loop, name):
        return True

    def speaks_of(test: ast.AST) -> bool:
        return any(_asks_for(scope, each) for each in scope.mentions(name, test))

    below: ast.AST = call
    for each in scope.source.around(call):
        if catches(each) or any(map(speaks_of, _conditions(scope, each, below))):
            return True
        if each is loop:
            break
        below = each
    return any(
        speaks_of(each)
        for given in _iterables(loop)
        for each in ast.walk(given)
        if isinstance(each, ast.BoolOp | ast.IfExp)
    )


def _asks_for(scope: Scope, mention: ast.Name) -> bool:
    """Whether a mention asks what kind of thing it is; most other uses would fail by themselves."""
    match scope.source.parents[mention]:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[it]):
            return it is not mention
        case ast.Call(func=ast.Name(id=name)):
            return name in _ASKING
        case ast.Subscript() | ast.Attribute() | ast.For() | ast.comprehension() | ast.Call():
            return False
    return True


def _value(attribute: ast.expr) -> ast.expr | None:
    return attribute.value if isinstance(attribute, ast.Attribute) else None


def _conditions(scope: Scope, around: ast.AST, below: ast.AST) -> list[ast.expr]:
    """What is tested before one comes from there to what is below."""
    tests: list[ast.expr] = []
    match around:
        case ast.BoolOp(values=values):
            tests += values[: values.index(below)] if below in values else []
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            tests += [] if below is test else [test]
        case ast.comprehension(ifs=ifs):
            tests += ifs[: ifs.index(below)] if below in ifs else []
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            tests += [test for each in around.generators if each is not below for test in each.ifs]
    if isinstance(below, ast.stmt):
        block = scope.source.block_of(below)
        before = block[: block.index(below)] if below in block else []
        tests += [each.test for each in before if isinstance(each, ast.If | ast.Assert)]
    return tests


def _iterables(loop: ast.AST) -> list[ast.expr]:
    if isinstance(loop, ast.For | ast.AsyncFor):
        return [loop.iter]
    return [each.iter for each in getattr(loop, "generators", ())]


def _may_be_none(scope: Scope, name: str) -> bool:
    """Whether it is a parameter that need not be given, and nothing is put in its place."""
    parameter = scope.parameter(name)
    if parameter is None or scope.bindings(name):
        return False
    said = "" if parameter.annotation is None else ast.unparse(parameter.annotation)
    return is_optional(scope.function, parameter) or "None" in said or "Optional" in said


def _goes_through(loop: ast.AST, items: str) -> bool:
    """Whether a loop has a round for each of the items, and so none if there are none."""
    given = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(loop, ast.ListComp | ast.SetComp | ast.DictComp):
        given = loop.generators[0].iter
    if given is None:
        return False
    if isinstance(given, ast.Name) and given.id == items:
        return True
    return any(
        match(pattern, given) is not None
        for pattern in (f"enumerate({items})", f"range(len({items}))", f"reversed({items})")
    )


def _hoist(scope: Scope, loop: ast.AST, calls: list[ast.Call], taken: list[str]) -> Change:
    source = scope.source
    call = calls[0]
    match call:
        case ast.Call(func=ast.Name(id="max" | "min" as builtin), args=[ast.Name(id=given)]):
            name = source.fresh(f"{given}_{builtin}", *taken)
            code = f"{name} = {builtin}({given}, default=None)"
        case (
            ast.Call(func=ast.Name(id=word), args=[ast.Name(id=given)])
            | ast.Call(func=ast.Attribute(value=ast.Name(id=given), attr=word))
        ):
            name = source.fresh(f"{given}_{word}", *taken)
            code = f"{name} = {source.say(call)}"
        case _:
            raise AssertionError(call)
    taken.append(name)
    edits: list[Edit] = [("before", source.statement_of(loop), code)]
    edits += [("replace", each, name) for each in calls]
    what = f"{source.say(call)} is computed once, before the loop"
    return Change(what, call.lineno, scope.name, tuple(edits))


def find_lookups(source: Source) -> Iterator[Change]:
    """``math.sqrt`` in a loop: looked up once."""
    for scope in scopes_of(source):
        groups: dict[tuple[str, ast.AST], list[ast.Attribute]] = {}
        for node in own_nodes(scope, ast.Attribute):
            match node:
                case ast.Attribute(value=ast.Name(id=module), ctx=ast.Load()):
                    loops = scope.loops(node)
                    is_known = module in _MODULES and _has_all(source, module)
                    if loops and is_known and isinstance(loops[0], LOOPS):
                        key = (f"{module}.{node.attr}", loops[0])
                        groups.setdefault(key, []).append(node)
        for (dotted, loop), nodes in groups.items():
            name = source.fresh(dotted.replace(".", "_"))
            edits: list[Edit] = [("before", loop, f"{name} = {dotted}")]
            edits += [("replace", each, name) for each in nodes]
            what = f"{dotted} is looked up once, before the loop"
            yield Change(
                what, loop.lineno if isinstance(loop, ast.stmt) else 0, scope.name, tuple(edits)
            )


def _has_all(source: Source, module: str) -> bool:
    """Whether nothing says that a module may lack something: then it must be looked up there."""
    for node in source.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=asked), *_]):
                if asked == module:
                    return False
            case ast.Attribute(attr="version_info") | ast.Name(id="version_info"):
                return False
            case ast.ExceptHandler(type=caught):
                names = {each.id for each in ast.walk(caught or node) if isinstance(each, ast.Name)}
                if "AttributeError" in names:
                    return False
    return source.has_import(module)
