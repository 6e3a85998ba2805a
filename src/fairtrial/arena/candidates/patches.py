"""Write a candidate's changes as a patch that git can apply."""

from __future__ import annotations

import os

from fairtrial.arena.candidates.base_files import (
    EXECUTABLE,
    LINK,
    REGULAR,
    BaseFiles,
    list_base,
    scratch_index,
)
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.snapshot.snapshot import Snapshot


async def render_patch(changes: Changes, snapshot: Snapshot) -> bytes:
    """Return the changes as a unified git diff against the base, binary files included."""
    base = await list_base(snapshot)
    written = {path: state for path, state in changes.files.items() if state is not None}
    with scratch_index(snapshot, base) as scratch:
        paths = []
        for number, state in enumerate(written.values()):
            file = scratch.folder / f"content-{number}"
            file.write_bytes(state.content)
            paths.append(f"{file.resolve()}\n")
        output = await scratch.git(
            *("hash-object", "-w", "--no-filters", "--stdin-paths"),
            stdin=os.fsencode("".join(paths)),
        )
        null_blob = "0" * len(snapshot.tree)
        # Deletions come first, since a folder may replace a file.
        lines = [f"0 {null_blob}\t{path}\0" for path in changes.files if path not in written]
        for (path, state), blob in zip(written.items(), output.decode().split(), strict=True):
            lines.append(f"{_git_mode(path, state, base)} {blob}\t{path}\0")
        index_info = os.fsencode("".join(lines))
        await scratch.git("update-index", "--replace", "-z", "--index-info", stdin=index_info)
        return await scratch.git(
            *("diff-index", "--cached", "-p", "--binary", "--full-index", "--no-renames"),
            *("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
            snapshot.tree,
        )


def _git_mode(path: str, state: FileState, base: BaseFiles) -> str:
    if state.is_link:
        return LINK
    if state.executable is None:
        entry = base.entries.get(path)
        return entry.mode if entry and entry.mode != LINK else REGULAR
    return EXECUTABLE if state.executable else REGULAR
