"""Files that all users of a host share: nobody's trap, and nothing that a forked child inherits."""

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

FOR_ALL = 0o666
STALE_S = 86_400.0
"""A file that is in use is touched once a day: what nobody touches, hosts clean away."""
TRIES = 100
_guard = threading.RLock()
_open_handles: set[Handle] = set()


class Handle:
    """An open file that is locked for its owner alone; a context manager that closes it."""

    def __init__(self, path: Path, access: int) -> None:
        flags = access | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with _guard:
            self.path, self.fd = path, os.open(path, flags)
            _open_handles.add(self)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        with _guard:
            fd, self.fd = self.fd, -1
            _open_handles.discard(self)
        if fd >= 0:
            # Whoever got a copy of the descriptor nevertheless shall not keep the lock.
            with suppress(OSError):  # where FIFOs can't be locked at all
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def lock(self, how: int) -> bool:
        """Take the lock (`fcntl.LOCK_SH`, `LOCK_EX`) if that can be done without waiting."""
        try:
            fcntl.flock(self.fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LabError(f"{self.path} can't be locked: {error.strerror}") from error
        return True

    def unlock(self) -> None:
        """Let go of the lock and keep the file open."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)

    def is_current(self) -> bool:
        """Whether whoever opens the path now gets this very file."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.lstat(self.path))
        except FileNotFoundError:
            return False


def open_common_file(path: Path) -> Handle:
    """A small file that everybody may write to; made if it isn't there."""
    return _open(path, os.O_RDWR, stat.S_IFREG)


def open_common_fifo(path: Path, access: int) -> Handle:
    """A FIFO that everybody may open; made if it isn't there."""
    return _open(path, access, stat.S_IFIFO)


def _open(path: Path, access: int, kind: int) -> Handle:
    for _ in range(TRIES):  # others may remove it each time we have made it, but not for ever
        try:
            handle = Handle(path, access)
        except FileNotFoundError:
            _make(path, kind)
            continue
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        state = os.fstat(handle.fd)
        # What everybody may write to holds nothing that a trap could make us spoil.
        if stat.S_IFMT(state.st_mode) != kind or stat.S_IMODE(state.st_mode) != FOR_ALL:
            handle.__exit__()
            raise _unusable(path, "it is not as fairtrial makes it")
        if abs(time.time() - state.st_mtime) > STALE_S:
            with suppress(OSError):
                os.utime(handle.fd)
        return handle
    raise _unusable(path, "somebody keeps removing it")


def _make(path: Path, kind: int) -> None:
    """It appears under its name with its mode: a umask leaves no moment when others can't open."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        if kind == stat.S_IFIFO:
            os.mkfifo(draft)
        else:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        try:
            draft.chmod(FOR_ALL)
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        raise LabError(
            f"the host-wide lock needs files in {path.parent}, and they can't be made there: "
            f"{error.strerror}"
        ) from error


def _unusable(path: Path, why: str) -> LabError:
    return LabError(
        f"{path}, which the host-wide lock needs, can't be used: {why}; if no fairtrial runs on "
        "this host, have its owner remove it"
    )


def _drop_inherited() -> None:
    """In a forked child: locks belong to open files, and the parent's shall not outlive it here."""
    for handle in _open_handles:
        os.close(handle.fd)
        handle.fd = -1
    _open_handles.clear()
    _guard.release()


os.register_at_fork(
    before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_drop_inherited
)
