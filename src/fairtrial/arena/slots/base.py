"""The base's own tree: what every slot is a copy of. Nobody ever leases it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.slots.bytecode import compile_files
from fairtrial.arena.slots.copying import Wanted, originate
from fairtrial.arena.slots.removal import FOLDER
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.slots.tree import list_tree
from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.core import LabError

# One time for every file of the base: whatever compares times (make, git) finds that nothing is
# newer than anything else, except for what a candidate brings.
AGE_NS = 946_684_800 * 10**9
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Base:
    """What slots are staged from.

    top: the folder
    everything: all that is in it
    shown: the same without what candidates must not see
    notes: what people should know of it
    """

    top: Path
    everything: Wanted
    shown: Wanted
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
    """Check the snapshot out and add all that slots need beside it."""
    from anyio import to_thread

    top, notes = home / "base", []
    files = await _check_out(snapshot, top, home / "index")
    concealed = await to_thread.run_sync(find_concealed, top, hidden)
    if python is not None:
        seen = [file for file in files if not is_below(file, concealed)]
        notes += await compile_files(top, seen, python)
    await in_thread(_settle, top)
    if included:
        size = await in_thread(_copy_included, snapshot.source, top, included)
        notes.append(f"included paths are copied into every slot: {size / _MB:,.1f} MB each")
    if has_git:
        await make_repository(snapshot, top, home / "index", concealed)
    listing = await to_thread.run_sync(_list, top)
    everything = originate(top, listing)
    return Base(top, everything, _without(everything, concealed), tuple(notes))


async def _check_out(snapshot: Snapshot, top: Path, index: Path) -> list[str]:
    """Write the snapshot's files.

    By an index of our own outside the folder, instead of `git worktree add`: a worktree has a
    `.git` that leads to the private repository, and candidates must see neither. For the same
    reason slots are copies of this folder, made by the same code that resets them.
    """
    top.mkdir()
    await git("read-tree", snapshot.tree, repo=snapshot.repo, index=index)
    try:
        await git(
            "checkout-index", "--all", "--force", "--quiet",
            repo=snapshot.repo, worktree=top, index=index,
        )  # fmt: skip
    except GitError as error:  # which doesn't always say why
        free_mb = shutil.disk_usage(top).free / _MB
        raise LabError(
            f"the base can't be written to {top}, where {free_mb:,.1f} MB are free: "
            f"{' '.join(error.stderr[:500].split())}; make room there, or set FAIRTRIAL_HOME to "
            "another folder (with a short path)"
        ) from error
    told = await git("ls-files", "-z", repo=snapshot.repo, index=index)
    return [os.fsdecode(path) for path in told.split(b"\0")[:-1]]


def find_concealed(top: Path, hidden: Sequence[str]) -> set[str]:
    """The paths that candidates must not see; what a hidden link leads to is hidden as well."""
    concealed = set()
    top = top.resolve()
    for path in hidden:
        place = Path(os.path.normpath(top / path))
        for each in (place, place.resolve()):
            if each.is_relative_to(top) and each != top:
                concealed.add(each.relative_to(top).as_posix())
    return concealed


def is_below(path: str, folders: Collection[str]) -> bool:
    """Whether a path is one of `folders`, or in one of them."""
    return any(path == each or path.startswith(f"{each}/") for each in folders)


def _without(wanted: Wanted, concealed: Collection[str]) -> Wanted:
    if not concealed:
        return wanted
    return {
        folder: {
            name: origin for name, origin in names.items() if not is_below(folder + name, concealed)
        }
        for folder, names in wanted.items()
        if not is_below(folder, concealed)
    }


def _settle(top: Path) -> None:
    """Give modes and times that don't depend on who runs this, and when."""
    for folder, folders, names in os.walk(top):
        Path(folder).chmod(0o755)
        for name in [*names, *folders]:  # a link to a folder is among the folders
            place = os.path.join(folder, name)  # noqa: PTH118 - by the thousand
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode):
                continue
            if stat.S_ISREG(mode):
                os.chmod(place, 0o755 if mode & 0o100 else 0o644)  # noqa: PTH101
            os.utime(place, ns=(AGE_NS, AGE_NS), follow_symlinks=False)


def _copy_included(source: Path, top: Path, included: Sequence[str]) -> int:
    """Copy ignored files and folders of the user's tree; returns how many bytes they have."""
    total = 0

    def copy(origin: str, target: str) -> None:
        nonlocal total
        entry = os.lstat(origin)
        if stat.S_ISREG(entry.st_mode):  # reading a pipe would never end
            shutil.copy2(origin, target)
            total += entry.st_size

    for path in included:
        origin, target = source / path, top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if origin.is_symlink():
                os.symlink(os.readlink(origin), target)  # noqa: PTH115, PTH211 - to the letter
            elif origin.is_dir():
                shutil.copytree(
                    origin, target, symlinks=True, copy_function=copy, dirs_exist_ok=True
                )
            else:
                copy(str(origin), str(target))
        except shutil.Error as error:
            place, _, reason = error.args[0][0]
            raise LabError(f"include: {place} can't be copied: {reason}") from error
    return total


async def make_repository(
    snapshot: Snapshot, top: Path, index: Path, concealed: Collection[str]
) -> None:
    """A repository around the base, with all that candidates may see as its only commit.

    It has its own objects: nothing that is done in it reaches another repository.
    """
    repo, private = top / ".git", snapshot.repo
    told = await git("ls-files", "-z", repo=private, index=index)
    paths = [path for path in told.split(b"\0")[:-1] if is_below(os.fsdecode(path), concealed)]
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
    # A slot's files have other inodes than the base's: git is to go by size and time.
    await git("config", "core.checkStat", "minimal", repo=repo)
    await git("config", "core.trustctime", "false", repo=repo)
    (repo / "info").mkdir(exist_ok=True)
    (repo / "info" / "exclude").write_text("__pycache__/\n", "utf-8")
    (repo / "info" / "attributes").write_bytes((private / "info" / "attributes").read_bytes())
    await git("read-tree", commit, repo=repo, worktree=top)
    await git("update-index", "-q", "--refresh", repo=repo, worktree=top)
    for place in repo.rglob("*"):
        place.chmod(0o755 if place.is_dir() else 0o644)


def _list(top: Path) -> dict[str, dict[str, tuple[int, int, int, int, int]]]:
    handle = os.open(top, FOLDER)
    try:
        return list_tree(handle)
    finally:
        os.close(handle)
