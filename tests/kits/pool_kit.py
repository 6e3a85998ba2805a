"""Repositories and slots for tests of the worktree pool, and exact contents of folders."""

import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path

from repository_kit import make_repository, write_files

from fairtrial.arena.slots.copying import build_target
from fairtrial.arena.slots.staging import Staging
from fairtrial.arena.slots.tree import list_tree

FILES = {
    "README": "read me\n",
    "src/pkg/__init__.py": "",
    "src/pkg/mod.py": "VALUE = 1\n",
    "tests/test_mod.py": "def test(): pass\n",
    "benchmarks/inputs.py": "SECRET = 7\n",
    "run.sh": "#!/bin/sh\n",
}


@contextmanager
def memory_folder():
    """Yield a temporary folder, in memory if possible: these tests write thousands of files."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fairtrial-test-", dir=parent) as name:
        yield Path(name)


def make_mixed_repository(top):
    """Create a repository with an executable file (`run.sh`), a link and ignored folders."""
    write_files(top, FILES)
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("README")
    return make_repository(top, {".gitignore": "data/\n__pycache__/\n"})


def read_contents(top):
    """Return the mode and content of every path below `top`, by relative path."""
    files = {}
    for folder, folders, names in os.walk(top):
        for name in [*folders, *names]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = os.readlink(path)  # noqa: PTH115 - without normalization
            else:
                content = path.read_bytes() if stat.S_ISREG(mode) else None
            files[str(path.relative_to(top))] = (oct(mode), content)
    return files


def read_target(top):
    """Return the target tree that copies the entries of `top`."""
    handle = os.open(top, os.O_RDONLY)
    try:
        return build_target(top, list_tree(handle))
    finally:
        os.close(handle)


def stage(folder, top, **options):
    """Create a slot in `folder / "slot"` that holds the entries of `top`."""
    staging = Staging(folder / "slot", folder / "store", {}, **options)
    staging.stage(read_target(top))
    return staging


@contextmanager
def as_ordinary_user():
    """Give up root's permission to read and write everything, within the block."""
    if os.geteuid() != 0:
        yield
        return
    import ctypes

    os.setegid(65534)
    os.seteuid(65534)
    # Changing the user makes a process undumpable, and then /proc/self would belong to root.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
