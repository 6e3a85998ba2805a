"""Syntax checks of function references and commands in definitions.

Each check yields a `Mistake` for everything that is wrong; `field_path` is the checked field.
"""

from __future__ import annotations

import keyword
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from fairtrial.core.errors import FieldPath, Mistake


def function_mistakes(reference: str, field_path: FieldPath) -> Iterator[Mistake]:
    """Check a reference of the form ``module:function``; both parts may have dots."""
    module, _, name = reference.partition(":")
    if all(map(is_dotted_name, (module, name))) and not module.endswith(".py"):
        return
    hint = ""
    if module.endswith(".py") and is_dotted_name(name):
        stem = module.removesuffix(".py").removeprefix("src/").replace("/", ".")
        hint = f"name the module as Python imports it: '{stem}:{name}'"
    elif ":" not in reference and reference.count(".") and is_dotted_name(reference):
        hint = "did you mean '{}:{}'?".format(*reference.rsplit(".", 1))
    yield Mistake(field_path, f"expected module:function, got '{reference}'", hint)


def is_dotted_name(text: str) -> bool:
    """Return whether a text is a name of Python, or several with dots between them."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def format_words(line: str) -> str:
    """Format a command line as the list of words that a definition should hold."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def drop_malformed_commands(
    data: dict[str, Any], names: Iterable[str], path: FieldPath, mistakes: list[Mistake]
) -> dict[str, Any]:
    """Return `data` without commands that are not lists of words.

    names: the keys of `data` that hold commands
    mistakes: gets a mistake for each dropped command that says how to write it
    """
    kept = dict(data)
    for name in names:
        command = data.get(name)
        if isinstance(command, str) and command.strip():
            message, hint = "expected a list of words, got a text", f"write {format_words(command)}"
        elif isinstance(command, list) and any(isinstance(word, list) for word in command):
            message = "expected one command, a list of words; got a list of lists"
            hint = 'for several commands write ["sh", "-c", "first && second"]'
        else:
            continue
        mistakes.append(Mistake((*path, name), message, hint))
        del kept[name]
    return kept
