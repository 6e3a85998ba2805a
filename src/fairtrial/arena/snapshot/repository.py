"""A repository of the user's: where its parts are, and how it is set up. It is only ever read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.snapshot.git import GitError, git
from fairtrial.core import Mistake, StudyError

_LINK = b"gitdir: "


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a repository is, and what its configuration says.

    top: the top of its tree
    git_dir: its own folder; of a linked worktree or a submodule, somewhere else than in the tree
    settings: its configuration, the user's included; names in small letters
    """

    top: Path
    git_dir: Path
    settings: Mapping[str, str]

    def is_set(self, name: str, *, default: bool) -> bool:
        """A setting that is true or false."""
        value = self.settings.get(name)
        return default if value is None else value.lower() in ("true", "yes", "on", "1")

    @property
    def object_format(self) -> str:
        """How its objects are named: sha1 or sha256."""
        return self.settings.get("extensions.objectformat", "sha1")


async def find_repository(folder: Path) -> Repository:
    """The repository that a folder is in; a `StudyError` says what to do if there is none."""
    try:
        start = folder.resolve(strict=True)
        place, git_dir = _search(start if start.is_dir() else start.parent)
    except OSError as error:
        problem = f"can't be read: {error.strerror}"
        hint = "`repo` names it, from the folder of the problem's file"
        raise StudyError(Mistake((), problem, hint), source=str(folder)) from error
    repository = await _open(place, git_dir)
    if (git_dir / "commondir").exists():
        return repository  # what the shared configuration says is about the main tree
    if repository.is_set("core.bare", default=False):
        raise _bare(place)
    elsewhere = repository.settings.get("core.worktree")
    if elsewhere is None:
        return repository
    top = (git_dir / elsewhere).resolve()
    if not top.is_dir():
        problem = f"its tree should be at {top} (core.worktree), but no folder is there"
        raise StudyError(problem, source=str(place))
    return Repository(top, git_dir, repository.settings)


async def open_repository(top: Path) -> Repository | None:
    """The repository whose tree begins at `top`, if there is one."""
    try:
        git_dir = find_git_dir(top)
    except OSError as error:
        raise StudyError(f"can't be read: {error.strerror}", source=str(top)) from error
    return None if git_dir is None else await _open(top, git_dir)


def find_git_dir(top: Path) -> Path | None:
    """The folder of the repository whose tree begins at `top`, if there is one."""
    place = top / ".git"
    if place.is_file():
        content = place.read_bytes()
        if not content.startswith(_LINK):
            return None
        name = content[len(_LINK) :].rstrip(b"\r\n")
        place = top / name.decode("utf-8", "surrogateescape")
    return place.resolve() if _is_git_dir(place) else None


def _search(folder: Path) -> tuple[Path, Path]:
    """The first folder upwards in which a tree begins, and its repository."""
    for place in (folder, *folder.parents):
        git_dir = find_git_dir(place)
        if git_dir is not None:
            return place, git_dir
        if _is_git_dir(place):
            if place.name == ".git" or ".git" in place.parent.parts:
                problem = "lies inside a repository's own folder, not in its tree"
                raise StudyError(f"{problem}: name the tree, or a folder in it", source=str(folder))
            raise _bare(place)
    raise StudyError(
        "is not in a git repository: make it one (git init), or name the folder of the "
        "repository in `repo`",
        source=str(folder),
    )


def _is_git_dir(place: Path) -> bool:
    head = place / "HEAD"
    if not (head.is_symlink() or head.is_file()):
        return False
    common = place / "commondir"
    if common.is_file():
        place = place / common.read_text("utf-8", "surrogateescape").rstrip("\r\n")
    return (place / "objects").is_dir() and (place / "refs").is_dir()


def _bare(place: Path) -> StudyError:
    problem = "is a bare repository, which has no tree of files"
    return StudyError(f"{problem}: clone it, and name the clone", source=str(place))


async def _open(top: Path, git_dir: Path) -> Repository:
    try:
        told = await git("config", "-z", "--list", "--includes", repo=git_dir, as_user=True)
    except GitError as error:
        raise StudyError(f"git can't read it: {error.stderr}", source=str(top)) from error
    settings = {}
    for item in told.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        name, has_value, value = item.partition("\n")
        settings[name] = value if has_value else "true"
    return Repository(top, git_dir, settings)
