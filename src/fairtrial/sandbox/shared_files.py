"""Lock files that all users of a host share.

Opened safely in a folder where any user may make files, and closed in forked children.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path

from fairtrial.core import LabError

ALL_USERS_MODE = 0o666
STALE_S = 86_400.0
"""Files in use are touched once a day, since hosts remove old files from temporary folders."""
TRIES = 100
_guard = threading.RLock()
_open_handles: set[SharedFile] = set()


class SharedFile:
    """An open file whose lock belongs to this process alone; a context manager that closes it.

    path: its path
    fd: its descriptor; -1 once it is closed
    """

    def __init__(self, path: Path, access: int) -> None:
        flags = access | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with _guard:
            self.path, self.fd = path, os.open(path, flags)
            _open_handles.add(self)

    def __enter__(self) -> SharedFile:
        return self

    def __exit__(self, *_: object) -> None:
        with _guard:
            fd, self.fd = self.fd, -1
            _open_handles.discard(self)
        if fd >= 0:
            # Unlock explicitly: a copy of the descriptor in another process would keep the lock.
            with suppress(OSError):  # on systems where FIFOs can't be locked
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def lock(self, side: int) -> bool:
        """Take the lock (`fcntl.LOCK_SH` or `LOCK_EX`) without waiting; returns whether it did."""
        try:
            fcntl.flock(self.fd, side | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LabError(f"{self.path} can't be locked: {error.strerror}") from error
        return True

    def unlock(self) -> None:
        """Release the lock, and keep the file open."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)

    def is_current(self) -> bool:
        """Return whether the path still refers to this file."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.lstat(self.path))
        except FileNotFoundError:
            return False


def open_shared_file(path: Path) -> SharedFile:
    """Open a file that every user may write to, and make it if it is missing.

    Raises `LabError` if it can't be used.
    """
    return _open(path, os.O_RDWR, stat.S_IFREG)


def open_shared_fifo(path: Path, access: int) -> SharedFile:
    """Open a FIFO that every user may open, and make it if it is missing.

    Raises `LabError` if it can't be used.
    """
    return _open(path, access, stat.S_IFIFO)


def _open(path: Path, access: int, kind: int) -> SharedFile:
    for _ in range(TRIES):  # another process may remove the file after it was made here
        try:
            handle = SharedFile(path, access)
        except FileNotFoundError:
            _make(path, kind)
            continue
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        state = os.fstat(handle.fd)
        # Refuse other files, so that a planted file or link can't redirect a write.
        if stat.S_IFMT(state.st_mode) != kind or stat.S_IMODE(state.st_mode) != ALL_USERS_MODE:
            handle.__exit__()
            raise _unusable(path, "it is not as fairtrial makes it")
        if abs(time.time() - state.st_mtime) > STALE_S:
            with suppress(OSError):
                os.utime(handle.fd)
        return handle
    raise _unusable(path, "another process keeps removing it")


def _make(path: Path, kind: int) -> None:
    """Make a file or FIFO under a temporary name, and link it once its mode is right.

    So there is no moment at which the umask keeps other users from opening it.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        if kind == stat.S_IFIFO:
            os.mkfifo(draft)
        else:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        try:
            draft.chmod(ALL_USERS_MODE)
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        raise LabError(
            f"the host-wide lock needs files in {path.parent}, and they can't be made there: "
            f"{error.strerror}"
        ) from error


def _unusable(path: Path, reason: str) -> LabError:
    return LabError(
        f"{path}, which the host-wide lock needs, can't be used: {reason}; if no fairtrial runs on "
        "this host, have its owner remove it"
    )


def _close_inherited() -> None:
    """Close all shared files in a forked child, which would otherwise keep the parent's locks."""
    for handle in _open_handles:
        os.close(handle.fd)
        handle.fd = -1
    _open_handles.clear()
    _guard.release()


os.register_at_fork(
    before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_inherited
)
