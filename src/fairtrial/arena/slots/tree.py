"""What a folder holds, as quickly as it can be told: one `lstat` for each entry.

A file counts as unchanged if kind, mode, inode, size and both times are what they were. The
change time is the one that its owner can't set, but its clock ticks a few milliseconds at a time:
an entry that changed in the very tick in which we were done with it may change once more without a
trace. Such entries are doubtful, and are compared by content until they are older.
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
"""Mode, inode, size, time of modification and of change; of a folder: mode and owners."""
Names = dict[str, Signature]
Listing = dict[str, Names]
"""What is in each folder, outer folders first: "" is the top, then "src/", "src/deep/"."""
DEEPEST = 100
"""How many folders in folders are looked into."""
READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold us up
CHUNK = 1 << 20


def sign(entry: os.stat_result) -> Signature:
    """All that tells a changed entry from an unchanged one."""
    mode = entry.st_mode
    if stat.S_ISDIR(mode):  # its times tell of its entries, which are looked at themselves
        return (mode, entry.st_uid, entry.st_gid, 0, 0)
    return (mode, entry.st_ino, entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns)


def list_folder(folder: int) -> Names:
    """Names and signatures of what is in an open folder."""
    with os.scandir(folder) as entries:
        return {each.name: sign(each.stat(follow_symlinks=False)) for each in entries}


def list_tree(
    top: int,
    only: Collection[str] | None = None,
    visit: Callable[[int], object] | None = None,
) -> Listing:
    """The listing of an open folder of ours; `only` says which folders in it are looked into.

    visit: called with each folder while it is open
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
        if not stat.S_ISDIR(signature[0]) or depth >= DEEPEST:
            continue
        inner = f"{path}{name}/"
        if only is not None and inner not in only:
            continue
        try:
            if signature[0] & 0o500 != 0o500:  # readable without being enterable, or neither
                unlock(name, folder)
            opened = enter_folder(name, folder)
        except (NotADirectoryError, FileNotFoundError):
            continue  # swapped since; whoever mends the tree will see
        try:
            names[name] = sign(os.fstat(opened))  # it may have been unlocked
            _list_into(listing, opened, inner, only, visit, depth + 1)
        finally:
            os.close(opened)


def drop_attributes(folder: int) -> None:
    """Take extended attributes and access lists off an open folder; its mode doesn't show them."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):  # not every file system has them
        for name in os.listxattr(folder):
            if name.startswith(("user.", "system.posix_acl")):
                os.removexattr(folder, name)


def read_clock_ns(path: Path) -> int:
    """The change time that an entry beside `path` would get now, by the file system's own clock."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.utime(handle)
        return os.fstat(handle).st_ctime_ns
    finally:
        os.close(handle)


def shows_mapped_writes(path: Path) -> bool:
    """Whether writing through mapped memory shows in a file's times; not all file systems do that.

    `path` is a file to try it on.
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
