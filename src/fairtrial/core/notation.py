"""How code problems spell paths, functions, commands and variables, and what is wrong with one."""

from __future__ import annotations

import difflib
import keyword
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from fairtrial.core.errors import Mistake, Place

EXCEPT = (":!", ":^", ":(exclude)")
"""How git spells a pattern of files that are left out again."""
OURS = {
    "PYTHONPATH": "name folders to import from in import_roots",
    "PYTHONHOME": "name another Python in python",
    "HOME": "each command gets a new one",
    "TMPDIR": "each command gets a new one",
}
"""Variables that a problem doesn't set, and what to do instead."""
OUR_PREFIX = "FAIRTRIAL_"
_ELSEWHERE = re.compile(r"~|[A-Za-z]:|\\\\")
"""Somebody's home, or what Windows takes for an absolute path."""
_PLACEHOLDER = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")


def path_mistakes(path: str, place: Place, *, is_pattern: bool = False) -> Iterator[Mistake]:
    """What is wrong with a path inside of the project's folder, or with a pattern of such paths."""
    if is_pattern:
        path = split_pattern(path)[1]
        if path.startswith(":"):
            yield Mistake(
                place, f"expected a pattern, got '{path}'", "':!' leaves files out; no more"
            )
            return
    if not path.strip():
        yield Mistake(place, "must not be empty")
    elif "\0" in path:
        yield Mistake(place, "holds a null character, which no path can")
    elif PurePosixPath(path).is_absolute() or _ELSEWHERE.match(path):
        hint = "write it relative to the project's folder"
        yield Mistake(place, f"must not be an absolute path, got '{path}'", hint)
    elif ".." in PurePosixPath(path).parts:
        yield Mistake(place, f"must not lead out of the project's folder by '..', got '{path}'")


def split_pattern(pattern: str) -> tuple[str, str]:
    """What marks a pattern as an exception, if it is one, and the pattern itself."""
    mark = next((mark for mark in EXCEPT if pattern.startswith(mark)), "")
    return mark, pattern[len(mark) :]


def function_mistakes(reference: str, place: Place) -> Iterator[Mistake]:
    """What is wrong with ``module:function``; both may have dots."""
    module, _, name = reference.partition(":")
    if all(map(_is_dotted_name, (module, name))) and not module.endswith(".py"):
        return
    hint = ""
    if module.endswith(".py") and _is_dotted_name(name):
        stem = module.removesuffix(".py").removeprefix("src/").replace("/", ".")
        hint = f"name the module as Python imports it: '{stem}:{name}'"
    elif ":" not in reference and reference.count(".") and _is_dotted_name(reference):
        hint = "did you mean '{}:{}'?".format(*reference.rsplit(".", 1))
    yield Mistake(place, f"expected module:function, got '{reference}'", hint)


def maker_mistakes(reference: str, place: Place) -> Iterator[Mistake]:
    """What is wrong with ``file.py:function``."""
    file, _, name = reference.rpartition(":")
    if not file.endswith(".py") or not _is_dotted_name(name) or "." in name:
        hint = "a path from the project's folder: 'benchmarks/inputs.py:make'"
        yield Mistake(place, f"expected file.py:function, got '{reference}'", hint)
        return
    yield from path_mistakes(file, place)


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def command_mistakes(command: Sequence[str], place: Place) -> Iterator[Mistake]:
    """What is wrong with a program and its arguments."""
    for index, word in enumerate(command):
        if "\0" in word:
            yield Mistake((*place, index), "holds a null character, which no argument can")
        for name in _PLACEHOLDER.findall(word):
            whole = word.strip("{} ") == name
            if word.find("{python}") < 0 and ((whole and not index) or _is_like_python(name)):
                message = f"unknown placeholder {{{name}}}"
                yield Mistake((*place, index), message, "the only one is {python}")
    if not command:
        return
    program = command[0]
    if not program.strip():
        yield Mistake((*place, 0), "must not be empty")
    elif len(program.split()) > 1 and "/" not in program:
        hint = f"write each word on its own: {spell_words(program)}"
        yield Mistake((*place, 0), f"expected a program, got '{program}'", hint)


def _is_like_python(name: str) -> bool:
    return difflib.SequenceMatcher(None, name.lower(), "python").ratio() >= 0.7


def spell_words(line: str) -> str:
    """A command line as the list of words that a file should have."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def take_misspelt_commands(
    data: dict[str, Any], names: Iterable[str], path: Place, mistakes: list[Mistake]
) -> dict[str, Any]:
    """`data` without commands that are no lists of words; says how to write them instead."""
    kept = dict(data)
    for name in names:
        given = data.get(name)
        if isinstance(given, str) and given.strip():
            message, hint = "expected a list of words, got a text", f"write {spell_words(given)}"
        elif isinstance(given, list) and any(isinstance(word, list) for word in given):
            message = "expected one command, a list of words; got a list of lists"
            hint = 'for several commands write ["sh", "-c", "first && second"]'
        else:
            continue
        mistakes.append(Mistake((*path, name), message, hint))
        del kept[name]
    return kept


def variable_mistakes(env: Mapping[str, str], place: Place) -> Iterator[Mistake]:
    """What is wrong with variables for commands."""
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            hint = "letters, digits and _, not beginning with a digit"
            yield Mistake((*place, name), "is no name for a variable", hint)
        elif name in OURS or name.startswith(OUR_PREFIX):
            yield Mistake((*place, name), "is set by fairtrial", OURS.get(name, ""))
        elif "\0" in value:
            yield Mistake((*place, name), "holds a null character, which no variable can")
