"""Copy files and links exactly into open folders, and compare copies with their originals."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fairtrial.arena.slots.removal import enter_folder
from fairtrial.arena.slots.tree import CHUNK, READ_ONLY, Listing, Signature, sign
from fairtrial.core import LabError

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL_BYTES = 1 << 16


class Origin(NamedTuple):
    """The original that an entry is a copy of.

    file: the path of the original; empty for a folder
    signature: the original's signature, to detect changes to it
    """

    file: str
    signature: Signature

    @property
    def mode(self) -> int:
        return self.signature[0]


TargetTree = dict[str, dict[str, Origin]]
"""The entries that each folder should hold, outer folders first, as in a `Listing`."""


def build_target(top: Path, listing: Listing) -> TargetTree:
    """Return the target tree that copies the entries of a listing of `top`."""
    return {
        folder: {
            name: Origin("" if stat.S_ISDIR(signature[0]) else f"{top}/{folder}{name}", signature)
            for name, signature in names.items()
            if is_copyable(signature[0])
        }
        for folder, names in listing.items()
    }


def is_copyable(mode: int) -> bool:
    """Return whether a mode is that of a file, a folder or a link, not a pipe, socket or device."""
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def copy_origin(origin: Origin, name: str, parent: int) -> Signature:
    """Create a copy of the original in an open folder, and return its signature."""
    if stat.S_ISLNK(origin.mode):
        make_link(read_link(origin), name, parent)
        time_ns = origin.signature[3]
        os.utime(name, ns=(time_ns, time_ns), dir_fd=parent, follow_symlinks=False)
        return sign(os.stat(name, dir_fd=parent, follow_symlinks=False))
    source = _open_origin(origin)
    try:
        return copy_file(source, name, parent)
    finally:
        os.close(source)


def copy_file(source: int, name: str, parent: int) -> Signature:
    """Create a file with the content, mode and time of an open file; return its signature."""
    original = os.fstat(source)
    target = os.open(name, _CREATE, 0o600, dir_fd=parent)
    try:
        _copy_content(source, target, original.st_size)
        os.fchmod(target, stat.S_IMODE(original.st_mode))
        os.utime(target, ns=(original.st_mtime_ns, original.st_mtime_ns))
        return sign(os.fstat(target))
    finally:
        os.close(target)


def make_file(content: bytes, mode: int, name: str, parent: int) -> Signature:
    """Create a file in an open folder, and return its signature."""
    target = os.open(name, _CREATE, 0o600, dir_fd=parent)
    try:
        _write_all(target, content)
        os.fchmod(target, mode)
        return sign(os.fstat(target))
    finally:
        os.close(target)


def make_link(target: str | bytes, name: str, parent: int) -> Signature:
    """Create a symbolic link in an open folder, and return its signature."""
    os.symlink(os.fsdecode(target), name, dir_fd=parent)
    return sign(os.stat(name, dir_fd=parent, follow_symlinks=False))


def make_folder(name: str, mode: int, parent: int) -> Signature:
    """Create a folder in an open one, or set the mode of an existing one; return its signature."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    folder = enter_folder(name, parent)
    try:
        if stat.S_IMODE(os.fstat(folder).st_mode) != mode:
            os.fchmod(folder, mode)
        return sign(os.fstat(folder))
    finally:
        os.close(folder)


def is_copy(origin: Origin, name: str, parent: int) -> bool:
    """Return whether an entry has the kind, mode and content of the original."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if status.st_mode != origin.mode or status.st_size != origin.signature[2]:
        return False
    if stat.S_ISLNK(origin.mode):
        return os.readlink(name, dir_fd=parent) == read_link(origin)
    try:
        copy = os.open(name, READ_ONLY, dir_fd=parent)
    except OSError:  # unreadable, or no longer a file
        return False
    try:
        source = _open_origin(origin)
        try:
            return _same_content(source, copy)
        finally:
            os.close(source)
    finally:
        os.close(copy)


def digest_file(file: int) -> bytes:
    """Return a hash of an open file's content."""
    digest = hashlib.sha256()
    while block := os.read(file, CHUNK):
        digest.update(block)
    return digest.digest()


def digest_origin(origin: Origin) -> bytes:
    """Return a hash of the original's content, or of a link's target."""
    if stat.S_ISLNK(origin.mode):
        return hashlib.sha256(os.fsencode(read_link(origin))).digest()
    source = _open_origin(origin)
    try:
        return digest_file(source)
    finally:
        os.close(source)


def _open_origin(origin: Origin) -> int:
    source = os.open(origin.file, READ_ONLY)
    if sign(os.fstat(source)) != origin.signature:
        os.close(source)
        raise LabError(f"{origin.file}, which nobody but fairtrial should touch, was changed")
    return source


def read_link(origin: Origin) -> str:
    """Return the target of the original link, without normalization."""
    return os.readlink(origin.file)  # noqa: PTH115 - `Path` would normalize it


def _copy_content(source: int, target: int, size: int) -> None:
    if size > _SMALL_BYTES and hasattr(os, "copy_file_range"):
        try:
            while os.copy_file_range(source, target, CHUNK * 64):  # may share blocks on disk
                pass
        except OSError:  # not supported here, or the disk is full: then writing below fails, too
            os.lseek(source, 0, os.SEEK_SET)
            os.lseek(target, 0, os.SEEK_SET)
    while block := os.read(source, CHUNK):
        _write_all(target, block)


def _write_all(target: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(target, remaining) :]


def _same_content(first: int, second: int) -> bool:
    while True:
        first_block, second_block = os.read(first, CHUNK), os.read(second, CHUNK)
        if first_block != second_block:
            return False
        if not first_block:
            return True
