"""List a folder's entries with signatures that reveal changes, at the cost of one `lstat` each.

A file counts as unchanged if kind, mode, inode, size and both times are the same. The change time
can't be set by the owner, but its clock has a resolution of some milliseconds: an entry that was
written in the tick in which it was listed may change once more without a trace. Such entries are
doubtful, and are compared by content until they are older.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from fairtrial.arena.slots.removal import enter_folder, unlock

Signature = tuple[int, int, int, int, int]
"""Mode, inode, size, modification time and change time; of a folder: mode, user and group."""
Names = dict[str, Signature]
Listing = dict[str, Names]
"""The entries of each folder, outer folders first: "" is the top, then "src/", "src/deep/"."""
MAX_DEPTH = 100
"""Folders that are nested deeper are not listed."""
READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # never blocks on a pipe
CHUNK = 1 << 20


def sign(status: os.stat_result) -> Signature:
    """Return the signature of an entry."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):  # its times change with its entries, which have their own signatures
        return (mode, status.st_uid, status.st_gid, 0, 0)
    return (mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def list_folder(folder: int) -> Names:
    """Return names and signatures of the entries of an open folder."""
    with os.scandir(folder) as entries:
        return {entry.name: sign(entry.stat(follow_symlinks=False)) for entry in entries}


def list_tree(
    top: int,
    only: Collection[str] | None = None,
    visit: Callable[[int], object] | None = None,
) -> Listing:
    """Return the listing of an open folder; folders that can't be read are unlocked.

    only: paths of the folders to list; all by default
    visit: called with the handle of each open folder
    """
    listing: Listing = {}
    _list_into(listing, top, "", only, visit, 0)
    return listing


def _list_into(
    listing: Listing,
    folder: int,
    path: str,
    only: Collection[str] | None,
    visit: Callable[[int], object] | None,
    depth: int,
) -> None:
    if visit is not None:
        visit(folder)
    names = listing[path] = list_folder(folder)
    for name, signature in names.items():
        if not stat.S_ISDIR(signature[0]) or depth >= MAX_DEPTH:
            continue
        inner = f"{path}{name}/"
        if only is not None and inner not in only:
            continue
        try:
            if signature[0] & 0o500 != 0o500:  # readable without being enterable, or neither
                unlock(name, folder)
            opened = enter_folder(name, folder)
        except (NotADirectoryError, FileNotFoundError):
            continue  # replaced meanwhile; restoring the tree detects that
        try:
            names[name] = sign(os.fstat(opened))  # it may have been unlocked
            _list_into(listing, opened, inner, only, visit, depth + 1)
        finally:
            os.close(opened)


def drop_attributes(folder: int) -> None:
    """Remove extended attributes and access lists of an open folder; its mode doesn't show them."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):  # not every file system has them
        for name in os.listxattr(folder):
            if name.startswith(("user.", "system.posix_acl")):
                os.removexattr(folder, name)


def read_clock_ns(path: Path) -> int:
    """Return the file system's time: the change time that a file beside `path` would get now."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.utime(handle)
        return os.fstat(handle).st_ctime_ns
    finally:
        os.close(handle)


def shows_mapped_writes(path: Path) -> bool:
    """Return whether writes through mapped memory update a file's times on this file system.

    path: a file that is created and removed for the test
    """
    path.write_bytes(b"a" * mmap.PAGESIZE)
    os.utime(path, ns=(0, 0))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        os.fsync(file.fileno())
        before = os.fstat(file.fileno())
        memory[0] = ord("b")
        memory.flush()
        after = os.fstat(file.fileno())
    path.unlink()
    return before.st_mtime_ns != after.st_mtime_ns and before.st_ctime_ns <= after.st_ctime_ns
