"""Add imports of the standard library to a source.

They go into the group of the standard library, in order if the group is sorted: after
``__future__`` and before other packages. Imports below the first other statement don't count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairtrial_codemod.analysis.source_file import SourceFile, read_source

_Import = ast.Import | ast.ImportFrom
SortKey = Callable[[Any], Any]


def add_imports(text: str, dotted: Iterable[str]) -> str:
    """Return a source with the imports that it lacks: ``heapq``, ``collections.deque``.

    A source that can't be parsed is returned as it is.
    """
    for path in sorted(set(dotted)):
        source = read_source(text)
        if source is not None:
            text = _add(source, *path.rpartition(".")[::2])
    return text


def _add(source: SourceFile, package: str, name: str) -> str:
    body = source.tree.body
    start = int(ast.get_docstring(source.tree, clean=False) is not None)
    head: list[_Import] = []
    for node in body[start:]:
        if not isinstance(node, _Import):
            break
        head.append(node)
        if getattr(node, "module", "") == "__future__":
            start, head = start + len(head), []
    for node in head:
        if _provides(node, package, name):
            return source.text
    for node in head:
        if package and _get_module(node) == package and isinstance(node, ast.ImportFrom):
            return _add_name(source, node, name)
    new = f"from {package} import {name}" if package else f"import {name}"
    parsed = ast.parse(new).body[0]
    assert isinstance(parsed, _Import)
    return _insert(source, start, _join_lines(head), parsed)


def _join_lines(head: Sequence[_Import]) -> list[list[_Import]]:
    """Return imports by line: several may share one."""
    lines: list[list[_Import]] = []
    for node in head:
        if lines and lines[-1][-1].end_lineno == node.lineno:
            lines[-1].append(node)
        else:
            lines.append([node])
    return lines


def _insert(source: SourceFile, start: int, head: list[list[_Import]], new: _Import) -> str:
    """Insert an import into the group of the standard library, or as a group of its own."""
    is_standard = [all(map(_is_standard, line)) for line in head]
    if True not in is_standard:
        return _insert_group(source, start, bool(head), ast.unparse(new))
    first = end = is_standard.index(True)
    while end < len(head) and is_standard[end]:
        end += 1
    by_form: SortKey = lambda node: (isinstance(node, ast.ImportFrom), _get_first(node))  # noqa: E731
    by_module: SortKey = lambda node: _get_first(node)  # noqa: E731
    group = [line[0] for line in head[first:end]]
    place = first + _find_sorted_place(group, new, (by_form, by_module))
    # Comments above the group stay above it.
    line = head[place][0].lineno if place < end else (head[end - 1][-1].end_lineno or 0) + 1
    return _insert_lines(source, line, [ast.unparse(new)])


def _insert_group(source: SourceFile, start: int, is_import: bool, code: str) -> str:
    """Insert an import with blank lines around it.

    is_import: whether imports of other packages follow
    """
    body, lines = source.tree.body, source.lines
    above = (body[start - 1].end_lineno or 0) if start else 0
    if start == len(body):
        return _insert_lines(source, above + 1, ["", code] if above else [code])
    first = body[start]
    follows = min([first, *getattr(first, "decorator_list", [])], key=lambda node: node.lineno)
    between = [line.strip() for line in lines[above : follows.lineno - 1]]
    if is_import:  # a comment that stands by itself above the imports stays there
        cut = max((at for at, line in enumerate(between, 1) if not line), default=0)
        before = [""] if above and not cut else []
        return _insert_lines(source, above + cut + 1, [*before, code, ""])
    after: list[str] = []
    if not between or between[0]:
        is_definition = isinstance(first, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        after = ["", ""] if is_definition else [""]
    return _insert_lines(source, above + 1, [*([""] if above else []), code, *after])


def _insert_lines(source: SourceFile, line: int, new: list[str]) -> str:
    """Return the text with lines before a line that is counted from 1."""
    end = next((end for end in ("\r\n", "\r", "\n") if end in source.text), "\n")
    before, after = "".join(source.lines[: line - 1]), "".join(source.lines[line - 1 :])
    if before and not before.endswith(("\n", "\r")):
        before += end
    return before + "".join(text + end for text in new) + after


def _find_sorted_place(items: Sequence[Any], new: Any, orders: Iterable[SortKey]) -> int:
    """Return the index of a new item if the items are sorted in one of the orders; else the end."""
    for key in orders:
        keys = [key(item) for item in items]
        if keys == sorted(keys):
            return sum(other < key(new) for other in keys)
    return len(items)


def _get_first(node: _Import) -> str:
    return (_get_module(node) or node.names[0].name).lower()


def _is_standard(node: _Import) -> bool:
    """Return whether all that a statement imports is in the standard library."""
    is_from = isinstance(node, ast.ImportFrom)
    names = [_get_module(node)] if is_from else [alias.name for alias in node.names]
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in names)


def _get_module(node: ast.AST) -> str:
    """Return the module of an absolute ``from`` import, else ""."""
    is_absolute = isinstance(node, ast.ImportFrom) and not node.level
    return (getattr(node, "module", "") or "") if is_absolute else ""


def _provides(node: _Import, package: str, name: str) -> bool:
    """Return whether a statement imports a name and keeps it."""
    if _get_module(node) != package or bool(package) != isinstance(node, ast.ImportFrom):
        return False
    return any(alias.name in (name, "*") and alias.asname is None for alias in node.names)


def _add_name(source: SourceFile, node: ast.ImportFrom, name: str) -> str:
    """Return the text with one name more in a ``from`` import, in order if the names are."""
    names = node.names
    orders: tuple[SortKey, ...] = (_by_kind, str.lower, str)
    place = _find_sorted_place([alias.name for alias in names], name, orders)
    last = source.lines[(names[-1].end_lineno or 0) - 1]
    if place == len(names) and node.lineno < names[-1].lineno and "#" in last:
        place -= 1  # a comment on the last name stays with it
    alias = names[min(place, len(names) - 1)]
    line = source.lines[alias.lineno - 1]
    margin = line[: alias.col_offset]
    gap = f",{line[len(line.rstrip()) :]}{margin}" if not margin.strip() else ", "
    at = alias.col_offset if place < len(names) else alias.end_col_offset or 0
    new = f"{name}{gap}" if place < len(names) else f"{gap}{name}"
    lines = [*source.lines]
    # Imports at the top have no characters before their names that take several bytes.
    lines[alias.lineno - 1] = line[:at] + new + line[at:]
    return "".join(lines)


def _by_kind(name: str) -> tuple[int, str]:
    """Sort constants first, then classes, then the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name.lower()
