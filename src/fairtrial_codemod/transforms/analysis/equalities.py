"""Tests whether something of one thing equals something of another."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from dataclasses import dataclass

from fairtrial_codemod.transforms.analysis.kinds import TEXT_METHODS
from fairtrial_codemod.transforms.analysis.source import Source

_VALUES = ("str", "int", "len", "abs", "float")
_CHANGING = frozenset(
    {"append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault"}
    | {"sort", "reverse", "add", "discard"}
)


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of an equality.

    mine: what is of the item alone
    sought: what knows nothing of the item
    """

    mine: ast.expr
    sought: ast.expr


def first_test(
    test: ast.expr, joined: type[ast.boolop], asked: type[ast.cmpop]
) -> ast.Compare | None:
    """The comparison that a condition is, or begins with, if it is of the kind that is asked."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, joined):
        test = test.values[0]
    match test:
        case ast.Compare(ops=[op]) if isinstance(op, asked):
            return test
    return None


def split_sides(source: Source, test: ast.Compare, items: Set[str]) -> Sides | None:
    """Which side of a comparison is of the items alone, if one is and the other isn't at all."""
    (right,) = test.comparators
    for mine, other in ((test.left, right), (right, test.left)):
        own, foreign = names_in(mine), names_in(other)
        builtins = {each for each in own | foreign if each in _VALUES and source.is_builtin(each)}
        own, foreign = own - builtins, foreign - builtins
        is_told_apart = own and own <= items and foreign and not foreign & items
        if is_told_apart and _is_plain(source, mine) and _is_plain(source, other):
            return Sides(mine, other)
    return None


def _is_plain(source: Source, node: ast.expr) -> bool:
    """Whether it is a name, a part of one, or the text of one: reading it changes nothing."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return _is_plain(source, value)
        case ast.Tuple(elts=parts):
            return bool(parts) and all(_is_plain(source, each) for each in parts)
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=[], keywords=[]):
            return method in TEXT_METHODS and _is_plain(source, value)
        case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]):
            return name in _VALUES and source.is_builtin(name) and _is_plain(source, value)
    return False


def names_in(node: ast.AST) -> set[str]:
    """All names that are mentioned."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def renamed(node: ast.expr, names: Mapping[str, str]) -> ast.expr:
    """The same expression with other names."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    for each in ast.walk(copy):
        if isinstance(each, ast.Name):
            each.id = names.get(each.id, each.id)
    return copy


def is_rewritten(key: ast.expr, items: Set[str], loop: ast.AST) -> bool:
    """Whether a loop writes what a key of items is read from: such an attribute, such a place."""
    attributes = {each.attr for each in ast.walk(key) if isinstance(each, ast.Attribute)}
    places = {ast.unparse(each.slice) for each in ast.walk(key) if isinstance(each, ast.Subscript)}
    for node in ast.walk(loop):
        match node:
            case ast.Attribute(attr=attr, ctx=ast.Store() | ast.Del()) if attr in attributes:
                return True
            case ast.Subscript(slice=place, ctx=ast.Store() | ast.Del()):
                if ast.unparse(place) in places:
                    return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if name in items and method in _CHANGING:
                    return True
    return False
