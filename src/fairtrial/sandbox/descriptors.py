"""Groups of file descriptors that are closed together and not inherited by accident."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType


class Descriptors:
    """Descriptors that are opened for one purpose; a context manager that closes all of them."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def __enter__(self) -> Descriptors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(*self._open)

    @property
    def numbers(self) -> tuple[int, ...]:
        """All that are open."""
        return tuple(self._open)

    def pipe(self) -> tuple[int, int]:
        """Make a pipe; returns its reading and its writing end."""
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def open(self, path: str | Path, flags: int) -> int:
        """Open an existing file."""
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        self._open.add(descriptor)
        return descriptor

    def copy(self, descriptor: int) -> int:
        """Duplicate a descriptor, so that its owner may close the original."""
        duplicate = os.dup(descriptor)
        self._open.add(duplicate)
        return duplicate

    def make_file(self, data: bytes) -> int:
        """Make an anonymous file with this content, positioned at its start; /dev/null if empty."""
        if not data:
            return self.open(os.devnull, os.O_RDONLY)
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("fairtrial")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        self._open.add(descriptor)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def close(self, *descriptors: int) -> None:
        """Close those of these descriptors that are still open."""
        for descriptor in self._open.intersection(descriptors):
            self._open.discard(descriptor)
            os.close(descriptor)
