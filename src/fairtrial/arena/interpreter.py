"""The Python that a problem's commands run with, and the folders it needs in a sandbox."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.arena.installed_projects import find_importable
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import run_trusted

OLDEST = (3, 8)
"""The oldest Python that the harness supports."""
ENVIRONMENTS = (".venv", "venv")
"""Where a project's virtual environment is looked for."""
PROBE_TIMEOUT_S = 60.0
_PROBE = Path(__file__).resolve().parent.parent / "sandbox" / "harness" / "probe.py"
# Read by launchers such as pyenv's; none of them holds a secret.
_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "PYENV_ROOT", "PYENV_VERSION")
_REMEDY = "name a Python that works in `python`, or leave it out for fairtrial's own"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter, as it described itself.

    executable: the path it is started by; a link into a virtual environment is not resolved
    version: e.g. (3, 11, 7)
    folders: all that must be readable for it to run: prefixes, standard library, site-packages
        and all else on its path, except the project itself
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

    Raises `StudyError` if there is no such Python, or it can't be used.
    """
    project = top / problem.cwd
    if not project.is_dir():
        hint = "it is relative to the folder that `repo` names"
        raise StudyError(Mistake(("cwd",), f"no such folder: {project}", hint))
    program = find_program(problem.python, project, top)
    description = await _probe(program, project)
    version = tuple(description["version"])
    if version < OLDEST:
        actual, oldest = (".".join(map(str, numbers)) for numbers in (version, OLDEST))
        raise _refusal(f"{program} is Python {actual}; checks need {oldest} or newer")
    executable = Path(description["executable"] or program)
    return Interpreter(
        executable=executable,
        version=(version[0], version[1], version[2]),
        folders=needed_folders(executable, description, top, project),
        has_pytest=bool(description["has_pytest"]),
    )


def find_program(configured: str, project: Path, top: Path) -> Path:
    """Return the Python that is configured, else the project's own, else fairtrial's.

    configured: a path (looked for in the project's folder, then at the top), a program's name, or
        empty
    """
    folders = dict.fromkeys((project, top))
    if not configured:
        usual = [folder / name / "bin/python" for folder in folders for name in ENVIRONMENTS]
        existing = [program for program in usual if os.path.lexists(program)]
        return _checked(existing[0]) if existing else Path(sys.executable)
    program = shutil.which(configured) if "/" not in configured else None
    if program is not None:
        return Path(program)
    paths = dict.fromkeys(folder / Path(configured).expanduser() for folder in folders)
    for path in paths:
        if os.path.lexists(path):
            return _checked(path)
    if "/" not in configured:
        raise _refusal(f"there is no program '{configured}' on the path")
    tried = " or ".join(map(str, paths))
    hint = "make that environment (python -m venv .venv, then install what the project needs in it)"
    raise _refusal(f"there is no {tried}", f"{hint}, or leave `python` out for fairtrial's own")


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


async def _probe(program: Path, cwd: Path) -> Mapping[str, Any]:
    """Run the probe script isolated from the project, and return what it reports."""
    import anyio

    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    try:
        with anyio.fail_after(PROBE_TIMEOUT_S):
            command = [str(program), "-I", str(_PROBE)]
            done = await run_trusted(command, cwd=cwd, env=variables)
    except TimeoutError:
        message = f"{program} didn't answer within {PROBE_TIMEOUT_S:.0f} s"
        raise _refusal(message) from None
    except OSError as error:
        raise _refusal(f"{program} can't be run: {error.strerror or error}") from None
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        # Start-up files of an environment may print something, too.
        if line.startswith('{"fairtrial"'):
            description: dict[str, Any] = json.loads(line)
            return description
    output = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[-300:]
    message = f"{program} can't be used: it ended with status {done.returncode}"
    raise _refusal(f"{message} and said: {output}" if output else message)


def needed_folders(
    executable: Path, description: Mapping[str, Any], top: Path, project: Path
) -> tuple[Path, ...]:
    """Return the smallest set of folders (rarely files) with all that an interpreter needs.

    An environment inside the project is included. Anything else of the project on its path, such
    as an editable install, is not: it comes from the slot. Of other projects that are installed in
    place only what can be imported is included. The project, the home folder and its parents are
    never included as a whole; what is needed from them is listed separately.

    description: what the probe reported
    """
    home, top = Path(os.path.realpath(Path.home())), Path(os.path.realpath(top))
    project = Path(os.path.realpath(project))
    hidden = {home, *home.parents, top, project, *(set(project.parents) - set(top.parents))}
    prefixes = [Path(path) for path in description["prefixes"]]
    environments = {path for path in prefixes if path not in hidden and path.is_relative_to(top)}
    vital = [*prefixes, *map(Path, description["libraries"]), *_link_folders(executable)]
    # The prefix itself may be hidden; this file marks it as an environment.
    vital.extend(path / "pyvenv.cfg" for path in prefixes)
    needed = {spelling for path in vital for spelling in (path, Path(os.path.realpath(path)))}
    installations = tuple(needed - hidden)
    for path in map(Path, description["paths"]):
        for spelling in _spellings_outside(path, top, environments):
            if any(map(spelling.is_relative_to, installations)):
                needed.add(spelling)
            elif spelling not in hidden:
                needed.update(find_importable(spelling))
    existing = {path for path in needed - hidden if path.is_absolute() and os.access(path, os.R_OK)}
    return tuple(sorted(path for path in existing if not _is_covered(path, existing, top)))


def _spellings_outside(path: Path, top: Path, environments: Iterable[Path]) -> Iterator[Path]:
    """Yield the path and its target, unless they are files of the project itself."""

    def is_own(spelling: Path) -> bool:
        in_environment = any(map(spelling.is_relative_to, environments))
        return spelling.is_relative_to(top) and not in_environment

    real = Path(os.path.realpath(path))
    if not is_own(real):
        yield real
        if not is_own(path):
            yield path


def _is_covered(path: Path, folders: set[Path], top: Path) -> bool:
    """Return whether another folder contains this one and isn't hidden by the mounted slot."""
    parents = folders & set(path.parents)
    if path.is_relative_to(top):
        parents = {folder for folder in parents if folder.is_relative_to(top)}
    return bool(parents)


def _link_folders(program: Path) -> Iterator[Path]:
    """Yield the folder of each symbolic link from `program` to its target."""
    for _ in range(40):  # the kernel's limit
        yield program.parent
        if not program.is_symlink():
            return
        program = Path(os.path.normpath(program.parent / program.readlink()))
