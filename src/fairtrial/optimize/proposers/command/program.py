"""Where a command-line agent is on this machine, and whether it can be run and seen."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from fairtrial.core import Mistake, StudyError, expand
from fairtrial.optimize.proposers.command.agent_run import PYTHON, find_program_word
from fairtrial.sandbox import system_mounts


def find_program(argv: tuple[str, ...], project: Path | None = None) -> Path | None:
    """Where a program is on this machine; None for one that comes with the project.

    project: where one that comes with it has to be; not looked for if that isn't known
    """
    place = find_program_word(argv)
    word = argv[place]
    if word.startswith(PYTHON):
        return None
    if "/" in word:
        path = expand(Path(word), Path(), "argv")
        if not path.is_absolute():
            if project is not None:
                where = f" in the project ({project})"
                _refuse_unless_program(project / path, word, where, place)
            return None
        _refuse_unless_program(path, word, "", place)
        return path
    found = shutil.which(word)
    if found is None:
        message = f"there is no program '{word}' on the path"
        raise StudyError(Mistake(("argv", place), message, "install it, or write its whole path"))
    return Path(found).absolute()


def refuse_missing_script(argv: tuple[str, ...], project: Path) -> None:
    """Raise `StudyError` if the problem's Python is to run a script that the project hasn't."""
    place = find_program_word(argv) + 1
    script = "".join(argv[place : place + 1])
    is_given = argv[place - 1] == PYTHON and re.fullmatch(r"[^-{].*\.py", script)
    if is_given and not os.access(project / script, os.F_OK):
        message = f"there is no script '{script}' in the project ({project})"
        raise StudyError(Mistake(("argv", place), message, "write its whole path"))


def _refuse_unless_program(path: Path, word: str, where: str, place: int) -> None:
    """Raise `StudyError` for what isn't there, or can't be run."""
    if not os.access(path, os.F_OK):  # or it lies where we may not look
        hint = "write its whole path" if where else "install it, or name where it is"
        raise StudyError(Mistake(("argv", place), f"there is no program '{word}'{where}", hint))
    if path.is_dir() or not os.access(path, os.X_OK):
        hint = "name the program itself" if path.is_dir() else "`chmod +x` lets it be run"
        message = f"'{word}'{where} is no program that can be run"
        raise StudyError(Mistake(("argv", place), message, hint))


def find_existing(path: Path, folder: Path, place: tuple[str | int, ...]) -> Path:
    found = expand(path, folder, *map(str, place)).resolve()
    if not found.exists():
        raise StudyError(Mistake(place, f"there is no {found}"))
    return found


def is_shown(program: Path, readable: list[Path]) -> bool:
    """Whether it can be seen without being shown by itself."""
    shown = [*readable, *(Path(target) for _, target in system_mounts(False))]
    return any(program.is_relative_to(folder) for folder in shown)


def follow(link: Path, readable: list[Path]) -> Path | None:
    """Where it leads to among what is shown: many look for their parts beside where they run."""
    while True:
        place = link.parent.resolve() / link.name
        if is_shown(place, readable):
            return place
        if not place.is_symlink():
            return None
        link = Path(os.path.normpath(place.parent / place.readlink()))


def is_script(program: Path) -> bool:
    """Whether it is one that another program runs, and mostly a way into what lies beside it."""
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:  # scripts can't be run without being read
        return False
