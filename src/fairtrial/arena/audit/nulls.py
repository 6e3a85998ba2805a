"""Null candidates: the base with one function replaced by one that does no work.

The replacement is appended to the file that defines the function, so that every module that imports
it gets the replacement. Some kinds call the original to learn a result or its type.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from types import MappingProxyType

from fairtrial.arena.audit.definitions import Definition
from fairtrial.arena.checks.encoded_values import Encoded
from fairtrial.arena.model.adequacy import NullKind
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.sandbox import wire

LONGEST_LITERAL = 100_000
_NEEDS = {
    NullKind.CONSTANT: "not results",
    NullKind.EMPTY: "not results",
    NullKind.LAST_RESULT: "True",
}
"""When the original is called; never, by default."""
_ANSWERS = {
    NullKind.RAISE: "_fairtrial_raise(RuntimeError('a null candidate was called'))",
    NullKind.CONSTANT: "_fairtrial_give(results[0])",
    NullKind.EMPTY: "_fairtrial_empty(results[0])",
    NullKind.NONE: "None",
    NullKind.FIRST_ARGUMENT: "([*args[skipped:], *kwargs.values()] + [None])[0]",
    NullKind.LAST_RESULT: "_fairtrial_give(results[max(len(results) - 2, 0)])",
}
# Runs in the project's Python, 3.8 or newer. Iterators are kept as lists, to be given again.
_TEMPLATE = """

def _fairtrial_raise(error):
    raise error


def _fairtrial_give(outcome):
    kind, value = outcome
    if kind == "raised":
        raise value
    return iter(value) if kind == "iterator" else value


def _fairtrial_empty(outcome):
    kind, value = outcome
    if kind != "result":
        return iter(()) if kind == "iterator" else None
    try:
        return type(value)()
    except Exception:
        pass
    try:
        return value[:0]
    except Exception:
        return None


def _fairtrial_null(owner, name):
    import copy
    import functools
    import inspect
    import itertools

    raw = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
    is_static = isinstance(raw, (classmethod, staticmethod))
    original = getattr(owner, name)
    skipped = int(isinstance(owner, type) and not is_static)
    results = []

    def keep(value):
        if hasattr(type(value), "__next__"):
            results.append(("iterator", list(itertools.islice(value, 10000))))
        else:
            results.append(("result", value))

    def copied(values):
        try:
            return copy.deepcopy(values)
        except Exception:
            return values

    if inspect.iscoroutinefunction(original):

        async def null(*args, **kwargs):
            if {needs}:
                try:
                    keep(await original(*copied(args), **copied(kwargs)))
                except Exception as error:
                    results.append(("raised", error))
            return {answer}

    else:

        def null(*args, **kwargs):
            if {needs}:
                try:
                    keep(original(*copied(args), **copied(kwargs)))
                except Exception as error:
                    results.append(("raised", error))
            return {answer}

    try:
        functools.update_wrapper(null, original)
        del null.__wrapped__
    except Exception:
        pass
    setattr(owner, name, staticmethod(null) if is_static else null)


_fairtrial_null({owner}, {name!r})
"""


def make_null(top: Path, definition: Definition, kind: NullKind, result: str = "") -> Changes:
    """Return the changes that replace a function by a null candidate of this kind.

    top: the tree of the base
    result: the base's first result as a literal; without it, a constant null candidate returns the
        first result of each process
    """
    owner, _, name = definition.name.rpartition(".")
    is_literal = kind == NullKind.CONSTANT and bool(result)
    appended = _TEMPLATE.format(
        needs="False" if is_literal else _NEEDS.get(kind, "False"),
        answer=result if is_literal else _ANSWERS[kind],
        owner=owner or "__import__('sys').modules[__name__]",
        name=name,
    )
    content = (top / definition.path).read_bytes() + appended.encode("utf-8")
    return change_file(definition.path, content)


def spell_literal(result: Encoded) -> str:
    """Return an encoded value as a Python literal; empty if it is too long or has none."""
    try:
        value = wire.decode(result)
        text = repr(value)
        is_same = len(text) <= LONGEST_LITERAL and ast.literal_eval(text) == value
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""
    return text if is_same and text.isascii() else ""


def change_file(path: str, content: bytes) -> Changes:
    """Return changes to one file that no candidate's digest equals."""
    digest = hashlib.sha256(f"{path}\0".encode() + content).hexdigest()
    return Changes(MappingProxyType({path: FileState(content)}), f"audit: {digest}")
