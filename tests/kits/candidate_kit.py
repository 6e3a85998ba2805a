"""A small base, and helpers to resolve candidates against it."""

import tempfile
from functools import partial
from pathlib import Path

import anyio
from repository_kit import make_repository, run_git

from fairtrial.arena import Candidate, FileState, Rejection
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.candidates.resolution import resolve
from fairtrial.arena.snapshot.snapshot import take_snapshot

EVERYTHING = PathRules(("**",), unprotect=("**",))
TEN = "".join(f"line {number}\n" for number in range(1, 11))
FILES = {
    "src/pkg/__init__.py": "",
    "src/pkg/core.py": "import math\n\n\ndef add(a, b):\n    total = a + b\n    return total\n",
    "src/pkg/ten.txt": TEN,
    "src/pkg/same.txt": "same\n" * 6 + "other\n" + "same\n" * 3,
    "src/pkg/crlf.txt": TEN.replace("\n", "\r\n"),
    "src/pkg/unended.txt": TEN.rstrip("\n"),
    "src/pkg/marks.md": "# Title\n\n```python\nx = 1\n```\n\n-- \nend\n--- a/x\n+++ b/y\n",
    "src/pkg/with space ä.txt": TEN,
    "data.bin": bytes(range(256)) * 8,
    "tests/test_core.py": "def test_it():\n    pass\n",
    "pyproject.toml": "[project]\n",
    "run.sh": "#!/bin/sh\necho\n",
    "projects/one/src/mod.py": "x = 1\ny = 2\nz = 3\n",
}


def make_tree(folder, files=FILES):
    """Create a repository with these files; by default one is executable, and one is a link."""
    make_repository(folder, files)
    if files is FILES:
        (folder / "run.sh").chmod(0o755)
        (folder / "link").symlink_to("src/pkg")
        run_git(folder, "add", "--all")
        run_git(folder, "commit", "--quiet", "--message", "modes")
    return folder


def make_snapshot(folder, files=FILES):
    tree = make_tree(folder / "tree", files)
    home = folder / "home"
    home.mkdir()
    return anyio.run(take_snapshot, tree, home)


def resolve_candidate(snapshot, candidate, rules=EVERYTHING):
    """Resolve a candidate: a `Candidate`, a diff as text or bytes, or a mapping of files."""
    if isinstance(candidate, str | bytes):
        candidate = Candidate("it", diff=encode(candidate))
    elif not isinstance(candidate, Candidate):
        states = {
            path: state if isinstance(state, FileState) else FileState(encode(state))
            for path, state in candidate.items()
        }
        candidate = Candidate("it", files=states)
    return anyio.run(partial(resolve, candidate, snapshot, rules))


def encode(content):
    return content if isinstance(content, bytes) else content.encode()


def contents(changes):
    """Return the content of each changed path, None for a deleted file."""
    assert not isinstance(changes, Rejection), changes
    return {path: state and state.content for path, state in changes.files.items()}


def git_diff(snapshot, change, *options):
    """Return the output of `git diff` after `change(folder)` in a clone of the base."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "copy")
        run_git(name, "clone", "--quiet", str(snapshot.source), str(folder))
        change(folder)
        run_git(folder, "add", "--all")
        return run_git(folder, "diff", "--cached", *options)
