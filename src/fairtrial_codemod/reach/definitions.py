"""What a module defines, and all that each definition mentions."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fairtrial_codemod.analysis.source_file import SourceFile as Source, get_bound_names as binds, read_source
from fairtrial_codemod.reach.mentions import (
    Mentions,
    is_asking,
    read_mentions,
    read_names,
)

_PLAIN = frozenset(
    {"property", "staticmethod", "classmethod", "cached_property", "cache", "lru_cache", "wraps"}
    | {"abstractmethod", "contextmanager", "overload", "override", "setter", "functools", "abc"}
    | {"contextlib", "typing", "maxsize", "None"}
)
"""What decorators mention that don't hand a function to anybody else."""
_PLAIN_CLASS = frozenset({"dataclass", "dataclasses", "total_ordering", "functools", "final"})
"""The same of decorators of classes."""
_QUIET_BASES = frozenset({"object", "ABC", "Protocol", "Generic", "NamedTuple"})
"""Bases that call no method by a name that isn't special, like errors."""
_IMPLICIT = frozenset(
    {"keys", "items", "read", "readline", "readinto", "getbuffer", "write", "flush", "close"}
    | {"fileno", "send", "throw", "filter", "handle", "emit", "as_integer_ratio", "mro"}
)
"""Names that Python and the plainest of its modules call where nobody mentions them."""
_GUARDED = re.compile(r"__|_.*_$")
"""How names begin, or look, that others call by rules of their own."""
Method = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Definition:
    """What a module defines.

    name: what it is called
    scopes: the functions that come with it
    mentions: what it mentions
    bases: of a class the names of its bases; None for one that can't be told
    whole: of a class the same with all of its methods; `scopes` are those that need no name
    """

    name: str
    scopes: tuple[str, ...]
    mentions: Mentions
    bases: tuple[str | None, ...] = ()
    whole: Definition | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may reach anything."""
        return bool(self.scopes) and self.mentions.is_open


@lru_cache(maxsize=8192)
def read_definitions(text: str) -> tuple[Definition, ...]:
    """What a module defines, methods too: they may be reached by their names."""
    source = read_source(text.removeprefix("\ufeff"))
    return () if source is None else tuple(_define(source, source.tree, ""))


def is_quiet(base: str | None) -> bool:
    """Whether a base that isn't among the files calls no method that a class adds."""
    if base in _QUIET_BASES:
        return True
    known = getattr(builtins, base or "", None)
    return isinstance(known, type) and issubclass(known, BaseException)


def _define(source: Source, around: ast.AST, prefix: str) -> Iterator[Definition]:
    """What stands in a module, or in a class."""
    for node in ast.iter_child_nodes(around):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                special = tuple(_special(around, prefix))
                scopes = _scopes(source, prefix + name, special)
                # Who hands it to somebody else by a decorator doesn't need its name.
                names = (name, "") if _is_handed_on(node) else (name,)
                for each in names:
                    yield Definition(each, scopes, read_mentions(node))
            case ast.ClassDef():
                yield _define_class(source, node, prefix)
                yield from _define(source, node, f"{prefix}{node.name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    if alias.asname:
                        words = frozenset({alias.name.rpartition(".")[2]})
                        is_loose = is_asking(alias)
                        yield Definition(alias.asname, (), Mentions(words, is_loose=is_loose))
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                yield from _bindings(node)
                yield from _define(source, node, prefix)
            case ast.ExceptHandler():
                yield from _define(source, node, prefix)
            case ast.stmt():
                yield from _bindings(node)


def _define_class(source: Source, node: ast.ClassDef, prefix: str) -> Definition:
    """A class without the methods that somebody has to call by their names."""
    name = prefix + node.name
    scopes = _scopes(source, name)
    whole = Definition(node.name, scopes, read_mentions(node))
    is_odd = any(not read_names(each) <= _PLAIN_CLASS for each in node.decorator_list)
    if is_odd or node.keywords:
        return whole  # whoever makes it may do anything with its methods
    called = [each for each in node.body if isinstance(each, Method) and _needs_name(each)]
    apart = tuple(f"{name}.{each.name}." for each in called)
    kept = tuple(each for each in scopes if not f"{each}.".startswith(apart))
    rest: Sequence[ast.AST] = [each for each in ast.iter_child_nodes(node) if each not in called]
    mentions = read_mentions(*rest, *(deco for each in called for deco in each.decorator_list))
    bases = tuple(map(_name_base, node.bases))
    return Definition(node.name, kept, mentions, bases, whole)


def _needs_name(method: Method) -> bool:
    """Whether a method runs only if somebody mentions its name."""
    return method.name not in _IMPLICIT and _GUARDED.match(method.name) is None


def _name_base(base: ast.expr) -> str | None:
    match base:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _name_base(value)
    return None


def _special(around: ast.AST, prefix: str) -> Iterator[str]:
    """A class's methods that are called by operators and the like, not by name."""
    if isinstance(around, ast.ClassDef):
        for node in around.body:
            if isinstance(node, Method) and node.name.startswith("__"):
                yield prefix + node.name


def _scopes(source: Source, name: str, others: tuple[str, ...] = ()) -> tuple[str, ...]:
    all_names = (each for each, _ in source.functions)
    return tuple(each for each in all_names if f"{each}.".startswith(f"{name}.") or each in others)


def _is_handed_on(function: Method) -> bool:
    return any(
        not read_names(each) <= _PLAIN | {function.name} and not _is_setter(each)
        for each in function.decorator_list
    )


def _is_setter(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")


def _bindings(statement: ast.AST) -> Iterator[Definition]:
    """The names that a statement of the module or class binds, also ``Table.kind = ...``."""
    names = {name for node in ast.walk(statement) for name in binds(node)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            names |= read_names(node)
    mentions = read_mentions(statement) if names else Mentions()
    for name in sorted(names):
        yield Definition(name, (), mentions)
