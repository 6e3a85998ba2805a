"""The user's repository, in which a commit and a branch are made and nothing else is changed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.repository import Repository, open_repository
from fairtrial.core import StudyError, on_one_line

LONGEST_PART, LONGEST = 200, 500
"""The longest part of a branch's name, which becomes a file's name; the longest error of git."""
# Variables may set the author and committer, but not the repository.
_IDENTITY = tuple(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
)


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A file of a commit.

    mode: git's mode
    blob: the id of its content
    """

    mode: str
    blob: str


async def open_user_repository(top: Path) -> UserRepository:
    """Open the repository at `top`; raise `StudyError` if that isn't the top of one."""
    repository = await open_repository(top)
    if repository is None:
        raise StudyError("is not the top of a git repository", source=str(top))
    return UserRepository(repository)


def _current_dates() -> dict[str, str]:
    now = f"@{int(time.time())} {time.strftime('%z')}"
    return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}


@dataclass(frozen=True, slots=True)
class UserRepository:
    """The user's repository, in which a commit is made and nothing else is changed."""

    repository: Repository

    async def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        index: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        git_dir = self.repository.git_dir
        return await git(
            *arguments,
            repo=git_dir,
            worktree=self.repository.top,
            index=index or git_dir / "fairtrial-no-index",  # never the user's own
            stdin=stdin,
            env={**_current_dates(), **(env or {})},
            as_user=True,
        )

    async def check_new_branch(self, name: str) -> str:
        """Return the commit that a new branch starts from.

        Raises `StudyError` if a branch of that name can't be made.
        """
        source = str(self.repository.top)
        try:
            await self.git("check-ref-format", f"refs/heads/{name}")
            is_short = all(len(os.fsencode(part)) <= LONGEST_PART for part in name.split("/"))
            is_name = not name.startswith("-") and name != "HEAD" and is_short
        except (GitError, ValueError):
            is_name = False
        if not is_name:
            raise StudyError(f"{name!r} can't be the name of a branch", source=source)
        try:
            head = await self.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitError:
            message = "has no commit yet that a branch could begin at: commit first"
            raise StudyError(message, source=source) from None
        try:
            await self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
        except GitError:
            await self._refuse_overlap(name)
            await self._require_identity()
            return head.decode().strip()
        message = f"has a branch {name} already: name another"
        raise StudyError(message, source=source)

    async def _refuse_overlap(self, name: str) -> None:
        """Raise `StudyError` if another branch's name is a prefix of the new one, or the reverse.

        Git stores branches as files, and a file can't replace a folder.
        """
        listed = await self.git("for-each-ref", "--format=%(refname)", "refs/heads/")
        for reference in os.fsdecode(listed).splitlines():
            other = reference.removeprefix("refs/heads/")
            if name.startswith(f"{other}/") or other.startswith(f"{name}/"):
                message = f"has a branch {other}, so that there can't be one named {name}"
                raise StudyError(message, source=str(self.repository.top))

    async def _require_identity(self) -> None:
        """Raise `StudyError` early if git has no author or committer."""
        try:
            for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
                await self.git("var", variable, env=_find_identity())
        except GitError as error:
            raise self._commit_error(error) from error

    def _commit_error(self, error: GitError) -> StudyError:
        return StudyError(
            f"git can't commit: {_error_text(error)}; tell it who you are "
            "(git config user.name, user.email)",
            source=str(self.repository.top),
        )

    async def list_tree(self, commit: str) -> dict[str, CommittedFile]:
        """Return the files and submodules of a commit, by path."""
        listed = await self.git("ls-tree", "-r", "-z", "--full-tree", commit)
        files = {}
        for line in listed.split(b"\0")[:-1]:
            attributes, _, path = line.partition(b"\t")
            mode, _, blob = attributes.decode().split(" ")
            files[os.fsdecode(path)] = CommittedFile(mode, blob)
        return files

    async def list_uncommitted(self, commit: str) -> list[str]:
        """Return the files of the user's tree that differ from a commit, or aren't in it."""
        with TemporaryDirectory(prefix="fairtrial-index-") as name:
            index = Path(name, "index")
            await self.git("read-tree", commit, index=index)
            listing = ("ls-files", "--others", "--exclude-standard", "-z")
            untracked = await self.git(*listing, index=index)
            changed = await self.git(
                *("diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules"), index=index
            )
        return sorted({os.fsdecode(path) for path in (untracked + changed).split(b"\0") if path})

    async def clean(self, path: str, state: FileState | None) -> bytes:
        """Return a file's content as git would store it."""
        if state is None or state.is_link:
            return state.content if state else b""
        with TemporaryDirectory(prefix="fairtrial-objects-") as name:
            # Nothing may stay in the user's repository if the branch is refused later.
            env = {"GIT_OBJECT_DIRECTORY": name}
            hashing = ("hash-object", "-w", f"--path={path}", "--stdin")
            blob = await self.git(*hashing, stdin=state.content, env=env)
            return await self.git("cat-file", "blob", blob.decode().strip(), env=env)

    async def read(self, blob: str) -> bytes:
        return await self.git("cat-file", "blob", blob)

    async def commit(
        self, parent: str, entries: Mapping[str, tuple[str, bytes] | None], message: str
    ) -> str:
        """Make a commit with these files, which no branch refers to yet; return its id.

        entries: mode and content by path; None for a file that is removed
        """
        with TemporaryDirectory(prefix="fairtrial-index-") as name:
            index = Path(name, "index")
            await self.git("read-tree", parent, index=index)
            removed, written = [], []
            for path, entry in entries.items():
                if entry is None:
                    removed.append(f"0 {'0' * len(parent)}\t{path}\0")
                    continue
                mode, content = entry
                blob = await self.git("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
                written.append(f"{mode} {blob.decode().strip()}\t{path}\0")
            # Removed files come first: a folder may replace a file.
            lines = os.fsencode("".join((*removed, *written)))
            await self.git(
                *("update-index", "--replace", "-z", "--index-info"), stdin=lines, index=index
            )
            tree = (await self.git("write-tree", index=index)).decode().strip()
        text = message.encode("utf-8", "replace")
        try:
            committing = ("commit-tree", tree, "-p", parent, "-F", "-")
            commit = await self.git(*committing, stdin=text, env=_find_identity())
        except GitError as error:
            raise self._commit_error(error) from error
        return commit.decode().strip()

    async def make_branch(self, name: str, commit: str) -> None:
        """Make a branch; raise `StudyError` if it has been made meanwhile."""
        try:
            await self.git("update-ref", f"refs/heads/{name}", commit, "0" * len(commit))
        except GitError as error:
            message = f"the branch {name} can't be made: {_error_text(error)}"
            raise StudyError(message, source=str(self.repository.top)) from error


def _find_identity() -> dict[str, str]:
    return {name: os.environ[name] for name in _IDENTITY if name in os.environ}


def _error_text(error: GitError) -> str:
    """Return git's error output on one line."""
    return on_one_line("; ".join(filter(None, map(str.strip, error.stderr.splitlines()))), LONGEST)
