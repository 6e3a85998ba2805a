"""Tasks of Harbor as rows: folders with `task.toml`, `instruction.md` and `tests`."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

from fairtrial.core import Mistake, StudyError

CONFIG, INSTRUCTION, TEST = "task.toml", "instruction.md", "tests/test.sh"
WORK_FOLDER = PurePosixPath("/app")
"""Where a task's files are if its Dockerfile doesn't say."""
_WORKDIR = re.compile(r"(?im)^\s*WORKDIR\s+(/\S+)\s*$")


def task_rows(source: str, folder: Path) -> list[dict[str, Any]]:
    """Return the tasks in a folder as rows, by name; the folder may be a task itself.

    A row has `id`, `instruction`, `category`, `difficulty`, `tags`, `task` and `environment` (paths
    relative to the study's folder), `work_folder`, `timeout_s`, `test_timeout_s` and `digest`, that
    of all of the task's files. Raises one `StudyError` with all mistakes.

    source: the folder, relative to the study's
    folder: the study's folder
    """
    root = (folder / source).absolute()
    paths = (
        [root] if (root / CONFIG).exists() else sorted(p.parent for p in root.glob(f"*/{CONFIG}"))
    )
    if not paths:
        hint = f"name a task's folder, or one whose folders are tasks with {CONFIG}"
        raise StudyError(Mistake(("from",), f"there are no tasks of Harbor in {root}", hint))
    rows, mistakes = [], []
    for path in paths:
        relative = PurePosixPath(source) if path == root else PurePosixPath(source, path.name)
        try:
            rows.append(_make_row(path, relative))
        except (OSError, ValueError) as error:
            mistakes.append(Mistake(("from",), f"{path} can't be used: {error}"))
    if mistakes:
        raise StudyError(mistakes)
    return rows


def _make_row(path: Path, relative: PurePosixPath) -> dict[str, Any]:
    config = tomllib.loads((path / CONFIG).read_text("utf-8"))
    if config.get("steps"):
        raise ValueError("tasks of several steps aren't supported")
    if not (path / TEST).is_file():
        raise ValueError(f"there is no {TEST}")
    facts = config.get("metadata", {})
    environment = path / "environment"
    dockerfile = environment / "Dockerfile"
    text = dockerfile.read_text("utf-8") if dockerfile.is_file() else ""
    folders = _WORKDIR.findall(text)
    configured = config.get("environment", {}).get("workdir")
    return {
        "id": path.name,
        "instruction": (path / INSTRUCTION).read_text("utf-8"),
        "category": str(facts.get("category", "")),
        "difficulty": str(facts.get("difficulty", "")),
        "tags": list(facts.get("tags", [])),
        "task": str(relative),
        "environment": str(relative / "environment") if environment.is_dir() else "",
        "work_folder": str(configured or (folders[-1] if folders else WORK_FOLDER)),
        "timeout_s": config.get("agent", {}).get("timeout_sec"),
        "test_timeout_s": float(config.get("verifier", {}).get("timeout_sec", 600.0)),
        "digest": _digest(path),
    }


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(path).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
