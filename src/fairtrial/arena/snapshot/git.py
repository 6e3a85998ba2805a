"""git, as the arena calls it: never with the caller's variables or hooks, and rarely with its
configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.core import LabError
from fairtrial.sandbox import run_trusted

# What must hold in the user's repositories too, which are read with the user's configuration.
_HARMLESS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.quotePath": "false",
    "protocol.allow": "never",
    "safe.directory": "*",
}
# Whatever a user or a hook has set is about another repository than ours.
_SETTINGS = {
    **_HARMLESS,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.ignoreCase": "false",
    "core.protectHFS": "false",
    "core.protectNTFS": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.precomposeUnicode": "false",
    "core.logAllRefUpdates": "false",
    "core.fsync": "none",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "user.name": "fairtrial",
    "user.email": "fairtrial@localhost",
    "commit.gpgSign": "false",
    "index.threads": "true",
    "submodule.recurse": "false",
    "advice.detachedHead": "false",
}
# Where the user's own configuration is; these say nothing about a repository.
_CONFIGURATION = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
# At the end of a line: before that, candidates' paths are quoted.
_NO_ROOM = re.compile(
    r"(?:: (?:No space left on device|Disk quota exceeded)|[.:] Out of diskspace)$", re.MULTILINE
)


def git_environment(*, as_user: bool = False, **more: str) -> dict[str, str]:
    """The caller's environment without a trace of its own git; `more` is added.

    as_user: with the user's configuration (what is ignored?), except for what could do harm
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    if as_user:
        settings = _HARMLESS
        ours = {name: os.environ[name] for name in _CONFIGURATION if name in os.environ}
    else:
        settings = _SETTINGS
        ours = {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
        }
    ours |= {
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
        "LC_ALL": "C",
    }
    for number, (name, value) in enumerate(settings.items()):
        ours[f"GIT_CONFIG_KEY_{number}"] = name
        ours[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**kept, **ours, **more}


async def git(
    *arguments: str,
    repo: Path,
    worktree: Path | None = None,
    index: Path | None = None,
    stdin: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    as_user: bool = False,
    accept: tuple[int, ...] = (0,),
    warnings: list[str] | None = None,
) -> bytes:
    """What a git command prints; raises `GitError` if it fails.

    repo: the repository's own folder (GIT_DIR)
    worktree: the tree it works on
    index: another index than the repository's own
    as_user: whether the user's configuration holds
    accept: exit codes that are no failure
    warnings: where to put what it complains of, line by line
    """
    given = {"GIT_DIR": str(repo), **(env or {})}
    if worktree is not None:
        given["GIT_WORK_TREE"] = str(worktree)
    if index is not None:
        given["GIT_INDEX_FILE"] = str(index)
    try:
        done = await run_trusted(
            ["git", *arguments],
            stdin=stdin,
            cwd=cwd or worktree or repo,
            env=git_environment(as_user=as_user, **given),
        )
    except FileNotFoundError as error:
        if cwd is None and not (worktree or repo).is_dir():
            raise LabError(f"{worktree or repo} is no longer there") from error
        raise LabError("git is not installed, or not on the path: install it") from error
    complaint = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode not in accept:
        failure = GitError(arguments, done.returncode, complaint)
        if _NO_ROOM.search(complaint):  # that says nothing of what it was asked
            raise NoRoomError(f"{failure}; make room there") from failure
        raise failure
    if warnings is not None:
        warnings += complaint.splitlines()
    return done.stdout


async def make_bare(repo: Path, object_format: str) -> None:
    """Make an empty repository without a tree; object_format: sha1 or sha256."""
    # Older versions don't know the option, and know one format.
    options = () if object_format == "sha1" else (f"--object-format={object_format}",)
    command = ("init", "--quiet", "--bare", "--template=", "--initial-branch=base", *options)
    await git(*command, repo=repo, cwd=repo.parent)


class GitError(LabError):
    """A git command failed; callers say what that means."""

    def __init__(self, arguments: tuple[str, ...], status: int, stderr: str) -> None:
        self.arguments, self.status = arguments, status
        self.stderr = stderr or f"it said nothing, and ended with status {status}"
        super().__init__(f"git {' '.join(arguments[:3])} failed ({status}): {self.stderr[:2000]}")
