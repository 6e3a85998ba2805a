"""Ruff's own fixes for slow patterns, independent of the project's configuration."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial_codemod.analysis.function_scope import FunctionScope, list_scopes
from fairtrial_codemod.analysis.iterables import may_stop_early
from fairtrial_codemod.analysis.source_file import LOOPS, SourceFile, get_names, read_source
from fairtrial_codemod.imports import add_imports_to_text

RULES = (
    *("PERF", "C4", "UP032", "UP033", "RUF015", "RUF017", "SIM401", "PIE810"),
    *("PLR1733", "PLR1736"),
    *("FURB113", "FURB118", "FURB129", "FURB132", "FURB140", "FURB142", "FURB145"),
)
"""Loops to comprehensions and `update`, superfluous lists and copies, f-strings, `operator`.

The other rules of FURB are about style, or wrong at times: FURB148 ignores nonlocal names, FURB192
turns the last of equal items (``sorted(x, key=k)[-1]``) into the first (`max`). PLR1714 makes a
tuple for each test. SIM118 is wrong for objects whose ``in`` doesn't test keys (`sqlite3.Row`).
"""
LIST_RULE = "C419"
"""Lists in `any` and `all`, which may stop early; the preview also has it for `sum`, `min` and
`max`, for which a list is faster."""
TARGET = "py39"
TIMEOUT_S = 30.0
RuffEdit = tuple[tuple[int, int], tuple[int, int], str]
"""From where to where, as line and column counted from 1, and the new text."""
_IMPORT = re.compile(r"\s*(?:from (\S+) )?import (\w+)\s*")
_SEARCH_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class RuffFixes:
    """A source with some of ruff's fixes.

    text: the new source
    lines: the lines of the old source that were changed
    scopes: the functions that were changed; "" for the module itself
    """

    text: str
    lines: tuple[int, ...] = ()
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fix:
    """One fix.

    scope: the function that it is in
    line: the line that ruff reports
    edits: its edits
    """

    scope: str
    line: int
    edits: tuple[RuffEdit, ...]


def fix_some(text: str, only: frozenset[str] | None = None) -> RuffFixes:
    """Return a source with ruff's fixes in some functions, or in all of them."""
    source = read_source(text)
    if source is None:
        return RuffFixes(text)
    functions = {node: name for name, node in source.functions}
    scopes: dict[ast.AST | None, FunctionScope] = {s.function: s for s in list_scopes(source)}
    reports = _run(text, "--preview", "--select", ",".join(RULES), "--ignore", LIST_RULE)
    reports += [
        report
        for report in _run(text, "--select", LIST_RULE)
        if _may_stop_early(source, scopes, report["location"]["row"])
    ]
    fixes = [_read_fix(functions, report) for report in reports]
    chosen = [fix for fix in fixes if fix and (only is None or fix.scope in only)]
    chosen = [fix for fix in chosen if not _replaces_needed_loop(source, fix)]
    done, edits = _select_disjoint(chosen)
    if not done:
        return RuffFixes(text)
    lines = tuple(sorted({fix.line for fix in done}))
    return RuffFixes(_apply(source, edits), lines, tuple(dict.fromkeys(fix.scope for fix in done)))


def _read_fix(functions: dict[Any, str], report: dict[str, Any]) -> _Fix | None:
    fix = report.get("fix")
    if not fix:
        return None
    edits = tuple(
        (_read_place(edit["location"]), _read_place(edit["end_location"]), edit["content"])
        for edit in fix["edits"]
    )
    row = report["location"]["row"]
    around = [
        (_get_first_line(node), name)
        for node, name in functions.items()
        if _get_first_line(node) <= row <= (node.end_lineno or 0)
    ]
    first, scope = max(around, default=(0, ""))
    lines = [edit[0][0] for edit in edits if edit[0][0] >= first and not _is_import(edit)]
    return _Fix(scope, min(lines, default=row), edits)


def _get_first_line(function: Any) -> int:
    return min(int(node.lineno) for node in (function, *function.decorator_list))


def _read_place(location: dict[str, int]) -> tuple[int, int]:
    return location["row"], location["column"]


def _select_disjoint(fixes: Sequence[_Fix]) -> tuple[list[_Fix], set[RuffEdit]]:
    """Return the fixes whose edits don't overlap, and their edits."""
    done: list[_Fix] = []
    taken: set[RuffEdit] = set()
    for fix in sorted(fixes, key=lambda fix: fix.line):
        # Imports may be added at the same place: they are moved anyway.
        fresh = [edit for edit in fix.edits if not _is_import(edit)]
        if not any(_overlap(one, other) for one in fresh for other in taken):
            taken.update(fix.edits)
            done.append(fix)
    return done, taken


def _overlap(one: RuffEdit, other: RuffEdit) -> bool:
    if _is_import(other) or (one == other and one[0] == one[1]):
        return False
    return one[0] == other[0] or (one[0] < other[1] and other[0] < one[1])


def _is_import(edit: RuffEdit) -> bool:
    start, end, content = edit
    return start == end and _IMPORT.fullmatch(content) is not None


def _apply(source: SourceFile, edits: set[RuffEdit]) -> str:
    """Return the new text; imports that ruff adds are put where they belong."""
    text, imports = source.text, []
    starts = [0]
    for text_line in source.lines:
        starts.append(starts[-1] + len(text_line))
    for edit in sorted(edits, reverse=True):
        (line, column), (last, end), content = edit
        added = _IMPORT.fullmatch(content)
        if added and _is_import(edit):
            imports.append(".".join(filter(None, added.groups())))
        else:
            begin, until = starts[line - 1] + column - 1, starts[last - 1] + end - 1
            text = text[:begin] + content + text[until:]
    return add_imports_to_text(text, imports) if imports else text


def _may_stop_early(
    source: SourceFile, scopes: dict[ast.AST | None, FunctionScope], line: int
) -> bool:
    """Return whether `any` and `all` in a line may leave the last items of their lists unread."""
    for node in source.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.ListComp() as listed]):
                if node.lineno != line:
                    continue
                scope = scopes.get(source.get_scope_node(node))
                tests = [listed.elt, *(test for part in listed.generators for test in part.ifs)]
                if scope is None or not all(
                    may_stop_early(scope, test, part.iter)
                    for test in tests
                    for part in listed.generators
                ):
                    return False
    return True


def _replaces_needed_loop(source: SourceFile, fix: _Fix) -> bool:
    """Return whether a fix replaces a loop whose end matters: it has an ``else``, an error in it is
    caught, or a nested function reads its variable.
    """
    replaced = [(start[0], end[0]) for start, end, _ in fix.edits]
    for node in source.walk(source.tree):
        if not isinstance(node, LOOPS):
            continue
        last = node.end_lineno or node.lineno
        if not any(begin <= node.lineno and last <= end for begin, end in replaced):
            continue
        if node.orelse or source.is_error_caught(node):
            return True
        names = set() if isinstance(node, ast.While) else get_names(node.target)
        function = source.get_scope_node(node)
        if any(
            isinstance(other, ast.Name)
            and other.id in names
            and source.get_scope_node(other) is not function
            for other in source.walk(function or source.tree)
        ):
            return True
    return False


def _run(text: str, *options: str) -> list[dict[str, Any]]:
    """Return ruff's reports on a source; none if ruff isn't installed or fails."""
    executable = find_ruff()
    if executable is None:
        return []
    command = [executable, "check", "--isolated", "--no-cache", "--exit-zero", "--unsafe-fixes"]
    command += ["--output-format", "json", "--target-version", TARGET, *options]
    try:
        result = subprocess.run(
            [*command, "--stdin-filename", "module.py", "-"],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},  # variables that begin with RUFF_ would be options
            cwd="/",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    reports: list[dict[str, Any]] = json.loads(result.stdout) if result.returncode == 0 else []
    return reports


def find_ruff() -> str | None:
    """Return the path of ruff's executable, in this environment or on the PATH."""
    # Until 3.12, `sysconfig` fails in a second thread that asks at the same time.
    with _SEARCH_LOCK:
        return _search()


@cache
def _search() -> str | None:
    try:
        path = Path(importlib.import_module("ruff").find_ruff_bin())
        if path.is_file():
            return str(path)
    except (ImportError, AttributeError, OSError):
        pass
    beside = Path(sysconfig.get_path("scripts"), "ruff")
    return str(beside) if beside.is_file() else shutil.which("ruff")
