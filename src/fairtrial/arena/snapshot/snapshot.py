"""Take a snapshot of the user's working tree, or of a revision: one commit in a private repository.

It holds committed, staged, unstaged and untracked files with the bytes on disk, and the files of
submodules and embedded repositories without their `.git`. The user's repository and tree are only
read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.model.problem import CodeProblem, resolve_paths
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot.commit_writer import BRANCH, write_commit
from fairtrial.arena.snapshot.disk_files import DiskFile, find_disk_files
from fairtrial.arena.snapshot.git import create_bare_repository, git
from fairtrial.arena.snapshot.listing import RepositoryListing, join_paths, list_repositories
from fairtrial.arena.snapshot.repository import Repository, find_repository
from fairtrial.arena.snapshot.revisions import THE_TREE, add_to_commit, commit_revision
from fairtrial.core import LabError, StudyError

_MB = 1_000_000
_SHOWN = 3
# Contents are stored and checked out unchanged, whatever conversions the tree's attributes request.
ATTRIBUTES = "* -text !eol -filter -ident !working-tree-encoding !diff !merge\n"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The user's tree at one moment, as a commit in a private repository.

    source: the top of the user's tree
    repo: the private repository, a bare one (GIT_DIR), independent of the user's
    commit: the only commit in it, without parents
    tree: the commit's tree
    notes: remarks for the user about how it was taken
    """

    source: Path
    repo: Path
    commit: str
    tree: str
    notes: tuple[str, ...] = ()


async def find_top(folder: Path) -> Path:
    """Return the top of the working tree that a folder or file is in.

    Raises `StudyError` if it is in a repository without one.
    """
    return (await find_repository(folder)).top


async def compute_tree(problem: CodeProblem) -> str:
    """Return the git tree that a snapshot of a problem's project has now, without keeping one."""
    top = await find_top(problem.project)
    with TemporaryDirectory(prefix="fairtrial-tree-") as home:
        snapshot = await take_snapshot(
            problem.project,
            Path(home),
            largest_mb=problem.largest_mb,
            revision=problem.base,
            kept=resolve_paths(problem, top).find_named_files(top),
        )
        return snapshot.tree


async def take_snapshot(
    folder: Path,
    home: Path,
    *,
    largest_mb: int = 100,
    revision: str = "",
    kept: Mapping[str, Path] | None = None,
) -> Snapshot:
    """Take a snapshot of the tree that `folder` is in, with untracked but without ignored files.

    Raises `StudyError` if its files can't be taken, and `LabError` if the
    snapshot can't be written.

    home: a folder outside the tree, for the private repository (`home/repo`)
    largest_mb: limit of the total size of untracked files
    revision: a git revision whose files are taken instead of those on disk
    kept: files on disk that are taken along nevertheless, by their path in the tree: of a revision
        instead of its own, of the tree on disk if it lacks them or git ignores them
    """

    repository = await find_repository(folder)
    home = home.resolve()
    if home.is_relative_to(repository.top):
        raise LabError(f"{home}: a snapshot can't be kept inside the tree that it is taken of")
    if revision and revision != THE_TREE:
        repo = await _create_repository(home / "repo", repository.object_format)
        notes = await commit_revision(repository, revision, repo, kept)
    else:
        repo, notes = await _commit_disk(repository, home, largest_mb, kept or {})
    output = await git("rev-parse", BRANCH, f"{BRANCH}^{{tree}}", repo=repo)
    commit, tree = output.decode().split()
    return Snapshot(repository.top, repo, commit, tree, notes)


async def _commit_disk(
    repository: Repository, home: Path, largest_mb: int, kept: Mapping[str, Path]
) -> tuple[Path, tuple[str, ...]]:
    """Commit the files on disk to a new private repository; return it, and notes."""
    from anyio import from_thread, to_thread

    top = os.fsencode(repository.top)
    with TemporaryDirectory(prefix="listing-", dir=home) as scratch:
        listings = await list_repositories(repository, Path(scratch))
    files = await to_thread.run_sync(find_disk_files, top, listings)
    _refuse_large_untracked(repository.top, files, largest_mb)
    repo = await _create_repository(home / "repo", repository.object_format)
    write = partial(write_commit, repo, top, files, from_thread.check_cancelled)
    pointers = await in_thread(write)
    await _refuse_lfs_pointers(pointers, listings, no_index=home / "no-index")
    taken = {file.path for file in files}
    added = {
        path: source
        for path, source in kept.items()
        if source.is_file() and os.fsencode(path) not in taken
    }
    if any(source.is_file() for source in added.values()):
        await add_to_commit(repo, added)
    notes = [note for listing in listings for note in listing.notes]
    if repository.is_made:
        notes.append(f"{repository.top} is in no git repository: all of its files were copied")
    return repo, tuple(notes)


async def _create_repository(repo: Path, object_format: str) -> Path:
    """Create an empty repository that stores and checks out contents without conversion."""
    try:
        await create_bare_repository(repo, object_format)
        (repo / "info").mkdir()
        (repo / "info" / "attributes").write_text(ATTRIBUTES, "utf-8")
    except OSError as error:
        raise LabError(f"{repo} can't be made: {error.strerror}") from error
    return repo


def _refuse_large_untracked(top: Path, files: Sequence[DiskFile], largest_mb: int) -> None:
    untracked = [file for file in files if not file.is_tracked]
    total = sum(file.size_bytes for file in untracked)
    if total <= largest_mb * _MB:
        return
    untracked.sort(key=lambda file: -file.size_bytes)
    largest = ", ".join(
        f"{join_paths([file.path])} ({file.size_bytes / _MB:,.1f} MB)"
        for file in untracked[:_SHOWN]
    )
    raise StudyError(
        f"untracked files come to {total / _MB:,.1f} MB, more than the {largest_mb:,} MB that are "
        f"taken along; the largest: {largest}. Ignore them (.gitignore; `include` still brings "
        "them to slots), or add them (git add), or raise `largest_mb`",
        source=str(top),
    )


async def _refuse_lfs_pointers(
    pointers: Sequence[bytes], listings: Sequence[RepositoryListing], *, no_index: Path
) -> None:
    """Raise `StudyError` about pointers in place of files of Git LFS.

    A file that only looks like a pointer is accepted: attributes tell which files LFS manages.
    """
    unfetched = []
    for listing in reversed(listings):  # embedded repositories before those that contain them
        own = [path for path in pointers if path.startswith(listing.prefix)]
        pointers = [path for path in pointers if path not in own]
        if not own:
            continue
        output = await git(
            "check-attr", "-z", "--stdin", "filter",
            repo=listing.repository.git_dir, worktree=listing.repository.top,
            index=no_index, as_user=True,
            stdin=b"".join(path[len(listing.prefix) :] + b"\0" for path in own),
        )  # fmt: skip
        values = output.split(b"\0")[2::3]
        unfetched += [path for path, value in zip(own, values, strict=True) if value == b"lfs"]
    if unfetched:
        raise StudyError(
            f"files of Git LFS are not there, only pointers to them: {join_paths(unfetched)}; "
            "fetch them with `git lfs pull`",
            source=str(listings[0].repository.top),
        )
