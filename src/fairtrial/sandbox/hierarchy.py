"""Search for control groups below which groups for commands can be made."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = ("memory", "pids")
ACCOUNTING = "cpuacct"
"""In version 1, the controller that counts CPU time; in version 2 every group counts it."""


@dataclass(frozen=True, slots=True)
class GroupParent:
    """A control group below which groups for commands can be made.

    version: version of the kernel's interface, 1 or 2
    mount: the root of the hierarchy
    folder: the group's folder
    controllers: the resources that its children can limit, `memory` and `pids`, and `cpuacct` if
        they count CPU time
    """

    version: int
    mount: Path
    folder: Path
    controllers: tuple[str, ...]


def find_group_parents(
    mounts: str | None = None, memberships: str | None = None
) -> tuple[tuple[GroupParent, ...], str]:
    """Return where groups can probably be made, and the reason if a controller is missing.

    mounts: content of /proc/self/mountinfo
    memberships: content of /proc/self/cgroup
    """
    try:
        mounts = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
        memberships = Path("/proc/self/cgroup").read_text() if memberships is None else memberships
    except OSError:
        return (), "this system has no control groups"
    own_groups: dict[str, str] = {}
    for line in memberships.splitlines():
        _, controllers, group = line.split(":", 2)
        own_groups |= dict.fromkeys(controllers.split(","), group)
    parents, reasons = [], []
    for version, mount, root, options in _read_mounts(mounts):
        names = tuple(name for name in (*CONTROLLERS, ACCOUNTING) if name in options)
        if version == 1 and not names:
            continue
        own = _locate(mount, root, own_groups.get(names[0] if names else ""))
        if own is None:
            continue
        if version == 1:
            parents.append(GroupParent(1, mount, own, names))
        else:
            parent, reason = _find_limited_ancestor(mount, own)
            parents += [parent] if parent else []
            reasons += [reason] if reason else []
    missing = set(CONTROLLERS).difference(*(parent.controllers for parent in parents))
    return tuple(parents), "; ".join(reasons) if missing else ""


def _read_mounts(mounts: str) -> list[tuple[int, Path, str, list[str]]]:
    """Return version, mount point, mounted group and options of each hierarchy."""
    hierarchies = []
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
        hierarchies.append((version, Path(point), root, options))
    return hierarchies


def _locate(mount: Path, root: str, group: str | None) -> Path | None:
    """Return the folder of a group below a mount point; None if it is outside of the mount."""
    if group is None or ".." in group.split("/") or ".." in root.split("/"):
        return None
    below = "" if root == "/" else root
    if group != root and not group.startswith(f"{below}/"):
        return None
    return mount / group.removeprefix(below).lstrip("/")


def _find_limited_ancestor(mount: Path, own: Path) -> tuple[GroupParent | None, str]:
    """Return the nearest group of version 2 whose children can be limited, or why there is none.

    It is usually the parent of the process's own group.
    """
    folder = own
    while True:
        enabled = _read_words(folder / "cgroup.subtree_control")
        names = tuple(name for name in CONTROLLERS if name in enabled)
        if names and os.access(folder, os.W_OK):
            return GroupParent(2, mount, folder, names), ""
        if folder == mount:
            return None, f"this process may make limited groups in no group around its own ({own})"
        if _read_words(folder / "memory.max") not in ([], ["max"]):
            return None, f"{folder} has a memory limit, which groups beside it would escape"
        folder = folder.parent


def _read_words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
