"""Selection of the tests to run by their names, for timing. PYTEST_DONT_REWRITE"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Iterable

import pytest

VARIABLE = "FAIRTRIAL_ONLY"
"""The environment variable with the descriptor from which the names are read, as a JSON list."""
NAMES_OF_WORKER = "fairtrial_only"


def read_names() -> list[str] | None:
    """Read the names of the tests to run, and remove the variable; None for all tests."""
    number = os.environ.pop(VARIABLE, "")
    if not number:
        return None
    with open(int(number), "rb", closefd=False) as names:
        return list(map(str, json.loads(names.read())))


class NamedTestSelector:
    """Deselects all tests except the named ones.

    Pytest's own arguments can't name every test: ids may hold any text, and of long ones only the
    beginning and a hash are known.

    names: the names of the tests to run
    name_test: returns the name of a test by its id
    """

    def __init__(self, names: Iterable[str], name_test: Callable[[str], str]) -> None:
        self.names = frozenset(names)
        self.name_test = name_test

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        kept = [item for item in items if self._name(item) in self.names]
        if len(kept) < len(items):
            deselected = [item for item in items if self._name(item) not in self.names]
            items[:] = kept
            config.hook.pytest_deselected(items=deselected)

    def _name(self, item: Any) -> str:
        """Return a test's name as the parent process reads it."""
        name = self.name_test(item.nodeid)
        return name.encode("utf-8", "backslashreplace").decode("utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[NAMES_OF_WORKER] = sorted(self.names)


def narrow_collection(config: Any, names: Iterable[str]) -> None:
    """Let pytest collect only the files of these tests, if its arguments can name them.

    Otherwise all files are collected, which is slower, but the same tests are run.
    """
    root = Path(str(getattr(config, "rootpath", None) or config.rootdir))
    files = list(dict.fromkeys(str(root / name.partition("::")[0]) for name in names))
    # pytest takes a bracket for the start of a test's parameters.
    if all(os.path.isfile(file) and "[" not in file for file in files):
        config.args = files


def select_tests(config: Any, names: list[str] | None, name_test: Callable[[str], str]) -> None:
    """Let pytest, and its xdist workers, run only the tests with these names; all if None."""
    selected = getattr(config, "workerinput", {}).get(NAMES_OF_WORKER, names)
    if selected is not None:
        narrow_collection(config, selected)
        config.pluginmanager.register(NamedTestSelector(selected, name_test), "fairtrial-selector")
