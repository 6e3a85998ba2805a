"""Exact copies of files and links, made in open folders, and whether something still is one."""

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

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL = 1 << 16


class Origin(NamedTuple):
    """What an entry is a copy of; a folder is a copy of nothing.

    file: the path of the original
    signature: the original's, to notice if somebody changes it
    """

    file: str
    signature: Signature

    @property
    def mode(self) -> int:
        return self.signature[0]


Wanted = dict[str, dict[str, Origin]]
"""What should be in each folder, outer folders first, as in a `Listing`."""


def originate(top: Path, listing: Listing) -> Wanted:
    """The table that wants what was found under `top`."""
    return {
        folder: {
            name: Origin("" if stat.S_ISDIR(each[0]) else f"{top}/{folder}{name}", each)
            for name, each in names.items()
            if is_plain(each[0])
        }
        for folder, names in listing.items()
    }


def is_plain(mode: int) -> bool:
    """Whether it is a file, a folder or a link; pipes, sockets and devices are never copied."""
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def copy_origin(origin: Origin, name: str, parent: int) -> Signature:
    """A new file or link in an open folder, as the original is."""
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
    """A new file in an open folder with the content, mode and time of an open one."""
    original = os.fstat(source)
    target = os.open(name, _NEW, 0o600, dir_fd=parent)
    try:
        _copy_content(source, target, original.st_size)
        os.fchmod(target, stat.S_IMODE(original.st_mode))
        os.utime(target, ns=(original.st_mtime_ns, original.st_mtime_ns))
        return sign(os.fstat(target))
    finally:
        os.close(target)


def make_file(content: bytes, mode: int, name: str, parent: int) -> Signature:
    """A new file in an open folder."""
    target = os.open(name, _NEW, 0o600, dir_fd=parent)
    try:
        _write_all(target, content)
        os.fchmod(target, mode)
        return sign(os.fstat(target))
    finally:
        os.close(target)


def make_link(leads_to: str | bytes, name: str, parent: int) -> Signature:
    """A new symbolic link in an open folder."""
    os.symlink(os.fsdecode(leads_to), name, dir_fd=parent)
    return sign(os.stat(name, dir_fd=parent, follow_symlinks=False))


def make_folder(name: str, mode: int, parent: int) -> Signature:
    """A new folder in an open one, or one that is there with its mode set right."""
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
    """Whether an entry is what the original is: kind, mode and content."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if found.st_mode != origin.mode or found.st_size != origin.signature[2]:
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
    """A hash of what an open file holds."""
    total = hashlib.sha256()
    while block := os.read(file, CHUNK):
        total.update(block)
    return total.digest()


def digest_origin(origin: Origin) -> bytes:
    """A hash of what the original holds, or of where it leads."""
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
    """Where the original leads, to the letter."""
    return os.readlink(origin.file)  # noqa: PTH115 - a Path would tidy it up


def _copy_content(source: int, target: int, size: int) -> None:
    if size > _SMALL and hasattr(os, "copy_file_range"):
        try:
            while os.copy_file_range(source, target, CHUNK * 64):  # may share the blocks
                pass
        except OSError:  # not on this file system, or not all of it: below it is told why
            os.lseek(source, 0, os.SEEK_SET)
            os.lseek(target, 0, os.SEEK_SET)
    while block := os.read(source, CHUNK):
        _write_all(target, block)


def _write_all(target: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]


def _same_content(first: int, second: int) -> bool:
    while True:
        one, other = os.read(first, CHUNK), os.read(second, CHUNK)
        if one != other:
            return False
        if not one:
            return True
