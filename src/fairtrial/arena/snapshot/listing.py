"""Which files of a tree count: tracked ones, and untracked ones that are not ignored.

git says so, by the user's own rules. It is asked in ways that leave no trace: reading a split index
touches a file beside it, so the index is read from a copy; and what is looked for on disk is looked
for with an index of names alone, in which no flag (assume-unchanged, skip-worktree), no conflict
and no sparse folder can hide a file.
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

from fairtrial.arena.snapshot.git import GitError, git, make_bare
from fairtrial.arena.snapshot.repository import Repository, find_git_dir, open_repository
from fairtrial.core import StudyError

_GITLINK, _FOLDER = 0o160000, 0o040000
_SHOWN = 5
_HEX = re.compile("(?:[0-9a-f]{2})+")
_SPARSE = b"sdir\0\0\0\0"  # how an index says that it is


@dataclass(frozen=True, slots=True)
class Listed:
    """A path that counts, if it is there.

    path: relative to the top of the tree
    mode: git's mode in the index; None for what is not tracked
    """

    path: bytes
    mode: int | None


@dataclass(slots=True)
class Part:
    """A repository's share of a tree: the user's own, or one that is embedded in it.

    repository: whose rules hold
    prefix: where it is in the tree: empty, or a path that ends with a slash
    files: what counts, by paths of the whole tree
    embedded: paths of repositories in it
    notes: what people should know
    """

    repository: Repository
    prefix: bytes
    files: list[Listed] = field(default_factory=list)
    embedded: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: int
    name: str
    stage: int
    path: bytes


async def list_parts(repository: Repository, scratch: Path) -> list[Part]:
    """The tree, repository by repository: submodules and embedded ones follow their holders.

    scratch: a folder for copies of indexes
    """
    parts = []
    waiting = [(repository, b"")]
    while waiting:
        holder, prefix = waiting.pop(0)
        part = await _list_part(holder, prefix, scratch)
        parts.append(part)
        for path in part.embedded:
            inner = await open_repository(repository.top / os.fsdecode(path))
            if inner is None:
                problem = "git takes it for a repository, but its .git can't be read"
                raise StudyError(problem, source=str(repository.top / os.fsdecode(path)))
            waiting.append((inner, path))
    return parts


def spell_paths(paths: Iterable[bytes]) -> str:
    """Some paths for people; of many, the first few."""
    names = [path.decode("utf-8", "backslashreplace") for path in paths]
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


async def _list_part(repository: Repository, prefix: bytes, scratch: Path) -> Part:
    folder = Path(mkdtemp(dir=scratch))
    try:
        entries = await _read_index(repository, folder)
        part = Part(repository, prefix)
        tracked = {entry.path: entry for entry in entries if _is_still(entry, repository.top)}
        names = await _write_names(tracked.values(), repository, folder)
        others = await _list_others(repository, names, part.notes)
        links = [path for path, entry in tracked.items() if entry.mode == _GITLINK]
        repositories = [path for path in others if path.endswith(b"/")]
        part.embedded = [prefix + path.rstrip(b"/") + b"/" for path in [*links, *repositories]]
        part.files = [
            Listed(prefix + path, entry.mode)
            for path, entry in tracked.items()
            if entry.mode != _GITLINK
        ]
        part.files += [Listed(prefix + path, None) for path in others if not path.endswith(b"/")]
        part.notes += _notes(entries, part)
        part.notes += await _note_special(part, names)
    except GitError as error:
        problem = f"git can't read it: {error.stderr}"
        raise StudyError(problem, source=str(repository.top)) from error
    except PermissionError as error:
        problem = f"{error.filename} can't be read; make it readable"
        raise StudyError(problem, source=str(repository.top)) from error
    finally:
        shutil.rmtree(folder)
    return part


def _is_still(entry: _Entry, top: Path) -> bool:
    """Whether a tracked path is a repository where it was one, and no folder where it was none.

    The others are looked at like untracked ones: git lists nothing at a path that it tracks.
    """
    try:
        mode = os.lstat(os.fsencode(top) + b"/" + entry.path).st_mode
    except OSError:
        return entry.mode != _GITLINK
    if entry.mode != _GITLINK:
        return not stat.S_ISDIR(mode)
    return stat.S_ISDIR(mode) and find_git_dir(top / os.fsdecode(entry.path)) is not None


async def _read_index(repository: Repository, folder: Path) -> list[_Entry]:
    """What the index holds; of folders that a sparse one doesn't look into, nothing."""
    try:
        content = (repository.git_dir / "index").read_bytes()
    except FileNotFoundError:
        return []
    copy = folder / "copy"
    await make_bare(copy, repository.object_format)
    (copy / "index").write_bytes(content)
    for shared in repository.git_dir.glob("sharedindex.*"):
        name = shared.suffix[1:]
        if _HEX.fullmatch(name) and bytes.fromhex(name) in content:
            shutil.copyfile(shared, copy / shared.name)
    sparse = ("--sparse",) if _SPARSE in content else ()
    told = await git("ls-files", "-z", "--stage", *sparse, repo=copy, worktree=repository.top)
    entries = []
    for item in told.split(b"\0")[:-1]:
        head, _, path = item.partition(b"\t")
        mode, name, stage = head.decode().split()
        entries.append(_Entry(int(mode, 8), name, int(stage), path))
    return [entry for entry in entries if entry.mode != _FOLDER]


async def _write_names(entries: Iterable[_Entry], repository: Repository, folder: Path) -> Path:
    """An index that holds the same paths and nothing else that git could conclude from."""
    names = folder / "names"
    lines = [b"%o %s 0\t%s\0" % (each.mode, each.name.encode(), each.path) for each in entries]
    if lines:
        await git(
            "update-index", "-z", "--index-info",
            repo=folder / "copy", worktree=repository.top, index=names, stdin=b"".join(lines),
        )  # fmt: skip
    return names


async def _list_others(repository: Repository, names: Path, notes: list[str]) -> list[bytes]:
    """Untracked paths that are not ignored; repositories end with a slash."""
    command = ("ls-files", "-z", "--others", "--exclude-standard")
    told = await _ask(repository, names, *command, warnings=notes)
    return told.split(b"\0")[:-1]


async def _ask(
    repository: Repository,
    names: Path,
    *command: str,
    stdin: bytes = b"",
    accept: tuple[int, ...] = (0,),
    warnings: list[str] | None = None,
) -> bytes:
    """Ask git about the files on disk, by the repository's own rules and the user's."""
    # Where names differ by case, files do; a repository that was moved here may say otherwise.
    folds = str((repository.git_dir / "hEAD").exists()).lower()
    # Of a sparse checkout git would make our index sparse as it reads it, and write trees for it;
    # whatever it may think of writing, it isn't written among the user's objects.
    settings = (f"core.ignoreCase={folds}", "core.sparseCheckout=false", "index.sparse=false")
    return await git(
        *(word for setting in settings for word in ("-c", setting)),
        *command,
        repo=repository.git_dir,
        worktree=repository.top,
        index=names,
        stdin=stdin,
        env={"GIT_OBJECT_DIRECTORY": str(names.parent)},
        as_user=True,
        accept=accept,
        warnings=warnings,
    )


def _notes(entries: list[_Entry], part: Part) -> list[str]:
    notes = []
    unmerged = dict.fromkeys(part.prefix + entry.path for entry in entries if entry.stage)
    if unmerged:
        notes.append(f"unmerged files are taken as they are on disk: {spell_paths(unmerged)}")
    if part.embedded:
        inner = spell_paths(path.rstrip(b"/") for path in part.embedded)
        notes.append(f"repositories in the tree are taken as the files on disk: {inner}")
    if part.repository.is_set("core.sparsecheckout", default=False):
        notes.append("the checkout is sparse: only what is on disk is taken")
    return notes


async def _note_special(part: Part, names: Path) -> list[str]:
    """Says which pipes, sockets and devices lie beside the files, unless they are ignored."""
    repository, start = part.repository, len(part.prefix)
    top = os.fsencode(repository.top)
    folders = {listed.path[start:].rpartition(b"/")[0] for listed in part.files} | {b""}
    special = [path for folder in sorted(folders) for path in _find_special(top, folder)]
    if not special:
        return []
    command = ("check-ignore", "-z", "--stdin")
    told = await _ask(repository, names, *command, stdin=b"\0".join(special), accept=(0, 1))
    kept = sorted(set(special) - set(told.split(b"\0")))
    shown = spell_paths(part.prefix + path for path in kept)
    return [f"left out, neither file nor link: {shown}"] if kept else []


def _find_special(top: bytes, folder: bytes) -> list[bytes]:
    found = []
    try:
        with os.scandir(top + b"/" + folder) as entries:
            for entry in entries:
                known = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
                if not known and not entry.is_symlink():
                    found.append(folder + b"/" + entry.name if folder else entry.name)
    except OSError:
        return []  # a tracked folder that is gone, or a file by now
    return found
