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
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from fairtrial.errors import Mistake, PluginError, did_you_mean


@functools.cache
def _registered(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"fairtrial.{group}")}


def names(group: str) -> tuple[str, ...]:
    """The names of all plug-ins of a group (``designs``), in alphabetical order."""
    return tuple(sorted(_registered(group)))


def load(group: str, name: str) -> type[Any]:
    """The plug-in class of that name; raises `PluginError` with the known names."""
    registered = _registered(group)
    if name not in registered:
        raise PluginError(
            Mistake(
                (), f"there is no {group.rstrip('s')} '{name}'", did_you_mean(name, names(group))
            )
        )
    try:
        loaded = registered[name].load()
    except Exception as error:
        raise PluginError(
            Mistake((), f"{group.rstrip('s')} '{name}' can't be loaded: {error}")
        ) from error
    if not (isinstance(loaded, type) and dataclasses.is_dataclass(loaded)):
        raise PluginError(
            Mistake(
                (), f"{group.rstrip('s')} '{name}' is not a dataclass ({registered[name].value})"
            )
        )
    return loaded


def load_reference(reference: str, folder: Path | None = None) -> Callable[..., Any]:
    """The callable that ``module:name`` stands for; `folder` is searched first."""
    module_name, _, name = reference.partition(":")
    try:
        with _importable(folder):
            module = importlib.import_module(module_name)
    except Exception as error:
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
                    (), f"module '{module_name}' has no '{name}'", did_you_mean(part, dir(found))
                )
            )
        found = getattr(found, part)
    if not callable(found):
        raise PluginError(Mistake((), f"'{reference}' is not callable"))
    return typing.cast("Callable[..., Any]", found)


@contextlib.contextmanager
def _importable(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder.resolve()))
