"""Find the user's git repository, its working tree and its configuration, without changing it.

Code may lie in no repository, as single scripts do. Then git gets an empty one outside of the tree,
so that all files of the project's folder are untracked ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.snapshot.git import GitError, create_bare_repository, git
from fairtrial.core import Mistake, StudyError

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini")
"""Files that make their folder a project's."""
IGNORED = ("__pycache__/", "*.pyc", "node_modules/", ".*_cache/", ".tox/", ".nox/", ".venv/")
"""What is no part of a project that has no .gitignore."""
_GITDIR_PREFIX = b"gitdir: "
_made: dict[Path, tempfile.TemporaryDirectory[str]] = {}
"""Empty repositories of this process, by the folders that they stand for; removed at its end."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository with a working tree.

    top: the top folder of the working tree
    git_dir: the git directory; outside of the tree for linked worktrees and submodules
    settings: its configuration merged with the user's; names are in lower case
    is_made: whether it is an empty one, made since the folder lies in none
    """

    top: Path
    git_dir: Path
    settings: Mapping[str, str]
    is_made: bool = False

    def is_set(self, name: str, *, default: bool) -> bool:
        """Return the value of a boolean setting."""
        value = self.settings.get(name)
        return default if value is None else value.lower() in ("true", "yes", "on", "1")

    @property
    def object_format(self) -> str:
        """The hash function that names its objects: sha1 or sha256."""
        return self.settings.get("extensions.objectformat", "sha1")


async def find_repository(folder: Path, within: Path | None = None) -> Repository:
    """Return the repository that a folder or file is in; an empty one if it is in none.

    within: the top in that case, if it holds the folder and no packaging says otherwise

    Raises `StudyError` if it has no working tree or can't be read.
    """
    try:
        start = folder.resolve(strict=True)
        start = start if start.is_dir() else start.parent
        located = _search_upwards(start)
        if located is None:
            return await _make_repository(_choose_top(start, within))
        top, git_dir = located
    except OSError as error:
        problem = f"can't be read: {error.strerror}"
        hint = "`repo` names it, from the folder of the problem's file"
        raise StudyError(Mistake((), problem, hint), source=str(folder)) from error
    repository = await _read_settings(top, git_dir)
    if (git_dir / "commondir").exists():
        return repository  # core.bare and core.worktree describe the main worktree, not this one
    if repository.is_set("core.bare", default=False):
        raise _bare_repository_error(top)
    setting = repository.settings.get("core.worktree")
    if setting is None:
        return repository
    worktree = (git_dir / setting).resolve()
    if not worktree.is_dir():
        problem = f"its tree should be at {worktree} (core.worktree), but no folder is there"
        raise StudyError(problem, source=str(top))
    return Repository(worktree, git_dir, repository.settings)


async def open_repository(top: Path) -> Repository | None:
    """Return the repository whose working tree starts at `top`, or None if there is none.

    Raises `StudyError` if it can't be read.
    """
    try:
        git_dir = find_git_dir(top)
    except OSError as error:
        raise StudyError(f"can't be read: {error.strerror}", source=str(top)) from error
    return None if git_dir is None else await _read_settings(top, git_dir)


def find_git_dir(top: Path) -> Path | None:
    """Return the git directory of the working tree that starts at `top`, or None."""
    path = top / ".git"
    if path.is_file():
        content = path.read_bytes()
        if not content.startswith(_GITDIR_PREFIX):
            return None
        name = content[len(_GITDIR_PREFIX) :].rstrip(b"\r\n")
        path = top / name.decode("utf-8", "surrogateescape")
    return path.resolve() if _is_git_dir(path) else None


def _search_upwards(folder: Path) -> tuple[Path, Path] | None:
    """Return the top of the working tree that holds `folder`, and its git directory.

    Raises `StudyError` if it lies in a repository without a working tree.
    """
    for parent in (folder, *folder.parents):
        git_dir = find_git_dir(parent)
        if git_dir is not None:
            return parent, git_dir
        if _is_git_dir(parent):
            if parent.name == ".git" or ".git" in parent.parent.parts:
                problem = "lies inside a repository's own folder, not in its tree"
                raise StudyError(f"{problem}: name the tree, or a folder in it", source=str(folder))
            raise _bare_repository_error(parent)
    return None


def _choose_top(folder: Path, within: Path | None) -> Path:
    """Return the folder that a project without a repository starts at.

    Raises `StudyError` if that would be a folder in which all kinds of things lie.
    """
    wide = {Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), Path(folder.anchor)}
    top = within.resolve() if within is not None else folder
    top = top if folder.is_relative_to(top) and top not in wide else folder
    while (top / "__init__.py").is_file() and top.parent != top:
        top = top.parent
    for parent in (folder, *folder.parents):
        if parent in wide:
            break
        if any((parent / name).is_file() for name in MARKERS):
            top = parent
            break
    if top in wide:
        message = "is in no git repository, and all files of a project are copied"
        hint = f"move the code to a folder of its own, or type: git init {folder}"
        raise StudyError(Mistake((), message, hint), source=str(folder))
    return top


async def _make_repository(top: Path) -> Repository:
    """Return an empty repository, outside of the tree, whose working tree is a folder."""
    if top not in _made:
        home = tempfile.TemporaryDirectory(prefix="fairtrial-git-")
        git_dir = Path(home.name, "repo")
        await create_bare_repository(git_dir, "sha1")
        environments = (file.parent.name for file in top.glob("*/pyvenv.cfg"))
        lines = [*IGNORED, *(f"/{name}/" for name in environments)]
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info" / "exclude").write_text("\n".join(lines) + "\n", "utf-8")
        if _made.setdefault(top, home) is not home:  # another task was faster
            home.cleanup()
    git_dir = Path(_made[top].name, "repo")
    repository = await _read_settings(top, git_dir)
    return Repository(top, git_dir, repository.settings, is_made=True)


def _is_git_dir(path: Path) -> bool:
    head = path / "HEAD"
    if not (head.is_symlink() or head.is_file()):
        return False
    common = path / "commondir"
    if common.is_file():
        path = path / common.read_text("utf-8", "surrogateescape").rstrip("\r\n")
    return (path / "objects").is_dir() and (path / "refs").is_dir()


def _bare_repository_error(path: Path) -> StudyError:
    problem = "is a bare repository, which has no tree of files"
    return StudyError(f"{problem}: clone it, and name the clone", source=str(path))


async def _read_settings(top: Path, git_dir: Path) -> Repository:
    try:
        output = await git("config", "-z", "--list", "--includes", repo=git_dir, as_user=True)
    except GitError as error:
        raise StudyError(f"git can't read it: {error.stderr}", source=str(top)) from error
    settings = {}
    for item in output.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        name, has_value, value = item.partition("\n")
        settings[name] = value if has_value else "true"
    return Repository(top, git_dir, settings)
