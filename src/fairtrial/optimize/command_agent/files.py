"""Files of a command-line agent: copied into its workspace, written there, collected afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from fairtrial.core import LabError, Mistake, StudyError
from fairtrial.optimize.proposers.command.secrets import AgentSecrets

LONGEST_FILE_BYTES = 1_000_000
MOST_BYTES = 8_000_000
MOST_FILES = 1_000
"""What is collected as text: larger files, and more of them, are named with size and digest."""


def find_place(name: str, option: str) -> PurePosixPath:
    """Return a path within the workspace; raises `StudyError` for one that leads out of it.

    In `files`, "." is the workspace itself: a folder's content is copied there.
    """
    path = PurePosixPath(name)
    if name == "." and option == "files":
        return path
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        message = f"'{name}' is no path within the workspace"
        raise StudyError(Mistake((option, name), message, "for example skills/plan.md"))
    return path


def find_source(text: str, folder: Path, name: str) -> Path:
    """Return a file or folder that is copied into workspaces; `StudyError` if it isn't there."""
    path = (folder / Path(text).expanduser()).resolve()
    if not path.exists():
        raise StudyError(Mistake(("files", name), f"there is no {path}"))
    return path


def fill_workspace(workspace: Path, sources: Mapping[str, Path], texts: Mapping[str, str]) -> None:
    """Copy files and folders into a workspace, and write texts; raises `LabError` if it can't be.

    sources: what is copied, by its path in the workspace
    texts: what is written, by its path in the workspace
    """
    try:
        for name, source in sources.items():
            target = workspace / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
        for name, text in texts.items():
            target = workspace / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
    except (OSError, shutil.Error) as error:
        raise LabError(f"a file can't be copied into the workspace: {error}") from None


def collect_files(
    workspace: Path, patterns: Sequence[str], secrets: AgentSecrets
) -> dict[str, Any]:
    """Return the files that match patterns, by path: their text, or size and digest.

    Links aren't followed: an agent could point them anywhere.
    """
    collected: dict[str, Any] = {}
    left = MOST_BYTES
    for path in _list_files(workspace):
        if len(collected) == MOST_FILES:
            break
        if not _matches(path, patterns):
            continue
        content = (workspace / path).read_bytes()
        text = None
        if len(content) <= min(LONGEST_FILE_BYTES, left) and b"\0" not in content:
            text = _decode(content)
        if text is None:
            digest = hashlib.sha256(content).hexdigest()
            collected[str(path)] = {"bytes": len(content), "sha256": digest}
        else:
            left -= len(content)
            collected[str(path)] = secrets.redact(text)
    return collected


def _matches(path: PurePosixPath, patterns: Sequence[str]) -> bool:
    return any(_pattern_parts(path.parts, tuple(pattern.split("/"))) for pattern in patterns)


def _pattern_parts(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return whether a path matches a pattern, in which `**` stands for any folders."""
    if not pattern:
        return not parts
    first, *rest = pattern
    if first == "**":
        return any(
            _pattern_parts(parts[skipped:], tuple(rest)) for skipped in range(len(parts) + 1)
        )
    if not parts or not PurePosixPath(parts[0]).match(first):
        return False
    return _pattern_parts(parts[1:], tuple(rest))


def _list_files(workspace: Path) -> Iterator[PurePosixPath]:
    """Yield the regular files of a workspace, in order."""
    for folder, names, files in os.walk(workspace):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield PurePosixPath(path.relative_to(workspace))


def _decode(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
