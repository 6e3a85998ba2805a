"""The canary: a base that is broken on purpose must fail, or something else is being judged.

A project that is installed can win over the slot; then every candidate would pass, since it is the
user's own code that runs. So before any verdict a copy of the base whose editable files can't be
imported has to be rejected by every check that runs the project's code; and another one whose files
can't be compiled, since an extension that was built at some time would pass for any candidate's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from fairtrial.arena.build import BUILD_VARIABLE
from fairtrial.arena.checks.prepared_check import Trial
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.stage import Stage
from fairtrial.core import Mistake, StudyError

WORDS = "fairtrial's canary: this file was used"
IMPORTED, COMPILED = "imported", "compiled"
_WAYS = {".py": IMPORTED, **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"), COMPILED)}
"""How files are used, by their ending."""
_POISONS = {
    # A build that imports the project says nothing about what the checks import.
    IMPORTED: (
        f"\n\nif {BUILD_VARIABLE!r} not in __import__('os').environ:\n"
        f"    raise ImportError({WORDS!r})\n"
    ),
    COMPILED: f'\n#error "{WORDS}"\n',
}


def make_canaries(files: Mapping[str, FileState]) -> dict[str, Changes]:
    """The changes that make all editable files of the base unusable, for each way of using them."""
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


def refuse_bystander(trial: Trial, stage: Stage, way: str, broken: Iterable[str]) -> StudyError:
    """What to say of a check that holds although no editable file can be imported, or compiled."""
    paths = sorted(broken)
    if way == COMPILED:
        message = f"{trial.label} holds although no editable file can be compiled ({paths[0]}, say)"
        hint = "name the command that compiles them in build:, or take them out of editable:"
        return StudyError(Mistake((), message, hint))
    foreign = find_foreign(trial.loaded, stage, paths)
    if foreign:
        message = (
            f"{trial.label} doesn't run the candidates' code: it imports {foreign[0]}, which is "
            "another copy of what is judged"
        )
        hint = "set import_roots: to the folder that imports start from, or uninstall that copy"
    else:
        message = f"{trial.label} holds although every editable file raises when it is imported"
        hint = (
            "check what it runs, and whether editable: names the files that it uses "
            f"({', '.join(paths[:3])})"
        )
    return StudyError(Mistake((), message, hint))


def find_foreign(loaded: Iterable[str], stage: Stage, editable: Iterable[str]) -> list[str]:
    """Files that were imported instead of editable ones: other copies of the same modules."""
    own, tails = set[str](), set[str]()
    for path in editable:
        own.add(f"{stage.seen}/{path}")
        parts = path.split("/")
        tails.update(f"/site-packages/{'/'.join(parts[start:])}" for start in range(len(parts)))
        for root in stage.import_roots:
            prefix = "" if root in (".", "") else root.rstrip("/") + "/"
            if path.startswith(prefix):
                tails.add(_tail(path[len(prefix) :]))
    # Where slots can't be moved, the base's own runs saw other slots than this one.
    slots = f"{stage.slot.parent}/"
    others = {file for file in loaded if file not in own and not file.startswith(slots)}
    return sorted(file for file in others if any(file.endswith(tail) for tail in tails))


def _tail(module: str) -> str:
    """How another copy of a module ends; a name alone is too common to tell anything."""
    return f"/{module}" if "/" in module else f"/site-packages/{module}"
