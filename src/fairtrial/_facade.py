"""Lazy facades: a package's names are listed in its `__init__.pyi` and imported on first use.

The stub is what type checkers read, so names are written down once. `import fairtrial` and
`fairtrial --help` import nothing that they don't need.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose stub lies beside its `__init__.py`."""
    homes: dict[str, tuple[str, str]] = {}

    def load_homes() -> dict[str, tuple[str, str]]:
        if not homes:
            homes.update(read_stub(Path(file).with_suffix(".pyi")))
        return homes

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(load_homes())
        if name.startswith("__") or name not in load_homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = homes[name]
        if module == package:  # a submodule
            return import_module(f"{package}.{original}")
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *load_homes()})

    return get, list_names


def read_stub(path: Path) -> dict[str, tuple[str, str]]:
    """Return the names that a stub re-exports, each with its module and its name there."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
