"""A slot's folder: what it should hold, and how it is brought back to that.

What should be there is a table of origins: for each path the file, in the base's own tree or in
the slot's store, that it is to be a copy of. What is there is known by signature (`tree.py`). Only
what differs is put back, always as a new file, so that nothing is ever written through a link.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.arena.slots.copying import (
    Origin,
    Wanted,
    copy_file,
    copy_origin,
    digest_file,
    digest_origin,
    is_copy,
    is_plain,
    make_file,
    make_folder,
    make_link,
)
from fairtrial.arena.slots.removal import empty_folder, enter_folder, remove_entry
from fairtrial.arena.slots.tree import (
    DEEPEST,
    READ_ONLY,
    Listing,
    Names,
    Signature,
    drop_attributes,
    list_tree,
    read_clock_ns,
)

FOLDER_MODE = 0o755
CLOCK, RUBBISH = "clock", "rubbish"


class Staging:
    """One slot's folder. Not for two threads at once."""

    def __init__(
        self, folder: Path, store: Path, digests: dict[Origin, bytes], *, trusts_times: bool = True
    ) -> None:
        """Both folders are made if they aren't there.

        store: where the originals of what isn't the base's are put, and rubbish on its way out
        digests: hashes of originals that were read before; shared by all slots
        trusts_times: whether a change to a file always shows in its times
        """
        self.folder, self.store = folder, store
        self.wanted: Wanted = {"": {}}
        self._known: Listing = {}
        self._doubtful: dict[str, set[str]] = {}
        self._digests = digests
        self._trusts_times = trusts_times
        self._stored = 0

    def become(self, wanted: Wanted) -> list[str]:
        """Hold what is wanted from now on; returns what was changed or missing until then."""
        for folder, names in self._known.items():
            old, new = self.wanted.get(folder, {}), wanted.get(folder, {})
            if old is not new:
                for name in [name for name in names if old.get(name) != new.get(name)]:
                    del names[name]
        self.wanted = wanted
        return self.mend()

    def clear_store(self) -> None:
        """Let go of all originals in the store; nothing wanted may come from there any more."""
        with self._opened(self.store) as store:
            for error in empty_folder(store, {CLOCK, RUBBISH}):
                raise error

    def store_original(self, content: bytes, mode: int) -> Origin:
        """Put a file (or a link, by its mode) into the store."""
        name = self._new_name()
        with self._opened(self.store) as store:
            if stat.S_ISLNK(mode):
                signature = make_link(content, name, store)
            else:
                signature = make_file(content, stat.S_IMODE(mode), name, store)
        return Origin(f"{self.store}/{name}", signature)

    def mend(self) -> list[str]:
        """Bring the folder back to what is wanted; returns what was changed, if only for a while.

        What is missing counts. Entries that nobody wants are removed and not told.
        """
        changed: list[str] = []
        mended: Listing = {}
        with self._opened(self.folder) as top, self._opened(self.store / RUBBISH) as rubbish:
            listing = list_tree(top, self.wanted, drop_attributes)
            for folder in self.wanted:
                now = listing.get(folder, {})
                if self._is_settled(folder, now):
                    continue
                with _walk_to(folder, top) as handle:
                    mended[folder] = self._mend_folder(folder, now, handle, rubbish, changed)
        self._remember({folder: self._known.get(folder, {}) for folder in self.wanted} | mended)
        return changed

    def _is_settled(self, folder: str, now: Names) -> bool:
        """Whether signatures alone say that all is there, and nothing else."""
        known = self._known.get(folder, {})  # never holds what isn't wanted
        return (
            self._trusts_times
            and not self._doubtful.get(folder)
            and now == known
            and len(known) == len(self.wanted[folder])
        )

    def _mend_folder(
        self, folder: str, now: Names, handle: int, rubbish: int, changed: list[str]
    ) -> Names:
        wanted, found = self.wanted[folder], Names()
        with _unlocked(handle):
            for name in now.keys() - wanted.keys():
                remove_entry(name, handle, rubbish)
            for name, origin in wanted.items():
                signature = now.get(name)
                if stat.S_ISDIR(origin.mode):
                    if signature is not None and not stat.S_ISDIR(signature[0]):
                        remove_entry(name, handle, rubbish)
                    found[name] = make_folder(name, stat.S_IMODE(origin.mode), handle)
                    continue
                if (
                    signature is not None
                    and signature == self._look_up(folder, name)
                    and (self._is_sure(folder, name) or is_copy(origin, name, handle))
                ):
                    found[name] = signature
                    continue
                known = self._look_up(folder, name)
                # One that was changed and changed back looks the same, and was not left alone.
                is_touched = known is not None and signature != known
                if signature is None or is_touched or not is_copy(origin, name, handle):
                    changed.append(folder + name)
                remove_entry(name, handle, rubbish)
                found[name] = copy_origin(origin, name, handle)
        return found

    def keep(self) -> list[str]:
        """Want what is there now; what is no copy of an original is made one.

        Returns what was wanted until then and was written anew or removed.
        """
        wanted: Wanted = {}
        known: Listing = {}
        with self._opened(self.folder) as top, self._opened(self.store) as store:
            for folder, names in list_tree(top).items():
                with _walk_to(folder, top) as handle:
                    wanted[folder] = self._keep_folder(folder, names, handle, store)
                known[folder] = {name: names[name] for name in wanted[folder]}
        changed = [
            folder + name
            for folder, names in self.wanted.items()
            for name, origin in names.items()
            if not stat.S_ISDIR(origin.mode)
            and (
                wanted.get(folder, {}).get(name) != origin
                or self._look_up(folder, name) not in (None, known[folder][name])
            )
        ]
        self.wanted = wanted
        self._remember(known)
        return changed

    def _keep_folder(self, folder: str, names: Names, handle: int, store: int) -> dict[str, Origin]:
        kept: dict[str, Origin] = {}
        for name, signature in names.items():
            origin = self.wanted.get(folder, {}).get(name)
            if stat.S_ISDIR(signature[0]):
                if folder.count("/") < DEEPEST:  # what lies deeper is not looked into
                    kept[name] = Origin("", signature)
            elif origin is not None and (
                (signature == self._look_up(folder, name) and self._is_sure(folder, name))
                or is_copy(origin, name, handle)
            ):
                kept[name] = origin
            elif is_plain(signature[0]):
                kept[name] = self._put_aside(name, signature, handle, store)
        return kept

    def _put_aside(self, name: str, signature: Signature, handle: int, store: int) -> Origin:
        new_name = self._new_name()
        if stat.S_ISLNK(signature[0]):
            original = make_link(os.readlink(name, dir_fd=handle), new_name, store)
        else:
            source = os.open(name, READ_ONLY, dir_fd=handle)
            try:
                original = copy_file(source, new_name, store)
            finally:
                os.close(source)
        return Origin(f"{self.store}/{new_name}", original)

    def fingerprint(self) -> str:
        """A hash of every path, mode and content; a repository at the top doesn't count."""
        total = hashlib.sha256()
        with self._opened(self.folder) as top:
            for folder, names in sorted(list_tree(top).items()):
                if folder.startswith(".git/"):
                    continue
                with _walk_to(folder, top) as handle:
                    for name, signature in sorted(names.items()):
                        if folder + name != ".git":
                            total.update(b"%s\0%o\0" % (os.fsencode(folder + name), signature[0]))
                            total.update(self._digest(folder, name, signature, handle))
        return total.hexdigest()

    def _digest(self, folder: str, name: str, signature: Signature, handle: int) -> bytes:
        if stat.S_ISLNK(signature[0]):
            return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=handle))).digest()
        if not stat.S_ISREG(signature[0]):
            return b""
        if signature == self._look_up(folder, name) and self._is_sure(folder, name):
            origin = self.wanted[folder][name]
            if origin not in self._digests:
                self._digests[origin] = digest_origin(origin)
            return self._digests[origin]
        try:
            file = os.open(name, READ_ONLY, dir_fd=handle)
        except OSError as error:  # nobody may read it; that is all there is to tell of it
            return f"unreadable: {error.errno}".encode()
        try:
            return digest_file(file)
        finally:
            os.close(file)

    def _look_up(self, folder: str, name: str) -> Signature | None:
        """The signature that an entry had when it was what is wanted."""
        return self._known.get(folder, {}).get(name)

    def _is_sure(self, folder: str, name: str) -> bool:
        """Whether its signature alone says that it is unchanged."""
        return self._trusts_times and name not in self._doubtful.get(folder, ())

    def _remember(self, known: Listing) -> None:
        """Whatever is changed from now on gets a change time of this tick, or of a later one."""
        now_ns = read_clock_ns(self.store / CLOCK)
        self._known = known
        self._doubtful = {
            folder: young
            for folder, names in known.items()
            if (young := {name for name, each in names.items() if each[4] >= now_ns})
        }

    def _new_name(self) -> str:
        self._stored += 1
        return f"{self._stored}"

    @contextmanager
    def _opened(self, folder: Path) -> Iterator[int]:
        """One of our own folders, open and usable; made anew if it is something else now."""
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
            folder.mkdir(parents=True)
        handle = enter_folder(folder)
        try:
            if stat.S_IMODE(os.fstat(handle).st_mode) != FOLDER_MODE:
                os.fchmod(handle, FOLDER_MODE)
            yield handle
        finally:
            os.close(handle)


@contextmanager
def _walk_to(folder: str, top: int) -> Iterator[int]:
    """Open a folder below an open one, step by step, never through a link."""
    handle = os.dup(top)
    try:
        for name in folder.split("/")[:-1]:
            inner = enter_folder(name, handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _unlocked(folder: int) -> Iterator[None]:
    """Lets us change what is in an open folder that is read-only."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 == 0o700:
        yield
        return
    os.fchmod(folder, 0o700)
    yield
    os.fchmod(folder, mode)
