"""What a function is given or gets, and asks in a loop what is in it: a set of it is made.

Nobody says that it is a list, so the code that is written asks: texts, dictionaries and all
else stay what they are, and so does a list of what can't be hashed. Also a list of a class of its
own, which may have its own idea of what is in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.attributes import (
    is_untouched_attribute,
    values_of,
)
from fairtrial_codemod.transforms.analysis.effects import is_untouched
from fairtrial_codemod.transforms.analysis.hashability import is_hashable
from fairtrial_codemod.transforms.analysis.kinds import TEXT_METHODS
from fairtrial_codemod.transforms.analysis.lives import life_of
from fairtrial_codemod.transforms.analysis.matching import same
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import (
    Change,
    Comprehension,
    Edit,
    Loop,
    Source,
)
from fairtrial_codemod.transforms.analysis.stability import is_set_before
from fairtrial_codemod.transforms.analysis.uses import PURE, Scope, is_fresh_list

_NO_LISTS = frozenset(
    {"str", "bytes", "set", "frozenset", "dict", "range", "int", "float", "bool", "len", "sum"}
    | {"Counter", "defaultdict", "OrderedDict", "deque", "open", "input", "iter", "map", "filter"}
    | {"zip", "enumerate", "reversed", "vars", "globals", "locals", "type", "super", "keys"}
    | {"items", "values", "union", "intersection", "difference"}
)
"""Who gives no list or tuple."""
_OPEN_TYPES = frozenset({"Sequence", "Collection", "Iterable", "Container", "Any", "object"})
"""Types of which lists are; of what is said to be a list, another transformation makes a set."""
_TABLE_METHODS = frozenset({"get", "keys", "values", "items"})


def find_asked_sets(source: Source) -> Iterator[Change]:
    """``[x for x in xs if x in known]``, where `known` is given, held or a call's result."""
    if not all(map(source.is_builtin, ("set", "type", "list", "tuple", "TypeError"))):
        return
    for scope in scopes_of(source):
        seen: set[str] = set()
        for node in own_nodes(scope, ast.Compare):
            asked = _asked(node)
            if asked is None:
                continue
            text = ast.unparse(asked)
            if text in seen:
                continue
            life = life_of(scope, asked) if isinstance(asked, ast.Name) else scope
            loop = _loop_of(life, node, asked)
            if loop is not None and _may_be_list(life, asked):
                seen.add(text)
                yield from _ask(life, text, loop)


def _asked(node: ast.AST) -> ast.Name | ast.Attribute | None:
    """What a test asks whether something is in it."""
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[asked]):
            if isinstance(asked, ast.Name | ast.Attribute):
                return asked
    return None


def _may_be_list(scope: Scope, asked: ast.Name | ast.Attribute) -> bool:
    """Whether nothing says that it is no list."""
    text = ast.unparse(asked)
    for node in scope.source.walk(scope.function):
        is_alike = isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == text
        if is_alike and _says_otherwise(scope, node):
            return False
    if isinstance(asked, ast.Attribute):
        return all(map(_may_give_list, values_of(scope.source, asked.attr)))
    name, source = asked.id, scope.source
    parameter = scope.parameter(name)
    values = [scope.assignment(each) for each in scope.bindings(name)]
    if parameter is not None:
        is_open = parameter.annotation is None or _is_open(parameter.annotation)
        is_itself = isinstance(scope.source.parents[scope.function], ast.ClassDef) and (
            parameter in scope.function.args.args[:1]
        )
        return is_open and not is_itself and all(is_fresh_list(each, source) for each in values)
    # Where all of them are new lists, another transformation keeps a set beside.
    is_strange = any(not is_fresh_list(each, source) for each in values)
    return is_strange and all(_comes_along(scope, each) for each in values)


def _comes_along(scope: Scope, value: ast.expr | None) -> bool:
    """Whether a value may be a list, and nothing else in the function is a name for it."""
    match value:
        case ast.BoolOp(op=ast.Or(), values=[ast.Name() as given, ast.List() | ast.Tuple()]):
            # No name for a list that the function makes: calls on those count as harmless.
            whole = Scope(scope.source, scope.name, scope.function)
            return not life_of(whole, given).bindings(given.id)
        case ast.Call():
            return _may_give_list(value)
    return is_fresh_list(value, scope.source)


def _may_give_list(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=made) | ast.Attribute(attr=made)):
            return made not in _NO_LISTS and made not in TEXT_METHODS
        case ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp() | ast.JoinedStr():
            return False
        case ast.Constant(value=given):
            return given is None
    return True


def _is_open(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _OPEN_TYPES
        case ast.Subscript(value=value):
            return _is_open(value)
        case ast.Constant(value=str(text)):
            return text.partition("[")[0] in _OPEN_TYPES
    return False


def _says_otherwise(scope: Scope, mention: ast.AST) -> bool:
    """Whether a mention shows a text or a dictionary: by what it does, or what it is asked."""
    match scope.source.parents[mention]:
        case ast.Attribute(attr=attr):
            return attr in _TABLE_METHODS or attr in TEXT_METHODS
        case ast.Subscript(slice=ast.Constant(value=str())):
            return True
        case ast.Subscript(value=value, slice=place) if value is mention:
            return any(
                same(place, test.left) and same(mention, test.comparators[0])
                for test in scope.source.walk(scope.function)
                if isinstance(test, ast.Compare)
            )
        case ast.Compare(left=ast.Constant(value=str() | bytes())):
            return True
    return False


def _loop_of(
    scope: Scope, test: ast.AST, asked: ast.Name | ast.Attribute
) -> Loop | Comprehension | None:
    """The largest loop around a test in which nothing but questions comes to what is asked."""
    best = None
    for loop in reversed(scope.loops(test)):
        if isinstance(asked, ast.Attribute):
            is_same = is_untouched_attribute(scope, asked, loop)
        else:
            is_same = is_untouched(scope, asked.id, loop)
        if not is_same or _is_left_meanwhile(scope, loop):
            break
        best = loop
    if best is None or not scope.can_precede(best):
        return None
    is_set = isinstance(asked, ast.Attribute) or is_set_before(
        scope, asked.id, scope.source.statement_of(best)
    )
    return best if is_set else None


def _is_left_meanwhile(scope: Scope, loop: ast.AST) -> bool:
    """Whether others run between two rounds: they may hold and change what was given."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if isinstance(node, ast.GeneratorExp):
            match scope.source.parents[node]:
                case ast.Call(func=ast.Name(id=name)) if name in PURE | {"next"}:
                    pass
                case ast.Call(func=ast.Attribute(attr="join" | "extend" | "update")):
                    pass
                case _:
                    return True
    return False


def _is_there(scope: Scope, asked: ast.Name | ast.Attribute) -> bool:
    """Whether it is what is looked at, and not the same name for something else."""
    return not isinstance(asked, ast.Name) or asked in scope.mentions(asked.id)


def _ask(scope: Scope, text: str, loop: Loop | Comprehension) -> Iterator[Change]:
    source = scope.source
    edits: list[Edit] = []
    beside = source.fresh(f"{text.rpartition('.')[2].lstrip('_')}_set")
    for node in ast.walk(loop):
        asked = _asked(node)
        if asked is not None and ast.unparse(asked) == text and _is_there(scope, asked):
            assert isinstance(node, ast.Compare)
            if not is_hashable(scope, node.left):
                return
            edits.append(("replace", asked, beside))
    code = (
        "try:\n"
        f"    {beside} = set({text}) if type({text}) in (list, tuple) else {text}\n"
        "except TypeError:\n"
        f"    {beside} = {text}"
    )
    what = f"if {text} is a list, a set of it is asked"
    line = min(node.lineno for _, node, _ in edits if isinstance(node, ast.expr))
    before: Edit = ("before", source.statement_of(loop), code)
    yield Change(what, line, scope.name, (before, *edits))
