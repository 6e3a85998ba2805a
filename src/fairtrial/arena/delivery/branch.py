"""Delivering the winner as a commit on a new branch of the user's repository.

The commit is made with a separate index: the user's tree, index and HEAD stay unchanged. What was
judged is the user's tree with uncommitted changes; a branch starts from the last commit. So every
file that the winner changes is merged into the commit's version of it, or the branch is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.candidates.base_files import EXECUTABLE, LINK, PLAIN
from fairtrial.arena.delivery.edits import FileEdit, FileEdits, merge
from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.repository import Repository, open_repository
from fairtrial.core import Mistake, StudyError, on_one_line

_SUBMODULE = "160000"
LONGEST_PART, LONGEST = 200, 500
"""The longest part of a branch's name, which becomes a file's name; the longest error of git."""
# Variables may set the author and committer, but not the repository.
_IDENTITY = tuple(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
)
_COMMIT_FIRST = "commit it first and run again, or take the patch, or --apply"


@dataclass(frozen=True, slots=True)
class WinnerBranch:
    """A new branch with the winner.

    branch: the branch's name
    commit: the commit on it
    parent: the commit that it starts from
    merged: changed files whose uncommitted changes were judged, but are not in the commit
    missing: other files that aren't committed as they were judged, or not at all
    """

    branch: str
    commit: str
    parent: str
    merged: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _CommittedFile:
    """A file of a commit.

    mode: git's mode
    blob: the id of its content
    """

    mode: str
    blob: str


async def check_branch(top: Path, name: str) -> None:
    """Raise `StudyError` if a branch of that name can't be made now."""
    await (await _open(top)).check_new_branch(name)


async def _open(top: Path) -> _Repo:
    repository = await open_repository(top)
    if repository is None:
        raise StudyError("is not the top of a git repository", source=str(top))
    return _Repo(repository)


async def put_on_branch(top: Path, name: str, edits: FileEdits, message: str) -> WinnerBranch:
    """Commit the winner on a new branch.

    top: the top of the user's repository
    name: the branch's name
    edits: the winner's changes
    message: the commit message

    Raises `StudyError` if that is impossible, e.g. because of uncommitted changes.
    """
    repo = await _open(top)
    parent = await repo.check_new_branch(name)
    listed = await repo.list_tree(parent)
    entries: dict[str, tuple[str, bytes] | None] = {}
    mistakes: list[Mistake] = []
    merged: list[str] = []
    removed = {path for path, edit in edits.files.items() if edit.after is None}
    for path, edit in edits.files.items():
        obstacle = _find_obstacle(path, edit, listed, removed)
        content = obstacle or await _resolve_content(repo, path, edit, listed.get(path))
        if isinstance(content, str):
            mistakes.append(Mistake((path,), content, _COMMIT_FIRST))
            continue
        entries[path], is_merged = content
        merged += [path] if is_merged else []
    if mistakes:
        raise StudyError(mistakes, source=str(top))
    commit = await repo.commit(parent, entries, message)
    await repo.make_branch(name, commit)
    try:
        uncommitted = await repo.list_uncommitted(parent)
    except GitError:  # e.g. a filter that isn't installed: the branch exists nevertheless
        uncommitted = []
    missing = tuple(path for path in uncommitted if path not in edits.files)
    return WinnerBranch(name, commit, parent, tuple(merged), missing)


def _find_obstacle(
    path: str, edit: FileEdit, listed: Mapping[str, _CommittedFile], removed: Collection[str]
) -> str:
    """Return what in the commit prevents a file; empty if nothing does."""
    parts = path.split("/")
    for folder in ("/".join(parts[:end]) for end in range(1, len(parts))):
        committed = listed.get(folder)
        if committed is not None and committed.mode == _SUBMODULE:
            return "it lies in another repository (a submodule): a branch of this one can't hold it"
        if committed is not None and folder not in removed:
            return f"{folder} is a file in the last commit"
    if edit.after is not None and path not in listed:
        inside = [name for name in listed if name.startswith(f"{path}/") and name not in removed]
        if inside:
            return f"it is a folder in the last commit, with {inside[0]} in it"
    return ""


async def _resolve_content(
    repo: _Repo, path: str, edit: FileEdit, committed: _CommittedFile | None
) -> tuple[tuple[str, bytes] | None, bool] | str:
    """Return a file's mode and content in the commit, and whether it was merged; or an obstacle.

    Contents are as git stores them, after the repository's line ending conversion and filters.

    committed: the file in the parent commit
    """
    before = await repo.clean(path, edit.before)
    after = await repo.clean(path, edit.after)
    if committed is None:
        if edit.after is None:
            return None, False
        if edit.before is not None:
            return "it isn't in the last commit"
        return (_mode(None, edit), after), False
    content = await repo.read(committed.blob)
    is_link = committed.mode == LINK
    if edit.after is not None and is_link == edit.after.is_link and content == after:
        return (_mode(committed, edit), after), False
    if edit.before is None:
        return "it is in the last commit, though not in your tree"
    if content == before and is_link == edit.before.is_link:
        return (None if edit.after is None else (_mode(committed, edit), after)), False
    if edit.after is None or is_link or edit.before.is_link or edit.after.is_link:
        return "you have changed it since the last commit, and the winner replaces it"
    merged = await merge(content, before, after)
    if merged is None:
        return "the winner's changes conflict with yours since the last commit"
    return (_mode(committed, edit), merged), True


def _mode(committed: _CommittedFile | None, edit: FileEdit) -> str:
    """Return a file's mode: the commit's, with the winner's change of the executable bit."""
    after = edit.after
    assert after is not None
    if after.is_link:
        return LINK
    was = edit.before is not None and bool(edit.before.executable)
    if committed is not None and committed.mode != LINK and bool(after.executable) == was:
        return committed.mode
    return EXECUTABLE if after.executable else PLAIN


def _current_dates() -> dict[str, str]:
    now = f"@{int(time.time())} {time.strftime('%z')}"
    return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}


@dataclass(frozen=True, slots=True)
class _Repo:
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

    async def list_tree(self, commit: str) -> dict[str, _CommittedFile]:
        """Return the files and submodules of a commit, by path."""
        listed = await self.git("ls-tree", "-r", "-z", "--full-tree", commit)
        files = {}
        for line in listed.split(b"\0")[:-1]:
            attributes, _, path = line.partition(b"\t")
            mode, _, blob = attributes.decode().split(" ")
            files[os.fsdecode(path)] = _CommittedFile(mode, blob)
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
