"""Bring a slot's folder to a target tree, and restore it after a candidate ran in it.

The target tree names for each path its origin: the file, in the base's own tree or in the slot's
store, that it has to be a copy of. Signatures (`tree.py`) tell which entries are unchanged. Only
what differs is copied again, always as a new file, so that nothing is ever written through a link.
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
    TargetTree,
    copy_file,
    copy_origin,
    digest_file,
    digest_origin,
    is_copy,
    is_copyable,
    make_file,
    make_folder,
    make_link,
)
from fairtrial.arena.slots.removal import empty_folder, enter_folder, remove_entry
from fairtrial.arena.slots.tree import (
    MAX_DEPTH,
    READ_ONLY,
    Listing,
    Names,
    Signature,
    drop_attributes,
    list_tree,
    read_clock_ns,
)

FOLDER_MODE = 0o755
CLOCK, TRASH = "clock", "trash"


class Staging:
    """One slot's folder. Not thread-safe."""

    def __init__(
        self, folder: Path, store: Path, digests: dict[Origin, bytes], *, trusts_times: bool = True
    ) -> None:
        """Describe a slot; its folders are created on first use.

        store: a folder for originals that are not in the base, and for entries to be removed
        digests: a cache of hashes of originals, shared by all slots
        trusts_times: whether each change to a file updates its times
        """
        self.folder, self.store = folder, store
        self.target: TargetTree = {"": {}}
        self._known: Listing = {}
        self._doubtful: dict[str, set[str]] = {}
        self._digests = digests
        self._trusts_times = trusts_times
        self._stored = 0

    def stage(self, target: TargetTree) -> list[str]:
        """Bring the folder to another target tree; return what was changed or missing before."""
        for folder, names in self._known.items():
            old, new = self.target.get(folder, {}), target.get(folder, {})
            if old is not new:
                for name in [name for name in names if old.get(name) != new.get(name)]:
                    del names[name]
        self.target = target
        return self.restore()

    def clear_store(self) -> None:
        """Remove all originals from the store; the target tree must not refer to them any more."""
        with self._opened(self.store) as store:
            for error in empty_folder(store, {CLOCK, TRASH}):
                raise error

    def store_original(self, content: bytes, mode: int) -> Origin:
        """Write a file, or a link if the mode says so, into the store and return its origin."""
        name = self._new_name()
        with self._opened(self.store) as store:
            if stat.S_ISLNK(mode):
                signature = make_link(content, name, store)
            else:
                signature = make_file(content, stat.S_IMODE(mode), name, store)
        return Origin(f"{self.store}/{name}", signature)

    def restore(self) -> list[str]:
        """Bring the folder back to its target tree; return the files that differed.

        These are files that were missing, changed, or changed and changed back. Entries that are
        not in the target tree are removed without being reported.
        """
        changed: list[str] = []
        restored: Listing = {}
        with self._opened(self.folder) as top, self._opened(self.store / TRASH) as trash:
            listing = list_tree(top, self.target, drop_attributes)
            for folder in self.target:
                current = listing.get(folder, {})
                if self._is_unchanged(folder, current):
                    continue
                with _walk_to(folder, top) as handle:
                    names = self._restore_folder(folder, current, handle, trash, changed)
                    restored[folder] = names
        self._remember({folder: self._known.get(folder, {}) for folder in self.target} | restored)
        return changed

    def _is_unchanged(self, folder: str, current: Names) -> bool:
        """Return whether signatures suffice to see that a folder holds its target and no more."""
        known = self._known.get(folder, {})  # holds entries of the target tree only
        return (
            self._trusts_times
            and not self._doubtful.get(folder)
            and current == known
            and len(known) == len(self.target[folder])
        )

    def _restore_folder(
        self, folder: str, current: Names, handle: int, trash: int, changed: list[str]
    ) -> Names:
        """Restore one open folder, append changed paths, and return the new signatures."""
        target, signatures = self.target[folder], Names()
        with _unlocked(handle):
            for name in current.keys() - target.keys():
                remove_entry(name, handle, trash)
            for name, origin in target.items():
                signature = current.get(name)
                if stat.S_ISDIR(origin.mode):
                    if signature is not None and not stat.S_ISDIR(signature[0]):
                        remove_entry(name, handle, trash)
                    signatures[name] = make_folder(name, stat.S_IMODE(origin.mode), handle)
                    continue
                known = self._look_up(folder, name)
                if (
                    signature is not None
                    and signature == known
                    and (self._is_sure(folder, name) or is_copy(origin, name, handle))
                ):
                    signatures[name] = signature
                    continue
                # A file that was changed and changed back has the same content, but was touched.
                is_touched = known is not None and signature != known
                if signature is None or is_touched or not is_copy(origin, name, handle):
                    changed.append(folder + name)
                remove_entry(name, handle, trash)
                signatures[name] = copy_origin(origin, name, handle)
        return signatures

    def keep(self) -> list[str]:
        """Make the folder's current contents the target tree, and store originals of new files.

        Returns files of the previous target tree that were rewritten or removed.
        """
        target: TargetTree = {}
        known: Listing = {}
        with self._opened(self.folder) as top, self._opened(self.store) as store:
            for folder, names in list_tree(top).items():
                with _walk_to(folder, top) as handle:
                    target[folder] = self._keep_folder(folder, names, handle, store)
                known[folder] = {name: names[name] for name in target[folder]}
        changed = [
            folder + name
            for folder, names in self.target.items()
            for name, origin in names.items()
            if not stat.S_ISDIR(origin.mode)
            and (
                target.get(folder, {}).get(name) != origin
                or self._look_up(folder, name) not in (None, known[folder][name])
            )
        ]
        self.target = target
        self._remember(known)
        return changed

    def _keep_folder(self, folder: str, names: Names, handle: int, store: int) -> dict[str, Origin]:
        kept: dict[str, Origin] = {}
        for name, signature in names.items():
            origin = self.target.get(folder, {}).get(name)
            if stat.S_ISDIR(signature[0]):
                if folder.count("/") < MAX_DEPTH:  # deeper folders are not listed
                    kept[name] = Origin("", signature)
            elif origin is not None and (
                (signature == self._look_up(folder, name) and self._is_sure(folder, name))
                or is_copy(origin, name, handle)
            ):
                kept[name] = origin
            elif is_copyable(signature[0]):
                kept[name] = self._store_copy(name, signature, handle, store)
        return kept

    def _store_copy(self, name: str, signature: Signature, handle: int, store: int) -> Origin:
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

    def fingerprint(self, *, has_empty: bool = True) -> str:
        """Return a hash of all paths, modes and contents, without `.git` at the top.

        has_empty: whether empty folders count; sandboxes make some, as mount points
        """
        digest = hashlib.sha256()
        with self._opened(self.folder) as top:
            tree = list_tree(top)
            for folder, names in sorted(tree.items()):
                if folder.startswith(".git/"):
                    continue
                with _walk_to(folder, top) as handle:
                    for name, signature in sorted(names.items()):
                        is_folder = stat.S_ISDIR(signature[0])
                        is_left_out = (
                            is_folder and not has_empty and not tree.get(f"{folder}{name}/")
                        )
                        if folder + name != ".git" and not is_left_out:
                            digest.update(b"%s\0%o\0" % (os.fsencode(folder + name), signature[0]))
                            digest.update(self._digest(folder, name, signature, handle))
        return digest.hexdigest()

    def _digest(self, folder: str, name: str, signature: Signature, handle: int) -> bytes:
        if stat.S_ISLNK(signature[0]):
            return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=handle))).digest()
        if not stat.S_ISREG(signature[0]):
            return b""
        if signature == self._look_up(folder, name) and self._is_sure(folder, name):
            origin = self.target[folder][name]
            if origin not in self._digests:
                self._digests[origin] = digest_origin(origin)
            return self._digests[origin]
        try:
            file = os.open(name, READ_ONLY, dir_fd=handle)
        except OSError as error:  # unreadable for everyone: its content can't matter
            return f"unreadable: {error.errno}".encode()
        try:
            return digest_file(file)
        finally:
            os.close(file)

    def _look_up(self, folder: str, name: str) -> Signature | None:
        """Return the signature that an entry had when it was last known to match its target."""
        return self._known.get(folder, {}).get(name)

    def _is_sure(self, folder: str, name: str) -> bool:
        """Return whether an equal signature proves that an entry is unchanged."""
        return self._trusts_times and name not in self._doubtful.get(folder, ())

    def _remember(self, known: Listing) -> None:
        """Store signatures that match the target tree, and mark those that are too young to trust.

        Later changes get a change time of the clock's current tick or of a later one, so entries of
        the current tick are doubtful.
        """
        now_ns = read_clock_ns(self.store / CLOCK)
        self._known = known
        self._doubtful = {
            folder: young
            for folder, names in known.items()
            if (young := {name for name, entry in names.items() if entry[4] >= now_ns})
        }

    def _new_name(self) -> str:
        self._stored += 1
        return f"{self._stored}"

    @contextmanager
    def _opened(self, folder: Path) -> Iterator[int]:
        """Open a folder of the slot; it is created if it is missing or not a folder."""
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
    """Open a folder below an open one, part by part, without following links."""
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
    """Make an open folder writable within the block."""
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 == 0o700:
        yield
        return
    os.fchmod(folder, 0o700)
    yield
    os.fchmod(folder, mode)
