"""The files of a study that go to the nodes of a cluster: its folder, and modules beside it.

What git ignores stays here, and so do results, virtual environments and repositories' own files.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from fairtrial.core import Mistake, events
from fairtrial.study.ledger.schema import LEDGER_NAME

MB = 1_000_000
SHOWN_FILES = 3
OWN_MODULES = ("fairtrial", "fairtrial_codemod")
_LIST = ("ls-files", "-z", "--others", "--exclude-standard")


@dataclass(frozen=True)
class StudyFiles:
    """Files of the driver, by their absolute paths without links.

    roots: the files and folders that they are in
    paths: the files
    size_bytes: their size
    """

    roots: tuple[str, ...]
    paths: tuple[str, ...]
    size_bytes: int

    def describe(self) -> str:
        """Return how much it is: `12 files, 0.3 MB`."""
        count = len(self.paths)
        return f"{count:,} {'file' if count == 1 else 'files'}, {spell_size(self.size_bytes)}"

    def find_mistakes(self, most_mb: float) -> Iterator[Mistake]:
        """Yield a mistake if it is more than `most_mb`."""
        if self.size_bytes <= most_mb * MB:
            return
        largest = sorted(self.paths, key=lambda path: -_size(path))[:SHOWN_FILES]
        shown = ", ".join(f"{path} ({_size(path) / MB:,.1f} MB)" for path in largest)
        yield Mistake(
            ("executor",),
            f"the study's files are {self.describe()}, more than the {most_mb:,.0f} MB that go to "
            f"nodes; the largest: {shown}",
            "have git ignore what runs don't need (.gitignore), keep large data on the nodes, or "
            "use --shared-files if nodes see the same files",
        )

    def digest(self) -> str:
        """Return a digest of the Python files, as they are on this machine; empty without any."""
        paths = self.code_paths()
        return digest_code(paths) if paths else ""

    def code_paths(self) -> tuple[str, ...]:
        """Return the Python files."""
        return tuple(path for path in self.paths if path.endswith(".py"))

    def archive(self) -> bytes:
        """Return the files as a tar archive; those that have vanished are left out."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
            for path in self.paths:
                with suppress(FileNotFoundError):
                    archive.add(path, arcname=path.lstrip("/"), recursive=False)
        return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class FilesPacked(events.Event):
    """What goes to each node of a cluster was packed.

    text: how much it is
    """

    text: str

    def __str__(self) -> str:
        return self.text


def find_study_files(folder: Path | None, output: Path | None) -> StudyFiles:
    """Return the files that runs of a study need of the driver.

    folder: the study's folder, if it has one
    output: its output directory, which stays here
    """
    roots: list[str] = []
    if folder is not None:
        roots.append(os.path.realpath(folder))
    for root in _find_module_roots():
        if not any(_is_below(root, other) for other in roots):
            roots.append(root)
    skipped = None if output is None else os.path.realpath(output)
    listed = (path for root in roots for path in _list_files(Path(root), skipped))
    paths = dict.fromkeys(map(str, listed))
    return StudyFiles(tuple(roots), tuple(paths), sum(map(_size, paths)))


def spell_size(size_bytes: int) -> str:
    """Return a size for people: `12 kB`, `3.4 MB`."""
    return f"{size_bytes / MB:,.1f} MB" if size_bytes >= MB else f"{size_bytes / 1000:,.1f} kB"


def digest_code(paths: Iterable[str]) -> str:
    """Return a short digest of files by name; a file that isn't there counts as another one."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        name = os.fsencode(Path(path).name)
        try:
            content = Path(path).read_bytes()
        except OSError:
            content = b"\0missing"
        digest.update(b"%s %d " % (name, len(content)) + content)
    return digest.hexdigest()[:12]


@cache
def digest_package() -> str:
    """Return a short digest of the code of fairtrial that this process runs."""
    package = Path(__file__).parents[3]
    return digest_code(map(str, package.rglob("*.py")))


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


# -- modules --


def _find_module_roots() -> Iterator[str]:
    """Yield the files and folders of imported modules that belong to no installed package."""
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places |= {sys.prefix, sys.base_prefix, sys.exec_prefix}
    installed = [os.path.realpath(place) for place in places]
    files = {
        name: os.path.realpath(file)
        for name, module in list(sys.modules.items())
        if "." not in name
        and name not in sys.stdlib_module_names
        and name not in OWN_MODULES
        and not name.startswith("__")
        and (file := getattr(module, "__file__", None))
    }
    files = {
        name: file
        for name, file in files.items()
        if Path(file).exists() and not any(_is_below(file, place) for place in installed)
    }
    distributed = metadata.packages_distributions() if files else {}
    for name, file in files.items():
        if name not in distributed:
            path = Path(file)
            yield str(path.parent if path.stem == "__init__" else path)


# -- listing --


def _list_files(root: Path, skipped: str | None) -> Iterator[Path]:
    """Yield the files of a folder that git doesn't ignore, with those of repositories in it."""
    if not root.is_dir():
        yield root
        return
    is_left_out = _Exclusion(root, skipped)
    for name in _ask_git(root):
        path = root / name
        if is_left_out(path.parent):
            continue
        if path.is_dir() and not path.is_symlink():
            if not is_left_out(path):
                yield from _list_files(path, skipped)  # a repository in this one
        elif os.path.lexists(path):
            yield path


class _Exclusion:
    """Tells whether a folder below `root` is none that runs need, or lies in one."""

    def __init__(self, root: Path, skipped: str | None) -> None:
        self._known = {root: False}
        self._skipped = skipped

    def __call__(self, folder: Path) -> bool:
        known = self._known.get(folder)
        if known is None:
            known = self(folder.parent) or self._is_unneeded(folder)
            self._known[folder] = known
        return known

    def _is_unneeded(self, folder: Path) -> bool:
        if str(folder) == self._skipped or folder.name in (".git", "__pycache__"):
            return True
        return any((folder / name).exists() for name in (LEDGER_NAME, "pyvenv.cfg"))


def _ask_git(folder: Path) -> list[str]:
    """Return the files below a folder that git doesn't ignore; all of them without git."""
    try:
        if _git(folder, "check-ignore", "-q", ".").returncode == 1:  # in a repository, not ignored
            tracked = _git(folder, *_LIST, "--cached")
            if tracked.returncode == 0:
                return _split(tracked.stdout)
        with tempfile.TemporaryDirectory(prefix="fairtrial-listing-") as scratch:
            options = ("--bare", "--quiet", "--template=", scratch)
            _git(scratch, "init", *options)
            listed = _git(folder, f"--git-dir={scratch}", f"--work-tree={folder}", *_LIST)
            if listed.returncode == 0:
                return _split(listed.stdout)
    except OSError:  # no git
        pass
    return [
        str(Path(place, name).relative_to(folder))
        for place, _, names in os.walk(folder)
        for name in names
    ]


def _git(folder: Path | str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", *arguments]
    return subprocess.run(
        command, cwd=folder, env=inherited, capture_output=True, stdin=subprocess.DEVNULL
    )


def _split(listed: bytes) -> list[str]:
    names: Sequence[bytes] = listed.split(b"\0")
    return [os.fsdecode(name) for name in names if name]
