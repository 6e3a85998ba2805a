"""The winner as a commit on a new branch of the user's repository.

Made with an index of our own: the tree, the index and HEAD stay as they are. What was judged is the
user's tree, uncommitted changes included; a branch begins at the last commit. So every file that
the winner touches is merged into the commit's own version of it, or the branch is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.candidates.base_files import EXECUTABLE, LINK, PLAIN
from fairtrial.arena.delivery.edits import Edit, Edits, merge
from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.repository import Repository, open_repository
from fairtrial.core import Mistake, StudyError, on_one_line

_SUBMODULE = "160000"
LONGEST_PART, LONGEST = 200, 500
"""Of a branch's name, whose parts become names of files, with `.lock`; of what git says."""
# Who commits may be said by variables; which repository it is may not.
_IDENTITY = tuple(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
)
_COMMIT_FIRST = "commit it first and run again, or take the patch, or --apply"


@dataclass(frozen=True, slots=True)
class Branched:
    """A commit that was made.

    branch: the branch's name
    commit: the commit on it
    parent: the commit that it begins at
    merged: files whose last commit is not what was judged: uncommitted changes are not in it
    missing: other files that aren't committed as they were judged, or not at all
    """

    branch: str
    commit: str
    parent: str
    merged: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of a commit: git's mode, and the id of its content."""

    mode: str
    blob: str


async def check_branch(top: Path, name: str) -> None:
    """Whether a branch of that name could be made now; a `StudyError` says why not."""
    await (await _open(top)).begin(name)


async def _open(top: Path) -> _Repo:
    repository = await open_repository(top)
    if repository is None:
        raise StudyError("is not the top of a git repository", source=str(top))
    return _Repo(repository)


async def put_on_branch(top: Path, name: str, edits: Edits, message: str) -> Branched:
    """Commit the winner on a new branch; a `StudyError` says why it can't be."""
    repo = await _open(top)
    parent = await repo.begin(name)
    listed = await repo.list_tree(parent)
    entries: dict[str, tuple[str, bytes] | None] = {}
    mistakes: list[Mistake] = []
    merged: list[str] = []
    gone = {path for path, edit in edits.files.items() if edit.after is None}
    for path, edit in edits.files.items():
        obstacle = _find_obstacle(path, edit, listed, gone)
        found = obstacle or await _settle(repo, path, edit, listed.get(path))
        if isinstance(found, str):
            mistakes.append(Mistake((path,), found, _COMMIT_FIRST))
            continue
        entries[path], is_merged = found
        merged += [path] if is_merged else []
    if mistakes:
        raise StudyError(mistakes, source=str(top))
    commit = await repo.commit(parent, entries, message)
    await repo.make_branch(name, commit)
    try:
        uncommitted = await repo.list_uncommitted(parent)
    except GitError:  # a filter that isn't installed, say: the branch is there nevertheless
        uncommitted = []
    missing = tuple(path for path in uncommitted if path not in edits.files)
    return Branched(name, commit, parent, tuple(merged), missing)


def _find_obstacle(
    path: str, edit: Edit, listed: Mapping[str, _Entry], gone: Collection[str]
) -> str:
    """What of the commit is in a file's way; empty if nothing is."""
    parts = path.split("/")
    for folder in ("/".join(parts[:end]) for end in range(1, len(parts))):
        held = listed.get(folder)
        if held is not None and held.mode == _SUBMODULE:
            return "it lies in another repository (a submodule): a branch of this one can't hold it"
        if held is not None and folder not in gone:
            return f"{folder} is a file in the last commit"
    if edit.after is not None and path not in listed:
        inside = [each for each in listed if each.startswith(f"{path}/") and each not in gone]
        if inside:
            return f"it is a folder in the last commit, with {inside[0]} in it"
    return ""


async def _settle(
    repo: _Repo, path: str, edit: Edit, held: _Entry | None
) -> tuple[tuple[str, bytes] | None, bool] | str:
    """What a file shall be in the commit, with its mode, and whether it was merged; or why not.

    held: what the commit to begin at has there

    Contents are as git would store them: line ends and filters are the repository's own affair.
    """
    before = await repo.clean(path, edit.before)
    after = await repo.clean(path, edit.after)
    if held is None:
        if edit.after is None:
            return None, False
        if edit.before is not None:
            return "it isn't in the last commit"
        return (_mode(None, edit), after), False
    content = await repo.read(held.blob)
    is_link = held.mode == LINK
    if edit.after is not None and is_link == edit.after.is_link and content == after:
        return (_mode(held, edit), after), False
    if edit.before is None:
        return "it is in the last commit, though not in your tree"
    if content == before and is_link == edit.before.is_link:
        return (None if edit.after is None else (_mode(held, edit), after)), False
    if edit.after is None or is_link or edit.before.is_link or edit.after.is_link:
        return "you have changed it since the last commit, and the winner replaces it"
    found = await merge(content, before, after)
    if found is None:
        return "what the winner changes meets what you have changed since the last commit"
    return (_mode(held, edit), found), True


def _mode(held: _Entry | None, edit: Edit) -> str:
    """A file keeps the commit's mode but for what the winner changes of it."""
    after = edit.after
    assert after is not None
    if after.is_link:
        return LINK
    was = edit.before is not None and bool(edit.before.executable)
    if held is not None and held.mode != LINK and bool(after.executable) == was:
        return held.mode
    return EXECUTABLE if after.executable else PLAIN


def _find_time() -> dict[str, str]:
    now = f"@{int(time.time())} {time.strftime('%z')}"
    return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}


@dataclass(frozen=True, slots=True)
class _Repo:
    """The user's repository, for somebody who makes a commit in it and touches nothing else."""

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
            env={**_find_time(), **(env or {})},
            as_user=True,
        )

    async def begin(self, name: str) -> str:
        """The commit to begin at, if a branch of that name can be made."""
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
            told = await self.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except GitError:
            message = "has no commit yet that a branch could begin at: commit first"
            raise StudyError(message, source=source) from None
        try:
            await self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
        except GitError:
            await self._refuse_overlap(name)
            await self._refuse_nobody()
            return told.decode().strip()
        message = f"has a branch {name} already: name another"
        raise StudyError(message, source=source)

    async def _refuse_overlap(self, name: str) -> None:
        """A branch is a file for git: none can be in the place of another's folder."""
        listed = await self.git("for-each-ref", "--format=%(refname)", "refs/heads/")
        for known in os.fsdecode(listed).splitlines():
            other = known.removeprefix("refs/heads/")
            if name.startswith(f"{other}/") or other.startswith(f"{name}/"):
                message = f"has a branch {other}, so that there can't be one named {name}"
                raise StudyError(message, source=str(self.repository.top))

    async def _refuse_nobody(self) -> None:
        """Git has to know who commits; said now, and not when all the work is done."""
        try:
            for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
                await self.git("var", who, env=_find_identity())
        except GitError as error:
            raise self._unable(error) from error

    def _unable(self, error: GitError) -> StudyError:
        return StudyError(
            f"git can't commit: {_say(error)}; tell it who you are "
            "(git config user.name, user.email)",
            source=str(self.repository.top),
        )

    async def list_tree(self, commit: str) -> dict[str, _Entry]:
        """The files of a commit, and its submodules."""
        listed = await self.git("ls-tree", "-r", "-z", "--full-tree", commit)
        found = {}
        for line in listed.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, blob = about.decode().split(" ")
            found[os.fsdecode(path)] = _Entry(mode, blob)
        return found

    async def list_uncommitted(self, commit: str) -> list[str]:
        """The files of the tree that a commit has otherwise, or has not."""
        with TemporaryDirectory(prefix="fairtrial-index-") as name:
            index = Path(name, "index")
            await self.git("read-tree", commit, index=index)
            others = await self.git("ls-files", "--others", "--exclude-standard", "-z", index=index)
            changed = await self.git(
                *("diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules"), index=index
            )
        return sorted({os.fsdecode(path) for path in (others + changed).split(b"\0") if path})

    async def clean(self, path: str, state: FileState | None) -> bytes:
        """A file's content as git would store it."""
        if state is None or state.is_link:
            return state.content if state else b""
        with TemporaryDirectory(prefix="fairtrial-objects-") as name:
            # Nothing of it is to stay in the user's repository before all is known to fit.
            env = {"GIT_OBJECT_DIRECTORY": name}
            hashing = ("hash-object", "-w", f"--path={path}", "--stdin")
            blob = await self.git(*hashing, stdin=state.content, env=env)
            return await self.git("cat-file", "blob", blob.decode().strip(), env=env)

    async def read(self, blob: str) -> bytes:
        return await self.git("cat-file", "blob", blob)

    async def commit(
        self, parent: str, entries: Mapping[str, tuple[str, bytes] | None], message: str
    ) -> str:
        """A commit with these files; nothing leads to it yet."""
        with TemporaryDirectory(prefix="fairtrial-index-") as name:
            index = Path(name, "index")
            await self.git("read-tree", parent, index=index)
            gone, kept = [], []
            for path, entry in entries.items():
                if entry is None:
                    gone.append(f"0 {'0' * len(parent)}\t{path}\0")
                    continue
                mode, content = entry
                blob = await self.git("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
                kept.append(f"{mode} {blob.decode().strip()}\t{path}\0")
            # What goes first makes room: a folder may come where a file was.
            given = os.fsencode("".join((*gone, *kept)))
            await self.git(
                *("update-index", "--replace", "-z", "--index-info"), stdin=given, index=index
            )
            tree = (await self.git("write-tree", index=index)).decode().strip()
        text = message.encode("utf-8", "replace")
        try:
            committing = ("commit-tree", tree, "-p", parent, "-F", "-")
            told = await self.git(*committing, stdin=text, env=_find_identity())
        except GitError as error:
            raise self._unable(error) from error
        return told.decode().strip()

    async def make_branch(self, name: str, commit: str) -> None:
        """Only if it isn't there: somebody may have made one meanwhile."""
        try:
            await self.git("update-ref", f"refs/heads/{name}", commit, "0" * len(commit))
        except GitError as error:
            message = f"the branch {name} can't be made: {_say(error)}"
            raise StudyError(message, source=str(self.repository.top)) from error


def _find_identity() -> dict[str, str]:
    return {each: os.environ[each] for each in _IDENTITY if each in os.environ}


def _say(error: GitError) -> str:
    """What git says of it, on a line."""
    return on_one_line("; ".join(filter(None, map(str.strip, error.stderr.splitlines()))), LONGEST)
