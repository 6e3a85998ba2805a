"""A set of files that changes as one: a reader sees the old set or the new one.

Each set lies in a hidden folder of its own, ``.tables-<token>``. The link ``.tables`` points at the
current one, and ``runs.csv`` and the others are links through it, so that moving one link changes
all of them at once. The set before stays until the next is written, for readers that are slow. On
file systems without links files are moved one by one, the manifest last: its checksums tell whether
the others belong to it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, spell_rows
from fairtrial.study.tables.canonical import CONDITION_COLUMNS, MANIFEST_FILE, PLAN_COLUMNS

CURRENT = ".tables"
PREFIX = f"{CURRENT}-"


@contextmanager
def new_generation(folder: Path) -> Iterator[Path]:
    """An empty folder; what is in it when the block ends well becomes the current set."""
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder):
        path = folder / f"{PREFIX}{secrets.token_hex(8)}"
        path.mkdir()
        try:
            yield path
            for file in path.iterdir():
                _sync(file)
            _sync(path)
            refuse_foreign(folder, [file.name for file in path.iterdir()])
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        _publish(folder, path)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Wait until nobody else changes the set in a folder; the kernel ends it with its process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: one export at a time is on you
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def locate(folder: Path, name: str) -> Path:
    """Where a file of the current set lies; stays readable while a newer set takes its place."""
    current, path = _current(folder), folder / name
    is_ours = path.is_symlink() and str(path.readlink()) == f"{CURRENT}/{name}"
    return folder / current / name if is_ours and current is not None else path


def refuse_foreign(folder: Path, names: Iterable[str]) -> None:
    """Refuse to replace files that somebody else wrote, or changed since."""
    mistakes = []
    for name in sorted(names):
        path = folder / name
        if path.is_symlink():
            if str(path.readlink()) != f"{CURRENT}/{name}":
                mistakes.append(_foreign(path, "is a link to somewhere else"))
        elif path.is_dir():
            mistakes.append(_foreign(path, "is a folder"))
        elif path.exists() and not _is_ours(folder, name):
            mistakes.append(_foreign(path, "was not written by this study, or was changed since"))
    if mistakes:
        raise StudyError(mistakes)


def _foreign(path: Path, what: str) -> Mistake:
    hint = "move it away, or choose another output directory"
    return Mistake((), f"{path} is to hold a table, and {what}", hint)


def _is_ours(folder: Path, name: str) -> bool:
    """Whether a plain file is one that we wrote, as it was, or a plan, which tells no results."""
    told = [folder, *folder.glob(f"{PREFIX}*")]  # files that are moved one by one come before it
    manifests = [manifest for place in told if (manifest := read_manifest(place)) is not None]
    if name == MANIFEST_FILE:
        return bool(manifests)
    sums = [manifest["files"].get(name, {}).get("sha256") for manifest in manifests]
    return (any(sums) and sha256_of(folder / name) in sums) or _is_plan(folder / name)


def _is_plan(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.readline(1_000_000).decode("utf-8", "replace").rstrip("\r\n")
    if path.name == "conditions.csv":
        return (header + ",").startswith(spell_rows([CONDITION_COLUMNS]).rstrip("\n") + ",")
    return path.name == "runs.csv" and header == spell_rows([PLAN_COLUMNS]).rstrip("\n")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a set of ours; None if there is none."""
    try:
        told = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(told, dict) and isinstance(told.get("files"), dict)
    return told if is_ours else None


def sha256_of(path: Path) -> str:
    """The SHA-256 of what a file holds."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _publish(folder: Path, path: Path) -> None:
    names = sorted(file.name for file in path.iterdir())
    try:
        _adopt(folder, names)
        earlier = _current(folder)
        for name in names:
            _link(folder / name, f"{CURRENT}/{name}")
        _link(folder / CURRENT, path.name)
    except (OSError, NotImplementedError):
        if _has_links(folder):
            raise
        earlier = None
        _move(folder, path, names)
    _sync(folder)
    _tidy(folder, {path.name, earlier}, names)


def _adopt(folder: Path, names: Collection[str]) -> None:
    """Make plain files of an earlier set links, without any of them being gone meanwhile."""
    earlier = (read_manifest(folder) or {"files": {}})["files"]
    paths = [folder / name for name in {*names, *earlier}]
    files = [path.name for path in paths if path.is_file() and not path.is_symlink()]
    plain = [name for name in files if name in names or _is_ours(folder, name)]
    if not plain:
        return
    place = folder / f"{PREFIX}{secrets.token_hex(8)}"
    place.mkdir()
    beside = (folder / CURRENT).iterdir() if _current(folder) is not None else ()
    for file in [*beside, *(folder / name for name in plain)]:
        shutil.copy2(file, place / file.name)
    _link(folder / CURRENT, place.name)
    for name in plain:
        _link(folder / name, f"{CURRENT}/{name}")


def _link(path: Path, target: str) -> None:
    """Make `path` a link, in one step, whatever it was."""
    if path.is_symlink() and str(path.readlink()) == target:
        return
    temporary = path.parent / f"{PREFIX}{secrets.token_hex(8)}"
    temporary.symlink_to(target)
    temporary.replace(path)


def _has_links(folder: Path) -> bool:
    probe = folder / f"{PREFIX}{secrets.token_hex(8)}"
    try:
        probe.symlink_to("nowhere")
        probe.unlink()
    except (OSError, NotImplementedError):
        return False
    return True


def _move(folder: Path, path: Path, names: list[str]) -> None:
    earlier = read_manifest(folder)
    for name in [name for name in names if name != MANIFEST_FILE]:
        (path / name).replace(folder / name)
    _sync(folder)
    (path / MANIFEST_FILE).replace(folder / MANIFEST_FILE)
    for name in (earlier or {"files": {}})["files"]:
        if name not in names:
            (folder / name).unlink(missing_ok=True)


def _tidy(folder: Path, kept: set[str | None], names: Iterable[str]) -> None:
    """Remove sets that nobody needs, what killed exports left, and links to what is no more."""
    for path in folder.glob(f"{PREFIX}*"):
        if path.is_symlink():
            path.unlink(missing_ok=True)
        elif path.name not in kept or not any(path.iterdir()):
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.iterdir():
        is_ours = path.is_symlink() and str(path.readlink()) == f"{CURRENT}/{path.name}"
        if is_ours and path.name not in names:
            path.unlink(missing_ok=True)


def _current(folder: Path) -> str | None:
    path = folder / CURRENT
    return str(path.readlink()) if path.is_symlink() else None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
