"""Syntax checks of paths, patterns, commands and environment variables in code problems.

Each check yields a `Mistake` for everything that is wrong; `field_path` is the checked field.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from fairtrial.core import FieldPath, Mistake, syntax_checks

EXCLUSION_MARKS = (":!", ":^", ":(exclude)")
"""The prefixes by which git marks a pattern as an exclusion."""
RESERVED_VARIABLES = {
    "PYTHONPATH": "name folders to import from in import_roots",
    "PYTHONHOME": "name another Python in python",
    "HOME": "each command gets a new one",
    "TMPDIR": "each command gets a new one",
}
"""Environment variables that a problem must not set, each with what to do instead."""
RESERVED_PREFIX = "FAIRTRIAL_"
"""Variables with this prefix are reserved, too."""
_HOME_OR_DRIVE = re.compile(r"~|[A-Za-z]:|\\\\")
"""A home folder, or an absolute path on Windows."""
_PLACEHOLDER = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")


def path_mistakes(
    path: str, field_path: FieldPath, *, is_pattern: bool = False
) -> Iterator[Mistake]:
    """Check a path relative to the project's folder, or a pattern of such paths."""
    if is_pattern:
        path = split_pattern(path)[1]
        if path.startswith(":"):
            yield Mistake(
                field_path, f"expected a pattern, got '{path}'", "':!' leaves files out; no more"
            )
            return
    if not path.strip():
        yield Mistake(field_path, "must not be empty")
    elif "\0" in path:
        yield Mistake(field_path, "holds a null character, which no path can")
    elif PurePosixPath(path).is_absolute() or _HOME_OR_DRIVE.match(path):
        hint = "write it relative to the project's folder"
        yield Mistake(field_path, f"must not be an absolute path, got '{path}'", hint)
    elif ".." in PurePosixPath(path).parts:
        yield Mistake(
            field_path, f"must not lead out of the project's folder by '..', got '{path}'"
        )


def split_pattern(pattern: str) -> tuple[str, str]:
    """Split a pattern into its exclusion mark (empty if it has none) and the rest."""
    mark = next((mark for mark in EXCLUSION_MARKS if pattern.startswith(mark)), "")
    return mark, pattern[len(mark) :]


def file_function_mistakes(reference: str, field_path: FieldPath) -> Iterator[Mistake]:
    """Check a reference of the form ``file.py:function``."""
    file, _, name = reference.rpartition(":")
    if not file.endswith(".py") or not syntax_checks.is_dotted_name(name) or "." in name:
        hint = "a path from the project's folder: 'benchmarks/inputs.py:make'"
        yield Mistake(field_path, f"expected file.py:function, got '{reference}'", hint)
        return
    yield from path_mistakes(file, field_path)


def command_mistakes(command: Sequence[str], field_path: FieldPath) -> Iterator[Mistake]:
    """Check a command: a program and its arguments, one word each."""
    for index, word in enumerate(command):
        if "\0" in word:
            yield Mistake((*field_path, index), "holds a null character, which no argument can")
        for name in _PLACEHOLDER.findall(word):
            whole = word.strip("{} ") == name
            if word.find("{python}") < 0 and ((whole and not index) or _is_like_python(name)):
                message = f"unknown placeholder {{{name}}}"
                yield Mistake((*field_path, index), message, "the only one is {python}")
    if not command:
        return
    program = command[0]
    if not program.strip():
        yield Mistake((*field_path, 0), "must not be empty")
    elif len(program.split()) > 1 and "/" not in program:
        hint = f"write each word on its own: {syntax_checks.format_words(program)}"
        yield Mistake((*field_path, 0), f"expected a program, got '{program}'", hint)


def _is_like_python(name: str) -> bool:
    return difflib.SequenceMatcher(None, name.lower(), "python").ratio() >= 0.7


def variable_mistakes(env: Mapping[str, str], field_path: FieldPath) -> Iterator[Mistake]:
    """Check the environment variables of commands."""
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            hint = "letters, digits and _, not beginning with a digit"
            yield Mistake((*field_path, name), "is no name for a variable", hint)
        elif name in RESERVED_VARIABLES or name.startswith(RESERVED_PREFIX):
            yield Mistake(
                (*field_path, name), "is set by fairtrial", RESERVED_VARIABLES.get(name, "")
            )
        elif "\0" in value:
            yield Mistake((*field_path, name), "holds a null character, which no variable can")
