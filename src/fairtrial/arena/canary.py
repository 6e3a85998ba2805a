"""The canary: a base that is broken on purpose must fail, or something else is being judged.

A project that is installed can win over the slot; then every candidate would pass, since it is the
user's own code that runs. So before any verdict a copy of the base whose editable files can't be
imported (or compiled) has to be rejected by every check that runs the project's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from fairtrial.arena.stage import Stage
from fairtrial.arena.trial import Trial
from fairtrial.errors import Mistake, StudyError
from fairtrial.model.candidates import Changes, FileState

WORDS = "fairtrial's canary: this file was imported"
_POISONS = {
    ".py": f"\n\nraise ImportError({WORDS!r})\n",
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"), f'\n#error "{WORDS}"\n'),
}


def make_canary(files: Mapping[str, FileState]) -> Changes:
    """The changes that make each editable file of the base unusable, where we know how to."""
    broken: dict[str, FileState | None] = {}
    for path, state in files.items():
        poison = _POISONS.get(PurePosixPath(path).suffix)
        if poison is not None and not state.is_link:
            broken[path] = FileState(state.content + poison.encode(), state.executable)
    return Changes(MappingProxyType(broken), "canary")


def refuse_bystander(trial: Trial, stage: Stage, editable: Iterable[str]) -> StudyError:
    """What to say of a check that holds although no editable file can be imported."""
    paths = sorted(path for path in editable if path.endswith(".py"))
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
            f"({', '.join(paths[:3]) or 'none of them is Python'})"
        )
    return StudyError(Mistake((), message, hint))


def find_foreign(loaded: Iterable[str], stage: Stage, editable: Iterable[str]) -> list[str]:
    """Files that were imported instead of editable ones: other copies of the same modules."""
    own, tails = set(), set()
    for path in editable:
        own.add(f"{stage.seen}/{path}")
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
