"""The Python that a problem's checks run with: where it is, and what it needs to be seen."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import run_trusted

OLDEST = (3, 8)
"""What our own files, which run beside candidates, can be run with."""
ENVIRONMENTS = (".venv", "venv")
"""Where a project's virtual environment is looked for."""
PROBE_TIMEOUT_S = 60.0
_PROBE = Path(__file__).resolve().parent.parent / "sandbox" / "harness" / "probe.py"
# What a launcher such as pyenv's goes by; nothing that could be a secret.
_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "PYENV_ROOT", "PYENV_VERSION")
_REMEDY = "name a Python that works in `python`, or leave it out for fairtrial's own"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What a probe of it told.

    executable: as it is called; a link into a virtual environment stays one
    version: (3, 11, 7)
    folders: all that must be readable for it to run: prefixes, standard library, site-packages
        and whatever else is on its path, except the project itself
    has_pytest: whether it can import pytest
    """

    executable: Path
    version: tuple[int, int, int]
    folders: tuple[Path, ...]
    has_pytest: bool


async def probe_interpreter(problem: CodeProblem, top: Path) -> Interpreter:
    """Find the problem's Python and ask it what it needs.

    problem: with its paths relative to `top`
    top: the user's tree
    """
    project = top / problem.cwd
    if not project.is_dir():
        hint = "it is relative to the folder that `repo` names"
        raise StudyError(Mistake(("cwd",), f"no such folder: {project}", hint))
    program = find_program(problem.python, project, top)
    told = await _ask(program, project)
    version = tuple(told["version"])
    if version < OLDEST:
        found, oldest = (".".join(map(str, each)) for each in (version, OLDEST))
        raise _refusal(f"{program} is Python {found}; checks need {oldest} or newer")
    executable = Path(told["executable"] or program)
    return Interpreter(
        executable=executable,
        version=(version[0], version[1], version[2]),
        folders=needed_folders(executable, told, top, project),
        has_pytest=bool(told["has_pytest"]),
    )


def find_program(given: str, project: Path, top: Path) -> Path:
    """The Python to ask: the one that is named, else the project's own, else ours.

    given: a path (looked for in the project's folder, then at the top), or a program's name
    """
    folders = dict.fromkeys((project, top))
    if not given:
        usual = [folder / name / "bin/python" for folder in folders for name in ENVIRONMENTS]
        found = [program for program in usual if os.path.lexists(program)]
        return _checked(found[0]) if found else Path(sys.executable)
    program = shutil.which(given) if "/" not in given else None
    if program is not None:
        return Path(program)
    places = dict.fromkeys(folder / Path(given).expanduser() for folder in folders)
    for place in places:
        if os.path.lexists(place):
            return _checked(place)
    if "/" not in given:
        raise _refusal(f"there is no program '{given}' on the path")
    looked = " or ".join(map(str, places))
    hint = "make that environment (python -m venv .venv, then install what the project needs in it)"
    raise _refusal(f"there is no {looked}", f"{hint}, or leave `python` out for fairtrial's own")


def _checked(program: Path) -> Path:
    if not program.exists():
        raise _refusal(f"{program} is a link that leads nowhere", "make that environment anew")
    if program.is_dir():
        inside = program / "bin" / "python"
        hint = f"write {inside}" if inside.exists() else _REMEDY
        raise _refusal(f"{program} is a folder, not a program", hint)
    return program


def _refusal(message: str, hint: str = _REMEDY) -> StudyError:
    return StudyError(Mistake(("python",), message, hint))


async def _ask(program: Path, cwd: Path) -> Mapping[str, Any]:
    """What the probe prints; isolated, so that nothing of the project is imported."""
    import anyio

    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    try:
        with anyio.fail_after(PROBE_TIMEOUT_S):
            command = [str(program), "-I", str(_PROBE)]
            done = await run_trusted(command, cwd=cwd, env=variables)
    except TimeoutError:
        message = f"{program} didn't say within {PROBE_TIMEOUT_S:.0f} s what it needs"
        raise _refusal(message) from None
    except OSError as error:
        raise _refusal(f"{program} can't be run: {error.strerror or error}") from None
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        # Start-up files of an environment may print something, too.
        if line.startswith('{"fairtrial"'):
            told: dict[str, Any] = json.loads(line)
            return told
    said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[-300:]
    message = f"{program} can't be used: it ended with status {done.returncode}"
    raise _refusal(f"{message} and said: {said}" if said else message)


def needed_folders(
    executable: Path, told: Mapping[str, Any], top: Path, project: Path
) -> tuple[Path, ...]:
    """The fewest folders (in rare cases files) that hold all that an interpreter needs.

    An environment that lies in the project is needed; whatever else of the project is on its path,
    such as an editable install, is found in the slot instead. Never the home folder, the project
    or a folder around the home folder: what is needed of those is listed by itself.
    """
    home, top = Path(os.path.realpath(Path.home())), Path(os.path.realpath(top))
    project = Path(os.path.realpath(project))
    hidden = {home, *home.parents, top, project, *(set(project.parents) - set(top.parents))}
    prefixes = [Path(path) for path in told["prefixes"]]
    environments = {path for path in prefixes if path not in hidden and path.is_relative_to(top)}
    vital = [*prefixes, *map(Path, told["libraries"]), *_link_folders(executable)]
    # The prefix itself may be hidden; this file makes it one.
    vital.extend(path / "pyvenv.cfg" for path in prefixes)
    others = (Path(path) for path in told["paths"])
    needed = {
        *(each for path in vital for each in (path, Path(os.path.realpath(path)))),
        *(each for path in others for each in _outside(path, top, environments)),
    }
    existing = {path for path in needed - hidden if path.is_absolute() and os.access(path, os.R_OK)}
    return tuple(sorted(path for path in existing if not _is_covered(path, existing, top)))


def _outside(path: Path, top: Path, environments: Iterable[Path]) -> Iterator[Path]:
    """The spellings of a path that don't lead to the project's own files."""
    real = Path(os.path.realpath(path))
    own = [
        each.is_relative_to(top) and not any(map(each.is_relative_to, environments))
        for each in (path, real)
    ]
    if not own[1]:
        yield real
        if not own[0]:
            yield path


def _is_covered(path: Path, folders: set[Path], top: Path) -> bool:
    """Whether a folder comes with another one; the slot will lie over what is around it."""
    around = folders & set(path.parents)
    if path.is_relative_to(top):
        around = {folder for folder in around if folder.is_relative_to(top)}
    return bool(around)


def _link_folders(program: Path) -> Iterator[Path]:
    """The folders on the way from a link to the program that it stands for."""
    for _ in range(40):  # as many as the kernel follows
        yield program.parent
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent / program.readlink()))
