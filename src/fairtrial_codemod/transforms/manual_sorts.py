"""Replace sorts that are written by hand, bubble sort for instance, by `list.sort`.

The shape of the loops doesn't matter. A loop qualifies if it consists of simple statements about
one list and its indexes, and if running it on many small lists sorts all of them.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from fairtrial_codemod.analysis.function_scope import FunctionScope, find_at_nodes
from fairtrial_codemod.analysis.source_file import CodeChange, SourceFile, TextEdit

_STATEMENTS = (ast.For, ast.While, ast.If, ast.Assign, ast.AugAssign, ast.Break, ast.Continue)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Tuple),
    *(ast.Subscript, ast.Call, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_CONSTANTS = (0, 1, 2, True, False)
"""Larger constants could limit the loop to lists that are longer than those it is tried on."""
_MAX_ROUNDS = 20_000
_SIZES = (8, 13, 21, 40)


class EndlessLoop(Exception):  # noqa: N818 - it means that a loop is no sort
    """A loop that was tried took too many rounds."""


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """An item that can be told from others that are equal to it.

    key: what it is compared by
    """

    key: int

    def __lt__(self, other: _Item) -> bool:
        return self.key < other.key

    def __le__(self, other: _Item) -> bool:
        return self.key <= other.key


def find_manual_sorts(source: SourceFile) -> Iterator[CodeChange]:
    """Find loops that sort a list in place by comparing and moving its items."""
    yield from find_at_nodes(source, ast.stmt, _write_sort)


def _write_sort(scope: FunctionScope, loop: ast.stmt) -> CodeChange | None:
    if not isinstance(loop, ast.For | ast.While) or loop.orelse:
        return None
    name = _get_list_name(loop)
    if name is None or not scope.is_local(name):
        return None
    keys = _strip_keys(loop, name)
    if keys is None:
        return None
    stripped, key = keys
    starts = _get_starts(scope, loop, name)
    if starts is None or not _is_forgotten(scope, loop, name):
        return None
    arguments = _try_sort(_make_program([*starts, stripped], name))
    if arguments is None:
        return None
    is_reversed, is_stable = arguments
    if key and not is_stable:
        return None
    options = [key] if key else []
    options += ["reverse=True"] if is_reversed else []
    edit: TextEdit = ("replace", loop, f"{name}.sort({', '.join(options)})")
    description = f"{name} is sorted by list.sort()"
    return CodeChange(description, loop.lineno, scope.name, (edit,))


def _get_list_name(loop: ast.stmt) -> str | None:
    """Return the only list whose items a loop compares and sets, if it does nothing else."""
    names, bound = set(), _list_bound_names(loop)
    compares = stores = False
    for node in ast.walk(loop):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ctx):
                if name not in bound:
                    names.add(name)
                stores = stores or isinstance(ctx, ast.Store)
            case ast.Compare():
                compares = True
            case ast.Call(func=ast.Name(id="len" | "range"), keywords=[]):
                pass
            case ast.Call():
                return None
    return names.pop() if len(names) == 1 and compares and stores else None


def _list_bound_names(loop: ast.stmt) -> set[str]:
    return {
        node.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _strip_keys(loop: ast.stmt, name: str) -> tuple[ast.stmt, str] | None:
    """Return a copy of a loop that compares items themselves, and the key that it compares them by.

    The key is "" if there is none; None if there are several, or the loop has other code.
    """
    suffixes: set[str] = set()

    class Strip(ast.NodeTransformer):
        """Removes the constant subscript or the attribute from compared items."""

        def visit_Compare(self, node: ast.Compare) -> ast.AST:
            self.generic_visit(node)
            sides = [node.left, *node.comparators]
            bases = [_split_key(side, name) for side in sides]
            if len(sides) != 2 or not all(bases):
                return node
            suffixes.update(base[1] for base in bases if base)
            left, right = (base[0] for base in bases if base)
            return ast.Compare(left, node.ops, [right])

    copy = ast.parse(ast.unparse(loop)).body[0]
    stripped = ast.fix_missing_locations(Strip().visit(copy))
    if len(suffixes) > 1 or not all(map(_is_allowed, ast.walk(stripped))):
        return None
    suffix = suffixes.pop() if suffixes else ""
    return stripped, f"key=lambda item: item{suffix}" if suffix else ""


def _split_key(node: ast.expr, name: str) -> tuple[ast.expr, str] | None:
    """Split ``rows[j]["id"]`` or ``row.id`` into the item and the rest."""
    match node:
        case ast.Subscript(value=ast.Subscript() | ast.Name() as item, slice=ast.Constant() as at):
            if not (isinstance(item, ast.Name) and item.id == name):
                return item, f"[{ast.unparse(at)}]"
        case ast.Attribute(value=ast.Subscript() | ast.Name() as item, attr=attr):
            return item, f".{attr}"
    return None


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in _CONSTANTS and isinstance(node.value, int)
    if isinstance(node, ast.Compare):
        is_plain = isinstance(node.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE | ast.Eq | ast.NotEq)
        return is_plain or isinstance(node.ops[0], ast.Is)
    return isinstance(node, (*_STATEMENTS, *_EXPRESSIONS))


def _get_starts(scope: FunctionScope, loop: ast.stmt, name: str) -> list[ast.stmt] | None:
    """Return the assignments right before a loop that give values to the names that it reads."""
    bound = _list_bound_names(loop)
    read = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name)}
    wanted = read - {name, "len", "range"}
    if not scope.source.is_builtin("len", "range"):
        return None
    starts: list[ast.stmt] = []
    for statement in reversed(scope.source.get_preceding(loop)):
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target in wanted:
                if not all(map(_is_allowed, ast.walk(value))):
                    return None
                others = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                wanted = (wanted - {target}) | (others - {name, "len", "range"})
                starts.insert(0, statement)
            case _ if scope.mentions(name, statement) or not wanted - bound:
                break
    return starts if wanted <= bound else None


def _is_forgotten(scope: FunctionScope, loop: ast.stmt, name: str) -> bool:
    """Return whether the function doesn't read what the loop leaves in its other names."""
    inside = set(ast.walk(loop))
    bound = _list_bound_names(loop)
    return name not in bound and not any(
        isinstance(mention.ctx, ast.Load)
        and mention not in inside
        and (mention.lineno > loop.lineno or scope.loops(loop))
        for other in bound
        for mention in scope.mentions(other)
    )


def _make_program(statements: Sequence[ast.stmt], name: str) -> Callable[[list[_Item]], None]:
    """Return a function that runs statements on a list, and raises `EndlessLoop` in long loops."""
    tree = ast.parse("\n".join(map(ast.unparse, statements)))
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While):
            node.body.insert(0, ast.parse("tick()").body[0])
    code = compile(ast.fix_missing_locations(tree), "sort", "exec")

    def run(items: list[_Item]) -> None:
        rounds = iter(range(_MAX_ROUNDS))

        def tick() -> None:
            if next(rounds, None) is None:
                raise EndlessLoop

        known = {"len": len, "range": range, "tick": tick, "__builtins__": {}}
        exec(code, {**known, name: items})  # only statements that `_is_allowed` accepts

    return run


def _list_trials() -> Iterator[list[int]]:
    for size in range(5):
        yield from map(list, permutations(range(size)))
        yield from map(list, product(range(2), repeat=size))
    generator = random.Random(0)
    for size in _SIZES:
        yield list(range(size, 0, -1))
        yield [*range(1, size), 0]
        yield [generator.randrange(size) for _ in range(size)]
        yield [generator.randrange(3) for _ in range(size)]


def _try_sort(run: Callable[[list[_Item]], None]) -> tuple[bool, bool] | None:
    """Return whether a program sorts in descending order, and whether it keeps the order of equal
    items; None if it doesn't sort.
    """
    orders, is_stable = {False, True}, True
    for keys in _list_trials():
        items = [_Item(key) for key in keys]
        result = [*items]
        try:
            run(result)
        except Exception:  # whatever it is, the loop is no sort
            return None
        for is_reversed in [*orders]:
            wanted = sorted(items, key=lambda item: item.key, reverse=is_reversed)
            if [item.key for item in result] != [item.key for item in wanted]:
                orders.discard(is_reversed)
            elif len(orders) == 1 and [*map(id, result)] != [*map(id, wanted)]:
                is_stable = False
        if not orders or {*map(id, result)} != {*map(id, items)}:
            return None
    return (orders.pop(), is_stable) if len(orders) == 1 else None
