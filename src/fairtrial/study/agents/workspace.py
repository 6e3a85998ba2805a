"""A run's working folder, created on first use."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
from pathlib import Path

_creation_lock = threading.Lock()


def usable_folder(folder: Path) -> Path | None:
    """Return a folder for workspaces, made if need be; None if this machine can't have it.

    On a node of a cluster, the driver's output directory may be out of reach.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


class Workspace:
    """A new, empty folder for one attempt at a run.

    Under `root` it is kept, as `<run_id>/attempt-<n>`. Without a root it is a temporary folder,
    removed when the run is over.
    """

    __slots__ = ("_attempt", "_path", "_root", "_run_id")

    def __init__(self, root: Path | None, run_id: str, attempt: int) -> None:
        self._root = root
        self._run_id = run_id
        self._attempt = attempt
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """Return the folder; create it on first use."""
        with _creation_lock:
            if self._path is None:
                self._path = self._make()
            return self._path

    @property
    def reference(self) -> str | None:
        """Return its path relative to the output directory; None if it isn't kept or used."""
        if self._path is None or self._root is None:
            return None
        return f"{self._root.name}/{self._run_id}/{self._path.name}"

    def close(self) -> None:
        """Remove the folder if it is temporary."""
        if self._path is not None and self._root is None:
            shutil.rmtree(self._path, ignore_errors=True)

    def _make(self) -> Path:
        if self._root is None:
            return Path(tempfile.mkdtemp(prefix=f"{self._run_id}-")).resolve()
        parent = self._root.resolve() / self._run_id
        parent.mkdir(parents=True, exist_ok=True)
        # A study that was killed starts an attempt of the same number again.
        for number in itertools.count(1):
            path = parent / (f"attempt-{self._attempt}" + (f".{number}" if number > 1 else ""))
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return path
        raise AssertionError("itertools.count never ends")
