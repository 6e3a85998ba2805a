"""Finding the studies below a folder, each with an id for its address."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtrial.study import ledger

DEEPEST = 4
MOST_STUDIES = 500
MOST_FOLDERS = 20_000
"""How many folders are looked into."""
PASSED_OVER = frozenset({"workspaces", "node_modules", "__pycache__", "venv"})


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """A folder with a study.

    id: its id in addresses, which is always the same
    name: its path below the folder that is shown; the folder's own name for that folder itself
    path: its path
    """

    id: str
    name: str
    path: Path


def find_studies(root: Path) -> list[StudyFolder]:
    """Return the studies in a folder and below it, sorted by name.

    Links to folders are not followed, so that nothing outside the folder is found. If the folder
    itself holds a study, that is the only one.
    """
    if _has_ledger(root):
        return [make_study_folder(root, root)]
    studies = []
    for path in _walk(root):
        if _has_ledger(path):
            studies.append(make_study_folder(root, path))
        if len(studies) >= MOST_STUDIES:
            break
    return sorted(studies, key=lambda study: study.name)


def make_study_folder(root: Path, path: Path) -> StudyFolder:
    """Return the study in a folder at or below `root`."""
    relative = path.relative_to(root)
    name = str(relative) if relative.parts else path.absolute().name
    digest = hashlib.sha256(os.fsencode(relative)).hexdigest()[:12]
    return StudyFolder(digest, name, path)


def _has_ledger(path: Path) -> bool:
    file = path / ledger.LEDGER_NAME
    return file.is_file() and not file.is_symlink()


def _walk(root: Path) -> Iterator[Path]:
    waiting, seen = [(root, 0)], 0
    while waiting and seen < MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        seen += 1
        try:
            with os.scandir(folder) as entries:
                names = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                    and not entry.name.startswith(".")
                    and entry.name not in PASSED_OVER
                )
        except OSError:
            continue
        for name in names:
            yield folder / name
            if depth + 1 < DEEPEST and not _has_ledger(folder / name):
                waiting.append((folder / name, depth + 1))
