"""A candidate as a patch that anybody can apply."""

from __future__ import annotations

import os

from fairtrial.arena.candidates.base_files import (
    EXECUTABLE,
    LINK,
    PLAIN,
    BaseFiles,
    list_base,
    scratch,
)
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.snapshot.snapshot import Snapshot


async def render_patch(changes: Changes, snapshot: Snapshot) -> bytes:
    """The changes as a unified git diff against the base, binary files included."""
    base = await list_base(snapshot)
    kept = {path: state for path, state in changes.files.items() if state is not None}
    with scratch(snapshot, base) as area:
        places = []
        for number, state in enumerate(kept.values()):
            place = area.folder / f"content-{number}"
            place.write_bytes(state.content)
            places.append(f"{place.resolve()}\n")
        told = await area.git(
            *("hash-object", "-w", "--no-filters", "--stdin-paths"),
            stdin=os.fsencode("".join(places)),
        )
        none = "0" * len(snapshot.tree)
        # What goes first makes room: a folder may come where a file was.
        lines = [f"0 {none}\t{path}\0" for path in changes.files if path not in kept]
        for (path, state), blob in zip(kept.items(), told.decode().split(), strict=True):
            lines.append(f"{_mode(path, state, base)} {blob}\t{path}\0")
        given = os.fsencode("".join(lines))
        await area.git("update-index", "--replace", "-z", "--index-info", stdin=given)
        return await area.git(
            *("diff-index", "--cached", "-p", "--binary", "--full-index", "--no-renames"),
            *("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
            snapshot.tree,
        )


def _mode(path: str, state: FileState, base: BaseFiles) -> str:
    if state.is_link:
        return LINK
    if state.executable is None:
        entry = base.entries.get(path)
        return entry.mode if entry and entry.mode != LINK else PLAIN
    return EXECUTABLE if state.executable else PLAIN
