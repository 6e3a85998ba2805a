"""What can be reached from what is timed: whatever else is changed gains nothing.

By names alone, so that it is rather too much: who mentions a name reaches all that is called so.
Who mentions a class reaches what it runs by itself, special methods for instance; other methods
need their own names. Where others may call them, all methods of a class are reached with it: if a
base isn't among the files, attributes are asked for by names that can't be told, or code that
isn't among the files may get hold of an object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairtrial_codemod.reach.definitions import (
    Definition,
    is_quiet,
    read_definitions,
)
from fairtrial_codemod.reach.outside_names import ANY, find_modules, find_outsiders
from fairtrial_codemod.recipes import CodeSite as Site, Files

_CALL = re.compile(r"(?:.*: )?[\w.]+:([\w.]+)")
_CHECK = re.compile(r"[\w.]+:([\w.]+) must give .*")


def find_reachable(
    files: Files, timed: Sequence[str], checked: Sequence[str]
) -> frozenset[Site] | None:
    """The functions that can be reached from what is timed; None if that can't be said.

    timed: a line for each benchmark, ``name: module:function`` or a command
    checked: a line for each check; they count if nothing is timed
    """
    calls = [(_CALL if timed else _CHECK).fullmatch(line) for line in timed or checked]
    known = [each for each in calls if each is not None]
    if not known or (timed and len(known) < len(calls)):
        return None
    roots = [each[1].split(".") for each in known]
    by_name: dict[str, list[tuple[str, Definition]]] = {}
    for path in sorted(files):
        for each in read_definitions(files[path]):
            by_name.setdefault(each.name, []).append((path, each))
    if any(first not in by_name for first, *_ in roots):
        return None
    modules = find_modules(files)
    outsiders = {
        path: find_outsiders(path, text, modules, by_name.keys()) for path, text in files.items()
    }
    search = _Search({word for path in roots for word in path}, by_name, outsiders)
    return frozenset(search.reached) if search.run() else None


@dataclass(slots=True)
class _Search:
    """All that is reached so far.

    roots: the names that are called from outside
    by_name: what is defined, by its name, with its file
    outsiders: the names of each file that come from elsewhere
    reached: the functions
    texts: the texts that may be names
    classes: those whose methods are reached by their names only, so far
    is_dynamic: whether attributes are asked for by texts
    is_loose: whether methods may be called whose names nobody mentions
    """

    roots: set[str]
    by_name: dict[str, list[tuple[str, Definition]]]
    outsiders: dict[str, set[str]]
    reached: set[Site] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    classes: list[tuple[str, Definition]] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    is_dynamic: bool = False
    is_loose: bool = False

    def run(self) -> bool:
        """Find it all; whether that can be said."""
        self.todo, self.seen = ["", *sorted(self.roots)], {"", *self.roots}
        while self.todo:
            for path, each in self.by_name.get(self.todo.pop(), ()):
                if not self._visit(path, each):
                    return False
            if not self.todo and self.is_loose:
                pending, self.classes = self.classes, []
                if not all(self._visit(path, each) for path, each in pending):
                    return False
            if not self.todo and self.is_dynamic:
                self._add(self.texts)
        return True

    def _visit(self, path: str, each: Definition) -> bool:
        if each.whole is not None and (self.is_loose or not self._is_told(each)):
            each = each.whole
        said = each.mentions
        if each.is_open or (said.is_dynamic and each.name in self.roots):
            return False  # a name that is given from outside may be any
        if each.whole is not None:
            self.classes.append((path, each))
        self.reached |= {(path, scope) for scope in each.scopes}
        self.texts |= said.texts
        self.is_dynamic = self.is_dynamic or said.is_dynamic
        strange = self.outsiders[path]
        is_strange = ANY in strange or not strange.isdisjoint({each.name, *said.words})
        self.is_loose = self.is_loose or said.is_loose or is_strange
        built = {name for name in self.by_name if name.startswith(tuple(said.prefixes))}
        self._add(said.words | built)
        return True

    def _add(self, words: set[str] | frozenset[str]) -> None:
        self.todo += words - self.seen
        self.seen |= words

    def _is_told(self, each: Definition, depth: int = 9) -> bool:
        """Whether all that a class inherits is among the files, or calls none of its methods."""
        for base in each.bases:
            known = [other for _, other in self.by_name.get(base or "", ())]
            if not known and is_quiet(base):
                continue
            is_ours = bool(known) and base is not None and depth > 0
            if not is_ours or not all(
                other.whole is not None and self._is_told(other, depth - 1) for other in known
            ):
                return False
        return True
