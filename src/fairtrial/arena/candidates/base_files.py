"""The files of the base, as candidates are compared with them; and an index of them that a
candidate may be applied to without anybody noticing."""

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

LINK, EXECUTABLE, PLAIN = "120000", "100755", "100644"
_MOST_BASES = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as git lists it.

    mode: what it is: ``100644``, ``100755``, ``120000``
    blob: the id of its content
    """

    mode: str
    blob: str

    def state(self, content: bytes) -> FileState:
        """The file with its content."""
        return FileState(content, self.mode == EXECUTABLE, self.mode == LINK)


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """All files of the base.

    entries: by path
    places: the paths of all files and folders
    links: where each symbolic link leads
    index: an index of them, as git keeps it on disk
    """

    entries: Mapping[str, Entry]
    places: frozenset[str]
    links: Mapping[str, str]
    index: bytes


# Known by the tree's id, so what is here is never out of date.
_known: dict[str, BaseFiles] = {}


async def list_base(snapshot: Snapshot) -> BaseFiles:
    """What the base holds; listed once for each tree."""
    known = _known.get(snapshot.tree)
    if known is not None:
        return known
    try:
        found = await _list_tree(snapshot)
    except OSError as error:
        raise as_lab_error(error) from error
    while len(_known) >= _MOST_BASES:
        _known.pop(next(iter(_known)))
    _known[snapshot.tree] = found
    return found


async def _list_tree(snapshot: Snapshot) -> BaseFiles:
    repo = snapshot.repo
    with TemporaryDirectory(prefix="listing-", dir=repo) as folder:
        index = Path(folder, "index")
        await git("read-tree", snapshot.tree, repo=repo, index=index)
        listed = await git("ls-files", "-s", "-z", repo=repo, index=index)
        entries = dict(map(_read_entry, listed.split(b"\0")[:-1]))
        links = {path: entry.blob for path, entry in entries.items() if entry.mode == LINK}
        targets = _read_batch(
            await git("cat-file", "--batch", repo=repo, stdin=_ask(links.values()))
        )
        return BaseFiles(
            entries,
            frozenset(_places(entries)),
            {path: os.fsdecode(targets[blob]) for path, blob in links.items()},
            index.read_bytes(),
        )


def _read_entry(line: bytes) -> tuple[str, Entry]:
    about, _, path = line.partition(b"\t")
    mode, blob, _ = about.decode().split(" ")
    return os.fsdecode(path), Entry(mode, blob)


def _places(paths: Iterable[str]) -> Iterator[str]:
    folders: set[str] = set()
    for path in paths:
        yield path
        parent = path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    yield from folders


def _ask(blobs: Iterable[str]) -> bytes:
    return "".join(f"{blob}\n" for blob in dict.fromkeys(blobs)).encode()


def _read_batch(told: bytes) -> dict[str, bytes]:
    """What ``git cat-file --batch`` prints, by id."""
    found, at = {}, 0
    while at < len(told):
        end = told.index(b"\n", at)
        blob, _, size = told[at:end].split(b" ")
        found[blob.decode()] = told[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size) + 1
    return found


@dataclass(frozen=True, slots=True)
class Scratch:
    """An index with the base in it, and a place for new objects; both are thrown away."""

    snapshot: Snapshot
    folder: Path

    async def git(self, *arguments: str, stdin: bytes = b"", **env: str) -> bytes:
        """A git command on this index; `env` is added to its variables."""
        return await git(
            *arguments,
            repo=self.snapshot.repo,
            index=self.folder / "index",
            stdin=stdin,
            env={"GIT_OBJECT_DIRECTORY": str(self.folder / "objects"), **env},
        )

    async def sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """How many bytes each blob has."""
        asked = _ask(blobs)
        told = await self.git("cat-file", "--batch-check", stdin=asked) if asked else b""
        lines = (line.split(b" ") for line in told.splitlines())
        return {blob.decode(): int(size) for blob, _, size in lines}

    async def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """What is in each blob."""
        asked = _ask(blobs)
        return _read_batch(await self.git("cat-file", "--batch", stdin=asked)) if asked else {}

    async def changed(self) -> dict[str, Entry | None]:
        """Every path that differs from the base by now; None for one that is gone."""
        told = await self.git(
            *("diff-index", "--cached", "--raw", "-r", "-z", "--no-renames", self.snapshot.tree)
        )
        fields = told.split(b"\0")[:-1]
        found: dict[str, Entry | None] = {}
        for about, path in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, blob, status = about.decode().split(" ")
            found[os.fsdecode(path)] = None if status == "D" else Entry(mode, blob)
        return found


@contextmanager
def scratch(snapshot: Snapshot, base: BaseFiles) -> Iterator[Scratch]:
    """A scratch index for one candidate; nothing of it is left."""
    try:
        with TemporaryDirectory(
            prefix="candidate-", dir=snapshot.repo, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            (folder / "index").write_bytes(base.index)
            (folder / "objects" / "info").mkdir(parents=True)
            borrowed = f"{snapshot.repo.resolve() / 'objects'}\n"
            (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(borrowed))
            yield Scratch(snapshot, folder)
    except OSError as error:  # no room, say: nobody's fault but this machine's
        raise as_lab_error(error) from error
