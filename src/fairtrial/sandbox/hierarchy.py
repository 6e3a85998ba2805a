"""Where control groups for commands can be made: what the kernel shows of its hierarchies."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = ("memory", "pids")


@dataclass(frozen=True, slots=True)
class Place:
    """A group below which groups for commands can be made.

    version: 1 or 2, of the kernel's interface
    mount: the top of the hierarchy
    folder: the group
    controllers: what its children can be limited in: `memory`, `pids`
    """

    version: int
    mount: Path
    folder: Path
    controllers: tuple[str, ...]


def find_places(
    mounts: str | None = None, memberships: str | None = None
) -> tuple[tuple[Place, ...], str]:
    """Where groups might be made, and, if a controller has no place, why.

    mounts: what /proc/self/mountinfo says; memberships: what /proc/self/cgroup says
    """
    try:
        mounts = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
        memberships = Path("/proc/self/cgroup").read_text() if memberships is None else memberships
    except OSError:
        return (), "this system has no control groups"
    ours: dict[str, str] = {}
    for line in memberships.splitlines():
        _, controllers, group = line.split(":", 2)
        ours |= dict.fromkeys(controllers.split(","), group)
    places, reasons = [], []
    for version, mount, root, options in _read_mounts(mounts):
        names = tuple(name for name in CONTROLLERS if name in options)
        is_wanted = version == 2 or names
        own = _locate(mount, root, ours.get(names[0] if names else "")) if is_wanted else None
        if own is None:
            continue
        if version == 1:
            places.append(Place(1, mount, own, names))
        else:
            place, reason = _climb(mount, own)
            places += [place] if place else []
            reasons += [reason] if reason else []
    missing = set(CONTROLLERS).difference(*(place.controllers for place in places))
    return tuple(places), "; ".join(reasons) if missing else ""


def _read_mounts(mounts: str) -> list[tuple[int, Path, str, list[str]]]:
    """Version, mount point, which group is mounted there, and options of each hierarchy."""
    found = []
    for line in mounts.splitlines():
        mounted, _, kind = line.partition(" - ")
        if not kind.startswith("cgroup"):
            continue
        root, point = (
            re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word)
            for word in mounted.split()[3:5]
        )
        version = 2 if kind.startswith("cgroup2 ") else 1
        options = [] if version == 2 else kind.split()[-1].split(",")
        found.append((version, Path(point), root, options))
    return found


def _locate(mount: Path, root: str, group: str | None) -> Path | None:
    """The folder of a group, where a mount shows it."""
    if group is None or ".." in group.split("/") or ".." in root.split("/"):
        return None
    below = "" if root == "/" else root
    if group != root and not group.startswith(f"{below}/"):
        return None
    return mount / group.removeprefix(below).lstrip("/")


def _climb(mount: Path, own: Path) -> tuple[Place | None, str]:
    """The nearest group of version 2 whose children are limited; as a rule the one around ours."""
    folder = own
    while True:
        enabled = _read_words(folder / "cgroup.subtree_control")
        names = tuple(name for name in CONTROLLERS if name in enabled)
        if names and os.access(folder, os.W_OK):
            return Place(2, mount, folder, names), ""
        if folder == mount:
            return None, f"no group around ours ({own}) is ours to make limited groups in"
        if _read_words(folder / "memory.max") not in ([], ["max"]):
            return None, f"{folder} has a memory limit, which groups beside it would escape"
        folder = folder.parent


def _read_words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
