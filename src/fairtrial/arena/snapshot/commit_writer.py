"""Write files on disk into a private repository, as one commit.

Every byte is read from disk; no objects of the user's repository are reused, on purpose:
- the user's index can be out of date (an edit of the same size in the same second), or refer to
  converted contents (line ends, filters);
- objects that are reachable only from the user's index, or from a commit that is amended meanwhile,
  can be pruned by `git gc`, and then the base of a running evaluation would be lost;
- git marks a shared object as used when it would have to write it again, which changes the times of
  the user's own files.
The cost is small: reading and packing 20,000 files takes less than a second.
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

from fairtrial.arena.snapshot.disk_files import DiskFile, unreadable_error
from fairtrial.arena.snapshot.git import git_environment
from fairtrial.core import LabError

BRANCH = "refs/heads/base"
_LINK = 0o120000
_CHUNK_BYTES = 16 * 2**20  # larger files are read in pieces
_ATTEMPTS = 3
_MAX_POINTER_BYTES = 1024
_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_SETTINGS = ("core.bigFileThreshold=16m", "core.compression=1", "fastimport.unpackLimit=0")


def write_commit(
    repo: Path, top: bytes, files: Sequence[DiskFile], check_cancelled: Callable[[], None]
) -> list[bytes]:
    """Write the files as a commit without parents, and return the paths of LFS pointer files.

    Files that were deleted meanwhile are left out. Raises `StudyError` about files that can't be
    read, and `LabError` if the commit can't be written.

    repo: a bare repository
    top: the folder that paths of the files are relative to
    check_cancelled: called at intervals; may raise
    """
    # Without the variable, glibc returns memory to the system and requests it again with every
    # object, which takes longer than all the rest.
    env = git_environment(GIT_DIR=str(repo), MALLOC_TRIM_THRESHOLD_=str(64 * 2**20))
    options = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = ["git", *options, "fast-import", "--quiet", "--done", "--depth=0"]
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stderr=stderr,
            env=env,
            cwd=repo,
            bufsize=2**18,
        ) as process,
    ):
        assert process.stdin is not None
        pointers = []
        try:
            pointers = _write_stream(process.stdin, top, files, check_cancelled)
        except BrokenPipeError:
            pass  # git ended early; its exit code and message are read below
        except BaseException:
            process.kill()
            raise
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
        if process.wait():
            stderr.seek(0)
            message = stderr.read(2000).decode("utf-8", "replace").strip()
            free_mb = shutil.disk_usage(repo).free / 1e6
            raise LabError(
                f"the snapshot can't be written to {repo}, where {free_mb:,.1f} MB are free: "
                f"{message}; make room there, or set FAIRTRIAL_HOME to another folder"
            )
    return pointers


def _write_stream(
    stream: IO[bytes], top: bytes, files: Sequence[DiskFile], check_cancelled: Callable[[], None]
) -> list[bytes]:
    committer = b"fairtrial <fairtrial@localhost> 946684800 +0000"
    stream.write(b"commit %s\ncommitter %s\ndata 4\nbase\n" % (BRANCH.encode(), committer))
    pointers, refused = [], []
    for number, file in enumerate(files):
        if number % 64 == 0:
            check_cancelled()
        path = top + b"/" + file.path
        head = b"M %o inline %s\n" % (file.mode, _quote(file.path))
        try:
            if file.size_bytes > _CHUNK_BYTES:
                _write_large_file(stream, head, path)
                continue
            content = _read(path, file.mode)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted since it was listed
        except BrokenPipeError:
            raise
        except PermissionError:
            refused.append(file.path)
            continue
        except OSError as error:
            raise LabError(f"{os.fsdecode(path)} can't be read: {error.strerror}") from error
        stream.write(b"%sdata %d\n%s\n" % (head, len(content), content))
        if len(content) <= _MAX_POINTER_BYTES and content.startswith(_POINTER):
            pointers.append(file.path)
    if refused:
        raise unreadable_error(top, refused)
    stream.write(b"done\n")
    return pointers


def _quote(path: bytes) -> bytes:
    if b"\n" not in path and not path.startswith(b'"'):
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _read(path: bytes, mode: int) -> bytes:
    """Return a file's content, or a link's target; a file that changes is read again, thrice."""
    if mode == _LINK:
        with suppress(OSError):
            return os.readlink(path)  # noqa: PTH115 - `Path` would normalize it
        # On a file system without links, git stores the target in a text file.
    with _open_file(path) as (file, status):
        for _ in range(_ATTEMPTS):
            before = status
            content = b"".join(iter(partial(os.read, file, before.st_size + 1), b""))
            status = os.fstat(file)
            if _version(before) == _version(status):
                break
            os.lseek(file, 0, os.SEEK_SET)
    return content


def _write_large_file(stream: IO[bytes], head: bytes, path: bytes) -> None:
    with _open_file(path) as (file, status):
        stream.write(b"%sdata %d\n" % (head, status.st_size))
        left = status.st_size
        while left and (piece := os.read(file, min(left, _CHUNK_BYTES))):
            stream.write(piece)
            left -= len(piece)
        if _version(status) != _version(os.fstat(file)):
            name = os.fsdecode(path)
            raise LabError(f"{name} was changed while it was read: try again when it is complete")
        stream.write(b"\n")


@contextmanager
def _open_file(path: bytes) -> Iterator[tuple[int, os.stat_result]]:
    # If a link or pipe has replaced the file, don't follow the link or wait for the pipe's writer.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(path)
        yield file, status
    finally:
        os.close(file)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
