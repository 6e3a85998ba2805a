"""The functions of a module one after the other, and the nodes that are their very own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeVar

from fairtrial_codemod.transforms.analysis.source import Change, Loop, Source
from fairtrial_codemod.transforms.analysis.uses import Scope

Node = TypeVar("Node", bound=ast.AST)


def scopes_of(source: Source) -> Iterator[Scope]:
    """Every function, in the order of the text."""
    for name, function in source.functions:
        yield Scope(source, name, function)


def own_nodes(scope: Scope, *kinds: type[Node]) -> Iterator[Node]:
    """The nodes of some kinds in a function, but not in a function, lambda or class within it."""
    for node in scope.source.walk(scope.function):
        if isinstance(node, kinds) and scope.source.function_of(node) is scope.function:
            yield node


def find_each(
    source: Source, kind: type[Node], look: Callable[[Scope, Node], Change | None]
) -> Iterator[Change]:
    """What can be changed at the nodes of a kind, in all functions: where `look` says how."""
    for scope in scopes_of(source):
        for node in own_nodes(scope, kind):
            change = look(scope, node)
            if change:
                yield change


def find_growing(
    source: Source,
    grown: Callable[[Scope, ast.stmt], tuple[str, Loop] | None],
    write: Callable[[Scope, str, Loop], Change | None],
) -> Iterator[Change]:
    """What can be changed where names grow in loops: once for each name and loop."""
    for scope in scopes_of(source):
        seen: set[tuple[str, Loop]] = set()
        for node in own_nodes(scope, ast.stmt):
            found = grown(scope, node)
            if found is not None and found not in seen:
                seen.add(found)
                change = write(scope, *found)
                if change:
                    yield change
