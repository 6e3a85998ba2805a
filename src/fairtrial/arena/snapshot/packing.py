"""Files on disk, written into a repository of ours as one commit.

Every byte is read from disk and nothing is borrowed from the user's repository, on purpose:
- what the user's index says of a file can be out of date (an edit of the same size in the same
  second) or about converted contents (line ends, filters);
- objects that are only reachable from the user's index or from a commit that is amended meanwhile
  can be pruned by `git gc`, and then the base of a running evaluation would be gone;
- git marks a borrowed object as used when it would have to write it again: it changes the times of
  the user's own files.
It costs little: reading and packing 20,000 files takes less than a second.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from fairtrial.arena.snapshot.git import git_environment
from fairtrial.arena.snapshot.survey import Found, unreadable
from fairtrial.core import LabError

BRANCH = "refs/heads/base"
_LINK = 0o120000
_AT_ONCE = 16 * 2**20  # larger files are read in pieces
_TRIES = 3
_POINTER_BYTES = 1024
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_SETTINGS = ("core.bigFileThreshold=16m", "core.compression=1", "fastimport.unpackLimit=0")


def write_commit(
    repo: Path, top: bytes, files: Sequence[Found], check_cancelled: Callable[[], None]
) -> list[bytes]:
    """Write the files as a commit without parents; gives the paths of what look like LFS pointers.

    check_cancelled: called now and then; may raise
    """
    # Without the variable, glibc gives memory back to the system and asks for it again with every
    # object, which takes longer than all the rest.
    env = git_environment(GIT_DIR=str(repo), MALLOC_TRIM_THRESHOLD_=str(64 * 2**20))
    options = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = ["git", *options, "fast-import", "--quiet", "--done", "--depth=0"]
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stderr=complaints,
            env=env,
            cwd=repo,
            bufsize=2**18,
        ) as process,
    ):
        assert process.stdin is not None
        pointers = []
        try:
            pointers = _feed(process.stdin, top, files, check_cancelled)
        except BrokenPipeError:
            pass  # it ended before its time, and says why
        except BaseException:
            process.kill()
            raise
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
        if process.wait():
            complaints.seek(0)
            told = complaints.read(2000).decode("utf-8", "replace").strip()
            free_mb = shutil.disk_usage(repo).free / 1e6
            raise LabError(
                f"the snapshot can't be written to {repo}, where {free_mb:,.1f} MB are free: "
                f"{told}; make room there, or set FAIRTRIAL_HOME to another folder"
            )
    return pointers


def _feed(
    stream: IO[bytes], top: bytes, files: Sequence[Found], check_cancelled: Callable[[], None]
) -> list[bytes]:
    who = b"fairtrial <fairtrial@localhost> 946684800 +0000"
    stream.write(b"commit %s\ncommitter %s\ndata 4\nbase\n" % (BRANCH.encode(), who))
    pointers, refused = [], []
    for number, file in enumerate(files):
        if number % 64 == 0:
            check_cancelled()
        place = top + b"/" + file.path
        head = b"M %o inline %s\n" % (file.mode, _quote(file.path))
        try:
            if file.size_bytes > _AT_ONCE:
                _feed_large(stream, head, place)
                continue
            content = _read(place, file.mode)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted since it was listed
        except BrokenPipeError:
            raise
        except PermissionError:
            refused.append(file.path)
            continue
        except OSError as error:
            raise LabError(f"{os.fsdecode(place)} can't be read: {error.strerror}") from error
        stream.write(b"%sdata %d\n%s\n" % (head, len(content), content))
        if len(content) <= _POINTER_BYTES and content.startswith(_POINTER):
            pointers.append(file.path)
    if refused:
        raise unreadable(top, refused)
    stream.write(b"done\n")
    return pointers


def _quote(path: bytes) -> bytes:
    if b"\n" not in path and not path.startswith(b'"'):
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _read(place: bytes, mode: int) -> bytes:
    """A file's content at one moment, if its writer allows: it is read again while it changes."""
    if mode == _LINK:
        with suppress(OSError):
            return os.readlink(place)  # noqa: PTH115 - a Path would tidy it up
        # on a file system without links, a text file stands for one
    with _opened(place) as (file, status):
        for _ in range(_TRIES):
            before = status
            content = b"".join(iter(partial(os.read, file, before.st_size + 1), b""))
            status = os.fstat(file)
            if _version(before) == _version(status):
                break
            os.lseek(file, 0, os.SEEK_SET)
    return content


def _feed_large(stream: IO[bytes], head: bytes, place: bytes) -> None:
    with _opened(place) as (file, status):
        stream.write(b"%sdata %d\n" % (head, status.st_size))
        left = status.st_size
        while left and (piece := os.read(file, min(left, _AT_ONCE))):
            stream.write(piece)
            left -= len(piece)
        if _version(status) != _version(os.fstat(file)):
            name = os.fsdecode(place)
            raise LabError(f"{name} was changed while it was read: try again when it is complete")
        stream.write(b"\n")


@contextmanager
def _opened(place: bytes) -> Iterator[tuple[int, os.stat_result]]:
    # Not through a link and not waiting for the writer of a pipe that took the file's place.
    file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(place)
        yield file, status
    finally:
        os.close(file)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
