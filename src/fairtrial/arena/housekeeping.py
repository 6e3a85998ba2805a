"""What killed runs left on this machine: working copies on disk, and control groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.slots.pool_folders import (
    PoolFolderInfo,
    find_pool_folders,
    remove_orphaned_pools,
)
from fairtrial.sandbox import cgroup


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The working copies on disk: which were removed, kept, or are in use.

    folders: all working copies of this user, those in use as well, oldest first
    removed: the paths of those that were removed
    failures: what couldn't be removed, as text
    """

    folders: tuple[PoolFolderInfo, ...]
    removed: frozenset[Path] = frozenset()
    failures: tuple[str, ...] = ()

    @property
    def freed_bytes(self) -> int:
        """How much disk space the removed ones took."""
        return sum(folder.size_bytes for folder in self.folders if folder.path in self.removed)


def clean_up(*, is_dry_run: bool = False) -> Leftovers:
    """Remove working copies that no process uses, those that were kept on purpose, too.

    Empty control groups of killed runs are removed as well.

    is_dry_run: only find them, and remove nothing
    """
    folders = tuple(find_pool_folders())
    if is_dry_run:
        return Leftovers(folders)
    removed, failures = remove_orphaned_pools(with_kept=True)
    cgroup.remove_orphaned_groups()
    return Leftovers(folders, frozenset(removed), tuple(failures))
