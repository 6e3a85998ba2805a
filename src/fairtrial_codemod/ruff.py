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
from fairtrial_codemod.imports import add_imports
from fairtrial_codemod.writing import Replacement, replace_ranges

RULES = (
    *("PERF", "C4", "UP032", "UP033", "RUF015", "RUF017", "SIM401", "PIE810"),
    *("PLR1733", "PLR1736", "B009", "B010", "UP012", "SIM905", "FLY002", "FURB188"),
    *("FURB113", "FURB118", "FURB129", "FURB132", "FURB140", "FURB142", "FURB145"),
)
"""Loops to comprehensions and `update`, superfluous lists and copies, f-strings, `operator`,
`getattr` of a constant name, encoding and splitting of constants, `removeprefix`.

The other rules of FURB are about style, or wrong at times: FURB148 ignores nonlocal names, FURB192
turns the last of equal items (``sorted(x, key=k)[-1]``) into the first (`max`). PLR1714 makes a
tuple for each test; `isinstance` of a tuple (SIM101) takes longer than two calls. SIM118 is wrong
for objects whose ``in`` doesn't test keys (`sqlite3.Row`).
"""
LIST_RULE = "C419"
"""Lists in `any` and `all`, which may stop early; the preview also has it for `sum`, `min` and
`max`, for which a list is faster."""
TARGET = "py39"
TIMEOUT_S = 30.0
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
    edits: tuple[Replacement, ...]


def fix_some(text: str, only: frozenset[str] | None = None) -> RuffFixes:
    """Return a source with ruff's fixes in some functions, or in all of them."""
    source = read_source(text)
    if source is None:
        return RuffFixes(text)
    scopes: dict[ast.AST | None, FunctionScope] = {s.function: s for s in list_scopes(source)}
    reports = _run(text, "--preview", "--select", ",".join(RULES), "--ignore", LIST_RULE)
    reports += [
        report
        for report in _run(text, "--select", LIST_RULE)
        if _may_stop_early(source, scopes, report["location"]["row"])
    ]
    fixes = [_read_fix(source, report) for report in reports]
    chosen = [fix for fix in fixes if fix and (only is None or fix.scope in only)]
    chosen = [fix for fix in chosen if not _replaces_needed_loop(source, fix)]
    done, edits = _select_disjoint(chosen)
    if not done:
        return RuffFixes(text)
    lines = tuple(sorted({fix.line for fix in done}))
    return RuffFixes(_apply(source, edits), lines, tuple(dict.fromkeys(fix.scope for fix in done)))


def _read_fix(source: SourceFile, report: dict[str, Any]) -> _Fix | None:
    fix = report.get("fix")
    if not fix:
        return None
    edits = tuple(
        (
            *(_read_place(source, edit[place]) for place in ("location", "end_location")),
            edit["content"],
        )
        for edit in fix["edits"]
    )
    row = report["location"]["row"]
    around = [(source.get_span(node), name) for name, node in source.functions]
    place = _read_place(source, report["location"])
    (first, _), scope = max(
        (item for item in around if item[0][0] <= place < item[0][1]), default=((0, 0), "")
    )
    changed = [edit[0] for edit in edits if edit[0] >= first and not _is_import(edit)]
    line = source.get_line(min(changed)) if changed else row
    return _Fix(scope, line, edits)


def _read_place(source: SourceFile, location: dict[str, int]) -> int:
    """Return a place as an index of the text; ruff counts lines and characters from 1."""
    return source.get_line_start(location["row"]) + location["column"] - 1


def _select_disjoint(fixes: Sequence[_Fix]) -> tuple[list[_Fix], set[Replacement]]:
    """Return the fixes whose edits don't overlap, and their edits."""
    done: list[_Fix] = []
    taken: set[Replacement] = set()
    for fix in sorted(fixes, key=lambda fix: fix.line):
        # Imports may be added at the same place: they are moved anyway.
        fresh = [edit for edit in fix.edits if not _is_import(edit)]
        if not any(_overlap(one, other) for one in fresh for other in taken):
            taken.update(fix.edits)
            done.append(fix)
    return done, taken


def _overlap(one: Replacement, other: Replacement) -> bool:
    if _is_import(other) or (one == other and one[0] == one[1]):
        return False
    return one[0] == other[0] or (one[0] < other[1] and other[0] < one[1])


def _is_import(edit: Replacement) -> bool:
    start, end, content = edit
    return start == end and _IMPORT.fullmatch(content) is not None


def _apply(source: SourceFile, edits: set[Replacement]) -> str:
    """Return the new text; imports that ruff adds are put where they belong."""
    imports = [_IMPORT.fullmatch(edit[2]) for edit in edits if _is_import(edit)]
    text = replace_ranges(source.text, [edit for edit in edits if not _is_import(edit)])
    return add_imports(text, [".".join(filter(None, match.groups())) for match in imports if match])


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
    for node in source.walk(source.tree):
        if not isinstance(node, LOOPS):
            continue
        first, last = source.get_span(node)
        if not any(start <= first and last <= end for start, end, _ in fix.edits):
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
