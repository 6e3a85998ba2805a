"""Where pools live on disk, and whose they are: a folder each, outside of every user's tree.

A pool's folder is held by a lock that the kernel drops when its owner dies, however it dies. A
folder whose lock is free is an orphan; whoever takes its lock may remove it, so that two who start
at the same time never remove what the other has just made.
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
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.slots.removal import empty_folder, enter_folder
from fairtrial.core import LabError

HOME_VARIABLE = "FAIRTRIAL_HOME"
"""Names the variable that puts pools elsewhere than in the user's cache."""
LOCK, OWNER = "lock", "owner.json"
MOST_TRIES = 20


@dataclass(frozen=True, slots=True)
class Home:
    """A folder of ours for as long as we hold its lock.

    path: where it is
    lock: the open file that holds it
    """

    path: Path
    lock: int

    def remove(self) -> list[str]:
        """Remove it with all that is in it, and let go; returns what couldn't be removed, and why.

        The lock goes last: until then nobody else touches the folder, and if we die here it is an
        orphan like any other.
        """
        try:
            return _remove_locked(self.path)
        finally:
            os.close(self.lock)

    def leave(self, repository: Path) -> None:
        """Let go of it, but let it stay until somebody asks for it to be removed."""
        _write_owner(self.path, repository, is_kept=True)
        os.close(self.lock)


@dataclass(frozen=True, slots=True)
class Found:
    """A pool's folder that is on disk.

    path: where it is
    repository: whose tree it is made from, if that was written down
    pid: the process that made it, if that was written down
    age_s: since when it is there
    size_bytes: how much room it takes
    is_alive: whether a process holds it
    is_kept: whether it was left on purpose, for somebody to look at
    """

    path: Path
    repository: str | None
    pid: int | None
    age_s: float
    size_bytes: int
    is_alive: bool
    is_kept: bool


def open_home(tree: Path) -> Home:
    """A new folder for a pool, outside of the user's tree, and ours."""
    refusals = []
    for place in list_places():
        if place.resolve().is_relative_to(tree.resolve()):
            refusals.append(f"{place} lies in the tree itself")
            continue
        try:
            _make_private(place)
            return _claim_new(place, tree)
        except OSError as error:
            refusals.append(f"{place}: {error.strerror or error}")
    raise LabError(
        f"there is no folder for the arena's working copies ({'; '.join(refusals)}); make room, "
        f"or set {HOME_VARIABLE} to a folder that can be written to and is not in {tree}"
    )


def find_homes() -> list[Found]:
    """All pools' folders on this machine that are ours to see, the oldest first."""
    found = [report for path in _list_homes() if (report := _describe(path)) is not None]
    return sorted(found, key=lambda each: -each.age_s)


def remove_orphans(*, with_kept: bool = False) -> tuple[list[Path], list[str]]:
    """Remove the folders that nobody holds: which ones went, and what couldn't be removed."""
    removed, failures = [], []
    for path in _list_homes():
        if not with_kept and _read_owner(path).get("is_kept"):
            continue
        try:
            lock = _try_lock(path)
        except FileNotFoundError:
            continue  # somebody else was quicker
        except OSError as error:
            failures.append(f"{path}: {error.strerror or error}")
            continue
        if lock is None:
            continue
        problems = Home(path, lock).remove()
        failures.extend(problems)
        if not problems:
            removed.append(path)
    return removed, failures


def list_places() -> list[Path]:
    """Where pools may live, the best place first."""
    if given := os.environ.get(HOME_VARIABLE):
        return [Path(given).absolute() / "arena"]
    places = []
    cache = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home
        folder = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
        places.append(folder / "fairtrial" / "arena")
    return [*places, Path(tempfile.gettempdir()).absolute() / f"fairtrial-{os.getuid()}"]


def _make_private(place: Path) -> None:
    """A folder that only we can look into; one that somebody else put there is refused."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = place.lstat()
    if not stat.S_ISDIR(entry.st_mode) or entry.st_uid != os.getuid():
        raise OSError(errno.EPERM, "it is not a folder of yours")
    place.chmod(0o700)


def _claim_new(place: Path, tree: Path) -> Home:
    for _ in range(MOST_TRIES):
        path = place / secrets.token_hex(4)
        path.mkdir(mode=0o700)
        try:
            lock = _try_lock(path)
            if lock is not None:
                _write_owner(path, tree)
                return Home(path, lock)
        except FileNotFoundError:
            pass  # somebody who looks for orphans took it for one, before it was locked
    raise OSError(errno.EAGAIN, "others remove what is made there")


def _try_lock(path: Path) -> int | None:
    """The lock of a pool's folder, or None if somebody holds it; it may be gone as well."""
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever removed the folder held another file of that name.
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
        failures = [_tell(path, error) for error in empty_folder(folder, {LOCK})]
        if not failures:
            os.unlink(LOCK, dir_fd=folder)
    except OSError as error:
        failures = [_tell(path, error)]
    finally:
        os.close(folder)
    if not failures:
        with suppress(OSError):  # somebody has just locked it: then it is theirs to remove
            path.rmdir()
    return failures


def _tell(path: Path, error: OSError) -> str:
    return f"{path}/{error.filename or ''}: {error.strerror or error}"


def _write_owner(path: Path, repository: Path, *, is_kept: bool = False) -> None:
    about = {"pid": os.getpid(), "repository": str(repository), "is_kept": is_kept}
    (path / OWNER).write_text(json.dumps(about), "utf-8")


def _read_owner(path: Path) -> dict[str, object]:
    try:
        about = json.loads((path / OWNER).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _list_homes() -> Iterator[Path]:
    for place in list_places():
        with suppress(OSError):
            yield from sorted(
                each for each in place.iterdir() if each.is_dir() and not each.is_symlink()
            )


def _describe(path: Path) -> Found | None:
    about = _read_owner(path)
    pid, repository = about.get("pid"), about.get("repository")
    try:
        dated = path / OWNER if about else path
        made_s = dated.lstat().st_mtime
        is_alive = _is_held(path)
    except OSError:
        return None  # gone meanwhile
    return Found(
        path=path,
        repository=repository if isinstance(repository, str) else None,
        pid=pid if isinstance(pid, int) else None,
        age_s=max(0.0, time.time() - made_s),
        size_bytes=_measure(path),
        is_alive=is_alive,
        is_kept=bool(about.get("is_kept")) and not is_alive,
    )


def _is_held(path: Path) -> bool:
    """Asked with a shared lock, and let go at once."""
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


def _measure(path: Path) -> int:
    """How many bytes a folder takes on disk, as far as we may look."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_blocks * 512
    return total
