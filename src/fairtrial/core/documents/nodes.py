"""Trees of nodes with line numbers, to which both YAML and JSON files are composed.

Trees are composed from a parser's events without recursion, and their size counts every YAML alias
as if it were written out; so deeply nested files and alias bombs are refused early.
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

    line: its line, counted from 1
    text: its text in the file
    value: the value that it is read as
    is_plain: whether YAML decides its type, since it has neither quotes nor a tag
    problem: why a definition can't hold it; empty if it can
    hint: how to mend the problem
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
    """A list, or a mapping whose children are alternately keys and values.

    size: how many values it holds, itself and aliased ones included
    depth: how many levels it has
    """

    line: int
    is_mapping: bool
    problem: str = ""
    hint: str = ""
    children: list[Node] = field(default_factory=list)
    size: int = 1
    depth: int = 1

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Return the keys and values of a mapping, merge keys included."""
        return zip(self.children[::2], self.children[1::2], strict=True)


Node = Scalar | Collection


class Composer:
    """Composes a tree from a parser's events.

    root: the tree; None before its first node
    """

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[Collection] = []
        self._count = 0

    def add(self, node: Node) -> None:
        """Add a complete node to the open collection; raises `StudyError` for too many values."""
        self._count += 1
        if self._count > VALUE_LIMIT:
            raise _too_many(node.line, f"more than {VALUE_LIMIT:,}")
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node

    def open(self, node: Collection) -> None:
        """Begin a list or mapping: nodes added next are its children."""
        self._open.append(node)
        _check_depth(node, len(self._open))

    def close(self) -> None:
        """End the list or mapping that was opened last, and add it to its parent."""
        node = self._open.pop()
        node.size = 1 + sum(child.size for child in node.children)
        node.depth = 1 + max((child.depth for child in node.children), default=0)
        if node.size > VALUE_LIMIT:
            raise _too_many(node.line, f"{node.size:,}")
        _check_depth(node, node.depth)
        self.add(node)

    def is_open(self, node: Node) -> bool:
        """Return whether a node is still open, so that events to come are inside it."""
        return any(node is open_node for open_node in self._open)


def _check_depth(node: Node, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise StudyError(Mistake((), TOO_DEEP, "", node.line))


def _too_many(line: int, count: str) -> StudyError:
    message = f"holds {count} values once aliases are written out; {VALUE_LIMIT:,} are allowed"
    return StudyError(Mistake((), message, "", line))


def merged_mappings(value: Node) -> list[Collection] | None:
    """Return the mappings that the value of a `<<` key refers to; None if it isn't valid."""
    sources = [value] if not isinstance(value, Collection) or value.is_mapping else value.children
    mappings = [node for node in sources if isinstance(node, Collection) and node.is_mapping]
    return mappings if len(mappings) == len(sources) else None


def merged_entries(mapping: Collection) -> Iterator[tuple[Node, Node, bool]]:
    """Yield key, value and whether the pair comes from a `<<` merge; merged pairs come last.

    The first pair of a key counts.
    """
    merges = []
    for key, value in mapping.pairs():
        if isinstance(key, Scalar) and key.value is MERGE:
            merges.append(value)
        else:
            yield key, value, False
    for value in merges:
        for source in merged_mappings(value) or ():
            for key, item, _ in merged_entries(source):
                yield key, item, True


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate, which can't be printed, by a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
