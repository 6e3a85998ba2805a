"""Names that code of others gives: nobody knows what that does with objects that it gets."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Set
from functools import lru_cache

from fairtrial_codemod.analysis.source_file import read_source

ANY = "*"
"""What stands for any name."""
_HARMLESS = frozenset(
    {"__future__", "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath"}
    | {"collections", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib"}
    | {"enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json", "keyword"}
    | {"logging", "math", "numbers", "operator", "os", "pathlib", "pprint", "random", "re"}
    | {"secrets", "statistics", "string", "struct", "sys", "textwrap", "time", "types", "typing"}
    | {"typing_extensions", "unicodedata", "uuid", "warnings", "weakref", "zlib", "zoneinfo"}
)
"""Modules that call only special methods of what they get, and the implicit ones."""


def find_modules(paths: Collection[str]) -> dict[str, bool]:
    """Every name that a module among the files may be imported by, and whether it is a package."""
    found: dict[str, bool] = {}
    for path in paths:
        parts = path.removesuffix(".py").split("/")
        is_package = parts[-1] == "__init__"
        if is_package:
            parts.pop()
        for start in range(len(parts)):
            found.setdefault(".".join(parts[start:]), is_package)
    return found


def find_outsiders(path: str, text: str, modules: dict[str, bool], names: Set[str]) -> set[str]:
    """The names of a file that come from elsewhere; `ANY` if any name may.

    modules: those among the files, as `find_modules` has them
    names: all that the files define
    """
    found = set()
    for bound, module, name, level in _imports(text):
        if level:
            folders = path.split("/")[:-level]
            module = ".".join([*folders, *([module] if module else [])])
        elif module.partition(".")[0] in _HARMLESS:
            continue
        if not name:
            # What a package has, beside what it says, isn't known.
            is_ours = not modules.get(module, True)
        else:
            of_package = name in names or name == ANY
            is_ours = f"{module}.{name}" in modules or (module in modules and of_package)
        if not is_ours:
            found.add(bound)
    return found


@lru_cache(maxsize=8192)
def _imports(text: str) -> tuple[tuple[str, str, str, int], ...]:
    """What is imported anywhere: the name that it gets, the module, the name there, the level."""
    source = read_source(text.removeprefix("\ufeff"))
    return () if source is None else tuple(_read_imports(source.tree))


def _read_imports(tree: ast.AST) -> Iterator[tuple[str, str, str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name.partition(".")[0], alias.name, "", 0
            case ast.ImportFrom(names=aliases, module=module, level=level):
                for alias in aliases:
                    yield alias.asname or alias.name, module or "", alias.name, level
