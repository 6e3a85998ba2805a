"""Find the functions that benchmarks can reach: changes elsewhere gain nothing.

Names decide, so that rather too much is found: code that mentions a name reaches everything of that
name, and code that mentions a class reaches all its methods.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from fairtrial_codemod.analysis.source_file import SourceFile, get_bound_names, read_source
from fairtrial_codemod.recipes import CodeSite, Files

_BENCHMARK = re.compile(r"(?:.*: )?[\w.]+:([\w.]+)")
_CHECK = re.compile(r"[\w.]+:([\w.]+) must give .*")
_PREFIX = re.compile(r"([A-Za-z_]\w*_)(?:[{%].*)?")
_ANY_NAME = frozenset({"globals", "eval", "exec"})
"""Functions whose callers may reach any name."""
_PLAIN_DECORATORS = frozenset(
    {"property", "staticmethod", "classmethod", "cached_property", "cache", "lru_cache", "wraps"}
    | {"abstractmethod", "contextmanager", "overload", "override", "setter", "deleter", "abc"}
    | {"functools", "contextlib", "typing", "maxsize", "None"}
)
"""Names in decorators that don't hand the function to other code."""
_BLOCKS = ast.If | ast.Try | ast.With | ast.For | ast.While | ast.ExceptHandler


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function, a class or another binding of a module.

    name: its name; "" if it is reached without a name
    scopes: the functions that belong to it
    words: the names that it mentions
    prefixes: the beginnings of attribute names that it builds
    texts: its strings that may be names
    is_dynamic: whether it reads attributes by names that it gets from elsewhere
    """

    name: str
    scopes: tuple[str, ...]
    words: frozenset[str]
    prefixes: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    is_dynamic: bool = False


def find_reachable(
    files: Files, timed: Sequence[str], checked: Sequence[str]
) -> frozenset[CodeSite] | None:
    """Return the functions that can be reached from the benchmarks; None if that isn't known.

    timed: a line for each benchmark, ``name: module:function`` or a command
    checked: a line for each check; they count if there are no benchmarks
    """
    matches = [(_BENCHMARK if timed else _CHECK).fullmatch(line) for line in timed or checked]
    calls = [match[1].split(".") for match in matches if match is not None]
    if not calls or (timed and len(calls) < len(matches)):
        return None
    by_name: dict[str, list[tuple[str, _Definition]]] = {}
    for path in sorted(files):
        for definition in _read_definitions(files[path]):
            by_name.setdefault(definition.name, []).append((path, definition))
    if any(first not in by_name for first, *_ in calls):
        return None
    search = _NameSearch({word for call in calls for word in call}, by_name)
    return frozenset(search.reached) if search.run() else None


@dataclass(slots=True)
class _NameSearch:
    """A search from names to all that they reach.

    roots: the names that are called from outside
    by_name: all definitions, with their files
    reached: the functions that were found
    texts: strings in reached code that may be names
    """

    roots: set[str]
    by_name: dict[str, list[tuple[str, _Definition]]]
    reached: set[CodeSite] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def run(self) -> bool:
        """Follow all names; return whether the result is complete."""
        pending, seen, is_dynamic = ["", *sorted(self.roots)], {"", *self.roots}, False
        while pending:
            for path, definition in self.by_name.get(pending.pop(), ()):
                if definition.scopes and definition.words & _ANY_NAME:
                    return False
                if definition.is_dynamic and definition.name in self.roots:
                    return False  # a name that is given from outside may be any
                self.reached |= {(path, scope) for scope in definition.scopes}
                self.texts |= definition.texts
                is_dynamic = is_dynamic or definition.is_dynamic
                built = {name for name in self.by_name if name.startswith(definition.prefixes)}
                more = (definition.words | built) - seen
                pending += more
                seen |= more
            if not pending and is_dynamic:
                pending += self.texts - seen
                seen |= self.texts
        return True


@lru_cache(maxsize=8192)
def _read_definitions(text: str) -> tuple[_Definition, ...]:
    source = read_source(text.removeprefix("\ufeff"))
    return () if source is None else tuple(_define(source, source.tree, ""))


def _define(source: SourceFile, around: ast.AST, prefix: str) -> Iterator[_Definition]:
    """Yield what a module or a class defines."""
    for node in ast.iter_child_nodes(around):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                # Operators call special methods without mentioning them.
                special = tuple(
                    prefix + method.name
                    for method in (around.body if isinstance(around, ast.ClassDef) else ())
                    if isinstance(method, ast.FunctionDef) and method.name.startswith("__")
                )
                scopes = (*_list_scopes(source, prefix + name), *special)
                yield _read(name, scopes, node)
                words = {word for part in node.decorator_list for word in _get_words(part)}
                if words - _PLAIN_DECORATORS - {name}:
                    yield _read("", scopes, node)
            case ast.ClassDef(name=name):
                yield _read(name, _list_scopes(source, prefix + name), node)
                yield from _define(source, node, f"{prefix}{name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    if alias.asname:
                        words = {alias.name.rpartition(".")[2]}
                        yield _Definition(alias.asname, (), frozenset(words))
            case ast.stmt() | ast.ExceptHandler():
                if not isinstance(node, ast.ExceptHandler):
                    yield from _read_bindings(node)
                if isinstance(node, _BLOCKS):
                    yield from _define(source, node, prefix)


def _list_scopes(source: SourceFile, name: str) -> tuple[str, ...]:
    return tuple(scope for scope, _ in source.functions if f"{scope}.".startswith(f"{name}."))


def _read_bindings(statement: ast.stmt) -> Iterator[_Definition]:
    """Yield the names that a statement binds, also those of ``Table.kind = ...``."""
    names = {name for node in ast.walk(statement) for name in get_bound_names(node)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            names |= _get_words(node)
    for name in sorted(names):
        yield _read(name, (), statement)


def _read(name: str, scopes: tuple[str, ...], node: ast.AST) -> _Definition:
    """Return a definition with all that its code mentions."""
    words, prefixes, is_dynamic = _get_words(node), set(), False
    for child in ast.walk(node):
        match child:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, attribute, *_]):
                pass
            case ast.Call(
                func=ast.Name(id="methodcaller" | "attrgetter")
                | ast.Attribute(attr="methodcaller" | "attrgetter"),
                args=[attribute, *_],
            ):
                pass
            case _:
                continue
        beginnings = {
            match[1] for text in _get_texts(attribute) if (match := _PREFIX.fullmatch(text))
        }
        if isinstance(attribute, ast.Constant):
            words |= {part for text in _get_texts(attribute) for part in text.split(".")}
        elif beginnings:
            prefixes |= beginnings
        else:
            is_dynamic = True
    texts = frozenset(text for text in _get_texts(node) if text.isidentifier())
    return _Definition(name, scopes, frozenset(words), tuple(prefixes), texts, is_dynamic)


def _get_words(node: ast.AST) -> set[str]:
    """Return all names and attributes in a node."""
    words = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return words | {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}


def _get_texts(node: ast.AST) -> set[str]:
    return {
        child.value
        for child in ast.walk(node)
        if isinstance(child, ast.Constant) and isinstance(child.value, str)
    }
