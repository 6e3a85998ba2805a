"""Some tests instead of all that a command would run: for timing. PYTEST_DONT_REWRITE"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Iterable

import pytest

VARIABLE = "FAIRTRIAL_ONLY"
"""Names the descriptor that holds the tests' names, as a JSON list."""
NAMES_OF_WORKER = "fairtrial_only"


def read_names() -> list[str] | None:
    """The tests to run, taken out of the environment and of the descriptor; None for all."""
    number = os.environ.pop(VARIABLE, "")
    if not number:
        return None
    with open(int(number), "rb", closefd=False) as names:
        return list(map(str, json.loads(names.read())))


class Chooser:
    """Leaves out all tests but those that are named.

    Not by pytest's own arguments, which can't name each test: ids may hold anything, and long ones
    are known by their beginning only.
    """

    def __init__(self, names: Iterable[str], name_test: Callable[[str], str]) -> None:
        self.names = frozenset(names)
        self.name_test = name_test

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        kept = [item for item in items if self._name(item) in self.names]
        if len(kept) < len(items):
            left_out = [item for item in items if self._name(item) not in self.names]
            items[:] = kept
            config.hook.pytest_deselected(items=left_out)

    def _name(self, item: Any) -> str:
        """The test's name as our parent has read it."""
        name = self.name_test(item.nodeid)
        return name.encode("utf-8", "backslashreplace").decode("utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[NAMES_OF_WORKER] = sorted(self.names)


def narrow(config: Any, names: Iterable[str]) -> None:
    """Collect only the files that hold these tests, where pytest can be told so.

    Where it can't, all is collected as always: slower, but the same tests are run.
    """
    root = Path(str(getattr(config, "rootpath", None) or config.rootdir))
    files = list(dict.fromkeys(str(root / name.partition("::")[0]) for name in names))
    # pytest takes what comes after a bracket for a part of a test's name.
    if all(os.path.isfile(file) and "[" not in file for file in files):
        config.args = files


def choose(config: Any, names: list[str] | None, name_test: Callable[[str], str]) -> None:
    """See to it that only the tests with these names are run, in workers of xdist's, too."""
    given = getattr(config, "workerinput", {}).get(NAMES_OF_WORKER, names)
    if given is not None:
        narrow(config, given)
        config.pluginmanager.register(Chooser(given, name_test), "fairtrial-chooser")
