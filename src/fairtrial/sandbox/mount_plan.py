"""Mount plans: what a command in a full sandbox sees of the machine, as plain data.

`fairtrial.sandbox.harness.namespaces.enter` documents the entries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.sandbox.commands import Command, Mount, View
from fairtrial.sandbox.system import system_links, system_mounts

HOME = "/home/fairtrial"
PRIVATE = ("/tmp", "/dev/shm", "/var/tmp", HOME)
USER_ID = 1000


def make_plan(command: Command) -> dict[str, Any]:
    """Return the mount plan for a command, and make missing mount points inside other mounts.

    Raises `LabError` if the source of a mount is missing.
    """
    view = command.view
    _make_mount_points(view)
    binds = [[source, target, False] for source, target in system_mounts(command.limits.network)]
    for mounts, is_writable in ((view.readable, False), (view.writable, True), (view.over, False)):
        binds += [_bind(mount, is_writable) for mount in mounts]
    return {
        "uid": USER_ID,
        "gid": USER_ID,
        "network": command.limits.network,
        "hostname": "fairtrial",
        "links": system_links(),
        "private": list(PRIVATE),
        "private_mb": command.limits.memory_mb,
        "mounts": binds,
    }


def private_variables() -> dict[str, str]:
    """Return the variables that name a command's home and temporary folder in a full sandbox."""
    return {"HOME": HOME, "TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp"}


def _bind(mount: Mount, is_writable: bool) -> list[Any]:
    if not mount.source.exists():
        raise LabError(f"{mount.source}, which a command should see, is not there")
    return [str(mount.source.resolve()), str(mount.target), is_writable]


def _make_mount_points(view: View) -> None:
    """Make mount points for mounts inside others.

    They are made on disk here, and links in their place are removed, since a link that a candidate
    left could redirect a mount.
    """
    mounts = [*view.readable, *view.writable, *view.over]
    for index, mount in enumerate(mounts):
        outer = [other for other in mounts[:index] if _lies_within(mount.target, other.target)]
        if outer:
            inner = mount.target.relative_to(outer[-1].target)
            _make_mount_point(outer[-1].source, inner, mount.source.is_dir())


def _lies_within(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)


def _make_mount_point(folder: Path, inner: Path, is_folder: bool) -> None:
    parent = folder
    for part in inner.parts[:-1]:
        parent /= part
        _make(parent, is_folder=True)
    _make(folder / inner, is_folder)


def _make(path: Path, is_folder: bool) -> None:
    if path.is_symlink() or (path.exists() and path.is_dir() != is_folder):
        if path.is_dir() and not path.is_symlink():
            raise LabError(f"{path} is a folder, and a file should be shown in its place")
        path.unlink()
    if not path.exists():
        if is_folder:
            path.mkdir()
        else:
            path.touch()
