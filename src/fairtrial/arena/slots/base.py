"""Prepare the base's own tree, which all slots are copies of and which is never leased."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.slots.bytecode import compile_files
from fairtrial.arena.slots.copying import TargetTree, build_target
from fairtrial.arena.slots.removal import FOLDER
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.slots.tree import list_tree
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.core import LabError

# All files of the base have the same time, so that for tools that compare times (make, git) only a
# candidate's files are newer than others.
MODIFIED_NS = 946_684_800 * 10**9
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Base:
    """The tree that slots are copied from.

    top: its folder
    complete: the target tree of trusted slots
    visible: the target tree of candidates, without hidden files
    notes: remarks for the user
    """

    top: Path
    complete: TargetTree
    visible: TargetTree
    notes: tuple[str, ...]


async def prepare_base(
    snapshot: Snapshot,
    home: Path,
    *,
    included: Sequence[str] = (),
    hidden: Sequence[str] = (),
    has_git: bool = False,
    python: Path | None = None,
) -> Base:
    """Check out the snapshot, and add bytecode, included paths and, if required, a repository.

    Raises `LabError` if the files can't be written.

    home: the pool's folder; the tree becomes `home/base`
    included: ignored paths of the user's tree to copy
    hidden: paths that candidates must not see
    has_git: whether the tree becomes a git repository of one commit
    python: compiles the bytecode, if given
    """
    from anyio import to_thread

    top, notes = home / "base", []
    files = await _check_out(snapshot, top, home / "index")
    hidden_paths = await to_thread.run_sync(find_hidden_paths, top, hidden)
    if python is not None:
        visible = [file for file in files if not is_below(file, hidden_paths)]
        notes += await compile_files(top, visible, python)
    await in_thread(_normalize_metadata, top)
    if included:
        size = await in_thread(_copy_included, snapshot.source, top, included)
        notes.append(f"included paths are copied into every slot: {size / _MB:,.1f} MB each")
    if has_git:
        await _create_repository(snapshot, top, home / "index", hidden_paths)
    listing = await to_thread.run_sync(_list_folder, top)
    complete = build_target(top, listing)
    return Base(top, complete, _exclude(complete, hidden_paths), tuple(notes))


async def _check_out(snapshot: Snapshot, top: Path, index: Path) -> list[str]:
    """Write the snapshot's files, and return their paths.

    This uses an index outside of the folder instead of `git worktree add`: a worktree has a `.git`
    that points to the private repository, and candidates must see neither. For the same reason
    slots are copies of this folder, made by the same code that resets them.
    """
    top.mkdir()
    await git("read-tree", snapshot.tree, repo=snapshot.repo, index=index)
    try:
        await git(
            "checkout-index", "--all", "--force", "--quiet",
            repo=snapshot.repo, worktree=top, index=index,
        )  # fmt: skip
    except GitError as error:  # its message doesn't always name the cause
        free_mb = shutil.disk_usage(top).free / _MB
        raise LabError(
            f"the base can't be written to {top}, where {free_mb:,.1f} MB are free: "
            f"{' '.join(error.stderr[:500].split())}; make room there, or set FAIRTRIAL_HOME to "
            "another folder (with a short path)"
        ) from error
    output = await git("ls-files", "-z", repo=snapshot.repo, index=index)
    return [os.fsdecode(path) for path in output.split(b"\0")[:-1]]


def find_hidden_paths(top: Path, hidden: Sequence[str]) -> set[str]:
    """Return the paths that candidates must not see, including targets of hidden links."""
    paths = set()
    top = top.resolve()
    for name in hidden:
        path = Path(os.path.normpath(top / name))
        for candidate in (path, path.resolve()):
            if candidate.is_relative_to(top) and candidate != top:
                paths.add(candidate.relative_to(top).as_posix())
    return paths


def is_below(path: str, folders: Collection[str]) -> bool:
    """Return whether a path is one of `folders`, or inside one of them."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _exclude(target: TargetTree, paths: Collection[str]) -> TargetTree:
    if not paths:
        return target
    return {
        folder: {
            name: origin for name, origin in names.items() if not is_below(folder + name, paths)
        }
        for folder, names in target.items()
        if not is_below(folder, paths)
    }


def _normalize_metadata(top: Path) -> None:
    """Set modes and times that don't depend on the user's umask and the time of day."""
    for folder, folders, names in os.walk(top):
        Path(folder).chmod(0o755)
        for name in [*names, *folders]:  # a link to a folder is among the folders
            path = os.path.join(folder, name)  # noqa: PTH118 - faster for thousands of files
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                continue
            if stat.S_ISREG(mode):
                os.chmod(path, 0o755 if mode & 0o100 else 0o644)  # noqa: PTH101
            os.utime(path, ns=(MODIFIED_NS, MODIFIED_NS), follow_symlinks=False)


def _copy_included(source: Path, top: Path, included: Sequence[str]) -> int:
    """Copy ignored files and folders of the user's tree, and return their size in bytes."""
    total = 0

    def copy(origin: str, target: str) -> None:
        nonlocal total
        status = os.lstat(origin)
        if stat.S_ISREG(status.st_mode):  # reading a pipe would block
            shutil.copy2(origin, target)
            total += status.st_size

    for path in included:
        origin, target = source / path, top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if origin.is_symlink():
                os.symlink(os.readlink(origin), target)  # noqa: PTH115, PTH211 - without normalization
            elif origin.is_dir():
                shutil.copytree(
                    origin, target, symlinks=True, copy_function=copy, dirs_exist_ok=True
                )
            else:
                copy(str(origin), str(target))
        except shutil.Error as error:
            failed, _, reason = error.args[0][0]
            raise LabError(f"include: {failed} can't be copied: {reason}") from error
    return total


async def _create_repository(
    snapshot: Snapshot, top: Path, index: Path, hidden: Collection[str]
) -> None:
    """Make the base a git repository whose only commit holds the files that candidates may see.

    It shares no objects with other repositories.
    """
    repo, private = top / ".git", snapshot.repo
    output = await git("ls-files", "-z", repo=private, index=index)
    paths = [path for path in output.split(b"\0")[:-1] if is_below(os.fsdecode(path), hidden)]
    await git(
        "update-index", "--force-remove", "-z", "--stdin",
        repo=private, worktree=top, index=index, stdin=b"".join(path + b"\0" for path in paths),
    )  # fmt: skip
    tree = (await git("write-tree", repo=private, index=index)).decode().strip()
    commit = (await git("commit-tree", "-m", "base", tree, repo=private)).decode().strip()
    name = (await git("rev-parse", "--show-object-format", repo=private)).decode().strip()
    await git(
        "init", "--quiet", "--template=", "--initial-branch=main", f"--object-format={name}",
        repo=repo, worktree=top,
    )  # fmt: skip
    objects = await git("rev-list", "--objects", "--no-object-names", commit, repo=private)
    pack = str(repo / "objects" / "pack" / "pack")
    await git("pack-objects", "--quiet", pack, repo=private, stdin=objects)
    await git("update-ref", "refs/heads/main", commit, repo=repo)
    # A slot's files have other inodes than the base's, so git must compare sizes and times only.
    await git("config", "core.checkStat", "minimal", repo=repo)
    await git("config", "core.trustctime", "false", repo=repo)
    (repo / "info").mkdir(exist_ok=True)
    (repo / "info" / "exclude").write_text("__pycache__/\n", "utf-8")
    (repo / "info" / "attributes").write_bytes((private / "info" / "attributes").read_bytes())
    await git("read-tree", commit, repo=repo, worktree=top)
    await git("update-index", "-q", "--refresh", repo=repo, worktree=top)
    for path in repo.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _list_folder(top: Path) -> dict[str, dict[str, tuple[int, int, int, int, int]]]:
    handle = os.open(top, FOLDER)
    try:
        return list_tree(handle)
    finally:
        os.close(handle)
