"""Repositories for tests: made quickly, looked at byte by byte."""

# Names are bytes here, which a Path is not made of.
# ruff: noqa: PTH113, PTH114, PTH115, PTH116, PTH118, PTH123

import hashlib
import os
import stat
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "tester",
    "GIT_AUTHOR_EMAIL": "tester@localhost",
    "GIT_COMMITTER_NAME": "tester",
    "GIT_COMMITTER_EMAIL": "tester@localhost",
    "GIT_ALLOW_PROTOCOL": "file",
}


def run_git(folder, *arguments, stdin=b"", check=True, **env):
    """What a git command prints, run as the user of the repository would."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", *arguments],
        cwd=folder,
        input=stdin,
        stdout=subprocess.PIPE,
        check=check,
        env={**kept, **ENVIRONMENT, **env},
    ).stdout


def write_files(folder, files):
    """Write files by path; text, or bytes."""
    for path, content in files.items():
        place = Path(folder) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_repo(folder, files=None, *options, commit=True):
    """A repository with these files, committed; `options` go to `git init`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main", *options)
    write_files(folder, files or {})
    run_git(folder, "add", "--all")
    if commit:
        run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def read_tree(repo, tree):
    """What a tree in a repository holds: (mode, content) by path, as bytes."""
    listed = run_git(repo, "ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]
    entries = [line.partition(b"\t")[::2] for line in listed]
    names = b"".join(head.split()[2] + b"\n" for head, _ in entries)
    stream = run_git(repo, "cat-file", "--batch", stdin=names)
    found = {}
    for head, path in entries:
        line, _, stream = stream.partition(b"\n")
        size = int(line.split()[2])
        found[path] = (int(head.split()[0], 8), stream[:size])
        stream = stream[size + 1 :]
    return found


def read_disk(top, paths):
    """The same of files on disk, as far as they are there."""
    found = {}
    for path in paths:
        place = os.path.join(os.fsencode(top), path)
        if os.path.islink(place):
            found[path] = (0o120000, os.readlink(place))
        elif os.path.isfile(place):
            mode = 0o100755 if os.stat(place).st_mode & 0o100 else 0o100644
            with open(place, "rb") as file:
                found[path] = (mode, file.read())
    return found


def fingerprint(folder):
    """Everything about a folder that somebody could change: names, modes, times, contents."""
    found = {}
    for place, folders, names in os.walk(os.fsencode(folder)):
        for name in [*folders, *names, b"."]:
            path = os.path.join(place, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).digest()
            found[path] = (status.st_mode, status.st_mtime_ns, status.st_ino, content)
    return found
