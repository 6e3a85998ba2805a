"""A file as a tree of nodes, each with its line: what YAML and JSON have in common.

A tree is put together from a parser's events without recursion, and its size is counted as if
every YAML alias were written out, so that neither deep nesting nor a bomb of aliases does harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core.canonical import DEPTH_LIMIT, TOO_DEEP
from fairtrial.core.errors import Mistake, StudyError

SIZE_LIMIT_BYTES = 50 * 1024**2
"""How large a file may be."""
VALUE_LIMIT = 1_000_000
"""How many values a file may hold, its aliases written out."""
MERGE = object()
"""The value of YAML's merge key, `<<`."""


@dataclass(slots=True, eq=False)
class Scalar:
    """A single value.

    line: where it stands, counted from 1
    text: how the file spells it
    value: what it is read as
    is_plain: whether it stands in YAML without quotes or tag, so that YAML decides what it is
    problem: why a study can't hold it, where it can't
    hint: what to do about that
    """

    line: int
    text: str
    value: Any
    is_plain: bool = False
    problem: str = ""
    hint: str = ""
    size = 1
    depth = 0


@dataclass(slots=True, eq=False)
class Collection:
    """A list, or a mapping whose children are keys and values by turns.

    size: how many values it holds, itself and aliased ones included
    depth: how deep it is nested
    """

    line: int
    is_mapping: bool
    problem: str = ""
    hint: str = ""
    children: list[Node] = field(default_factory=list)
    size: int = 1
    depth: int = 1

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """The keys and values of a mapping, as written."""
        return zip(self.children[::2], self.children[1::2], strict=True)


Node = Scalar | Collection


class Composer:
    """Puts a tree together from a parser's events; `root` is the tree."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[Collection] = []
        self._count = 0

    def add(self, node: Node) -> None:
        """The next node, complete."""
        self._count += 1
        if self._count > VALUE_LIMIT:
            raise _too_many(node.line, f"more than {VALUE_LIMIT:,}")
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node

    def open(self, node: Collection) -> None:
        """A list or mapping begins: what follows is in it."""
        self._open.append(node)
        _check_depth(node, len(self._open))

    def close(self) -> None:
        """The list or mapping that was opened last ends."""
        node = self._open.pop()
        node.size = 1 + sum(child.size for child in node.children)
        node.depth = 1 + max((child.depth for child in node.children), default=0)
        if node.size > VALUE_LIMIT:
            raise _too_many(node.line, f"{node.size:,}")
        _check_depth(node, node.depth)
        self.add(node)

    def is_open(self, node: Node) -> bool:
        """Whether the events that come now are inside of this node."""
        return any(node is opened for opened in self._open)


def _check_depth(node: Node, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise StudyError(Mistake((), TOO_DEEP, "", node.line))


def _too_many(line: int, count: str) -> StudyError:
    message = f"holds {count} values once aliases are written out; {VALUE_LIMIT:,} are allowed"
    return StudyError(Mistake((), message, "", line))


def merged_mappings(value: Node) -> list[Collection] | None:
    """The mappings that the value of a `<<` key stands for; None if it stands for none."""
    sources = [value] if not isinstance(value, Collection) or value.is_mapping else value.children
    mappings = [node for node in sources if isinstance(node, Collection) and node.is_mapping]
    return mappings if len(mappings) == len(sources) else None


def entries(mapping: Collection) -> Iterator[tuple[Node, Node, bool]]:
    """Keys and values, those that are merged in last and marked so; the first of a name counts."""
    merges = []
    for key, value in mapping.pairs():
        if isinstance(key, Scalar) and key.value is MERGE:
            merges.append(value)
        else:
            yield key, value, False
    for value in merges:
        for source in merged_mappings(value) or ():
            for key, item, _ in entries(source):
                yield key, item, True


def printable(text: str) -> str:
    """`text` with a question mark for each half of a surrogate pair, which nothing can print."""
    return text.encode("utf-8", "replace").decode("utf-8")
