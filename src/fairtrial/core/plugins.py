"""Names to objects: what `kind: lhs` or `use: my_agent` in a study refers to.

Plug-ins register as entry points (group ``fairtrial.designs``, ...). Built-ins register the same
way. Listing the names imports nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import sys
import typing
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from fairtrial.core.errors import Mistake, PluginError, did_you_mean


@functools.cache
def _registered(group: str) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=f"fairtrial.{group}"):
        found.setdefault(point.name, []).append(point)
    return found


def names(group: str) -> tuple[str, ...]:
    """The names of all plug-ins of a group (``designs``), in alphabetical order."""
    return tuple(sorted(_registered(group)))


def load(group: str, name: str) -> type[Any]:
    """The plug-in class of that name; raises `PluginError` with the known names."""
    what = f"{group.removesuffix('s')} '{name}'"
    if name not in _registered(group):
        raise PluginError(Mistake((), f"there is no {what}", did_you_mean(name, names(group))))
    point, *others = _registered(group)[name]
    values = sorted({point.value, *(other.value for other in others)})
    if len(values) > 1:
        message = f"{what} is claimed by several packages: {', '.join(values)}"
        raise PluginError(Mistake((), message, "uninstall all but one of them"))
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:
        raise PluginError(Mistake((), f"{what} can't be loaded: {error!r}")) from error
    if not (isinstance(loaded, type) and dataclasses.is_dataclass(loaded)):
        raise PluginError(Mistake((), f"{what} is not a dataclass ({point.value})"))
    return loaded


def load_reference(reference: str, folder: Path | None = None) -> Callable[..., Any]:
    """What ``module:name`` stands for, a callable or an agent with `run`; `folder` goes first."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise PluginError(Mistake((), f"expected module:callable, got '{reference}'"))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # ours may be JSON that somebody reads
            module = _import(module_name, folder.resolve() if folder else None)
    except (Exception, SystemExit) as error:
        place = f" (looked in {folder} first)" if folder else ""
        kind = type(error).__name__
        raise PluginError(
            Mistake((), f"module '{module_name}' can't be imported{place}: {kind}: {error}")
        ) from error
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise PluginError(
                Mistake(
                    (), f"module '{module_name}' has no '{name}'", did_you_mean(part, _own(found))
                )
            )
        found = getattr(found, part)
    if not callable(found) and not callable(getattr(found, "run", None)):
        raise PluginError(Mistake((), f"'{reference}' is not callable"))
    return typing.cast("Callable[..., Any]", found)


def _own(found: Any) -> list[str]:
    """What somebody may mean by a name in a module or class: no inner workings, no imports."""
    return [
        name
        for name in dir(found)
        if not name.startswith("_") and not isinstance(getattr(found, name, None), ModuleType)
    ]


@contextlib.contextmanager
def importable(folder: Path | None) -> Iterator[None]:
    """Lets modules of a folder be imported meanwhile: agents may do so while they run."""
    entry = None if folder is None else str(folder.resolve())
    if entry is None or entry in sys.path:
        yield
        return
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(entry)


@functools.cache
def _import(name: str, folder: Path | None) -> ModuleType:
    """The module of that name; the one in `folder` where there is one."""
    if folder is None:
        return importlib.import_module(name)
    top = name.partition(".")[0]
    here, known = PathFinder.find_spec(top, [str(folder)]), sys.modules.get(top)
    is_taken = here and known and getattr(known, "__file__", None) != here.origin
    sys.path.insert(0, str(folder))
    try:
        with _set_aside(top) if is_taken else contextlib.nullcontext():
            return importlib.import_module(name)
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


@contextlib.contextmanager
def _set_aside(top: str) -> Iterator[None]:
    """Makes room for another module of a name: two studies may each have their own `rules.py`."""

    def take() -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name == top or name.startswith(f"{top}.")]
        return {name: sys.modules.pop(name) for name in names}

    others = take()
    try:
        yield
    finally:
        take()
        sys.modules.update(others)
