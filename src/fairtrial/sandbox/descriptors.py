"""Descriptors of ours: none is inherited by chance, all are closed at the end."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType


class Descriptors:
    """All descriptors that are opened for one purpose; a context manager that closes them."""

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

    def pipe(self) -> tuple[int, int]:
        """Where to read, where to write."""
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def open(self, path: str | Path, flags: int) -> int:
        """A file that is there."""
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        self._open.add(descriptor)
        return descriptor

    def copy(self, descriptor: int) -> int:
        """Another one for the same thing, which may then be closed by whoever has it."""
        copied = os.dup(descriptor)
        self._open.add(copied)
        return copied

    def holding(self, data: bytes) -> int:
        """A file without a name that holds this, at its beginning; the empty device for nothing."""
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
        """Close those of them that are still open."""
        for descriptor in self._open.intersection(descriptors):
            self._open.discard(descriptor)
            os.close(descriptor)
