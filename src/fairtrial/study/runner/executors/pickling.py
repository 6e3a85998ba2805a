"""Whether what is to be done can reach a worker that starts afresh."""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType
from typing import Any

from fairtrial.core import Mistake, StudyError
from fairtrial.study.protocols import Work

HINT = (
    "put it in a module and name it `module:callable`, or use --executor serial or --executor "
    "threads"
)


@dataclass(frozen=True)
class Luggage:
    """Work as it travels, and the path that its modules are found on at the other end."""

    work: bytes
    path: tuple[str, ...]


def check_reachable(work: Work) -> None:
    """Raise one `StudyError` that names all that a fresh worker could not get hold of."""
    pack_work(work)


def pack_work(work: Work) -> Luggage:
    """Work made ready to travel; raises `StudyError` as `check_reachable` does."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        pickler.dump(work)
    except Exception as error:  # pickle raises whatever an object's own methods do
        pickler.mistakes.append(Mistake((), f"can't reach a worker process: {error}", HINT))
    if pickler.mistakes:
        raise StudyError(pickler.mistakes)
    folders = dict.fromkeys(filter(None, map(_folder_of, pickler.modules)))
    return Luggage(buffer.getvalue(), (*folders, *sys.path))


class _Pickler(pickle.Pickler):
    """Goes on after what can't travel, so that all of it can be named."""

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.mistakes: list[Mistake] = []
        self.modules: dict[str, None] = {}

    def reducer_override(self, item: Any) -> Any:
        if not isinstance(item, (FunctionType, type)):
            return NotImplemented
        module = str(item.__module__)
        if module == "__main__" or "<" in item.__qualname__:
            self.mistakes.append(Mistake((), _complaint(item), HINT))
            return str, ()
        self.modules[module.partition(".")[0]] = None
        return NotImplemented


def _complaint(item: Any) -> str:
    what = "class" if isinstance(item, type) else "function"
    where = f"in {item.__module__}"
    if isinstance(item, FunctionType):
        code = item.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
    return (
        f"{what} {item.__qualname__} ({where}) can't reach a worker process: it is not at the top "
        "of a module that the worker can import"
    )


def _folder_of(module_name: str) -> str | None:
    """Where a module was found, if that is not on the path (it may be a study's own folder)."""
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    found = PathFinder.find_spec(module_name)
    if found is not None and found.origin == file:
        return None
    path = Path(file)
    return str(path.parent.parent if path.stem == "__init__" else path.parent)
