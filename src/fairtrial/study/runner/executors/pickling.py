"""Pickle work for worker processes that are spawned, and report what can't be pickled."""

from __future__ import annotations

import io
import os
import pickle
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.problems.moved_paths import restore_path
from fairtrial.study.protocols import Work

HINT = (
    "put it in a module and name it `module:callable`, or use --executor serial or --executor "
    "threads"
)
PATH_TYPE = type(Path())


@dataclass(frozen=True)
class PickledWork:
    """Pickled work.

    work: the pickle
    path: the module search path that unpickling needs
    """

    work: bytes
    path: tuple[str, ...]
    copies: tuple[str, tuple[str, ...]] = ("", ())
    """The arguments of `use_copies`, on another machine."""


def check_reachable(work: Work) -> None:
    """Raise one `StudyError` that names everything that a spawned worker could not import."""
    pickle_work(work)


def pickle_work(work: Work) -> PickledWork:
    """Return pickled work; raises `StudyError` like `check_reachable`."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        pickler.dump(work)
    except Exception as error:  # pickle raises whatever an object's own methods do
        pickler.mistakes.append(Mistake((), f"can't reach a worker process: {error}", HINT))
    if pickler.mistakes:
        raise StudyError(pickler.mistakes)
    folders = dict.fromkeys(filter(None, map(_find_folder, pickler.modules)))
    return PickledWork(buffer.getvalue(), (*folders, *map(str, sys.path)))


class _Pickler(pickle.Pickler):
    """A pickler that skips what can't be pickled and collects it as mistakes."""

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.mistakes: list[Mistake] = []
        self.modules: dict[str, None] = {}

    def reducer_override(self, item: Any) -> Any:
        if type(item) is PATH_TYPE:
            return restore_path, (str(item), os.path.realpath(item))
        if not isinstance(item, (FunctionType, type)):
            return NotImplemented
        module = str(item.__module__)
        if module == "__main__" or "<" in item.__qualname__:
            self.mistakes.append(Mistake((), _describe(item), HINT))
            return str, ()
        self.modules[module.partition(".")[0]] = None
        return NotImplemented


def _describe(item: Any) -> str:
    kind = "class" if isinstance(item, type) else "function"
    where = f"in {item.__module__}"
    if isinstance(item, FunctionType):
        code = item.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
    return (
        f"{kind} {item.__qualname__} ({where}) can't reach a worker process: it is not at the top "
        "of a module that the worker can import"
    )


def _find_folder(module_name: str) -> str | None:
    """Return the folder of a module that isn't on the path, such as the study's folder."""
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    spec = PathFinder.find_spec(module_name)
    if spec is not None and spec.origin == file:
        return None
    path = Path(file)
    return str(path.parent.parent if path.stem == "__init__" else path.parent)
