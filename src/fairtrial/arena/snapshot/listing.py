"""List the files of a working tree: tracked ones, and untracked ones that are not ignored.

git lists them, by the user's own ignore rules, without any change to the user's repository. Reading
a split index touches a file beside it, so the index is read from a copy. Untracked files are listed
with an index that holds paths only, in which no flag (assume-unchanged, skip-worktree), conflict or
sparse folder can hide a file.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from fairtrial.arena.snapshot.git import GitError, create_bare_repository, git
from fairtrial.arena.snapshot.repository import Repository, find_git_dir, open_repository
from fairtrial.core import StudyError

_GITLINK, _FOLDER = 0o160000, 0o040000
_SHOWN = 5
_HEX = re.compile("(?:[0-9a-f]{2})+")
_SPARSE = b"sdir\0\0\0\0"  # the index extension that marks a sparse index


@dataclass(frozen=True, slots=True)
class ListedPath:
    """A path that belongs to the tree if it exists on disk.

    path: relative to the top of the tree
    mode: its mode in git's index; None if it is untracked
    """

    path: bytes
    mode: int | None


@dataclass(slots=True)
class RepositoryListing:
    """The files of one repository: the user's own, or one that is embedded in its tree.

    repository: the repository
    prefix: its path in the user's tree: empty, or a path that ends with a slash
    files: its tracked and untracked files, by their paths in the user's tree
    embedded: paths of repositories inside this one
    notes: remarks for the user
    """

    repository: Repository
    prefix: bytes
    files: list[ListedPath] = field(default_factory=list)
    embedded: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _IndexEntry:
    mode: int
    name: str
    stage: int
    path: bytes


async def list_repositories(repository: Repository, scratch: Path) -> list[RepositoryListing]:
    """List the tree's files, repository by repository.

    Submodules and embedded repositories come after the repository that contains them. Raises
    `StudyError` if git can't read one of them.

    scratch: an existing folder for copies of git's indexes
    """
    listings = []
    pending = [(repository, b"")]
    while pending:
        outer, prefix = pending.pop(0)
        listing = await _list_repository(outer, prefix, scratch)
        listings.append(listing)
        for path in listing.embedded:
            inner = await open_repository(repository.top / os.fsdecode(path))
            if inner is None:
                problem = "git takes it for a repository, but its .git can't be read"
                raise StudyError(problem, source=str(repository.top / os.fsdecode(path)))
            pending.append((inner, path))
    return listings


def join_paths(paths: Iterable[bytes]) -> str:
    """Return paths as a comma-separated text; of many, the first few and a count."""
    names = [path.decode("utf-8", "backslashreplace") for path in paths]
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


async def _list_repository(
    repository: Repository, prefix: bytes, scratch: Path
) -> RepositoryListing:
    folder = Path(mkdtemp(dir=scratch))
    try:
        entries = await _read_index(repository, folder)
        listing = RepositoryListing(repository, prefix)
        tracked = {entry.path: entry for entry in entries if _is_same_kind(entry, repository.top)}
        index = await _write_path_index(tracked.values(), repository, folder)
        untracked = await _list_untracked(repository, index, listing.notes)
        submodules = [path for path, entry in tracked.items() if entry.mode == _GITLINK]
        nested = [path for path in untracked if path.endswith(b"/")]
        listing.embedded = [prefix + path.rstrip(b"/") + b"/" for path in [*submodules, *nested]]
        listing.files = [
            ListedPath(prefix + path, entry.mode)
            for path, entry in tracked.items()
            if entry.mode != _GITLINK
        ]
        listing.files += [
            ListedPath(prefix + path, None) for path in untracked if not path.endswith(b"/")
        ]
        listing.notes += _listing_notes(entries, listing)
        listing.notes += await _special_file_notes(listing, index)
    except GitError as error:
        problem = f"git can't read it: {error.stderr}"
        raise StudyError(problem, source=str(repository.top)) from error
    except PermissionError as error:
        problem = f"{error.filename} can't be read; make it readable"
        raise StudyError(problem, source=str(repository.top)) from error
    finally:
        shutil.rmtree(folder)
    return listing


def _is_same_kind(entry: _IndexEntry, top: Path) -> bool:
    """Return whether a tracked path is still of its kind: a repository, or not a folder.

    Paths that changed are listed like untracked ones: git lists nothing below a tracked path.
    """
    try:
        mode = os.lstat(os.fsencode(top) + b"/" + entry.path).st_mode
    except OSError:
        return entry.mode != _GITLINK
    if entry.mode != _GITLINK:
        return not stat.S_ISDIR(mode)
    return stat.S_ISDIR(mode) and find_git_dir(top / os.fsdecode(entry.path)) is not None


async def _read_index(repository: Repository, folder: Path) -> list[_IndexEntry]:
    """Return the entries of the repository's index, without collapsed folders of a sparse index."""
    try:
        content = (repository.git_dir / "index").read_bytes()
    except FileNotFoundError:
        return []
    copy = folder / "copy"
    await create_bare_repository(copy, repository.object_format)
    (copy / "index").write_bytes(content)
    for shared in repository.git_dir.glob("sharedindex.*"):
        name = shared.suffix[1:]
        if _HEX.fullmatch(name) and bytes.fromhex(name) in content:
            shutil.copyfile(shared, copy / shared.name)
    sparse = ("--sparse",) if _SPARSE in content else ()
    output = await git("ls-files", "-z", "--stage", *sparse, repo=copy, worktree=repository.top)
    entries = []
    for item in output.split(b"\0")[:-1]:
        head, _, path = item.partition(b"\t")
        mode, name, stage = head.decode().split()
        entries.append(_IndexEntry(int(mode, 8), name, int(stage), path))
    return [entry for entry in entries if entry.mode != _FOLDER]


async def _write_path_index(
    entries: Iterable[_IndexEntry], repository: Repository, folder: Path
) -> Path:
    """Write an index with the same paths, but without flags, stages and file times."""
    index = folder / "names"
    lines = [b"%o %s 0\t%s\0" % (entry.mode, entry.name.encode(), entry.path) for entry in entries]
    if lines:
        await git(
            "update-index", "-z", "--index-info",
            repo=folder / "copy", worktree=repository.top, index=index, stdin=b"".join(lines),
        )  # fmt: skip
    return index


async def _list_untracked(repository: Repository, index: Path, notes: list[str]) -> list[bytes]:
    """Return untracked paths that are not ignored; paths of repositories end with a slash."""
    command = ("ls-files", "-z", "--others", "--exclude-standard")
    output = await _query_worktree(repository, index, *command, warnings=notes)
    return output.split(b"\0")[:-1]


async def _query_worktree(
    repository: Repository,
    index: Path,
    *command: str,
    stdin: bytes = b"",
    accept: tuple[int, ...] = (0,),
    warnings: list[str] | None = None,
) -> bytes:
    """Run a git command on the files on disk, with the ignore rules of repository and user."""
    # The setting of a repository that was copied from another file system can be wrong.
    ignores_case = str((repository.git_dir / "hEAD").exists()).lower()
    # In a sparse checkout, git would make this index sparse while it reads it, and write tree
    # objects for it; GIT_OBJECT_DIRECTORY keeps anything it writes out of the user's repository.
    settings = (
        f"core.ignoreCase={ignores_case}",
        "core.sparseCheckout=false",
        "index.sparse=false",
    )
    return await git(
        *(word for setting in settings for word in ("-c", setting)),
        *command,
        repo=repository.git_dir,
        worktree=repository.top,
        index=index,
        stdin=stdin,
        env={"GIT_OBJECT_DIRECTORY": str(index.parent)},
        as_user=True,
        accept=accept,
        warnings=warnings,
    )


def _listing_notes(entries: list[_IndexEntry], listing: RepositoryListing) -> list[str]:
    notes = []
    unmerged = dict.fromkeys(listing.prefix + entry.path for entry in entries if entry.stage)
    if unmerged:
        notes.append(f"unmerged files are taken as they are on disk: {join_paths(unmerged)}")
    if listing.embedded:
        inner = join_paths(path.rstrip(b"/") for path in listing.embedded)
        notes.append(f"repositories in the tree are taken as the files on disk: {inner}")
    if listing.repository.is_set("core.sparsecheckout", default=False):
        notes.append("the checkout is sparse: only what is on disk is taken")
    return notes


async def _special_file_notes(listing: RepositoryListing, index: Path) -> list[str]:
    """Return a note about pipes, sockets and devices beside the files, unless they are ignored."""
    repository, start = listing.repository, len(listing.prefix)
    top = os.fsencode(repository.top)
    folders = {file.path[start:].rpartition(b"/")[0] for file in listing.files} | {b""}
    special = [path for folder in sorted(folders) for path in _find_special(top, folder)]
    if not special:
        return []
    command = ("check-ignore", "-z", "--stdin")
    output = await _query_worktree(
        repository, index, *command, stdin=b"\0".join(special), accept=(0, 1)
    )
    kept = sorted(set(special) - set(output.split(b"\0")))
    shown = join_paths(listing.prefix + path for path in kept)
    return [f"left out, neither file nor link: {shown}"] if kept else []


def _find_special(top: bytes, folder: bytes) -> list[bytes]:
    special = []
    try:
        with os.scandir(top + b"/" + folder) as entries:
            for entry in entries:
                is_regular = entry.is_file(follow_symlinks=False) or entry.is_dir(
                    follow_symlinks=False
                )
                if not is_regular and not entry.is_symlink():
                    special.append(folder + b"/" + entry.name if folder else entry.name)
    except OSError:
        return []  # a tracked folder that was deleted, or replaced by a file
    return special
