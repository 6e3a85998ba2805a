"""Imports that transformations need: put where they belong, so that linters have nothing to say.

All are of the standard library: they go to its group, sorted if the group is, after ``__future__``
and before what was installed or is the project's own. What isn't at the top doesn't count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libcst import Import, ImportFrom, Module, SimpleStatementLine

Key = Callable[[Any], Any]


def add_imports(module: Module, dotted: Iterable[str]) -> Module:
    """The module with imports that it has not: ``heapq``, ``collections.deque``."""
    for each in sorted(set(dotted)):
        place, _, name = each.rpartition(".")
        module = _add(module, place, name)
    return module


def move_imports(text: str, added: Iterable[str]) -> str:
    """The source with some of its lines, imports that stand anywhere at the top, put in place."""
    import libcst as cst

    wanted = []
    lines = text.split("\n")
    for line in added:
        head, _, name = line.strip().partition("import ")
        if not name.isidentifier() or line not in lines:
            continue
        lines.remove(line)
        wanted.append(f"{head.removeprefix('from ').strip()}.{name}".lstrip("."))
    try:
        return add_imports(cst.parse_module("\n".join(lines)), wanted).code
    except Exception:  # libcst doesn't take all that Python does, and says so in many ways
        return text


def _add(module: Module, place: str, name: str) -> Module:
    import libcst as cst

    start, end = _find_head(module)
    head = list(module.body[start:end])
    for at, line in enumerate(head):
        assert isinstance(line, cst.SimpleStatementLine)
        for part, each in enumerate(line.body):
            assert isinstance(each, cst.Import | cst.ImportFrom)
            if _gives(each, place, name):
                return module
            if place and isinstance(each, cst.ImportFrom) and _say_module(each) == place:
                wider = _widen(module, each, name)
                small = [*line.body[:part], wider, *line.body[part + 1 :]]
                body = list(module.body)
                body[start + at] = line.with_changes(body=small)
                return module.with_changes(body=body)
    code = f"from {place} import {name}" if place else f"import {name}"
    new = cst.parse_statement(code, config=module.config_for_parsing)
    return _insert(module, start, head, new)


def _find_head(module: Module) -> tuple[int, int]:
    """Where imports begin, after what must come before them all, and where they end."""
    import libcst as cst

    body = module.body
    start = 1 if module.get_docstring(clean=False) is not None else 0
    end = start
    while end < len(body):
        line = body[end]
        if not isinstance(line, cst.SimpleStatementLine):
            break
        if not all(isinstance(each, cst.Import | cst.ImportFrom) for each in line.body):
            break
        end += 1
        if any(_say_module(each) == "__future__" for each in line.body):
            start = end
    return start, end


def _insert(module: Module, start: int, head: Sequence[Any], new: Any) -> Module:
    is_known = [_is_standard(line) for line in head]
    first = is_known.index(True) if True in is_known else None
    body = list(module.body)
    if first is None:
        before, following = body[:start], body[start:]
        return module.with_changes(body=[*before, *_begin(new, following, bool(head), start > 0)])
    end = first
    while end < len(head) and is_known[end]:
        end += 1
    group = head[first:end]
    place = start + first + _find_place(group, new)
    if place == start + first:  # what stands above the group stays above it
        new = new.with_changes(leading_lines=body[place].leading_lines)
        body[place] = body[place].with_changes(leading_lines=[])
    return module.with_changes(body=[*body[:place], new, *body[place:]])


def _begin(new: Any, following: Sequence[Any], is_import: bool, is_after: bool) -> list[Any]:
    """A group of its own, with blank lines before it, if anything is, and after it."""
    import libcst as cst

    blank = cst.EmptyLine(indent=False)
    if not following:
        return [new.with_changes(leading_lines=[blank] if is_after else [])]
    first, *others = following
    lines = list(first.leading_lines)
    above = [blank] * is_after
    if is_import:  # what stands by itself above the imports stays there
        blanks = [at for at, line in enumerate(lines, 1) if line.comment is None]
        cut = blanks[-1] if blanks else 0
        above, lines = lines[:cut] or above, [blank, *lines[cut:]]
    elif not lines or lines[0].comment is not None:
        is_defined = isinstance(first, cst.FunctionDef | cst.ClassDef)
        lines = [*[blank] * (2 if is_defined else 1), *lines]
    return [
        new.with_changes(leading_lines=above),
        first.with_changes(leading_lines=lines),
        *others,
    ]


def _find_place(group: Sequence[Any], new: Any) -> int:
    """The place in a group that is sorted in one of the usual ways; else its end."""
    for key in (_by_form, _by_module):
        keys = [key(line) for line in group]
        if keys == sorted(keys):
            return sum(each < key(new) for each in keys)
    return len(group)


def _by_form(line: SimpleStatementLine) -> tuple[bool, str]:
    """Plain imports first, then the others."""
    return _is_from(line), _say_first(line)


def _by_module(line: SimpleStatementLine) -> tuple[str, bool]:
    return _say_first(line), _is_from(line)


def _is_from(line: SimpleStatementLine) -> bool:
    import libcst as cst

    return isinstance(line.body[0], cst.ImportFrom)


def _say_first(line: SimpleStatementLine) -> str:
    first: Any = line.body[0]
    return (_say_module(first) if _is_from(line) else _say(first.names[0].name)).lower()


def _is_standard(line: SimpleStatementLine) -> bool:
    """Whether all that a line imports is of the standard library."""
    import libcst as cst

    names = []
    for each in line.body:
        if isinstance(each, cst.Import):
            names += [_say(alias.name) for alias in each.names]
        else:
            names.append(_say_module(each))
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in names)


def _say_module(node: Any) -> str:
    """Where names are imported from; nothing for what is relative, or no such thing."""
    import libcst as cst

    is_absolute = isinstance(node, cst.ImportFrom) and not node.relative
    return _say(node.module) if is_absolute else ""


def _say(node: Any) -> str:
    from libcst.helpers import get_full_name_for_node

    return get_full_name_for_node(node) or ""


def _gives(node: Import | ImportFrom, place: str, name: str) -> bool:
    """Whether a statement gives a name that is asked for, and calls it so."""
    import libcst as cst

    if _say_module(node) != place or bool(place) != isinstance(node, cst.ImportFrom):
        return False
    if isinstance(node.names, cst.ImportStar):
        return True
    return any(_say(each.name) == name and each.asname is None for each in node.names)


def _widen(module: Module, node: ImportFrom, name: str) -> ImportFrom:
    """One name more, sorted if they are."""
    import libcst as cst

    assert not isinstance(node.names, cst.ImportStar)
    names = list(node.names)
    orders: tuple[Key, ...] = (_by_kind, str.lower, str)
    place = len(names)
    for key in orders:
        keys = [key(_say(each.name)) for each in names]
        if keys == sorted(keys):
            place = sum(each < key(name) for each in keys)
            break
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if len(names) > 1:
        comma = _without_comment(names[0].comma)
    new = cst.ImportAlias(cst.Name(name), comma=comma)
    if place == len(names) and "#" in module.code_for_node(names[-1]):
        place -= 1  # what is said of the last one stays with it
    elif place == len(names):
        new = new.with_changes(comma=names[-1].comma)
        names[-1] = names[-1].with_changes(comma=comma)
    return node.with_changes(names=[*names[:place], new, *names[place:]])


def _without_comment(comma: Any) -> Any:
    """As it is, with the end of the line, but for what is said there."""
    import libcst as cst

    space = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma
    end = cst.TrailingWhitespace(newline=space.first_line.newline)
    return comma.with_changes(whitespace_after=space.with_changes(first_line=end, empty_lines=[]))


def _by_kind(name: str) -> tuple[int, str]:
    """Constants first, then classes, then the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name.lower()
