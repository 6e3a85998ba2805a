"""Lists that are asked what is in them: a set beside the list."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.effects import may_change_elsewhere
from fairtrial_codemod.transforms.analysis.hashability import is_checked, is_hashable
from fairtrial_codemod.transforms.analysis.iterables import is_dictionary, is_repeatable
from fairtrial_codemod.transforms.analysis.lives import lives_of
from fairtrial_codemod.transforms.analysis.matching import match
from fairtrial_codemod.transforms.analysis.scopes import own_nodes, scopes_of
from fairtrial_codemod.transforms.analysis.source import LOOPS, Change, Edit, Source
from fairtrial_codemod.transforms.analysis.unhashables import is_unhashable
from fairtrial_codemod.transforms.analysis.unpacking import given_to
from fairtrial_codemod.transforms.analysis.uses import (
    Scope,
    Use,
    is_fresh_list,
    unhashable,
)

FEWEST_CONSTANTS = 3
_LIST_TYPES = {"list", "List", "tuple", "Tuple"}


def find_sets(source: Source) -> Iterator[Change]:
    """``if x not in seen: seen.append(x)``: a list that is tested in a loop."""
    if not source.is_builtin("set"):
        return
    for scope in scopes_of(source):
        for name in sorted({each.id for each in _tested(scope)}):
            for life in lives_of(scope, name):
                change = _add_set(life, name)
                if change:
                    yield change


def _tested(scope: Scope) -> Iterator[ast.Name]:
    """Names that are tested for membership in a loop of this very function."""
    for node in own_nodes(scope, ast.Compare):
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name() as name]):
                if scope.loops(node):
                    yield name


def _add_set(scope: Scope, name: str) -> Change | None:
    source = scope.source
    if not scope.is_local(name):
        return None
    beside = source.fresh(f"{name}_set")
    edits: list[Edit] = []
    tests = [each for each in scope.mentions(name) if scope.use(each) is Use.TEST]
    if not tests or any(_asks_unhashable(scope, source.parents[each]) for each in tests):
        return None
    last_test = max(each.lineno for each in tests)
    starts = _starts(scope, name, beside)
    if not starts or not _pays(scope, tests, [node for how, node, _ in starts if how == "after"]):
        return None
    for mention in scope.mentions(name):
        match scope.use(mention):
            case Use.BIND | Use.READ | Use.GIVE:
                continue
            case Use.TEST:
                edits.append(("replace", mention, beside))
            case Use.METHOD:
                more = _mirror(scope, mention, beside)
                if more is None:
                    return None
                edits += more
            case Use.OTHER:
                # It may be changed there; that matters as long as it is tested.
                if mention.lineno <= last_test or not _is_over(scope, mention, tests, starts):
                    return None
    is_grown = any(how != "replace" for how, *_ in edits)
    if not is_grown and all(code.endswith(" = set()") for *_, code in starts):
        return None  # there is never anything in it
    what = f"a set beside {name} says what is in it"
    return Change(what, tests[0].lineno, scope.name, (*starts, *edits))


def _is_over(scope: Scope, mention: ast.Name, tests: list[ast.Name], starts: list[Edit]) -> bool:
    """Whether the list begins anew before it is tested again, if it is."""
    begins = [node for _, node, _ in starts]
    for loop in scope.loops(mention):
        is_tested = any(test in set(ast.walk(loop)) for test in tests)
        body = loop.body if isinstance(loop, LOOPS) else []
        if is_tested and not all(each in body for each in begins):
            return False
    return True


def _asks_unhashable(scope: Scope, test: ast.AST) -> bool:
    return isinstance(test, ast.Compare) and is_unhashable(scope, test.left)


def _starts(scope: Scope, name: str, beside: str) -> list[Edit] | None:
    """Where the list begins, each time: the set begins there, too."""
    starts: list[Edit] = []
    for bound in scope.bindings(name):
        value = given_to(scope, bound)
        if value is None or not is_fresh_list(value, scope.source):
            return None
        if isinstance(value, ast.List):
            if any(map(unhashable, value.elts)):
                return None
            code = f"{beside} = set({name})" if value.elts else f"{beside} = set()"
        else:
            if isinstance(value, ast.ListComp) and unhashable(value.elt):
                return None
            code = f"{beside} = set({name})"
        starts.append(("after", scope.source.statement_of(bound), code))
    parameter = scope.parameter(name)
    if parameter is None:
        return starts
    if starts or not (_is_list_type(parameter.annotation) or _grows(scope, name)):
        return None
    # The set is made before anybody asks if there is a list, and nobody may change it unseen.
    if scope.is_questioned(name, scope.function):
        return None
    if may_change_elsewhere(scope, name, scope.function):
        return None
    body = scope.function.body
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    if has_docstring:
        return [("after", body[0], f"{beside} = set({name})")]
    return [("before", body[0], f"{beside} = set({name})")]


def _grows(scope: Scope, name: str) -> bool:
    """Whether something is appended to it: then it is no text."""
    return any(
        scope.use(each) is Use.METHOD and scope.method(each)[0] == "append"
        for each in scope.mentions(name)
    )


def _is_list_type(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in _LIST_TYPES


def _pays(scope: Scope, tests: list[ast.Name], starts: list[ast.AST]) -> bool:
    """Whether it is tested in a loop that doesn't begin it anew each time."""
    return any(
        not any(start is each for start in starts for each in ast.walk(loop))
        for test in tests
        for loop in scope.loops(test)
    )


def _mirror(scope: Scope, mention: ast.Name, beside: str) -> list[Edit] | None:
    """What is done to the set when something is done to the list."""
    method, call = scope.method(mention)
    if method in ("count", "index", "copy", "sort", "reverse"):
        return []
    statement = scope.source.statement_of(call)
    is_alone = isinstance(statement, ast.Expr) and statement.value is call
    if not is_alone or len(call.args) != 1 or call.keywords:
        return None
    (given,) = call.args
    if method == "append" and isinstance(given, ast.Name | ast.Constant):
        return [("after", statement, f"{beside}.add({scope.source.say(given)})")]
    if method == "extend" and isinstance(given, ast.Name) and is_repeatable(scope, given):
        return [("after", statement, f"{beside}.update({given.id})")]
    return None


def find_constant_sets(source: Source) -> Iterator[Change]:
    """``x in ["a", "b", "c"]``: the compiler keeps a set of constants ready."""
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.Compare):
            match node:
                case ast.Compare(
                    left=left,
                    ops=[ast.In() | ast.NotIn()],
                    comparators=[(ast.List() | ast.Tuple()) as items],
                ) if _are_constants(items.elts):
                    # What is also used as a collection may be a list: a set can't be asked for it.
                    is_plain = isinstance(left, ast.Name | ast.Attribute | ast.Subscript)
                    if is_checked(source, node) or (is_plain and not is_hashable(scope, left)):
                        continue
                    elements = ", ".join(map(source.say, items.elts))
                    edit = ("replace", items, f"{{{elements}}}")
                    what = f"a set of {len(items.elts)} constants"
                    yield Change(what, node.lineno, scope.name, (edit,))


def _are_constants(elements: list[ast.expr]) -> bool:
    """Whether all are of one kind: among several kinds one looks for anything, also for a list."""
    kinds = {type(each.value) if isinstance(each, ast.Constant) else None for each in elements}
    is_plain = len(kinds) == 1 and kinds <= {str, int, bytes}
    return is_plain and len(elements) >= FEWEST_CONSTANTS


def find_module_sets(source: Source) -> Iterator[Change]:
    """``x in NAMES`` in functions, where the module says ``NAMES = ["a", "b", ...]``."""
    if not source.is_builtin("frozenset"):
        return
    for statement in source.tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name) as target],
                value=(ast.List() | ast.Tuple()) as items,
            ) if _are_constants(items.elts):
                if isinstance(items, ast.List) and not name.startswith("_"):
                    continue  # another module may change it
                change = _add_frozenset(source, statement, target, name)
                if change:
                    yield change


def _add_frozenset(
    source: Source, statement: ast.stmt, target: ast.Name, name: str
) -> Change | None:
    mentions = [
        node
        for node in source.walk(source.tree)
        if isinstance(node, ast.Name) and node.id == name and node is not target
    ]
    uses = [_use_anywhere(source, each) for each in mentions]
    if Use.TEST not in uses or any(each not in (Use.TEST, Use.READ) for each in uses):
        return None
    if sum(name in _declared(node) for node in source.walk(source.tree)):
        return None
    beside = source.fresh(f"_{name.lstrip('_')}_SET" if name.isupper() else f"_{name}_set")
    tests = [each for each, use in zip(mentions, uses, strict=True) if use is Use.TEST]
    inner = [each for each in tests if source.function_of(each) and _asks_hashable(source, each)]
    if not inner:
        return None
    edits: list[Edit] = [("after", statement, f"{beside} = frozenset({name})")]
    edits += [("replace", each, beside) for each in inner]
    lines = ", ".join(str(each.lineno) for each in inner)
    what = f"a frozenset beside {name} (tested in line {lines})"
    scope = next(name for name, each in source.functions if each is source.function_of(inner[0]))
    return Change(what, statement.lineno, scope, tuple(edits))


def _asks_hashable(source: Source, mention: ast.Name) -> bool:
    """Whether nothing says that what is looked for is a list or the like."""
    test = source.parents[mention]
    scope = _scope_of(source, mention)
    assert isinstance(test, ast.Compare)
    is_plain = isinstance(test.left, ast.Name | ast.Attribute | ast.Subscript)
    if is_checked(source, test):
        return False
    return scope is None or not is_plain or is_hashable(scope, test.left)


def _use_anywhere(source: Source, mention: ast.Name) -> Use:
    """What a mention does, in whatever scope; at the top of the module it may do anything."""
    scope = _scope_of(source, mention)
    return Use.OTHER if scope is None else scope.use(mention)


def _scope_of(source: Source, mention: ast.Name) -> Scope | None:
    around = source.function_of(mention)
    return next((each for each in scopes_of(source) if each.function is around), None)


def _declared(node: ast.AST) -> list[str]:
    """Names that mean something else, or are written, in another scope."""
    match node:
        case ast.arg(arg=name):
            return [name]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.alias(name=name, asname=asname):
            return [asname or name]
    return []


def find_key_tests(source: Source) -> Iterator[Change]:
    """``x in d.keys()``: the dictionary itself says so; ``x in list(d.values())`` needs no list."""
    for scope in scopes_of(source):
        for node in own_nodes(scope, ast.Compare):
            match node:
                case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                    kept = _asked_itself(scope, right)
                    if kept is None or not is_hashable(scope, left):
                        continue
                    edit = ("replace", right, source.say(kept))
                    what = f"the test asks {source.say(kept)} itself"
                    yield Change(what, node.lineno, scope.name, (edit,))


def _asked_itself(scope: Scope, right: ast.expr) -> ast.expr | None:
    """What can be asked instead; other things than dictionaries have keys, but look elsewhere."""
    found = match("__d.keys()", right) or match("list(__d.keys())", right)
    if found and is_dictionary(scope, found["__d"]):
        return found["__d"]
    for pattern in ("list(__d.keys())", "list(__d.values())", "list(__d.items())"):
        found = match(pattern, right)
        if found and scope.source.is_builtin("list") and isinstance(right, ast.Call):
            return right.args[0]
    return None
