"""Paths on a node of a cluster: where it keeps its copies of the driver's folders.

Copies lie below one folder, at the paths that they have on the driver: a relative path from one to
another is right on both.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_copies: tuple[str, tuple[str, ...]] = ("", ())
"""The folder that holds all copies of this process's node, and which paths were copied."""


def use_copies(root: str, copied: Sequence[str]) -> None:
    """Have paths of the driver found below `root` from now on; called once in a worker process.

    copied: the files and folders that were copied, without links in their paths
    """
    global _copies
    _copies = (root, tuple(copied))


def find_moved(path: str | os.PathLike[str]) -> Path:
    """Return where a path of the driver is on this node: in a copy, or where it is on the driver.

    path: an absolute path; a relative one is returned as it is
    """
    given = Path(path)
    return restore_path(str(given), os.path.realpath(given)) if given.is_absolute() else given


def restore_path(given: str, real: str) -> Path:
    """Return a path that was pickled on the driver as it is on this node.

    real: the path on the driver, absolute and without links
    """
    root, copied = _copies
    is_copied = any(real == folder or real.startswith(f"{folder}/") for folder in copied)
    return Path(root + real if is_copied else given)
