"""Location of a command-line agent's program, and whether the sandbox can see and run it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from fairtrial.core import Mistake, StudyError
from fairtrial.optimize.option_paths import resolve_option_path
from fairtrial.optimize.proposers.command.agent_run import PYTHON, find_program_word
from fairtrial.sandbox import system


def find_program(argv: tuple[str, ...], project: Path | None = None) -> Path | None:
    """Return the path of the program; None for one that is part of the project.

    Raise a `StudyError` if it isn't there.

    project: the project's folder, to look for its own programs; None if that isn't known
    """
    place = find_program_word(argv)
    word = argv[place]
    if word.startswith(PYTHON):
        return None
    if "/" in word:
        path = resolve_option_path(Path(word), Path(), "argv")
        if not path.is_absolute():
            if project is not None:
                where = f" in the project ({project})"
                _check_executable(project / path, word, where, place)
            return None
        _check_executable(path, word, "", place)
        return path
    path_found = shutil.which(word)
    if path_found is None:
        message = f"there is no program '{word}' on the path"
        raise StudyError(Mistake(("argv", place), message, "install it, or write its whole path"))
    return Path(path_found).absolute()


def check_script(argv: tuple[str, ...], project: Path) -> None:
    """Raise a `StudyError` if the problem's Python is to run a script that isn't there."""
    place = find_program_word(argv) + 1
    script = "".join(argv[place : place + 1])
    is_given = argv[place - 1] == PYTHON and re.fullmatch(r"[^-{].*\.py", script)
    if is_given and not os.access(project / script, os.F_OK):
        message = f"there is no script '{script}' in the project ({project})"
        raise StudyError(Mistake(("argv", place), message, "write its whole path"))


def _check_executable(path: Path, word: str, where: str, place: int) -> None:
    """Raise a `StudyError` if the path is missing or can't be run."""
    if not os.access(path, os.F_OK):  # or its folder can't be read
        hint = "write its whole path" if where else "install it, or name where it is"
        raise StudyError(Mistake(("argv", place), f"there is no program '{word}'{where}", hint))
    if path.is_dir() or not os.access(path, os.X_OK):
        hint = "name the program itself" if path.is_dir() else "`chmod +x` lets it be run"
        message = f"'{word}'{where} is no program that can be run"
        raise StudyError(Mistake(("argv", place), message, hint))


def find_existing(path: Path, folder: Path, place: tuple[str | int, ...]) -> Path:
    """Return an absolute path; raise a `StudyError` at `place` if nothing is there."""
    absolute = resolve_option_path(path, folder, *map(str, place)).resolve()
    if not absolute.exists():
        raise StudyError(Mistake(place, f"there is no {absolute}"))
    return absolute


def is_visible(program: Path, readable: list[Path]) -> bool:
    """Return whether the sandbox sees a program without it being mounted by itself."""
    visible = [*readable, *(Path(target) for _, target in system.system_mounts(False))]
    return any(program.is_relative_to(folder) for folder in visible)


def follow_link(link: Path, readable: list[Path]) -> Path | None:
    """Return the visible path that a link leads to; None if there is none.

    Many programs look for their parts beside the file that is run.
    """
    while True:
        place = link.parent.resolve() / link.name
        if is_visible(place, readable):
            return place
        if not place.is_symlink():
            return None
        link = Path(os.path.normpath(place.parent / place.readlink()))


def is_script(program: Path) -> bool:
    """Return whether a program is a script with an interpreter line."""
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:  # scripts can't be run without being read
        return False
