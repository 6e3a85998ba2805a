"""Add imports of the standard library to a module.

They go into the group of the standard library, in order if the group is sorted: after
``__future__`` and before other packages. Imports below the first other statement don't count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libcst import Import, ImportFrom, Module, SimpleStatementLine

SortKey = Callable[[Any], Any]


def add_imports(module: Module, dotted: Iterable[str]) -> Module:
    """Return the module with the imports that it lacks: ``heapq``, ``collections.deque``."""
    for path in sorted(set(dotted)):
        package, _, name = path.rpartition(".")
        module = _add(module, package, name)
    return module


def add_imports_to_text(text: str, dotted: Iterable[str]) -> str:
    """Return a source with the imports that it lacks; the same text if libcst can't parse it."""
    import libcst as cst

    try:
        return add_imports(cst.parse_module(text), dotted).code
    except Exception:  # libcst reports errors in many ways
        return text


def _add(module: Module, package: str, name: str) -> Module:
    import libcst as cst

    start, end = _find_imports(module)
    head = list(module.body[start:end])
    for at, line in enumerate(head):
        assert isinstance(line, cst.SimpleStatementLine)
        for part, node in enumerate(line.body):
            assert isinstance(node, cst.Import | cst.ImportFrom)
            if _provides(node, package, name):
                return module
            if package and isinstance(node, cst.ImportFrom) and _get_module(node) == package:
                small = [*line.body[:part], _add_name(module, node, name), *line.body[part + 1 :]]
                body = list(module.body)
                body[start + at] = line.with_changes(body=small)
                return module.with_changes(body=body)
    code = f"from {package} import {name}" if package else f"import {name}"
    new = cst.parse_statement(code, config=module.config_for_parsing)
    return _insert(module, start, head, new)


def _find_imports(module: Module) -> tuple[int, int]:
    """Return where imports begin, after the docstring and ``__future__``, and where they end."""
    import libcst as cst

    body = module.body
    start = 1 if module.get_docstring(clean=False) is not None else 0
    end = start
    while end < len(body):
        line = body[end]
        if not isinstance(line, cst.SimpleStatementLine):
            break
        if not all(isinstance(node, cst.Import | cst.ImportFrom) for node in line.body):
            break
        end += 1
        if any(_get_module(node) == "__future__" for node in line.body):
            start = end
    return start, end


def _insert(module: Module, start: int, head: Sequence[Any], new: Any) -> Module:
    """Insert an import into the group of the standard library, or as a group of its own."""
    is_standard = [_is_standard(line) for line in head]
    body = list(module.body)
    if True not in is_standard:
        before, following = body[:start], body[start:]
        group = _make_group(new, following, bool(head), start > 0)
        return module.with_changes(body=[*before, *group])
    first = end = is_standard.index(True)
    while end < len(head) and is_standard[end]:
        end += 1
    place = start + first + _find_place(head[first:end], new)
    if place == start + first:  # comments above the group stay above it
        new = new.with_changes(leading_lines=body[place].leading_lines)
        body[place] = body[place].with_changes(leading_lines=[])
    return module.with_changes(body=[*body[:place], new, *body[place:]])


def _make_group(new: Any, following: Sequence[Any], is_import: bool, is_after: bool) -> list[Any]:
    """Return an import and what follows, with blank lines around the import.

    is_import: whether an import follows
    is_after: whether something stands before
    """
    import libcst as cst

    blank = cst.EmptyLine(indent=False)
    if not following:
        return [new.with_changes(leading_lines=[blank] if is_after else [])]
    first, *others = following
    lines = list(first.leading_lines)
    above = [blank] * is_after
    if is_import:  # a comment that stands by itself above the imports stays there
        blanks = [at for at, line in enumerate(lines, 1) if line.comment is None]
        cut = blanks[-1] if blanks else 0
        above, lines = lines[:cut] or above, [blank, *lines[cut:]]
    elif not lines or lines[0].comment is not None:
        is_definition = isinstance(first, cst.FunctionDef | cst.ClassDef)
        lines = [*[blank] * (2 if is_definition else 1), *lines]
    return [
        new.with_changes(leading_lines=above),
        first.with_changes(leading_lines=lines),
        *others,
    ]


def _find_place(group: Sequence[Any], new: Any) -> int:
    """Return the index in a group that is sorted in one of the usual ways; else its end."""
    by_form: SortKey = lambda line: (_is_from(line), _get_first(line))  # noqa: E731
    by_module: SortKey = lambda line: (_get_first(line), _is_from(line))  # noqa: E731
    return _find_sorted_place(group, new, (by_form, by_module))


def _find_sorted_place(items: Sequence[Any], new: Any, orders: Iterable[SortKey]) -> int:
    for key in orders:
        keys = [key(item) for item in items]
        if keys == sorted(keys):
            return sum(other < key(new) for other in keys)
    return len(items)


def _is_from(line: SimpleStatementLine) -> bool:
    import libcst as cst

    return isinstance(line.body[0], cst.ImportFrom)


def _get_first(line: SimpleStatementLine) -> str:
    first: Any = line.body[0]
    return (_get_module(first) if _is_from(line) else _get_name(first.names[0].name)).lower()


def _is_standard(line: SimpleStatementLine) -> bool:
    """Return whether all that a line imports is in the standard library."""
    import libcst as cst

    names = []
    for node in line.body:
        if isinstance(node, cst.Import):
            names += [_get_name(alias.name) for alias in node.names]
        else:
            names.append(_get_module(node))
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in names)


def _get_module(node: Any) -> str:
    """Return the module of an absolute ``from`` import, else ""."""
    import libcst as cst

    is_absolute = isinstance(node, cst.ImportFrom) and not node.relative
    return _get_name(node.module) if is_absolute else ""


def _get_name(node: Any) -> str:
    from libcst.helpers import get_full_name_for_node

    return get_full_name_for_node(node) or ""


def _provides(node: Import | ImportFrom, package: str, name: str) -> bool:
    """Return whether a statement imports a name and keeps it."""
    import libcst as cst

    if _get_module(node) != package or bool(package) != isinstance(node, cst.ImportFrom):
        return False
    if isinstance(node.names, cst.ImportStar):
        return True
    return any(_get_name(alias.name) == name and alias.asname is None for alias in node.names)


def _add_name(module: Module, node: ImportFrom, name: str) -> ImportFrom:
    """Return a ``from`` import with one name more, in order if the names are."""
    import libcst as cst

    assert not isinstance(node.names, cst.ImportStar)
    names = list(node.names)
    texts = [_get_name(alias.name) for alias in names]
    orders: tuple[SortKey, ...] = (_by_kind, str.lower, str)
    place = _find_sorted_place(texts, name, orders)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if len(names) > 1:
        comma = _without_comment(names[0].comma)
    new = cst.ImportAlias(cst.Name(name), comma=comma)
    if place == len(names) and "#" in module.code_for_node(names[-1]):
        place -= 1  # a comment on the last name stays with it
    elif place == len(names):
        new = new.with_changes(comma=names[-1].comma)
        names[-1] = names[-1].with_changes(comma=comma)
    return node.with_changes(names=[*names[:place], new, *names[place:]])


def _without_comment(comma: Any) -> Any:
    """Return a comma with its line end, but without the comment."""
    import libcst as cst

    space = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma
    end = cst.TrailingWhitespace(newline=space.first_line.newline)
    return comma.with_changes(whitespace_after=space.with_changes(first_line=end, empty_lines=[]))


def _by_kind(name: str) -> tuple[int, str]:
    """Sort constants first, then classes, then the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name.lower()
