"""Lookup of plug-ins by name (`kind: lhs`) and of objects by reference (`use: module:name`).

Plug-ins, built-in ones included, are entry points of groups ``fairtrial.designs`` and so on.
Listing their names imports none of them.
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
def _find_entry_points(group: str) -> dict[str, list[EntryPoint]]:
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=f"fairtrial.{group}"):
        points.setdefault(point.name, []).append(point)
    return points


def names(group: str) -> tuple[str, ...]:
    """Return the names of all plug-ins of a group (``designs``), sorted."""
    return tuple(sorted(_find_entry_points(group)))


def load(group: str, name: str) -> type[Any]:
    """Import the plug-in class of that name.

    Raises `PluginError` if there is none (with the known names), if several packages register it,
    if it can't be imported, or if it is not a dataclass.
    """
    label = f"{group.removesuffix('s')} '{name}'"
    if name not in _find_entry_points(group):
        raise PluginError(Mistake((), f"there is no {label}", did_you_mean(name, names(group))))
    points = _find_entry_points(group)[name]
    targets = sorted({point.value for point in points})
    if len(targets) > 1:
        message = f"{label} is claimed by several packages: {', '.join(targets)}"
        raise PluginError(Mistake((), message, "uninstall all but one of them"))
    try:
        plugin = points[0].load()
    except (Exception, SystemExit) as error:
        raise PluginError(Mistake((), f"{label} can't be loaded: {error!r}")) from error
    if not (isinstance(plugin, type) and dataclasses.is_dataclass(plugin)):
        raise PluginError(Mistake((), f"{label} is not a dataclass ({targets[0]})"))
    return plugin


def load_reference(reference: str, folder: Path | None = None) -> Callable[..., Any]:
    """Import the object that ``module:name`` refers to: a callable, or an object with `run`.

    folder: searched for the module before `sys.path`

    Raises `PluginError` if there is no such object, or it is neither.
    """
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise PluginError(Mistake((), f"expected module:callable, got '{reference}'"))
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout may be JSON for another program
            module = _import_module(module_name, folder.resolve() if folder else None)
    except (Exception, SystemExit) as error:
        searched = f" (looked in {folder} first)" if folder else ""
        kind = type(error).__name__
        raise PluginError(
            Mistake((), f"module '{module_name}' can't be imported{searched}: {kind}: {error}")
        ) from error
    target: Any = module
    for part in name.split("."):
        if not hasattr(target, part):
            raise PluginError(
                Mistake(
                    (),
                    f"module '{module_name}' has no '{name}'",
                    did_you_mean(part, _list_public_names(target)),
                )
            )
        target = getattr(target, part)
    if not callable(target) and not callable(getattr(target, "run", None)):
        raise PluginError(Mistake((), f"'{reference}' is not callable"))
    return typing.cast("Callable[..., Any]", target)


def _list_public_names(owner: Any) -> list[str]:
    """Return the public attributes of a module or class that are not modules."""
    return [
        name
        for name in dir(owner)
        if not name.startswith("_") and not isinstance(getattr(owner, name, None), ModuleType)
    ]


@contextlib.contextmanager
def importable(folder: Path | None) -> Iterator[None]:
    """Put a folder on `sys.path` during the block: agents may import from it while they run."""
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
def _import_module(name: str, folder: Path | None) -> ModuleType:
    """Import a module, preferring the one in `folder`."""
    if folder is None:
        return importlib.import_module(name)
    top = name.partition(".")[0]
    spec, imported = PathFinder.find_spec(top, [str(folder)]), sys.modules.get(top)
    is_taken = spec and imported and getattr(imported, "__file__", None) != spec.origin
    sys.path.insert(0, str(folder))
    try:
        with _hidden_modules(top) if is_taken else contextlib.nullcontext():
            return importlib.import_module(name)
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


@contextlib.contextmanager
def _hidden_modules(top: str) -> Iterator[None]:
    """Hide imported modules of a top-level name during the block.

    Two studies may each have their own `rules.py`.
    """

    def pop_modules() -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name == top or name.startswith(f"{top}.")]
        return {name: sys.modules.pop(name) for name in names}

    hidden = pop_modules()
    try:
        yield
    finally:
        pop_modules()
        sys.modules.update(hidden)
