"""The copies of a study's files on one node of a cluster.

All workers of a session on a node share them. Each worker holds a lock on them, which the kernel
releases when it dies: the last one that ends removes them, or the next that starts on that node.
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fairtrial.core import LabError
from fairtrial.study.problems.hooks import Parcel
from fairtrial.study.runner.executors.study_files import digest_code

READY = "ready"


@dataclass(frozen=True)
class Luggage:
    """What a study brings to each node; Ray moves it there once.

    session: a name that no other session has
    roots: files and folders of the driver that are in it
    archive: the study's files, as a tar archive; None if nodes see the driver's own files
    parcels: what problems need beside
    code: the Python files of the study, on the driver
    """

    session: str
    roots: tuple[str, ...] = ()
    archive: bytes | None = None
    parcels: tuple[Parcel, ...] = ()
    code: tuple[str, ...] = ()

    @property
    def copied(self) -> tuple[str, ...]:
        """The files and folders that a node has copies of."""
        if self.archive is None:
            return ()
        return (*self.roots, *(str(parcel.folder) for parcel in self.parcels))

    def digest_copy(self, root: str) -> str:
        """Return the digest of the study's code as a node has it below `root`."""
        return digest_code(root + path for path in self.code)


class NodeFiles:
    """The copies on this node; unpacks them if no worker has done so.

    Raises `LabError` if this node can't have them.

    root: the folder below which they have the driver's paths; empty if there are none
    """

    def __init__(self, luggage: Luggage) -> None:
        self.root = ""
        self._lock: int | None = None
        if luggage.archive is None:
            return
        base = Path(tempfile.gettempdir(), f"fairtrial-node-{os.getuid()}")
        try:
            base.mkdir(mode=0o700, exist_ok=True)
            if base.is_symlink() or base.stat().st_uid != os.getuid():
                raise LabError(f"{base} belongs to somebody else")
            with _locked(base / "guard"):
                _remove_unused(base, luggage.session)
                self._lock = os.open(
                    base / f"{luggage.session}.lock", os.O_RDWR | os.O_CREAT, 0o600
                )
                fcntl.flock(self._lock, fcntl.LOCK_SH)
                folder = base / luggage.session
                if not (folder / READY).exists():
                    shutil.rmtree(folder, ignore_errors=True)
                    _unpack(luggage, folder)
        except OSError as error:
            self.close()
            raise LabError(
                f"the study's files can't be copied to {base}: {error.strerror}"
            ) from error
        except BaseException:
            self.close()
            raise
        self._base = base
        self.root = str(folder / "files")

    def close(self) -> None:
        """Let go of the copies; they are removed if no other worker of this node holds them."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            with suppress(OSError, AttributeError), _locked(self._base / "guard"):
                _remove_unused(self._base)


class Places:
    """Where a worker process on this node finds what the driver has.

    root: the folder below which copies have the driver's paths
    copied: the files and folders of the driver that it has copies of
    """

    def __init__(self, root: str, copied: Sequence[str]) -> None:
        self._root, self._copied = root, copied

    def search_path(self, path: Sequence[str]) -> tuple[str, ...]:
        """Return the module search path: copies, then this node's own, then the driver's.

        path: that of the driver
        """
        own = list(sys.path)
        known = [entry for entry in path if entry not in own and Path(entry).exists()]
        if not self._copied:
            return (*known, *own)
        moved = [self._root + os.path.realpath(entry) for entry in path if entry]
        copies = [entry for entry in moved if Path(entry).exists()]
        return tuple(dict.fromkeys((*copies, *own, *known)))

    def find_folder(self, folder: str, roots: Sequence[str]) -> str | None:
        """Return the working directory for a worker process; None for that of the actor.

        folder: that of the driver
        roots: the driver's copied files and folders; the first is the study's folder
        """
        candidates = [self._root + os.path.realpath(folder)] if self._copied else []
        candidates += [folder, *(self._root + root for root in roots[:1] if self._copied)]
        return next((place for place in candidates if Path(place).is_dir()), None)


def _unpack(luggage: Luggage, folder: Path) -> None:
    root = folder / "files"
    root.mkdir(parents=True)
    assert luggage.archive is not None
    with tarfile.open(fileobj=io.BytesIO(luggage.archive)) as archive:
        archive.extractall(root, filter="fully_trusted")  # the driver's own files
    for parcel in luggage.parcels:
        parcel.unpack(root)
    (folder / READY).touch()


def _remove_unused(base: Path, kept: str = "") -> None:
    """Remove the copies of sessions that have no worker here."""
    for path in base.glob("*.lock"):
        if path.stem == kept:
            continue
        with suppress(OSError):
            lock = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(base / path.stem, ignore_errors=True)
                path.unlink()
            finally:
                os.close(lock)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
