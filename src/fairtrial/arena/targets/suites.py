"""The commands that run a project's tests, found by the names and texts of its files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairtrial.arena.candidates.protection import get_protection
from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.targets.functions import has_doctests, has_main_guard, is_script
from fairtrial.arena.targets.lookup import list_python_files

PYTEST = ("{python}", "-m", "pytest", "-q")
_TEST_NAMES = re.compile(r"test_.*|.*_tests?|tests?")
_TEST_TEXT = re.compile(rb"\bTestCase\b|^\s*(?:import|from) pytest\b|^(?:async )?def test_", re.M)


@dataclass(frozen=True, slots=True)
class TestCommand:
    """A command whose runs are recorded.

    words: the command
    why: why it is chosen, for people
    is_pytest: whether it runs pytest
    files: the test files that it names, relative to the project's folder
    is_script: whether it runs a script, and not tests
    """

    words: tuple[str, ...]
    why: str
    is_pytest: bool = False
    files: tuple[str, ...] = ()
    is_script: bool = False


def find_commands(
    project: Path, path: str, words: Sequence[str], interpreter: Interpreter
) -> list[TestCommand]:
    """Return the commands that may reach a function, the likeliest first.

    project: a copy of the project's folder
    path: the function's file, relative to it; empty for any
    words: names that tests of the function are likely to hold, the most telling first
    """
    commands: list[TestCommand] = []
    content = (project / path).read_bytes() if path else b""
    files = _sort_by_words(project, _list_test_files(project), words)
    if files and interpreter.has_pytest:
        count = "1 test file" if len(files) == 1 else f"{len(files)} test files"
        why = f"{count} found by name and content"
        commands.append(TestCommand((*PYTEST, *files), why, True, tuple(files)))
    elif files:
        modules = [file.removesuffix(".py").replace("/", ".") for file in files]
        why = f"{interpreter.executable} has no pytest, so unittest runs the tests"
        commands.append(
            TestCommand(("{python}", "-m", "unittest", *modules), why, files=tuple(files))
        )
    if path and has_doctests(content):
        if interpreter.has_pytest:
            command: tuple[str, ...] = (*PYTEST, "--doctest-modules", path)
        else:
            command = ("{python}", "-m", "doctest", path)
        why = f"{path} has examples in docstrings"
        commands.append(TestCommand(command, why, interpreter.has_pytest, (path,)))
    if path and is_script(content):
        commands.append(
            TestCommand(("{python}", path), f"{path} can be run as a script", is_script=True)
        )
    return commands


def find_script(project: Path, path: str, name: str) -> str:
    """Return a script, other than the file itself, that mentions a name; empty if there is none."""
    for file in list_python_files(project):
        relative = PurePosixPath(file.relative_to(project).as_posix())
        content = _read(file)
        is_other = str(relative) != path and get_protection(str(relative)) is None
        mentions = re.search(rb"\b%s\b" % name.encode(), content)
        if is_other and mentions and has_main_guard(content):
            return str(relative)
    return ""


def _list_test_files(project: Path) -> list[str]:
    """Return the test files of a project, relative to its folder."""
    files = []
    for file in list_python_files(project):
        relative = PurePosixPath(file.relative_to(project).as_posix())
        if relative.name in ("conftest.py", "__init__.py", "setup.py"):
            continue
        is_named = _TEST_NAMES.fullmatch(relative.stem) is not None
        in_tests = get_protection(str(relative)) is not None
        if (is_named or in_tests) and _TEST_TEXT.search(_read(file)):
            files.append(str(relative))
    return files


def _sort_by_words(project: Path, files: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the files with the most telling words first."""

    def rank(file: str) -> tuple[int, str]:
        text = _read(project / file)
        place = next((at for at, word in enumerate(words) if word.encode() in text), len(words))
        return place, file

    return sorted(files, key=rank)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError:
        return b""
