"""Conversion of a YAML or JSON file to plain data, with line numbers for mistakes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial.core.documents.ambiguous_scalars import find_ambiguity, needs_warning
from fairtrial.core.documents.document_files import detect_format, read_text
from fairtrial.core.documents.json_nodes import compose_json
from fairtrial.core.documents.nodes import (
    MERGE,
    Collection,
    Node,
    Scalar,
    merged_entries,
    merged_mappings,
    replace_surrogates,
)
from fairtrial.core.documents.yaml_nodes import compose_yaml
from fairtrial.core.errors import FieldPath, Mistake, StudyError
from fairtrial.core.record import describe_value

FORMATS = {"yaml": compose_yaml, "json": compose_json}


def parse_document(text: str, format: str, *, if_empty: str = "") -> Document:
    """Parse a YAML or JSON text; raises `StudyError` for a syntax error or an empty text.

    Mistakes in single keys and values are not raised, but collected in `Document.mistakes`.

    format: `yaml` or `json`
    if_empty: the hint for an empty file
    """
    if format not in FORMATS:
        raise StudyError(f"expected yaml or json as the format, got {format!r}")
    root = FORMATS[format](text)
    document = Document(root) if root is not None else None
    if document is None or document.data is None:
        hint = if_empty or "`fairtrial init` writes one to start from"
        raise StudyError(Mistake((), "the file is empty", hint))
    return document


def read_document(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    key: str = "study_id",
    if_empty: str = "",
) -> Document:
    """Read and parse a YAML or JSON file; raises `StudyError` with the file's name.

    format: `yaml` or `json`, in place of what the file's suffix says
    key: the key by which the right file is found for the hint if `path` is a folder
    if_empty: the hint for an empty file
    """
    try:
        text = read_text(Path(path), key)
        return parse_document(text, format or detect_format(Path(path)), if_empty=if_empty)
    except StudyError as error:
        raise StudyError(error.mistakes, source=os.fspath(path)) from None


class Document:
    """A parsed file.

    data: its content, in JSON's types
    mistakes: keys and values that a definition can't hold: duplicate keys, dates, tags, ...
    warnings: values that YAML reads as something else than they look
    """

    def __init__(self, root: Node) -> None:
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []
        self._root = root
        self._unreadable: set[FieldPath] = set()
        self._keys: dict[int, dict[str, tuple[Node, int]]] = {}
        self.data = self._read(root, ())

    @property
    def is_problem(self) -> bool:
        """Whether the data is a code problem: it has `problem_id` and no `study_id`."""
        return self._has_key("problem_id") and not self._has_key("study_id")

    @property
    def is_study(self) -> bool:
        """Whether the data is a study: it has `study_id` and no `problem_id`."""
        return self._has_key("study_id") and not self._has_key("problem_id")

    def _has_key(self, key: str) -> bool:
        return isinstance(self.data, dict) and key in self.data

    def locate(self, mistakes: Iterable[Mistake]) -> list[Mistake]:
        """Add line numbers to mistakes in the data, and merge them with the file's own.

        Returns each mistake once, sorted by line. Mistakes at values that are themselves unreadable
        are left out.
        """
        located: dict[tuple[FieldPath, str], Mistake] = {}
        for mistake in (*self.mistakes, *map(self._locate, self._skip_unreadable(mistakes))):
            located.setdefault((mistake.path, mistake.message), mistake)
        return sorted(located.values(), key=lambda mistake: mistake.line or 0)

    def _skip_unreadable(self, mistakes: Iterable[Mistake]) -> Iterable[Mistake]:
        for mistake in mistakes:
            path = mistake.path
            if not any(path[: end + 1] in self._unreadable for end in range(len(path))):
                yield mistake

    def _locate(self, mistake: Mistake) -> Mistake:
        node, line = self._find(mistake.path)
        ambiguity = find_ambiguity(node) if isinstance(node, Scalar) else None
        hint = mistake.hint
        if ambiguity and not ambiguity.is_null:
            hint = f"{ambiguity.message}: write {ambiguity.change}"
        return replace(mistake, line=line, hint=hint)

    def _find(self, path: FieldPath) -> tuple[Node, int]:
        """Return the node at a path, or its nearest ancestor, and the line of its key."""
        node, line = self._root, self._root.line
        for step in path:
            if not isinstance(node, Collection):
                break
            if id(node) not in self._keys:
                self._keys[id(node)] = _index_children(node)
            child = self._keys[id(node)].get(str(step))
            if child is None:
                break
            node, line = child
        return node, line

    def _read(self, node: Node, path: FieldPath) -> Any:
        if node.problem:
            self._refuse(path, node.problem, node.hint, node.line)
        if isinstance(node, Scalar):
            return self._read_scalar(node, path)
        if not node.is_mapping:
            return [self._read(item, (*path, index)) for index, item in enumerate(node.children)]
        return self._read_mapping(node, path)

    def _read_mapping(self, node: Collection, path: FieldPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value, is_merged in merged_entries(node):
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

    def _read_key(self, key: Node, path: FieldPath) -> str | None:
        if isinstance(key, Collection):
            kind = "a mapping" if key.is_mapping else "a list"
            hint = "put it in quotes if it starts with { or ["
            message = f"expected text as a key, got {kind}"
            self.mistakes.append(Mistake(path, message, hint, key.line))
            return None
        name = replace_surrogates(key.text)
        problem, hint = key.problem, key.hint
        if not problem and not isinstance(key.value, str):
            problem = f"expected text as a key; `{name}` is read as {describe_value(key.value)}"
            hint = "put it in quotes"
        elif not problem and name != key.text:
            problem, hint = _LONE_SURROGATE
        if problem:
            self.mistakes.append(Mistake((*path, name), problem, hint, key.line))
        return name

    def _read_scalar(self, node: Scalar, path: FieldPath) -> Any:
        value = node.text if node.value is MERGE else node.value
        if isinstance(value, float) and not math.isfinite(value):
            problem = f"`{node.text}` is not a finite number"
            self._refuse(path, problem, "put it in quotes for the text, or leave it out", node.line)
            return node.text
        if isinstance(value, str) and replace_surrogates(value) != value:
            self._refuse(path, *_LONE_SURROGATE, node.line)
            return replace_surrogates(value)
        ambiguity = find_ambiguity(node)
        if ambiguity and needs_warning(ambiguity, node.text, path):
            self.warnings.append(Mistake(path, ambiguity.message, ambiguity.hint, node.line))
        return value

    def _refuse(self, path: FieldPath, problem: str, hint: str, line: int) -> None:
        self.mistakes.append(Mistake(path, problem, hint, line))
        self._unreadable.add(path)


_LONE_SURROGATE = ("holds half of a surrogate pair, which is no character", "remove it")


def _index_children(node: Collection) -> dict[str, tuple[Node, int]]:
    """Return each child by its key or index, with the line of the key or item."""
    if not node.is_mapping:
        return {str(index): (item, item.line) for index, item in enumerate(node.children)}
    children: dict[str, tuple[Node, int]] = {}
    for key, value, _ in merged_entries(node):
        if isinstance(key, Scalar):
            children.setdefault(replace_surrogates(key.text), (value, key.line))
    return children
