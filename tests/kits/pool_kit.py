"""Small repositories, and what exactly lies in a folder."""

import os
import stat
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from fairtrial.arena.slots.copying import originate
from fairtrial.arena.slots.staging import Staging
from fairtrial.arena.slots.tree import list_tree
from fairtrial.arena.snapshot.git import git_environment

FILES = {
    "README": "read me\n",
    "src/pkg/__init__.py": "",
    "src/pkg/mod.py": "VALUE = 1\n",
    "tests/test_mod.py": "def test(): pass\n",
    "benchmarks/inputs.py": "SECRET = 7\n",
    "run.sh": "#!/bin/sh\n",
}


@contextmanager
def quick_folder():
    """A folder in memory, where there is one: these tests make thousands of files."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fairtrial-test-", dir=place) as name:
        yield Path(name)


def make_repository(top, files=None):
    """A committed tree; `run.sh` is executable, `link` leads to README."""
    write_files(top, FILES if files is None else files)
    if files is None:
        (top / "run.sh").chmod(0o755)
        (top / "link").symlink_to("README")
        (top / ".gitignore").write_text("data/\n__pycache__/\n")
    run_git(top, "init", "-q")
    run_git(top, "add", "-A")
    run_git(top, "commit", "-q", "-m", "first")
    return top


def run_git(top, *arguments):
    done = subprocess.run(
        ["git", *arguments],
        cwd=top,
        env=git_environment(),
        check=True,
        capture_output=True,
    )
    return done.stdout.decode("utf-8", "replace")


def write_files(top, files):
    for path, content in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(content)


def contents(top):
    """Every path below `top` with its kind, mode and content."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            place = Path(folder, name)
            mode = place.lstat().st_mode
            if stat.S_ISLNK(mode):
                content = os.readlink(place)  # noqa: PTH115 - to the letter
            else:
                content = place.read_bytes() if stat.S_ISREG(mode) else None
            found[str(place.relative_to(top))] = (oct(mode), content)
    return found


def wanted_of(top):
    """The table that wants what lies in `top`."""
    handle = os.open(top, os.O_RDONLY)
    try:
        return originate(top, list_tree(handle))
    finally:
        os.close(handle)


def stage(folder, top, **options):
    """A slot in `folder / "slot"`, staged from `top`."""
    staging = Staging(folder / "slot", folder / "store", {}, **options)
    staging.become(wanted_of(top))
    return staging


@contextmanager
def as_ordinary_user():
    """Without root's rights to read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    import ctypes

    os.setegid(65534)
    os.seteuid(65534)
    # Or /proc/self would be root's: changing users makes a process opaque.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
