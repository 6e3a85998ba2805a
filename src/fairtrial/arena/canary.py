"""Canaries: copies of the base, broken on purpose, that every check must reject.

An installed copy of the project can take precedence over the slot. Then the checks run the
installed code, and every candidate passes. So before any verdict a copy of the base whose editable
files can't be imported must be rejected by every check that runs the project's code. So must a copy
whose files can't be compiled: otherwise an extension module that was built earlier is in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from fairtrial.arena.build import BUILD_VARIABLE
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.stage import Stage
from fairtrial.core import Mistake, StudyError

WORDS = "fairtrial's canary: this file was used"
IMPORTED, COMPILED = "imported", "compiled"
_WAYS = {".py": IMPORTED, **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"), COMPILED)}
"""How source files are used, by their suffix."""
_POISONS = {
    # A build that imports the project says nothing about what the checks import.
    IMPORTED: (
        f"\n\nif {BUILD_VARIABLE!r} not in __import__('os').environ:\n"
        f"    raise ImportError({WORDS!r})\n"
    ),
    COMPILED: f'\n#error "{WORDS}"\n',
}


def make_canaries(files: Mapping[str, FileState]) -> dict[str, Changes]:
    """Return changes that make all editable files unusable, for each way of using them.

    files: the editable files of the base
    """
    canaries = {}
    for way, poison in _POISONS.items():
        broken: dict[str, FileState | None] = {
            path: FileState(state.content + poison.encode(), state.executable)
            for path, state in files.items()
            if _WAYS.get(PurePosixPath(path).suffix) == way and not state.is_link
        }
        if broken:
            canaries[way] = Changes(MappingProxyType(broken), f"canary: {way}")
    return canaries


def make_canary_error(
    check: PreparedCheck, stage: Stage, way: str, broken: Iterable[str]
) -> StudyError:
    """Return the error for a check that passes although the `broken` files can't be used.

    way: `IMPORTED` or `COMPILED`
    """
    paths = sorted(broken)
    if way == COMPILED:
        example = f"e.g. {paths[0]}"
        message = f"{check.label} passes although no editable file can be compiled ({example})"
        hint = "name the command that compiles them in build:, or take them out of editable:"
        return StudyError(Mistake((), message, hint))
    foreign = find_foreign(check.loaded, stage, paths)
    if foreign:
        message = (
            f"{check.label} doesn't run the candidates' code: it imports {foreign[0]}, which is "
            "another copy of what is judged"
        )
        hint = "set import_roots: to the folder that imports start from, or uninstall that copy"
    else:
        message = f"{check.label} passes although every editable file raises when it is imported"
        hint = (
            "check what it runs, and whether editable: names the files that it uses "
            f"({', '.join(paths[:3])})"
        )
    return StudyError(Mistake((), message, hint))


def find_foreign(loaded: Iterable[str], stage: Stage, editable: Iterable[str]) -> list[str]:
    """Return imported files that are other copies of editable modules.

    loaded: all imported files
    """
    own, tails = set[str](), set[str]()
    for path in editable:
        own.add(f"{stage.seen}/{path}")
        parts = path.split("/")
        tails.update(f"/site-packages/{'/'.join(parts[start:])}" for start in range(len(parts)))
        for root in stage.import_roots:
            prefix = "" if root in (".", "") else root.rstrip("/") + "/"
            if path.startswith(prefix):
                tails.add(_tail(path[len(prefix) :]))
    # Where the sandbox can't relocate slots, the base's own runs saw other slots than this one.
    slots = f"{stage.slot.parent}/"
    foreign = {file for file in loaded if file not in own and not file.startswith(slots)}
    return sorted(file for file in foreign if any(file.endswith(tail) for tail in tails))


def _tail(module: str) -> str:
    """Return how the path of another copy of a module ends; a bare file name is too common."""
    return f"/{module}" if "/" in module else f"/site-packages/{module}"
