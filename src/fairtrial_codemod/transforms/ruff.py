"""Ruff's own fixes for slow patterns, without regard to the project's configuration."""

from __future__ import annotations

import ast
import difflib
import importlib
import re
import shutil
import subprocess
import sysconfig
import threading
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fairtrial_codemod.transforms.analysis.equalities import names_in
from fairtrial_codemod.transforms.analysis.iterables import may_stop_early
from fairtrial_codemod.transforms.analysis.source import LOOPS, Loop, Source, read_source
from fairtrial_codemod.transforms.analysis.uses import Scope
from fairtrial_codemod.transforms.importing import move_imports

RULES = (
    *("PERF", "C4", "UP032", "UP033", "RUF015", "RUF017", "SIM401", "PIE810"),
    *("PLR1733", "PLR1736"),
    *("FURB113", "FURB118", "FURB129", "FURB132", "FURB140", "FURB142", "FURB145"),
)
"""Loops to comprehensions and `update`, superfluous lists and copies, f-strings, `operator`.

Not all of FURB: the others there are about style, or wrong at times. FURB148 forgets that names may
be nonlocal; FURB192 takes the first of equal ones (`max`) for the last (``sorted(x, key=k)[-1]``).
Not PLR1714, by which a test makes a tuple each time; nor SIM118: not all that has keys looks for
them when it is asked what is in it (`sqlite3.Row`, e-mail headers).
"""
STABLE = ("C419",)
"""Lists in `any` and `all`, which may stop early; as a preview also in `sum`, `min` and `max`, for
which a list is faster."""
TARGET = "py39"
TIMEOUT_S = 30.0
_LOOKING = threading.Lock()
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Fixed:
    """A source with some fixes.

    text: as it is now
    lines: where it was changed, by the lines of the old text
    scopes: the functions that were changed; "" for the module itself
    """

    text: str
    lines: tuple[int, ...] = ()
    scopes: tuple[str, ...] = ()


def fix(text: str) -> str:
    """The source with all fixes; as it was if ruff isn't here or has nothing to say."""
    # Without --preview it finds loops that should be comprehensions, but leaves them as they are.
    fixed = _run(text, "--preview", "--select", ",".join(RULES), "--ignore", ",".join(STABLE))
    return _run(fixed, "--select", ",".join(STABLE)) if _may_stop_early(fixed) else fixed


def _may_stop_early(text: str) -> bool:
    """Whether nobody notices when no `any` and `all` goes through to the end of a list any more."""
    source = read_source(text)
    if source is None:
        return False
    scopes: dict[ast.AST | None, Scope] = {
        function: Scope(source, name, function) for name, function in source.functions
    }
    for node in source.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.ListComp() as made]):
                scope = scopes.get(source.function_of(node))
                if scope is None or not _may_be_left(scope, made):
                    return False
    return True


def _may_be_left(scope: Scope, made: ast.ListComp) -> bool:
    asked = [made.elt, *(test for part in made.generators for test in part.ifs)]
    return all(may_stop_early(scope, each, part.iter) for each in asked for part in made.generators)


def fix_some(text: str, only: frozenset[str] | None = None) -> Fixed:
    """The source with the fixes of some functions, or all; and imports that they may need."""
    fixed = fix(text)
    source = None if fixed == text else read_source(text)
    if source is None:
        return Fixed(text)
    old, new = text.split("\n"), fixed.split("\n")
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    hunks = [
        (start, old[start:end], new[new_start:new_end])
        for _, start, end, new_start, new_end in matcher.get_opcodes()
    ]
    places = [_scope_of(source, start, before, after) for start, before, after in hunks]
    spoilt = _find_spoilt(source, fixed)
    chosen = [
        before != after and (only is None or scope in only) and scope not in spoilt
        for (_, before, after), scope in zip(hunks, places, strict=True)
    ]
    added = [hunk[2] for hunk, is_chosen in zip(hunks, chosen, strict=True) if is_chosen]
    words = {word for lines in added for line in lines for word in _WORD.findall(line)}
    made: list[str] = []
    imports: list[str] = []
    for (_, before, after), is_chosen in zip(hunks, chosen, strict=True):
        # Others may still need what is imported so far.
        needed = [line for line in after if line not in before and _is_needed(line, words)]
        made += after if is_chosen else [*before, *needed]
        if not any(map(_is_import, before)):
            imports += needed
    lines = tuple(hunk[0] + 1 for hunk, is_chosen in zip(hunks, chosen, strict=True) if is_chosen)
    scopes = dict.fromkeys(scope for scope, is_it in zip(places, chosen, strict=True) if is_it)
    told = move_imports("\n".join(made), imports)
    # A hunk may reach into another function than the one that it counts for.
    return Fixed(text) if _find_spoilt(source, told) else Fixed(told, lines, tuple(scopes))


def _find_spoilt(source: Source, fixed: str) -> Set[str]:
    """Functions in which a fix has lost what a loop does in the end, or leaves if it breaks off.

    That is its ``else``, what ``except`` or ``finally`` may find of what it has made so far, and
    the last of its items, where a function in this one reads it.
    """
    now = read_source(fixed)
    if now is None:
        return set()
    before, after = _count_ends(source), _count_ends(now)
    return {scope for scope in before if before[scope] > after[scope]}


def _count_ends(source: Source) -> Counter[str]:
    names: dict[ast.AST, str] = {function: name for name, function in source.functions}
    return Counter(
        next((names[each] for each in source.around(node) if each in names), "")
        for node in source.walk(source.tree)
        if isinstance(node, LOOPS) and _is_seen(source, node)
    )


def _is_seen(source: Source, loop: Loop) -> bool:
    if loop.orelse or source.is_watched(loop):
        return True
    names = set() if isinstance(loop, ast.While) else names_in(loop.target)
    function = source.function_of(loop)
    return any(
        isinstance(node, ast.Name) and node.id in names and source.function_of(node) is not function
        for node in source.walk(function or source.tree)
    )


def _is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))


def _is_needed(line: str, words: Set[str]) -> bool:
    """Whether a line of the module imports one of these names."""
    _, is_import, names = line.partition("import ")
    return bool(is_import) and not line[0].isspace() and not words.isdisjoint(_WORD.findall(names))


def _scope_of(source: Source, start: int, before: list[str], after: list[str]) -> str:
    """The innermost function around some lines, counted from 0; "" for the module itself."""
    best = ""
    end = start + len(before)
    for name, function in source.functions:
        first = min(each.lineno for each in (function, *function.decorator_list)) - 1
        last = function.end_lineno or 0
        if before:
            is_within = first <= start and end <= last
        else:
            # What is put in right after its last line is the function's if it is indented.
            is_within = first < start < last or (start == last and after[0][:1].isspace())
        best = name if is_within else best
    return best


def _run(text: str, *options: str) -> str:
    executable = find_ruff()
    if executable is None:
        return text
    command = [executable, "check", "--isolated", "--no-cache", "--quiet", "--fix-only"]
    command += ["--unsafe-fixes", "--target-version", TARGET, *options]
    try:
        told = subprocess.run(
            [*command, "--stdin-filename", "module.py", "-"],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},  # variables that begin with RUFF_ are options, too
            cwd="/",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return text
    return told.stdout.decode() if told.returncode == 0 and told.stdout else text


def find_ruff() -> str | None:
    """Where ruff is: in this environment, or on the path; None if nowhere."""
    # Until 3.12, a second thread that asks `sysconfig` at the same time is told that nothing is
    # known: proposals are made in threads.
    with _LOOKING:
        return _look()


@cache
def _look() -> str | None:
    try:
        found = Path(importlib.import_module("ruff").find_ruff_bin())
        if found.is_file():
            return str(found)
    except (ImportError, AttributeError, OSError):
        pass
    beside = Path(sysconfig.get_path("scripts"), "ruff")
    return str(beside) if beside.is_file() else shutil.which("ruff")
