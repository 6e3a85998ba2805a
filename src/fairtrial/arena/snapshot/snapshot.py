"""A snapshot of the user's tree as it is now: one commit in a private repository.

Committed, staged, unstaged and untracked files, as the bytes on disk; of submodules and embedded
repositories the files, never their `.git`. The user's repository and tree are only read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot.git import git, make_bare
from fairtrial.arena.snapshot.listing import Part, list_parts, spell_paths
from fairtrial.arena.snapshot.packing import BRANCH, write_commit
from fairtrial.arena.snapshot.repository import find_repository
from fairtrial.arena.snapshot.survey import Found, survey
from fairtrial.core import LabError, StudyError

_MB = 1_000_000
_SHOWN = 3
# Bytes are taken and given back as they are, whatever the tree's own attributes ask for.
_ATTRIBUTES = "* -text !eol -filter -ident !working-tree-encoding !diff !merge\n"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The user's tree at one moment.

    source: the top of the user's tree
    repo: the private repository, a bare one (GIT_DIR); it needs nothing of the user's
    commit: the one commit in it, without parents
    tree: that commit's tree
    notes: what people should know of how it was taken
    """

    source: Path
    repo: Path
    commit: str
    tree: str
    notes: tuple[str, ...] = ()


async def find_top(folder: Path) -> Path:
    """The top of the tree that a folder, or a file, is in."""
    return (await find_repository(folder)).top


async def take_snapshot(folder: Path, home: Path, *, largest_mb: int = 100) -> Snapshot:
    """Take the tree that `folder` is in, with its untracked files but without ignored ones.

    home: a folder outside the tree, for the private repository (`home/repo`)
    largest_mb: how much untracked data is taken along at most
    """
    from anyio import from_thread, to_thread

    repository = await find_repository(folder)
    home = home.resolve()
    if home.is_relative_to(repository.top):
        raise LabError(f"{home}: a snapshot can't be kept inside the tree that it is taken of")
    top = os.fsencode(repository.top)
    with TemporaryDirectory(prefix="listing-", dir=home) as scratch:
        parts = await list_parts(repository, Path(scratch))
    found = await to_thread.run_sync(survey, top, parts)
    _refuse_large(repository.top, found, largest_mb)
    repo = await _make_repository(home / "repo", repository.object_format)
    write = partial(write_commit, repo, top, found, from_thread.check_cancelled)
    pointers = await in_thread(write)
    await _refuse_pointers(pointers, parts, no_index=home / "no-index")
    told = await git("rev-parse", BRANCH, f"{BRANCH}^{{tree}}", repo=repo)
    commit, tree = told.decode().split()
    notes = tuple(note for part in parts for note in part.notes)
    return Snapshot(repository.top, repo, commit, tree, notes)


async def _make_repository(repo: Path, object_format: str) -> Path:
    """An empty repository that takes bytes as they are, and gives them back so."""
    try:
        await make_bare(repo, object_format)
        (repo / "info").mkdir()
        (repo / "info" / "attributes").write_text(_ATTRIBUTES, "utf-8")
    except OSError as error:
        raise LabError(f"{repo} can't be made: {error.strerror}") from error
    return repo


def _refuse_large(top: Path, found: Sequence[Found], largest_mb: int) -> None:
    untracked = [file for file in found if not file.is_tracked]
    total = sum(file.size_bytes for file in untracked)
    if total <= largest_mb * _MB:
        return
    untracked.sort(key=lambda file: -file.size_bytes)
    largest = ", ".join(
        f"{spell_paths([file.path])} ({file.size_bytes / _MB:,.1f} MB)"
        for file in untracked[:_SHOWN]
    )
    raise StudyError(
        f"untracked files come to {total / _MB:,.1f} MB, more than the {largest_mb:,} MB that are "
        f"taken along; the largest: {largest}. Ignore them (.gitignore; `include` still brings "
        "them to slots), or add them (git add), or raise `largest_mb`",
        source=str(top),
    )


async def _refuse_pointers(
    pointers: Sequence[bytes], parts: Sequence[Part], *, no_index: Path
) -> None:
    """Files that Git LFS should have filled; a file that only looks like a pointer may stay."""
    empty = []
    for part in reversed(parts):  # holders come before what is embedded in them
        own = [path for path in pointers if path.startswith(part.prefix)]
        pointers = [path for path in pointers if path not in own]
        if not own:
            continue
        told = await git(
            "check-attr", "-z", "--stdin", "filter",
            repo=part.repository.git_dir, worktree=part.repository.top,
            index=no_index, as_user=True,
            stdin=b"".join(path[len(part.prefix) :] + b"\0" for path in own),
        )  # fmt: skip
        values = told.split(b"\0")[2::3]
        empty += [path for path, value in zip(own, values, strict=True) if value == b"lfs"]
    if empty:
        raise StudyError(
            f"files of Git LFS are not there, only pointers to them: {spell_paths(empty)}; fetch "
            "them with `git lfs pull`",
            source=str(parts[0].repository.top),
        )
