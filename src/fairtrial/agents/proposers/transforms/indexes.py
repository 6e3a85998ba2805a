"""Lists that are searched for each element of another: an index is made first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fairtrial.agents.proposers.transforms.source import LOOPS, Change, Comprehension, Edit, Source
from fairtrial.agents.proposers.transforms.uses import Scope, is_fresh_list


def find_counts(source: Source) -> Iterator[Change]:
    """``items.count(x)`` and ``items.index(x)`` in a loop over the items."""
    for qualified, function in source.functions:
        scope = Scope(source, qualified, function)
        for node in source.walk(function):
            if source.function_of(node) is not function:
                continue
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name() as items, attr="count" | "index" as method),
                    args=[sought],
                    keywords=[],
                ):
                    change = _ask_index(scope, node, items, method, sought)
                    if change:
                        yield change


def _ask_index(
    scope: Scope, call: ast.Call, items: ast.Name, method: str, sought: ast.expr
) -> Change | None:
    source, name = scope.source, items.id
    loops = [each for each in scope.loops(call) if scope.is_untouched(name, each)]
    if not loops or not scope.can_precede(loops[0]):
        return None
    if isinstance(sought, ast.Starred) or not _is_of(scope, sought, name, call):
        return None
    before = source.statement_of(loops[0])
    if method == "count":
        if not source.can_import("collections.Counter"):
            return None
        index = source.fresh(f"{name}_counts")
        edits: tuple[Edit, ...] = (
            ("before", before, f"{index} = Counter({name})"),
            ("replace", call, f"{index}[{source.say(sought)}]"),
        )
        what = f"{name} is counted once"
        return Change(what, call.lineno, scope.name, edits, ("collections.Counter",))
    if not all(map(source.is_builtin, ("enumerate", "reversed", "len"))):
        return None
    index, place, item = (source.fresh(f"{name}_{word}") for word in ("places", "place", "item"))
    code = (
        f"{index} = {{}}\n"
        f"for {place}, {item} in enumerate({name}):\n"
        f"    {index}.setdefault({item}, {place})"
    )
    edits = (("before", before, code), ("replace", call, f"{index}[{source.say(sought)}]"))
    what = f"the first place of each item of {name} is noted once"
    return Change(what, call.lineno, scope.name, edits)


def _is_of(scope: Scope, sought: ast.expr, name: str, call: ast.Call) -> bool:
    """Whether what is sought is surely one of the items: then a text is asked for characters."""
    if not isinstance(sought, ast.Name):
        return False
    for loop in scope.loops(call):
        generators: list[ast.For | ast.comprehension] = []
        if isinstance(loop, ast.For):
            generators.append(loop)
        elif not isinstance(loop, LOOPS):
            generators += loop.generators
        for each in generators:
            if isinstance(each.target, ast.Name) and each.target.id == sought.id:
                bound = [node for node in scope.bindings(sought.id) if node in set(ast.walk(loop))]
                is_kept = len(bound) == 1
                return is_kept and _iterates(scope, each.iter, name)
    return False


def _iterates(scope: Scope, given: ast.expr, name: str) -> bool:
    match given:
        case ast.Name(id=it):
            return it == name
        case ast.Call(
            func=ast.Name(id="set" | "sorted" | "list" as builtin), args=[ast.Name(id=it)]
        ):
            return it == name and scope.source.is_builtin(builtin)
    return False


def find_matches(source: Source) -> Iterator[Change]:
    """``for a in ones: for b in others: if a.key == b.key``: others are indexed by their key."""
    for qualified, function in source.functions:
        scope = Scope(source, qualified, function)
        known: set[str] = set()
        for node in source.walk(function):
            if source.function_of(node) is not function:
                continue
            for change in _find_match(scope, node):
                # Another index of the same items gets another name, in the next round.
                name = change.edits[1][2].partition(".")[0]
                if name not in known:
                    known.add(name)
                    yield change


def _find_match(scope: Scope, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.For(
            target=ast.Name() as item, iter=ast.Name() as others, body=[ast.If() as test]
        ) if not test.orelse:
            change = _index(scope, node, item, others, test.test)
            if change:
                yield change
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _index_inner(scope, node)


def _index_inner(scope: Scope, node: Comprehension) -> Iterator[Change]:
    """The same for ``[... for a in ones for b in others if a.key == b.key]``."""
    if not scope.can_precede(node):
        return
    bound = [each for part in node.generators for each in _names(part.target)]
    for part in node.generators[1:]:
        match part:
            case ast.comprehension(
                target=ast.Name() as item, iter=ast.Name() as others, ifs=[test, *_]
            ):
                sides = _sides(test, item.id)
                is_clear = bound.count(item.id) == 1 and _stays(scope, others.id, node)
                if sides and is_clear and _is_list(scope, others.id):
                    before = scope.source.statement_of(node)
                    yield _write_index(scope, before, item, others, *sides)


def _index(
    scope: Scope, inner: ast.For, item: ast.Name, others: ast.Name, test: ast.expr
) -> Change | None:
    loops = [each for each in scope.loops(inner) if isinstance(each, LOOPS)]
    outer = next((each for each in loops if _stays(scope, others.id, each)), None)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test = test.values[0]
    sides = _sides(test, item.id)
    if outer is None or sides is None or not scope.is_local(item.id):
        return None
    mine, sought = sides
    if _is_written(inner, {item.id, *_names(sought)}) or not _is_list(scope, others.id):
        return None
    return _write_index(scope, outer, item, others, mine, sought)


def _write_index(
    scope: Scope,
    outer: ast.stmt,
    item: ast.Name,
    others: ast.Name,
    mine: ast.expr,
    sought: ast.expr,
) -> Change:
    source = scope.source
    index = source.fresh(f"{others.id}_index")
    one = source.fresh(f"{others.id}_item")
    key = ast.unparse(_renamed(mine, item.id, one))
    code = (
        f"{index} = {{}}\n"
        f"for {one} in {others.id}:\n"
        f"    {index}.setdefault({key}, []).append({one})"
    )
    edits: tuple[Edit, ...] = (
        ("before", outer, code),
        ("replace", others, f"{index}.get({source.say(sought)}, ())"),
    )
    what = f"{others.id} is indexed by {ast.unparse(mine)}"
    return Change(what, others.lineno, scope.name, edits)


def _stays(scope: Scope, name: str, loop: ast.AST) -> bool:
    inside = set(ast.walk(loop))
    return scope.is_untouched(name, loop) and not any(
        each in inside for each in scope.bindings(name)
    )


def _is_list(scope: Scope, name: str) -> bool:
    """Whether it can be gone through twice: a parameter, or a list made here."""
    bindings = scope.bindings(name)
    return all(is_fresh_list(scope.assignment(each), scope.source) for each in bindings)


def _sides(test: ast.expr, item: str) -> tuple[ast.expr, ast.expr] | None:
    """Of an equality: the side that is of the item alone, and the one that knows nothing of it."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            for mine, other in ((left, right), (right, left)):
                is_told_apart = _names(mine) == {item} and item not in _names(other)
                if is_told_apart and _names(other) and _is_plain(mine) and _is_plain(other):
                    return mine, other
    return None


def _is_plain(node: ast.expr) -> bool:
    """Whether it is a name, or a part of one: reading it changes nothing."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value):
            return _is_plain(value)
        case ast.Subscript(value=value, slice=ast.Constant()):
            return _is_plain(value)
    return False


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_written(loop: ast.For, names: set[str]) -> bool:
    """Whether one of the names, or a part of what it stands for, is written in the loop."""
    for node in ast.walk(loop):
        if node is loop.target:
            continue
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            is_store = not isinstance(node.ctx, ast.Load)
            if is_store and _names(node) & names:
                return True
    return False


def _renamed(node: ast.expr, old: str, new: str) -> ast.expr:
    text = ast.unparse(node)
    copy = ast.parse(text, mode="eval").body
    for each in ast.walk(copy):
        if isinstance(each, ast.Name) and each.id == old:
            each.id = new
    return copy
