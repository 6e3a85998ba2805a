"""A code problem's repository on its way to another machine.

It travels as a git bundle of the snapshot's one commit, and becomes a repository there whose files
have the same bytes: the arena on that machine takes the same tree for its base.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.interpreter import find_program
from fairtrial.arena.model.problem import CodeProblem, resolve_paths
from fairtrial.arena.snapshot.commit_writer import BRANCH
from fairtrial.arena.snapshot.git import GitError, git, git_environment
from fairtrial.arena.snapshot.included_paths import find_included
from fairtrial.arena.snapshot.repository import find_repository
from fairtrial.arena.snapshot.snapshot import ATTRIBUTES, take_snapshot
from fairtrial.core import LabError, StudyError, run_blocking


@dataclass(frozen=True)
class ProjectCopy:
    """A repository, packed.

    top: the top of its tree on the machine where it was packed
    object_format: sha1 or sha256
    bundle: the snapshot of its files
    history: its own commits, if the problem's base is a revision, and what HEAD is
    extra: the problem's own file, and ignored files that it includes, as a tar archive
    environment: the project's virtual environment, relative to `top`; it doesn't travel
    """

    top: str
    object_format: str
    bundle: bytes
    history: tuple[bytes, str] | None
    extra: bytes
    environment: str | None

    @classmethod
    def pack(cls, problem: CodeProblem) -> ProjectCopy:
        """Pack the repository of a problem; raises `StudyError` if it can't be read."""
        return run_blocking(lambda _: _pack(problem), lambda _: None)

    @property
    def size_bytes(self) -> int:
        """Its size."""
        history = len(self.history[0]) if self.history else 0
        return len(self.bundle) + len(self.extra) + history

    def unpack(self, root: Path) -> None:
        """Write the repository and its files to the same path below `root`.

        Raises `LabError` if git is missing here, or the project's virtual environment.
        """
        top = Path(f"{root}{self.top}")
        top.mkdir(parents=True, exist_ok=True)
        environment = self._find_environment()
        _init(top, self.object_format)
        commit = head = next(value for value, name in _unbundle(top, self.bundle) if name == BRANCH)
        if self.history is not None:
            bundle, head = self.history
            for value, name in _unbundle(top, bundle):
                if name.startswith("refs/"):
                    _run(top, "update-ref", name, value)
        _run(top, "update-ref", "--no-deref", "HEAD", head)
        _run(top, "read-tree", commit)
        _run(top, "checkout-index", "--all", "--force", "--quiet")
        with tarfile.open(fileobj=io.BytesIO(self.extra)) as archive:
            archive.extractall(root, filter="fully_trusted")
        if environment is not None:
            link = top / str(self.environment)
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(environment)
            exclude = top / ".git" / "info" / "exclude"
            exclude.write_text(f"/{self.environment}\n", "utf-8")

    def _find_environment(self) -> Path | None:
        if self.environment is None:
            return None
        path = Path(self.top, self.environment)
        if not (path / "pyvenv.cfg").is_file():
            raise LabError(
                f"the project's virtual environment {path} is not on this machine: make it there, "
                "or name a Python that every machine has in the problem's `python`"
            )
        return path


async def _pack(problem: CodeProblem) -> ProjectCopy:
    repository = await find_repository(problem.project)
    top = repository.top
    resolved = resolve_paths(problem, top)
    with TemporaryDirectory(prefix="fairtrial-copy-") as home:
        snapshot = await take_snapshot(top, Path(home), largest_mb=problem.largest_mb)
        bundle = await _bundle(snapshot.repo, BRANCH)
    history = None
    if problem.base:
        try:
            head = await git("rev-parse", "HEAD", repo=repository.git_dir, as_user=True)
            commits = await _bundle(repository.git_dir, "--all", "HEAD", as_user=True)
        except GitError as error:
            raise StudyError(
                f"its history can't be packed: {error.stderr}", source=str(top)
            ) from error
        history = commits, head.decode().strip()
    program = find_program(problem.python, top / resolved.cwd, top)
    environment = _find_environment(program, top)
    included = [top / entry.path for entry in await find_included(top, resolved.include)]
    own_file = problem.folder / problem.file
    extra = _archive([*included, *([own_file] if own_file.is_file() else [])], environment)
    return ProjectCopy(
        str(top), repository.object_format, bundle, history, extra,
        None if environment is None else str(environment.relative_to(top)),
    )  # fmt: skip


def _find_environment(program: Path, top: Path) -> Path | None:
    """Return the virtual environment of a Python, if it lies in the tree."""
    if not program.is_relative_to(top):
        return None
    return next((p for p in program.parents if p != top and (p / "pyvenv.cfg").is_file()), None)


async def _bundle(repo: Path, *revisions: str, as_user: bool = False) -> bytes:
    with TemporaryDirectory(prefix="fairtrial-bundle-") as scratch:
        path = Path(scratch, "bundle")
        command = ("bundle", "create", "--quiet", str(path), *revisions)
        await git(*command, repo=repo, as_user=as_user)
        return path.read_bytes()


def _archive(paths: Iterable[Path], left_out: Path | None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path in paths:
            if left_out is None or not path.is_relative_to(left_out):
                archive.add(path, arcname=str(path).lstrip("/"))
    return buffer.getvalue()


def _init(top: Path, object_format: str) -> None:
    options = () if object_format == "sha1" else (f"--object-format={object_format}",)
    _run(top, "init", "--quiet", "--template=", "--initial-branch=base", *options)
    info = top / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(ATTRIBUTES, "utf-8")


def _unbundle(top: Path, bundle: bytes) -> list[tuple[str, str]]:
    """Add the objects of a bundle to a repository; returns id and name of each of its refs."""
    path = top / ".git" / "bundle"
    path.write_bytes(bundle)
    listed = _run(top, "bundle", "unbundle", str(path)).splitlines()
    path.unlink()
    pairs = (line.partition(" ") for line in listed)
    return [(value, name) for value, _, name in pairs]


def _run(top: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=top, env=git_environment(), capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise LabError("git is not installed on this machine, or not on the path") from error
    if done.returncode:
        raise LabError(f"git {arguments[0]} failed: {done.stderr.strip()[:500]}")
    return done.stdout
