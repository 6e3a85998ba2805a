"""The files of the base as git lists them, and scratch indexes that candidates are applied to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairtrial.arena.model.candidates import FileState
from fairtrial.arena.slots.threads import as_lab_error
from fairtrial.arena.snapshot.git import git
from fairtrial.arena.snapshot.snapshot import Snapshot

LINK, EXECUTABLE, REGULAR = "120000", "100755", "100644"
_MAX_CACHED = 4


@dataclass(frozen=True, slots=True)
class GitEntry:
    """A file in git's index.

    mode: ``100644``, ``100755`` (executable) or ``120000`` (link)
    blob: the id of its content
    """

    mode: str
    blob: str

    def state(self, content: bytes) -> FileState:
        """Return the file's state with this content."""
        return FileState(content, self.mode == EXECUTABLE, self.mode == LINK)


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """All files of the base.

    entries: the files by path
    paths: the paths of all files and folders
    links: the target of each symbolic link, by path
    index: git's index of the files, as bytes
    """

    entries: Mapping[str, GitEntry]
    paths: frozenset[str]
    links: Mapping[str, str]
    index: bytes


# By the id of the tree, so that entries are never out of date.
_cache: dict[str, BaseFiles] = {}


async def list_base(snapshot: Snapshot) -> BaseFiles:
    """Return the files of the base, from a cache if possible."""
    cached = _cache.get(snapshot.tree)
    if cached is not None:
        return cached
    try:
        files = await _list_tree(snapshot)
    except OSError as error:
        raise as_lab_error(error) from error
    while len(_cache) >= _MAX_CACHED:
        _cache.pop(next(iter(_cache)))
    _cache[snapshot.tree] = files
    return files


async def _list_tree(snapshot: Snapshot) -> BaseFiles:
    repo = snapshot.repo
    with TemporaryDirectory(prefix="listing-", dir=repo) as folder:
        index = Path(folder, "index")
        await git("read-tree", snapshot.tree, repo=repo, index=index)
        output = await git("ls-files", "-s", "-z", repo=repo, index=index)
        entries = dict(map(_read_entry, output.split(b"\0")[:-1]))
        links = {path: entry.blob for path, entry in entries.items() if entry.mode == LINK}
        targets = _read_batch(
            await git("cat-file", "--batch", repo=repo, stdin=_format_ids(links.values()))
        )
        return BaseFiles(
            entries,
            frozenset(_with_folders(entries)),
            {path: os.fsdecode(targets[blob]) for path, blob in links.items()},
            index.read_bytes(),
        )


def _read_entry(line: bytes) -> tuple[str, GitEntry]:
    head, _, path = line.partition(b"\t")
    mode, blob, _ = head.decode().split(" ")
    return os.fsdecode(path), GitEntry(mode, blob)


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    folders: set[str] = set()
    for path in paths:
        yield path
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    yield from folders


def _format_ids(blobs: Iterable[str]) -> bytes:
    return "".join(f"{blob}\n" for blob in dict.fromkeys(blobs)).encode()


def _read_batch(output: bytes) -> dict[str, bytes]:
    """Return the contents that ``git cat-file --batch`` prints, by id."""
    contents, start = {}, 0
    while start < len(output):
        end = output.index(b"\n", start)
        blob, _, size = output[start:end].split(b" ")
        contents[blob.decode()] = output[end + 1 : end + 1 + int(size)]
        start = end + 1 + int(size) + 1
    return contents


@dataclass(frozen=True, slots=True)
class ScratchIndex:
    """A temporary git index that holds the base, with a temporary folder for new objects.

    snapshot: the base
    folder: the temporary folder
    """

    snapshot: Snapshot
    folder: Path

    async def git(self, *arguments: str, stdin: bytes = b"", **env: str) -> bytes:
        """Run a git command on this index; `env` is added to its environment."""
        return await git(
            *arguments,
            repo=self.snapshot.repo,
            index=self.folder / "index",
            stdin=stdin,
            env={"GIT_OBJECT_DIRECTORY": str(self.folder / "objects"), **env},
        )

    async def sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """Return the size of each blob, by id."""
        ids = _format_ids(blobs)
        output = await self.git("cat-file", "--batch-check", stdin=ids) if ids else b""
        lines = (line.split(b" ") for line in output.splitlines())
        return {blob.decode(): int(size) for blob, _, size in lines}

    async def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return the content of each blob, by id."""
        ids = _format_ids(blobs)
        return _read_batch(await self.git("cat-file", "--batch", stdin=ids)) if ids else {}

    async def changed(self) -> dict[str, GitEntry | None]:
        """Return every path of the index that differs from the base; None for a deleted file."""
        return _read_raw(
            await self.git(
                *("diff-index", "--cached", "--raw", "-r", "-z", "--no-renames", self.snapshot.tree)
            )
        )

    async def compare_tree(self, tree: str, objects: Path) -> dict[str, GitEntry | None]:
        """Return every path of another tree that differs from the base; None for a deleted file.

        objects: the folder of git objects that holds the tree; later calls read from it, too
        """
        with (self.folder / "objects" / "info" / "alternates").open("ab") as alternates:
            alternates.write(os.fsencode(f"{objects}\n"))
        return _read_raw(
            await self.git(
                *("diff-tree", "--raw", "-r", "-z", "--no-renames", self.snapshot.tree, tree)
            )
        )


def _read_raw(output: bytes) -> dict[str, GitEntry | None]:
    """Return the entries of a raw diff by path; None for a deleted file."""
    fields = output.split(b"\0")[:-1]
    entries: dict[str, GitEntry | None] = {}
    for head, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, status = head.decode().split(" ")
        entries[os.fsdecode(path)] = None if status == "D" else GitEntry(mode, blob)
    return entries


@contextmanager
def scratch_index(snapshot: Snapshot, base: BaseFiles) -> Iterator[ScratchIndex]:
    """Create a scratch index for one candidate, and remove it afterwards.

    Raises `LabError` if it can't be written.
    """
    try:
        with TemporaryDirectory(
            prefix="candidate-", dir=snapshot.repo, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            (folder / "index").write_bytes(base.index)
            (folder / "objects" / "info").mkdir(parents=True)
            alternate = f"{snapshot.repo.resolve() / 'objects'}\n"
            (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(alternate))
            yield ScratchIndex(snapshot, folder)
    except OSError as error:
        raise as_lab_error(error) from error
