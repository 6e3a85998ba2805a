"""A user's repository, a snapshot of it, and a candidate's edits."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from repository_kit import make_repository, run_git

from fairtrial.arena import Changes, FileState
from fairtrial.arena.delivery.edits import read_edits
from fairtrial.arena.snapshot.snapshot import Snapshot, take_snapshot

TEN = "".join(f"line {number}\n" for number in range(1, 11))
FILES = {
    "src/ten.txt": TEN,
    "src/pkg/mod.py": "A = 1\n",
    "run.sh": "#!/bin/sh\n",
    "other.txt": "o\n",
}


@dataclass
class User:
    """A user with a repository, and a snapshot of it."""

    top: Path
    snapshot: Snapshot = None

    def write(self, path, content, mode=None):
        place = self.top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            place.chmod(mode)

    def read(self, path):
        return (self.top / path).read_bytes().decode()

    def git(self, *arguments):
        return run_git(self.top, *arguments).decode().strip()

    def snap(self):
        home = self.top.parent / f"home-{len(list(self.top.parent.iterdir()))}"
        home.mkdir()
        self.snapshot = anyio.run(take_snapshot, self.top, home)
        return self

    def edits(self, files):
        """Return a candidate's edits: texts or states of files, or None to remove one."""
        states = {
            path: FileState(state.encode()) if isinstance(state, str) else state
            for path, state in files.items()
        }
        return anyio.run(read_edits, Changes(states, "d"), self.snapshot)

    def own(self):
        """Return all that must not change while a branch is made: tree, index, HEAD, config."""
        kept = {}
        for folder, folders, names in os.walk(self.top):
            folders[:] = [item for item in folders if item not in ("objects", "logs", "refs")]
            for name in names:
                place = Path(folder, name)
                status = place.lstat()
                content = place.readlink() if place.is_symlink() else place.read_bytes()
                kept[str(place)] = (status.st_mode, status.st_mtime_ns, status.st_ino, content)
        return kept


def make_user(folder, files=None):
    """Make a repository with these files and a git identity."""
    top = make_repository(folder / "user", FILES if files is None else files)
    user = User(top)
    user.git("config", "user.name", "Ada")
    user.git("config", "user.email", "ada@example.org")
    return user


def run(function, *given, **named):
    return anyio.run(partial(function, *given, **named))
