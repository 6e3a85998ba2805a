"""Delivering the winner as a commit on a new branch of the user's repository.

The commit is made with a separate index: the user's tree, index and HEAD stay unchanged. What was
judged is the user's tree with uncommitted changes; a branch starts from the last commit. So every
file that the winner changes is merged into the commit's version of it, or the branch is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.candidates.base_files import EXECUTABLE, LINK, REGULAR
from fairtrial.arena.delivery.edits import FileEdit, FileEdits, merge
from fairtrial.arena.delivery.user_repository import (
    CommittedFile,
    UserRepository,
    open_user_repository,
)
from fairtrial.arena.snapshot.git import GitError
from fairtrial.core import Mistake, StudyError

_SUBMODULE = "160000"
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


async def check_branch(top: Path, name: str) -> None:
    """Raise `StudyError` if a branch of that name can't be made now."""
    await (await open_user_repository(top)).check_new_branch(name)


async def put_on_branch(top: Path, name: str, edits: FileEdits, message: str) -> WinnerBranch:
    """Commit the winner on a new branch.

    top: the top of the user's repository
    name: the branch's name
    edits: the winner's changes
    message: the commit message

    Raises `StudyError` if that is impossible, e.g. because of uncommitted changes.
    """
    repo = await open_user_repository(top)
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
    path: str, edit: FileEdit, listed: Mapping[str, CommittedFile], removed: Collection[str]
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
    repo: UserRepository, path: str, edit: FileEdit, committed: CommittedFile | None
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


def _mode(committed: CommittedFile | None, edit: FileEdit) -> str:
    """Return a file's mode: the commit's, with the winner's change of the executable bit."""
    after = edit.after
    assert after is not None
    if after.is_link:
        return LINK
    was = edit.before is not None and bool(edit.before.executable)
    if committed is not None and committed.mode != LINK and bool(after.executable) == was:
        return committed.mode
    return EXECUTABLE if after.executable else REGULAR
