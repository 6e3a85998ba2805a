"""What a command sees of the machine, as plain data: the same for every sandbox that is a full one.

`fairtrial.sandbox.harness.namespaces.enter` says what the entries mean.
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
    """The machine for one command; makes sure that each mount has a place to lie on."""
    view = command.view
    _make_mount_points(view)
    shown = [[source, target, False] for source, target in system_mounts(command.limits.network)]
    for mounts, is_writable in ((view.readable, False), (view.writable, True), (view.over, False)):
        shown += [_bind(mount, is_writable) for mount in mounts]
    return {
        "uid": USER_ID,
        "gid": USER_ID,
        "network": command.limits.network,
        "hostname": "fairtrial",
        "links": system_links(),
        "private": list(PRIVATE),
        "private_mb": command.limits.memory_mb,
        "mounts": shown,
    }


def private_variables() -> dict[str, str]:
    """Where a command in a full sandbox finds its own home and temp."""
    return {"HOME": HOME, "TMPDIR": "/tmp", "TMP": "/tmp", "TEMP": "/tmp"}


def _bind(mount: Mount, is_writable: bool) -> list[Any]:
    if not mount.source.exists():
        raise LabError(f"{mount.source}, which a command should see, is not there")
    return [str(mount.source.resolve()), str(mount.target), is_writable]


def _make_mount_points(view: View) -> None:
    """Places for mounts that lie within others.

    They are made on disk by us, since a link that a candidate left there would lead a mount
    elsewhere, and the link could be turned afterwards.
    """
    mounts = [*view.readable, *view.writable, *view.over]
    for number, mount in enumerate(mounts):
        below = [each for each in mounts[:number] if _lies_within(mount.target, each.target)]
        if below:
            inner = mount.target.relative_to(below[-1].target)
            _make_place(below[-1].source, inner, mount.source.is_dir())


def _lies_within(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)


def _make_place(folder: Path, inner: Path, is_folder: bool) -> None:
    place = folder
    for part in inner.parts[:-1]:
        place /= part
        _make(place, is_folder=True)
    _make(folder / inner, is_folder)


def _make(place: Path, is_folder: bool) -> None:
    if place.is_symlink() or (place.exists() and place.is_dir() != is_folder):
        if place.is_dir() and not place.is_symlink():
            raise LabError(f"{place} is a folder, and a file should be shown in its place")
        place.unlink()
    if not place.exists():
        if is_folder:
            place.mkdir()
        else:
            place.touch()
