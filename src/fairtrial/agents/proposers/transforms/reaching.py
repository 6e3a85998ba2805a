"""What can be reached from what is timed: whatever else is changed gains nothing.

By names alone, so that it is rather too much: who mentions a name reaches all that is called so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fairtrial.agents.proposers.transforms.analysis.source import Source, binds, read_source
from fairtrial.agents.proposers.transforms.recipes import Files, Site

_CALL = re.compile(r"(?:.*: )?[\w.]+:([\w.]+)")
_CHECK = re.compile(r"[\w.]+:([\w.]+) must give .*")
_PREFIX = re.compile(r"([A-Za-z_]\w*_)(?:[{%].*)?")
_ANYTHING = frozenset({"globals", "eval", "exec"})
"""Who calls one of these may reach any name."""
_PLAIN = frozenset(
    {"property", "staticmethod", "classmethod", "cached_property", "cache", "lru_cache", "wraps"}
    | {"abstractmethod", "contextmanager", "overload", "override", "setter", "functools", "abc"}
    | {"contextlib", "typing", "maxsize", "None"}
)
"""What decorators mention that don't hand a function to anybody else."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a module defines.

    name: what it is called
    scopes: the functions that come with it
    words: all names that it mentions
    prefixes: beginnings of names that it puts together
    texts: its texts that may be names
    is_dynamic: whether it asks for attributes by names that it gets from elsewhere
    is_open: whether it may reach anything
    """

    name: str
    scopes: tuple[str, ...]
    words: frozenset[str]
    prefixes: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    is_dynamic: bool = False
    is_open: bool = False


def find_reached(
    files: Files, timed: Sequence[str], checked: Sequence[str]
) -> frozenset[Site] | None:
    """The functions that can be reached from what is timed; None if that can't be said.

    timed: a line for each benchmark, ``name: module:function`` or a command
    checked: a line for each check; they count if nothing is timed
    """
    calls = [(_CALL if timed else _CHECK).fullmatch(line) for line in timed or checked]
    known = [each for each in calls if each is not None]
    if not known or (timed and len(known) < len(calls)):
        return None
    roots = [each[1].split(".") for each in known]
    by_name: dict[str, list[tuple[str, Definition]]] = {}
    for path in sorted(files):
        for each in _definitions(files[path]):
            by_name.setdefault(each.name, []).append((path, each))
    if any(first not in by_name for first, *_ in roots):
        return None
    return _close({word for path in roots for word in path}, by_name)


def _close(
    roots: set[str], by_name: dict[str, list[tuple[str, Definition]]]
) -> frozenset[Site] | None:
    reached: set[Site] = set()
    texts: set[str] = set()
    is_dynamic = False
    todo, seen = ["", *sorted(roots)], {"", *roots}
    while todo:
        word = todo.pop()
        for path, each in by_name.get(word, ()):
            if each.is_open or (each.is_dynamic and word in roots):
                return None  # a name that is given from outside may be any
            reached |= {(path, scope) for scope in each.scopes}
            texts |= each.texts
            is_dynamic = is_dynamic or each.is_dynamic
            built = {name for name in by_name if name.startswith(tuple(each.prefixes))}
            following = (each.words | built) - seen
            seen |= following
            todo += following
        if not todo and is_dynamic:
            todo += texts - seen
            seen |= texts
    return frozenset(reached)


@lru_cache(maxsize=8192)
def _definitions(text: str) -> tuple[Definition, ...]:
    source = read_source(text.removeprefix("\ufeff"))
    return () if source is None else tuple(_define(source, source.tree, ""))


def _define(source: Source, around: ast.AST, prefix: str) -> Iterator[Definition]:
    """What stands in a module, or in a class: its methods may also be reached by their names."""
    for node in ast.iter_child_nodes(around):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                special = tuple(_special(around, prefix))
                scopes = _scopes(source, prefix + name, special)
                # Who hands it to somebody else by a decorator doesn't need its name.
                names = (name, "") if _is_handed_on(node) else (name,)
                for each in names:
                    yield _describe(each, scopes, node)
            case ast.ClassDef(name=name):
                yield _describe(name, _scopes(source, prefix + name), node)
                yield from _define(source, node, f"{prefix}{name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    if alias.asname:
                        words = frozenset({alias.name.rpartition(".")[2]})
                        yield Definition(alias.asname, (), words)
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                yield from _bindings(node)
                yield from _define(source, node, prefix)
            case ast.ExceptHandler():
                yield from _define(source, node, prefix)
            case ast.stmt():
                yield from _bindings(node)


def _special(around: ast.AST, prefix: str) -> Iterator[str]:
    """A class's methods that are called by operators and the like, not by name."""
    if isinstance(around, ast.ClassDef):
        for node in around.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("__"):
                yield prefix + node.name


def _scopes(source: Source, name: str, others: tuple[str, ...] = ()) -> tuple[str, ...]:
    all_names = (each for each, _ in source.functions)
    return tuple(each for each in all_names if f"{each}.".startswith(f"{name}.") or each in others)


def _is_handed_on(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        not _names(each) <= _PLAIN | {function.name} and not _is_setter(each)
        for each in function.decorator_list
    )


def _is_setter(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")


def _bindings(statement: ast.AST) -> Iterator[Definition]:
    """The names that a statement of the module or class binds, also ``Table.kind = ...``."""
    names = {name for node in ast.walk(statement) for name in binds(node)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            names |= _names(node)
    for name in sorted(names):
        yield _describe(name, (), statement)


def _describe(name: str, scopes: tuple[str, ...], node: ast.AST) -> Definition:
    words = set(_names(node))
    prefixes: set[str] = set()
    is_dynamic = False
    for each in ast.walk(node):
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
    texts = frozenset(text for text in _texts(node) if text.isidentifier())
    is_open = bool(scopes) and not words.isdisjoint(_ANYTHING)
    return Definition(
        name, scopes, frozenset(words), frozenset(prefixes), texts, is_dynamic, is_open
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


def _texts(node: ast.AST) -> set[str]:
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def _names(node: ast.AST) -> frozenset[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return frozenset(
        names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    )
