"""A folder for a run to work in, made when it is first asked for."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from pathlib import Path

_making = threading.Lock()


class Workspace:
    """The folder of one attempt: new, empty, and no other attempt's.

    Under `root` it is kept, as `<run_id>/attempt-<n>`. Without a root it is a temporary folder,
    and gone when the run is over.
    """

    __slots__ = ("_attempt", "_path", "_root", "_run_id")

    def __init__(self, root: Path | None, run_id: str, attempt: int) -> None:
        self._root = root
        self._run_id = run_id
        self._attempt = attempt
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """Where it is; makes it on first use."""
        with _making:
            if self._path is None:
                self._path = self._make()
            return self._path

    @property
    def reference(self) -> str | None:
        """Its path from the output directory; None where there is nothing to keep."""
        if self._path is None or self._root is None:
            return None
        return f"{self._root.name}/{self._run_id}/{self._path.name}"

    def close(self) -> None:
        """Remove it if it is a temporary one."""
        if self._path is not None and self._root is None:
            shutil.rmtree(self._path, ignore_errors=True)

    def _make(self) -> Path:
        if self._root is None:
            return Path(tempfile.mkdtemp(prefix=f"{self._run_id}-")).resolve()
        parent = self._root.resolve() / self._run_id
        parent.mkdir(parents=True, exist_ok=True)
        # A study that was killed begins an attempt of the same number again.
        for again in itertools.count(1):
            path = parent / (f"attempt-{self._attempt}" + (f".{again}" if again > 1 else ""))
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return path
        raise AssertionError("there is always another name")
