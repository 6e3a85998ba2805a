"""A file's tree as plain data: keys checked, values checked, lines kept for later mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fairtrial.core.documents.json_nodes import compose_json
from fairtrial.core.documents.nodes import (
    MERGE,
    Collection,
    Node,
    Scalar,
    entries,
    merged_mappings,
    printable,
)
from fairtrial.core.documents.surprises import is_worth_a_warning, surprise_of
from fairtrial.core.documents.yaml_nodes import compose_yaml
from fairtrial.core.errors import Mistake, Place, StudyError
from fairtrial.core.record import describe

FORMATS = {"yaml": compose_yaml, "json": compose_json}


def parse(text: str, format: str, *, if_empty: str = "") -> Document:
    """A YAML or JSON text as plain data with lines; raises `StudyError` where it is neither.

    if_empty: what to do about a file without anything in it
    """
    if format not in FORMATS:
        raise StudyError(f"expected yaml or json as the format, got {format!r}")
    root = FORMATS[format](text)
    document = Document(root) if root is not None else None
    if document is None or document.data is None:
        hint = if_empty or "`fairtrial init` writes one to start from"
        raise StudyError(Mistake((), "the file is empty", hint))
    return document


class Document:
    """A parsed file.

    data: what it holds, in the types that JSON has
    mistakes: what the file's own language makes wrong: duplicate keys, dates, tags, ...
    warnings: values that are read as something else than they look
    """

    def __init__(self, root: Node) -> None:
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []
        self._root = root
        self._unreadable: set[Place] = set()
        self._keys: dict[int, dict[str, tuple[Node, int]]] = {}
        self.data = self._read(root, ())

    def place(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Mistakes in the study as mistakes in the file: with lines, in their order, each once.

        What was made of an unreadable value is not held against it a second time.
        """
        placed: dict[tuple[Place, str], Mistake] = {}
        for mistake in (*self.mistakes, *map(self._place, self._new(mistakes))):
            placed.setdefault((mistake.path, mistake.message), mistake)
        return sorted(placed.values(), key=lambda mistake: mistake.line or 0)

    def _new(self, mistakes: Iterable[Mistake]) -> Iterable[Mistake]:
        for mistake in mistakes:
            path = mistake.path
            if not any(path[: end + 1] in self._unreadable for end in range(len(path))):
                yield mistake

    def _place(self, mistake: Mistake) -> Mistake:
        node, line = self._find(mistake.path)
        surprise = surprise_of(node) if isinstance(node, Scalar) else None
        hint = mistake.hint
        if surprise and not surprise.is_null:
            hint = f"{surprise.message}: write {surprise.change}"
        return replace(mistake, line=line, hint=hint)

    def _find(self, path: Place) -> tuple[Node, int]:
        """The node at a path, or the nearest above it, and the line where it is named."""
        node, line = self._root, self._root.line
        for step in path:
            if not isinstance(node, Collection):
                break
            if id(node) not in self._keys:
                self._keys[id(node)] = _named_lines(node)
            found = self._keys[id(node)].get(str(step))
            if found is None:
                break
            node, line = found
        return node, line

    def _read(self, node: Node, path: Place) -> Any:
        if node.problem:
            self._refuse(path, node.problem, node.hint, node.line)
        if isinstance(node, Scalar):
            return self._read_scalar(node, path)
        if not node.is_mapping:
            return [self._read(item, (*path, index)) for index, item in enumerate(node.children)]
        return self._read_mapping(node, path)

    def _read_mapping(self, node: Collection, path: Place) -> dict[str, Any]:
        data: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value, is_merged in entries(node):
            name = self._read_key(key, path)
            if name is None:
                continue
            if name not in lines:
                lines[name] = key.line
                data[name] = self._read(value, (*path, name))
            elif not is_merged:
                message = f"the key stands here twice, first on line {lines[name]}"
                hint = "remove one of them"
                self.mistakes.append(Mistake((*path, name), message, hint, key.line))
        for key, value in node.pairs():
            if isinstance(key, Scalar) and key.value is MERGE and merged_mappings(value) is None:
                message = "expected a mapping to merge, or a list of them"
                self.mistakes.append(Mistake((*path, "<<"), message, "", key.line))
        return data

    def _read_key(self, key: Node, path: Place) -> str | None:
        if isinstance(key, Collection):
            kind = "a mapping" if key.is_mapping else "a list"
            hint = "put it in quotes if it starts with { or ["
            message = f"expected text as a key, got {kind}"
            self.mistakes.append(Mistake(path, message, hint, key.line))
            return None
        name = printable(key.text)
        problem, hint = key.problem, key.hint
        if not problem and not isinstance(key.value, str):
            problem = f"expected text as a key; `{name}` is read as {describe(key.value)}"
            hint = "put it in quotes"
        elif not problem and name != key.text:
            problem, hint = _HALF_PAIR
        if problem:
            self.mistakes.append(Mistake((*path, name), problem, hint, key.line))
        return name

    def _read_scalar(self, node: Scalar, path: Place) -> Any:
        value = node.text if node.value is MERGE else node.value
        if isinstance(value, float) and not math.isfinite(value):
            problem = f"`{node.text}` is not a finite number"
            self._refuse(path, problem, "put it in quotes for the text, or leave it out", node.line)
            return node.text
        if isinstance(value, str) and printable(value) != value:
            self._refuse(path, *_HALF_PAIR, node.line)
            return printable(value)
        surprise = surprise_of(node)
        if surprise and is_worth_a_warning(surprise, node.text, path):
            self.warnings.append(Mistake(path, surprise.message, surprise.hint, node.line))
        return value

    def _refuse(self, path: Place, problem: str, hint: str, line: int) -> None:
        self.mistakes.append(Mistake(path, problem, hint, line))
        self._unreadable.add(path)


_HALF_PAIR = ("holds half of a surrogate pair, which is no character", "remove it")


def _named_lines(node: Collection) -> dict[str, tuple[Node, int]]:
    if not node.is_mapping:
        return {str(index): (item, item.line) for index, item in enumerate(node.children)}
    named: dict[str, tuple[Node, int]] = {}
    for key, value, _ in entries(node):
        if isinstance(key, Scalar):
            named.setdefault(printable(key.text), (value, key.line))
    return named
