"""The folders of pools on disk: one per pool, outside of the user's tree, with a lock each.

The lock of a folder is released by the kernel when its process ends, in whatever way. A folder
whose lock is free is an orphan. Only the process that holds its lock may remove it, so that two
processes that start at the same time never remove each other's folder.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.arena.slots.removal import empty_folder, enter_folder
from fairtrial.core import LabError

HOME_VARIABLE = "FAIRTRIAL_HOME"
"""The environment variable that overrides the location of pools, the user's cache."""
LOCK, OWNER = "lock", "owner.json"
BASE_RUNS = "base-runs"
"""The folder of recorded runs of checks, beside that of pools."""
MAX_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class PoolFolder:
    """The folder of a pool, locked by this process.

    path: the folder
    lock: the handle of its lock file
    """

    path: Path
    lock: int

    def remove(self) -> list[str]:
        """Remove the folder with its contents, release the lock, and return failures as text.

        The lock file is removed last: until then no other process touches the folder, and if this
        one is killed meanwhile, the folder is an orphan.
        """
        try:
            return _remove_locked(self.path)
        finally:
            os.close(self.lock)

    def leave(self, repository: Path) -> None:
        """Release the lock but keep the folder, until `fairtrial clean` removes it."""
        _write_owner(self.path, repository, is_kept=True)
        os.close(self.lock)


@dataclass(frozen=True, slots=True)
class PoolFolderInfo:
    """A description of a pool's folder on disk.

    path: the folder
    repository: the user's tree that it was made from, if recorded
    pid: the process that created it, if recorded
    age_s: its age
    size_bytes: its size on disk
    is_alive: whether a process holds its lock
    is_kept: whether it was kept on purpose, for inspection
    is_cache: whether it is no pool's, but holds recorded runs of checks
    """

    path: Path
    repository: str | None
    pid: int | None
    age_s: float
    size_bytes: int
    is_alive: bool
    is_kept: bool
    is_cache: bool = False

    @property
    def state(self) -> str:
        """Who uses it, or why it is there."""
        if self.is_alive:
            return f"in use by process {self.pid}" if self.pid else "in use"
        if self.is_cache:
            return "recorded runs of checks"
        return "kept on purpose" if self.is_kept else "left by a run that has ended"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fairtrial clean --json`` prints it."""
        return {
            "path": str(self.path),
            "repository": self.repository,
            "pid": self.pid,
            "size_bytes": self.size_bytes,
            "age_s": round(self.age_s),
            "alive": self.is_alive,
            "kept": self.is_kept,
        }


def create_pool_folder(tree: Path) -> PoolFolder:
    """Create a folder for a pool, outside of the user's tree, and lock it.

    Raises `LabError` if none of the locations can be used.
    """
    refusals = []
    for location in list_pool_locations():
        if location.resolve().is_relative_to(tree.resolve()):
            refusals.append(f"{location} lies in the tree itself")
            continue
        try:
            _create_private(location)
            return _create_locked(location, tree)
        except OSError as error:
            refusals.append(f"{location}: {error.strerror or error}")
    raise LabError(
        f"there is no folder for the arena's working copies ({'; '.join(refusals)}); make room, "
        f"or set {HOME_VARIABLE} to a folder that can be written to and is not in {tree}"
    )


def find_pool_folders() -> list[PoolFolderInfo]:
    """Return this user's pool folders and recorded runs on this machine, oldest first."""
    folders = [info for path in _list_folders() if (info := _describe(path)) is not None]
    caches = (_describe(path) for path in _list_caches())
    folders += [replace(info, is_cache=True) for info in caches if info is not None]
    return sorted(folders, key=lambda folder: -folder.age_s)


def remove_orphaned_pools(*, with_kept: bool = False) -> tuple[list[Path], list[str]]:
    """Remove pool folders that no process holds; return removed paths, and failures as text.

    with_kept: remove folders that were kept on purpose as well, and recorded runs
    """
    removed, failures = [], []
    for path in _list_folders():
        if not with_kept and _read_owner(path).get("is_kept"):
            continue
        try:
            lock = _try_lock(path)
        except FileNotFoundError:
            continue  # removed by another process
        except OSError as error:
            failures.append(f"{path}: {error.strerror or error}")
            continue
        if lock is None:
            continue
        problems = PoolFolder(path, lock).remove()
        failures.extend(problems)
        if not problems:
            removed.append(path)
    for path in _list_caches() if with_kept else ():
        try:
            for file in path.iterdir():
                file.unlink(missing_ok=True)
            removed.append(path)
        except OSError as error:
            failures.append(f"{path}: {error.strerror or error}")
    return removed, failures


def list_pool_locations() -> list[Path]:
    """Return the folders that pool folders may be created in, in order of preference."""
    if home := os.environ.get(HOME_VARIABLE):
        return [Path(home).absolute() / "arena"]
    locations = []
    cache = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home
        folder = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
        locations.append(folder / "fairtrial" / "arena")
    return [*locations, Path(tempfile.gettempdir()).absolute() / f"fairtrial-{os.getuid()}"]


def _find_cache_folder(name: str) -> Path | None:
    """Return where cached data of one kind are; None for a user without a home.

    They are never among other users' temporary files.
    """
    if not os.environ.get(HOME_VARIABLE) and len(list_pool_locations()) < 2:
        return None
    return list_pool_locations()[0].with_name(name)


def _list_caches() -> list[Path]:
    """Return the folders with cached data that aren't empty."""
    folder = _find_cache_folder(BASE_RUNS)
    with suppress(OSError):
        return [folder] if folder is not None and any(folder.iterdir()) else []
    return []


def make_cache_folder(name: str) -> Path | None:
    """Return the user's folder for cached data of one kind, made if it is missing; None if not."""
    folder = _find_cache_folder(name)
    if folder is None:
        return None
    try:
        _create_private(folder)
    except OSError:
        return None
    return folder


def _create_private(folder: Path) -> None:
    """Create a folder that only this user can read; refuse one that belongs to another user."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OSError(errno.EPERM, "it is not a folder of yours")
    folder.chmod(0o700)


def _create_locked(location: Path, tree: Path) -> PoolFolder:
    for _ in range(MAX_ATTEMPTS):
        path = location / secrets.token_hex(4)
        path.mkdir(mode=0o700)
        try:
            lock = _try_lock(path)
            if lock is not None:
                _write_owner(path, tree)
                return PoolFolder(path, lock)
        except FileNotFoundError:
            pass  # another process removed it as an orphan before it was locked
    raise OSError(errno.EAGAIN, "others remove what is made there")


def _try_lock(path: Path) -> int | None:
    """Lock a pool's folder and return the handle, or None if another process holds the lock.

    Raises `FileNotFoundError` if the folder was removed.
    """
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The folder may have been removed and its lock file replaced since it was opened.
        if os.path.samestat(os.fstat(lock), (path / LOCK).lstat()):
            return lock
    except BlockingIOError:
        pass
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _remove_locked(path: Path) -> list[str]:
    try:
        folder = enter_folder(path)
    except OSError as error:
        return [f"{path}: {error.strerror or error}"]
    try:
        failures = [_describe_failure(path, error) for error in empty_folder(folder, {LOCK})]
        if not failures:
            os.unlink(LOCK, dir_fd=folder)
    except OSError as error:
        failures = [_describe_failure(path, error)]
    finally:
        os.close(folder)
    if not failures:
        with suppress(OSError):  # another process has just locked it, and will remove it
            path.rmdir()
    return failures


def _describe_failure(path: Path, error: OSError) -> str:
    return f"{path}/{error.filename or ''}: {error.strerror or error}"


def _write_owner(path: Path, repository: Path, *, is_kept: bool = False) -> None:
    owner = {"pid": os.getpid(), "repository": str(repository), "is_kept": is_kept}
    (path / OWNER).write_text(json.dumps(owner), "utf-8")


def _read_owner(path: Path) -> dict[str, object]:
    try:
        owner = json.loads((path / OWNER).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _list_folders() -> Iterator[Path]:
    for location in list_pool_locations():
        with suppress(OSError):
            yield from sorted(
                path for path in location.iterdir() if path.is_dir() and not path.is_symlink()
            )


def _describe(path: Path) -> PoolFolderInfo | None:
    owner = _read_owner(path)
    pid, repository = owner.get("pid"), owner.get("repository")
    try:
        dated = path / OWNER if owner else path
        created_s = dated.lstat().st_mtime
        is_alive = _is_locked(path)
    except OSError:
        return None  # removed meanwhile
    return PoolFolderInfo(
        path=path,
        repository=repository if isinstance(repository, str) else None,
        pid=pid if isinstance(pid, int) else None,
        age_s=max(0.0, time.time() - created_s),
        size_bytes=_measure_disk_usage(path),
        is_alive=is_alive,
        is_kept=bool(owner.get("is_kept")) and not is_alive,
    )


def _is_locked(path: Path) -> bool:
    """Return whether another process holds the lock, by trying a shared lock for a moment."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _measure_disk_usage(path: Path) -> int:
    """Return how many bytes the readable files of a folder take on disk."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_blocks * 512
    return total
