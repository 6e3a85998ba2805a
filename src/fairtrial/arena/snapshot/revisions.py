"""Git revisions of the user's repository: find them, and copy their trees, without changing it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairtrial.arena.snapshot.commit_writer import BRANCH
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.repository import Repository, find_repository
from fairtrial.core import Mistake, StudyError

THE_TREE = "."
"""Stands for the tree as it is on disk, with uncommitted changes."""
_HEAD = "HEAD"
_SUBMODULE = b"160000"
_SHOWN_CHARS = 12
_NOT_KEPT = {".git", "__pycache__", ".venv", "venv"}
_HINT = "a revision is a branch, a tag, a commit or a stash; see `git log --all`, `git stash list`"


@dataclass(frozen=True, slots=True)
class RevisionRange:
    """Two revisions, of which the second is a candidate for the first.

    base: the revision that takes the base's place
    candidate: the revision that is judged
    """

    base: str
    candidate: str


def split_range(text: str) -> tuple[str, str, str] | None:
    """Split `A..B` or `A...B` into A, the dots, and B; None if the text is no range.

    A side that is left out is HEAD, as for git.
    """
    for dots in ("...", ".."):
        first, mark, second = text.partition(dots)
        if mark and first + second and not second.startswith("."):
            return first or _HEAD, dots, second or _HEAD
    return None


async def find_range(folder: Path, text: str) -> RevisionRange | None:
    """Return the revisions of `A..B`, or of `A...B` from their merge base on; None if it is none.

    Raises `StudyError` if one of the revisions doesn't exist, or they have no merge base.

    folder: a folder in the repository
    """
    parts = split_range(text)
    if parts is None:
        return None
    first, dots, second = parts
    repository = await find_repository(folder)
    commits = [await find_commit(repository, side) for side in (first, second)]
    if dots == "..":
        return RevisionRange(first, second)
    try:
        output = await _user_git(repository, "merge-base", *commits)
    except GitError:
        message = f"{first} and {second} have no merge base"
        hint = "a shallow clone lacks it: `git fetch --unshallow`"
        raise StudyError(Mistake((), message, hint), source=text) from None
    return RevisionRange(output.decode().split()[0], second)


async def find_commit(repository: Repository, revision: str) -> str:
    """Return the id of the commit that a revision names; raise `StudyError` if there is none."""
    if repository.is_made:
        message = f"there is no revision '{revision}': {repository.top} is in no git repository"
        raise StudyError(Mistake((), message, "git init, git add and git commit make one"))
    try:
        if revision.startswith("-") or "\0" in revision:
            raise GitError(("rev-parse",), 1, "")
        name = f"{revision}^{{commit}}"
        output = await _user_git(repository, "rev-parse", "--verify", "--quiet", name)
    except GitError:
        message = f"there is no revision '{revision}' in {repository.top}"
        raise StudyError(Mistake((), message, _HINT)) from None
    return output.decode().strip()


async def has_revision(folder: Path, revision: str) -> bool:
    """Return whether the repository of a folder has a revision of this name."""
    try:
        await find_commit(await find_repository(folder), revision)
    except StudyError:
        return False
    return True


async def find_objects(repository: Repository) -> Path:
    """Return the folder with the objects of a repository."""
    output = await _user_git(repository, "rev-parse", "--git-path", "objects")
    return (repository.git_dir / os.fsdecode(output.rstrip(b"\n"))).resolve()


async def commit_revision(
    repository: Repository, revision: str, repo: Path, kept: Mapping[str, Path] | None = None
) -> tuple[str, ...]:
    """Copy the tree of a revision into a private repository, as its only commit.

    repo: the private repository, an empty bare one
    kept: files and folders on disk that are taken instead, where they exist, by their path in the
        tree

    Returns notes for people. Raises `StudyError` if the revision can't be read.
    """
    commit = await find_commit(repository, revision)
    index = repo / "revision-index"
    variables = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(await find_objects(repository))}
    try:
        output = await git("rev-parse", f"{commit}^{{tree}}", repo=repo, env=variables)
        pack = str(repo / "objects" / "pack" / "pack")
        (repo / "objects" / "pack").mkdir(exist_ok=True)
        await git("pack-objects", "--quiet", "--revs", pack, repo=repo, env=variables, stdin=output)
    except GitError as error:
        message = f"the files of {revision} can't be read: {error.stderr[:500]}"
        hint = "a partial clone lacks some: `git fetch --refetch --no-filter`"
        raise StudyError(Mistake((), message, hint), source=str(repository.top)) from error
    await git("read-tree", output.decode().strip(), repo=repo, index=index)
    submodules = await _drop_submodules(repo, index)
    await _keep_files(kept or {}, repo, index)
    tree = (await git("write-tree", repo=repo, index=index)).decode().strip()
    made = (await git("commit-tree", "-m", "base", tree, repo=repo)).decode().strip()
    await git("update-ref", BRANCH, made, repo=repo)
    index.unlink()
    notes = [f"the base is {describe_revision(revision, commit)}, not the tree as it is"]
    if submodules:
        notes.append(f"submodules of a revision are left out: {', '.join(submodules)}")
    return tuple(notes)


def describe_revision(revision: str, commit: str) -> str:
    """Return a revision with the beginning of its commit's id, unless it is the id."""
    short = commit[:_SHOWN_CHARS]
    return short if commit.startswith(revision) else f"{revision} ({short})"


async def _drop_submodules(repo: Path, index: Path) -> list[str]:
    """Take submodules out of an index, and return their paths: their files are elsewhere."""
    listed = (await git("ls-files", "-s", "-z", repo=repo, index=index)).split(b"\0")[:-1]
    links = [line for line in listed if line.startswith(_SUBMODULE)]
    paths = [line.partition(b"\t")[2] for line in links]
    if paths:
        null = b"0" * len(links[0].split()[1])
        lines = b"".join(b"0 %s\t%s\0" % (null, path) for path in paths)
        await git("update-index", "-z", "--index-info", repo=repo, index=index, stdin=lines)
    return [os.fsdecode(path) for path in paths]


async def add_to_commit(repo: Path, files: Mapping[str, Path]) -> None:
    """Add files on disk, by their path in the tree, to the only commit of a private repository."""
    index = repo / "addition-index"
    await git("read-tree", BRANCH, repo=repo, index=index)
    await _keep_files(files, repo, index)
    tree = (await git("write-tree", repo=repo, index=index)).decode().strip()
    made = (await git("commit-tree", "-m", "base", tree, repo=repo)).decode().strip()
    await git("update-ref", BRANCH, made, repo=repo)
    index.unlink()


async def _keep_files(kept: Mapping[str, Path], repo: Path, index: Path) -> None:
    """Put files and folders on disk into an index, in place of what is at the same paths."""
    sources = {path: file for name, root in kept.items() for path, file in _list_files(name, root)}
    paths = list(sources)
    if not paths:
        return
    files = "".join(f"{sources[path].resolve()}\n" for path in paths)
    output = await git(
        *("hash-object", "-w", "--no-filters", "--stdin-paths"), repo=repo, stdin=os.fsencode(files)
    )
    lines = [
        os.fsencode(f"100644 {blob}\t{path}\0")
        for path, blob in zip(paths, output.decode().split(), strict=True)
    ]
    await git(
        *("update-index", "--add", "--replace", "-z", "--index-info"),
        repo=repo,
        index=index,
        stdin=b"".join(lines),
    )


def _list_files(name: str, source: Path) -> Iterator[tuple[str, Path]]:
    """Yield a file, or the files in a folder: path in the tree, and file on disk."""
    if source.is_file():
        yield name, source
    elif source.is_dir():
        for parent, folders, files in os.walk(source):
            folders[:] = sorted(folder for folder in folders if folder not in _NOT_KEPT)
            for file in sorted(files):
                path = Path(parent, file)
                if not path.is_symlink():
                    yield str(PurePosixPath(name, path.relative_to(source).as_posix())), path


async def _user_git(repository: Repository, *arguments: str) -> bytes:
    return await git(*arguments, repo=repository.git_dir, as_user=True)
