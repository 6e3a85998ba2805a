"""Lists that grow by what is computed on the spot and are asked what is in them: a set beside."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial_codemod.transforms.analysis.hashability import is_hashable
from fairtrial_codemod.transforms.analysis.lives import lives_of
from fairtrial_codemod.transforms.analysis.scopes import scopes_of
from fairtrial_codemod.transforms.analysis.source import Change, Edit, Source
from fairtrial_codemod.transforms.analysis.unpacking import given_to
from fairtrial_codemod.transforms.analysis.uses import Scope, Use, is_fresh_list


def find_mirrors(source: Source) -> Iterator[Change]:
    """``if (a, b) not in seen: seen.append((a, b))``, in a loop."""
    if not source.is_builtin("set"):
        return
    for scope in scopes_of(source):
        names = {
            node.comparators[0].id
            for node in source.walk(scope.function)
            if isinstance(node, ast.Compare)
            and isinstance(node.comparators[0], ast.Name)
            and scope.use(node.comparators[0]) is Use.TEST
            and scope.loops(node)
        }
        for name in sorted(names):
            for life in lives_of(scope, name):
                change = _add_set(life, name)
                if change:
                    yield change


def _add_set(scope: Scope, name: str) -> Change | None:
    if not scope.is_local(name) or scope.parameter(name) or scope.has_alias(name):
        return None
    beside = scope.source.fresh(f"{name}_set")
    tests = [each for each in scope.mentions(name) if scope.use(each) is Use.TEST]
    edits: list[Edit] = []
    starts: list[ast.AST] = []
    for mention in scope.mentions(name):
        more = _edits_of(scope, mention, beside, tests)
        if more is None:
            return None
        if scope.use(mention) is Use.BIND and given_to(scope, mention) is not None:
            starts += [node for _, node, _ in more]
        edits += more
    # What is appended by name alone is the business of the simpler transformation.
    is_computed = any(how == "replace" and isinstance(node, ast.stmt) for how, node, _ in edits)
    if not starts or not is_computed or not _pays(scope, tests, starts):
        return None
    what = f"a set beside {name} says what is in it"
    return Change(what, tests[0].lineno, scope.name, tuple(edits))


def _edits_of(
    scope: Scope, mention: ast.Name, beside: str, tests: list[ast.Name]
) -> list[Edit] | None:
    """What is done to the set where something is done to the list; None if that isn't known."""
    match scope.use(mention):
        case Use.READ | Use.OPERAND | Use.GIVE:
            return []
        case Use.TEST:
            test = scope.source.parents[mention]
            assert isinstance(test, ast.Compare)
            return [("replace", mention, beside)] if is_hashable(scope, test.left) else None
        case Use.METHOD:
            return _mirror(scope, mention, beside)
        case Use.BIND:
            return _begin(scope, mention, beside)
    # It may be changed there: that doesn't matter once nothing is asked any more.
    is_late = all(test.lineno < mention.lineno for test in tests)
    return [] if is_late and not scope.loops(mention) else None


def _begin(scope: Scope, bound: ast.Name, beside: str) -> list[Edit] | None:
    """Where the list begins, the set begins; ``seen += [x]`` adds to both."""
    source = scope.source
    statement, value = source.statement_of(bound), given_to(scope, bound)
    match statement:
        case ast.AugAssign(target=target, op=ast.Add(), value=ast.List(elts=added)):
            return _add(scope, bound.id, statement, added, beside) if target is bound else None
    if value is None or not is_fresh_list(value, source):
        return None
    match value:
        case ast.List(elts=[]):
            return [("after", statement, f"{beside} = set()")]
        case ast.List(elts=parts):
            are_known = all(is_hashable(scope, each) for each in parts)
        case ast.ListComp(elt=part):
            are_known = is_hashable(scope, part)
        case _:
            are_known = True
    return [("after", statement, f"{beside} = set({bound.id})")] if are_known else None


def _mirror(scope: Scope, mention: ast.Name, beside: str) -> list[Edit] | None:
    method, call = scope.method(mention)
    if method in ("count", "index", "copy", "sort", "reverse"):
        return []
    statement = scope.source.statement_of(call)
    if not (isinstance(statement, ast.Expr) and statement.value is call) or call.keywords:
        return None
    match method, call.args:
        case "clear", []:
            return [("after", statement, f"{beside}.clear()")]
        case "append", [added]:
            return _add(scope, mention.id, statement, [added], beside)
        case "extend", [ast.List(elts=added) | ast.Tuple(elts=added)]:
            return _add(scope, mention.id, statement, added, beside)
        case "insert", [(ast.Name() | ast.Constant()) as place, added]:
            at = f"insert({scope.source.say(place)}, {{}})"
            return _add(scope, mention.id, statement, [added], beside, at)
    return None


def _add(
    scope: Scope,
    name: str,
    statement: ast.stmt,
    added: list[ast.expr],
    beside: str,
    how: str = "append({})",
) -> list[Edit] | None:
    """Add to the list and the set what is computed once."""
    source = scope.source
    if not added or not all(is_hashable(scope, each) for each in added):
        return None
    if len(added) > 1:
        item = source.fresh(f"{name}_items")
        made = ", ".join(map(source.say, added))
        code = f"{item} = [{made}]\n{name}.extend({item})\n{beside}.update({item})"
        return [("replace", statement, code)]
    (one,) = added
    if isinstance(one, ast.Name | ast.Constant):
        return [("after", statement, f"{beside}.add({source.say(one)})")]
    item = source.fresh(f"{name}_item")
    code = f"{item} = {source.say(one)}\n{name}.{how.format(item)}\n{beside}.add({item})"
    return [("replace", statement, code)]


def _pays(scope: Scope, tests: list[ast.Name], starts: list[ast.AST]) -> bool:
    """Whether it is tested in a loop that doesn't begin it anew each time."""
    return any(
        not any(start is each for start in starts for each in ast.walk(loop))
        for test in tests
        for loop in scope.loops(test)
    )
