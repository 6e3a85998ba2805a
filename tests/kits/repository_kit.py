"""Git repositories for tests: create them, and read their trees and files byte by byte."""

# Paths are bytes here, which `Path` doesn't support.
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
    """Run a git command as the repository's user would, and return what it prints, as bytes."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", *arguments],
        cwd=folder,
        input=stdin,
        stdout=subprocess.PIPE,
        check=check,
        env={**inherited, **ENVIRONMENT, **env},
    ).stdout


def write_files(folder, files):
    """Write files, given by path below `folder`; contents are text or bytes."""
    for path, content in files.items():
        target = Path(folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_repository(folder, files=None, *options, commit=True):
    """Create a repository with these files, committed by default; `options` go to `git init`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main", *options)
    write_files(folder, files or {})
    run_git(folder, "add", "--all")
    if commit:
        run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def read_tree(repo, tree):
    """Return (mode, content) of each file of a tree in a repository, by path as bytes."""
    listed = run_git(repo, "ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]
    entries = [line.partition(b"\t")[::2] for line in listed]
    names = b"".join(head.split()[2] + b"\n" for head, _ in entries)
    stream = run_git(repo, "cat-file", "--batch", stdin=names)
    files = {}
    for head, path in entries:
        line, _, stream = stream.partition(b"\n")
        size = int(line.split()[2])
        files[path] = (int(head.split()[0], 8), stream[:size])
        stream = stream[size + 1 :]
    return files


def read_disk(top, paths):
    """Return (mode, content) of those files that exist on disk, by path as bytes."""
    files = {}
    for path in paths:
        target = os.path.join(os.fsencode(top), path)
        if os.path.islink(target):
            files[path] = (0o120000, os.readlink(target))
        elif os.path.isfile(target):
            mode = 0o100755 if os.stat(target).st_mode & 0o100 else 0o100644
            with open(target, "rb") as file:
                files[path] = (mode, file.read())
    return files


def fingerprint(folder):
    """Return the modes, times, inodes and contents of everything below a folder, by path."""
    files = {}
    for parent, folders, names in os.walk(os.fsencode(folder)):
        for name in [*folders, *names, b"."]:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).digest()
            files[path] = (status.st_mode, status.st_mtime_ns, status.st_ino, content)
    return files
