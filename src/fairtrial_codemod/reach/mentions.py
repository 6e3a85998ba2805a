"""The names that code mentions, and those that it may put together or get from elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_PREFIX = re.compile(r"([A-Za-z_]\w*_)(?:[{%].*)?")
_FIELD = re.compile(r"\{([^{}:!]*)")
_ATTRIBUTE = re.compile(r"\.(\w+)")
_ANYTHING = frozenset({"globals", "eval", "exec"})
"""Who calls one of these may reach any name."""
_ASKING = frozenset({"getattr", "hasattr", "setattr", "delattr", "methodcaller", "attrgetter"})
_LISTING = frozenset(
    {"vars", "dir", "__dict__", "__getattribute__", "__import__", "getmembers", "__subclasses__"}
)
"""Who mentions one of these may come to any attribute of an object."""


@dataclass(frozen=True, slots=True)
class Mentions:
    """What code mentions.

    words: all names
    prefixes: beginnings of names that it puts together
    texts: its texts that may be names
    is_dynamic: whether it asks for attributes by names that it gets from elsewhere
    is_loose: whether it may ask for attributes whose names can't be told, for whatever reason
    is_open: whether it may reach anything
    """

    words: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    is_dynamic: bool = False
    is_loose: bool = False
    is_open: bool = False


def read_mentions(*nodes: ast.AST) -> Mentions:
    """What some code mentions, all of it together."""
    every = [each for node in nodes for each in ast.walk(node)]
    words = {word for node in nodes for word in read_names(node)}
    texts = {text for node in nodes for text in _texts(node)}
    prefixes: set[str] = set()
    is_dynamic = False
    told = 0
    for each in every:
        told += _tells_names(each)
        words.update(_other_names(each))
        asked = _asked(each)
        if asked is None:
            continue
        found = {prefix[1] for text in _texts(asked) if (prefix := _PREFIX.fullmatch(text))}
        if isinstance(asked, ast.Constant):
            words |= _texts(asked)
        elif found:
            prefixes |= found
        else:
            is_dynamic = True
    mentioned = sum(is_asking(each) for each in every)
    return Mentions(
        words=frozenset(words),
        prefixes=frozenset(prefixes),
        texts=frozenset(text for text in texts if text.isidentifier()),
        is_dynamic=is_dynamic,
        is_loose=told < mentioned or not words.isdisjoint(_LISTING),
        is_open=not words.isdisjoint(_ANYTHING),
    )


def read_names(node: ast.AST) -> frozenset[str]:
    """All names and attributes in some code."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return frozenset(
        names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    )


def _asked(node: ast.AST) -> ast.expr | None:
    """The name of an attribute that is asked for, as an expression."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
            return name
        case ast.Call(
            func=ast.Name(id="methodcaller" | "attrgetter")
            | ast.Attribute(attr="methodcaller" | "attrgetter"),
            args=[name, *_],
        ):
            return name
    return None


def is_asking(node: ast.AST) -> bool:
    """Whether a node is the name of a function that asks for attributes, or another for it."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name, asname=str()):
            return name in _ASKING
    return False


def _tells_names(node: ast.AST) -> bool:
    """Whether a node is a call of such a function that says what it asks for."""
    return isinstance(node, ast.Call) and is_asking(node.func) and bool(_told_names(node))


def _told_names(call: ast.Call) -> list[str]:
    """The names of attributes that a call asks for; none if one of them can't be told."""
    is_about_one = isinstance(call.func, ast.Name) and call.func.id.endswith("attr")
    asked = call.args[1:2] if is_about_one else call.args
    if isinstance(call.func, ast.Name | ast.Attribute) and "methodcaller" in ast.unparse(call.func):
        asked = call.args[:1]
    found = []
    for each in asked:
        if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
            return []
        found += each.value.split(".")
    return found


def _other_names(node: ast.AST) -> Iterator[str]:
    """Names of attributes that are written in other ways."""
    match node:
        case ast.Call() if is_asking(node.func):
            yield from _told_names(node)
        case ast.MatchClass(kwd_attrs=names):
            yield from names
        case ast.Constant(value=str(text)) if "{" in text:
            for field in _FIELD.findall(text):
                yield from _ATTRIBUTE.findall(field)
        case ast.Assign(targets=[ast.Name(id="__match_args__")], value=value):
            yield from _texts(value)


def _texts(node: ast.AST) -> set[str]:
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
