"""Atomic replacement of a set of files: a reader sees the old set or the new one.

Each set (generation) is in a hidden folder, ``.tables-<token>``. The link ``.tables`` points to the
current one, and ``runs.csv`` and the others are links through it, so that replacing one link
changes all files at once. The previous generation is kept until the next one is written, for slow
readers. On file systems without links, files are moved one by one, the manifest last: its checksums
show whether the other files belong to it.
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

from fairtrial.core import Mistake, StudyError, table_files
from fairtrial.study.tables.canonical import CONDITION_COLUMNS, MANIFEST_FILE, PLAN_COLUMNS

CURRENT = ".tables"
"""Name of the link to the current generation."""
PREFIX = f"{CURRENT}-"


@contextmanager
def new_generation(folder: Path) -> Iterator[Path]:
    """Yield an empty folder; its files become the current set if the block ends without error."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(folder):
        path = folder / f"{PREFIX}{secrets.token_hex(8)}"
        path.mkdir()
        try:
            yield path
            for file in path.iterdir():
                _sync(file)
            _sync(path)
            refuse_foreign_files(folder, [file.name for file in path.iterdir()])
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        _publish(folder, path)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock of a folder's set of files; waits for other holders.

    The kernel releases the lock when the process ends.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: the user must not export twice
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def locate_file(folder: Path, name: str) -> Path:
    """Return the path of a file inside the current generation.

    Unlike the link, this path keeps its content while a newer set is published.
    """
    current, path = _current_generation(folder), folder / name
    return folder / current / name if _is_own_link(path) and current is not None else path


def refuse_foreign_files(folder: Path, names: Iterable[str]) -> None:
    """Raise `StudyError` if files of these names exist that an export did not write.

    Files that were changed after an export count as foreign, too.
    """
    mistakes = []
    for name in sorted(names):
        path = folder / name
        if path.is_symlink():
            if not _is_own_link(path):
                mistakes.append(_foreign_file(path, "is a link to another place"))
        elif path.is_dir():
            mistakes.append(_foreign_file(path, "is a folder"))
        elif path.exists() and not _is_own_file(folder, name):
            mistakes.append(
                _foreign_file(path, "was not written by this study, or was changed since")
            )
    if mistakes:
        raise StudyError(mistakes)


def _foreign_file(path: Path, reason: str) -> Mistake:
    hint = "move it away, or choose another output directory"
    return Mistake((), f"{path} can't be replaced by a table: it {reason}", hint)


def _is_own_link(path: Path) -> bool:
    return path.is_symlink() and str(path.readlink()) == f"{CURRENT}/{path.name}"


def _is_own_file(folder: Path, name: str) -> bool:
    """Return whether a plain file is an unchanged file of an export, or a table of the plan."""
    # Where files are moved one by one, they may precede their manifest.
    folders = [folder, *folder.glob(f"{PREFIX}*")]
    manifests = [manifest for path in folders if (manifest := read_manifest(path)) is not None]
    if name == MANIFEST_FILE:
        return bool(manifests)
    checksums = [manifest["files"].get(name, {}).get("sha256") for manifest in manifests]
    is_unchanged = any(checksums) and file_sha256(folder / name) in checksums
    return is_unchanged or _is_plan_table(folder / name)


def _is_plan_table(path: Path) -> bool:
    """Return whether a file is a table of planned conditions or runs, which has no results."""
    with path.open("rb") as file:
        header = file.readline(1_000_000).decode("utf-8", "replace").rstrip("\r\n")
    if path.name == "conditions.csv":
        return (header + ",").startswith(
            table_files.format_csv([CONDITION_COLUMNS]).rstrip("\n") + ","
        )
    return path.name == "runs.csv" and header == table_files.format_csv([PLAN_COLUMNS]).rstrip("\n")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest in a folder; None if there is no valid one."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    is_valid = isinstance(manifest, dict) and isinstance(manifest.get("files"), dict)
    return manifest if is_valid else None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file as hexadecimal text."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _publish(folder: Path, path: Path) -> None:
    """Make a generation the current one, by links or else by moving its files."""
    names = sorted(file.name for file in path.iterdir())
    try:
        _adopt_plain_files(folder, names)
        earlier = _current_generation(folder)
        for name in names:
            _link(folder / name, f"{CURRENT}/{name}")
        _link(folder / CURRENT, path.name)
    except (OSError, NotImplementedError):
        if _supports_links(folder):
            raise
        earlier = None
        _move(folder, path, names)
    _sync(folder)
    _remove_old(folder, {path.name, earlier}, names)


def _adopt_plain_files(folder: Path, names: Collection[str]) -> None:
    """Turn the plain files of an earlier set into links; every file stays readable meanwhile."""
    earlier = (read_manifest(folder) or {"files": {}})["files"]
    paths = [folder / name for name in {*names, *earlier}]
    files = [path.name for path in paths if path.is_file() and not path.is_symlink()]
    plain = [name for name in files if name in names or _is_own_file(folder, name)]
    if not plain:
        return
    generation = folder / f"{PREFIX}{secrets.token_hex(8)}"
    generation.mkdir()
    current = (folder / CURRENT).iterdir() if _current_generation(folder) is not None else ()
    for file in [*current, *(folder / name for name in plain)]:
        shutil.copy2(file, generation / file.name)
    _link(folder / CURRENT, generation.name)
    for name in plain:
        _link(folder / name, f"{CURRENT}/{name}")


def _link(path: Path, target: str) -> None:
    """Replace `path` by a link to `target` in one step."""
    if path.is_symlink() and str(path.readlink()) == target:
        return
    temporary = path.parent / f"{PREFIX}{secrets.token_hex(8)}"
    temporary.symlink_to(target)
    temporary.replace(path)


def _supports_links(folder: Path) -> bool:
    probe = folder / f"{PREFIX}{secrets.token_hex(8)}"
    try:
        probe.symlink_to("nowhere")
        probe.unlink()
    except (OSError, NotImplementedError):
        return False
    return True


def _move(folder: Path, path: Path, names: list[str]) -> None:
    """Publish by moving files, the manifest last; removes files of the earlier set."""
    earlier = read_manifest(folder)
    for name in [name for name in names if name != MANIFEST_FILE]:
        (path / name).replace(folder / name)
    _sync(folder)
    (path / MANIFEST_FILE).replace(folder / MANIFEST_FILE)
    for name in (earlier or {"files": {}})["files"]:
        if name not in names:
            (folder / name).unlink(missing_ok=True)


def _remove_old(folder: Path, kept: set[str | None], names: Iterable[str]) -> None:
    """Remove old generations, leftovers of killed exports, and dangling links."""
    for path in folder.glob(f"{PREFIX}*"):
        if path.is_symlink():
            path.unlink(missing_ok=True)
        elif path.name not in kept or not any(path.iterdir()):
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.iterdir():
        if _is_own_link(path) and path.name not in names:
            path.unlink(missing_ok=True)


def _current_generation(folder: Path) -> str | None:
    path = folder / CURRENT
    return str(path.readlink()) if path.is_symlink() else None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
