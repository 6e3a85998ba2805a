"""Run git commands without the caller's GIT_* variables and hooks, and by default without the
user's configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.core import LabError
from fairtrial.sandbox import run_trusted

# Applied in all repositories, also where the user's configuration is read (`as_user`).
_SAFE_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.quotePath": "false",
    "protocol.allow": "never",
    "safe.directory": "*",
}
# Applied in private repositories: the user's settings are meant for other repositories.
_PRIVATE_SETTINGS = {
    **_SAFE_SETTINGS,
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
# Variables that say where the user's configuration is, independently of the repository.
_CONFIGURATION_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
# Only at the end of a line: before that, git may quote paths that a candidate chose.
_DISK_FULL = re.compile(
    r"(?:: (?:No space left on device|Disk quota exceeded)|[.:] Out of diskspace)$", re.MULTILINE
)


def git_environment(*, as_user: bool = False, **more: str) -> dict[str, str]:
    """Return an environment for git: the caller's without GIT_* variables, with safe settings.

    as_user: use the user's configuration (for ignore rules), except for settings that could execute
        code or write files
    more: further variables
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    if as_user:
        settings = _SAFE_SETTINGS
        variables = {
            name: os.environ[name] for name in _CONFIGURATION_VARIABLES if name in os.environ
        }
    else:
        settings = _PRIVATE_SETTINGS
        variables = {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
        }
    variables |= {
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
        "LC_ALL": "C",
    }
    for number, (name, value) in enumerate(settings.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return {**inherited, **variables, **more}


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
    """Run a git command and return its standard output.

    Raises `GitError` if the command fails, `NoRoomError` if the disk is full, and `LabError` if git
    or the folder is missing.

    repo: the repository's git directory (GIT_DIR)
    worktree: the working tree (GIT_WORK_TREE)
    index: an index file other than the repository's own
    as_user: whether to use the user's configuration
    accept: exit codes that mean success
    warnings: a list that lines of standard error are appended to
    """
    variables = {"GIT_DIR": str(repo), **(env or {})}
    if worktree is not None:
        variables["GIT_WORK_TREE"] = str(worktree)
    if index is not None:
        variables["GIT_INDEX_FILE"] = str(index)
    try:
        completed = await run_trusted(
            ["git", *arguments],
            stdin=stdin,
            cwd=cwd or worktree or repo,
            env=git_environment(as_user=as_user, **variables),
        )
    except FileNotFoundError as error:
        if cwd is None and not (worktree or repo).is_dir():
            raise LabError(f"{worktree or repo} is no longer there") from error
        raise LabError("git is not installed, or not on the path: install it") from error
    stderr = completed.stderr.decode("utf-8", "replace").strip()
    if completed.returncode not in accept:
        failure = GitError(arguments, completed.returncode, stderr)
        if _DISK_FULL.search(stderr):  # not caused by the arguments
            raise NoRoomError(f"{failure}; make room there") from failure
        raise failure
    if warnings is not None:
        warnings += stderr.splitlines()
    return completed.stdout


async def create_bare_repository(repo: Path, object_format: str) -> None:
    """Create an empty bare repository; `object_format` is sha1 or sha256."""
    # Older versions of git don't have the option, and support sha1 only.
    options = () if object_format == "sha1" else (f"--object-format={object_format}",)
    command = ("init", "--quiet", "--bare", "--template=", "--initial-branch=base", *options)
    await git(*command, repo=repo, cwd=repo.parent)


class GitError(LabError):
    """A git command failed.

    arguments: the command, without `git`
    status: its exit code
    stderr: what it printed to standard error, or a sentence that it printed nothing
    """

    def __init__(self, arguments: tuple[str, ...], status: int, stderr: str) -> None:
        self.arguments, self.status = arguments, status
        self.stderr = stderr or f"it said nothing, and ended with status {status}"
        super().__init__(f"git {' '.join(arguments[:3])} failed ({status}): {self.stderr[:2000]}")
