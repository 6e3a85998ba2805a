"""Compile the base's bytecode once, by the project's own Python, for all slots.

The compiled files hold a hash of their source, which Python checks at import, so that a candidate's
file of the same size, written in the same second, is still recognized as different.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairtrial.arena.slots.threads import in_thread
from fairtrial.sandbox import run_trusted

CHUNK_FILES = 100
"""The number of files that one process compiles; if it crashes, only these lack bytecode."""
MAX_SOURCE_BYTES = 2_000_000
TIMEOUT_S = 120.0
"""Time limit of the whole compilation; without bytecode imports are slower, but still work."""
_OPTIONS = ("-q", "-q", "-f", "--invalidation-mode", "checked-hash", "-i", "-")


async def compile_files(top: Path, files: Sequence[str], python: Path) -> list[str]:
    """Write bytecode for Python files below `top`, and return notes for the user.

    Files that can't be compiled are skipped: a project may have some that it never imports.
    """
    import anyio

    # compileall reads one path per line, and strips it.
    sources = [
        file
        for file in files
        if file.endswith(".py")
        and "\n" not in file
        and file == file.strip()
        and (top / file).lstat().st_size <= MAX_SOURCE_BYTES
    ]
    chunks = [sources[start : start + CHUNK_FILES] for start in range(0, len(sources), CHUNK_FILES)]
    pending = list(reversed(chunks))
    notes: list[str] = []

    async def work() -> None:
        while pending:
            await _compile_chunk(top, pending.pop(), python)

    with anyio.move_on_after(TIMEOUT_S) as scope:
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(min(len(chunks), os.cpu_count() or 1)):
                    tasks.start_soon(work)
        except* OSError as group:
            notes.append(f"the base has no bytecode: {python}: {group.exceptions[0]}")
    if scope.cancelled_caught:
        notes.append(f"compiling the base's bytecode took more than {TIMEOUT_S:g} s: it has gaps")
    await in_thread(_remove_unfinished, top, sources)
    return notes


async def _compile_chunk(top: Path, files: Sequence[str], python: Path) -> None:
    await run_trusted(  # the exit code is 1 if a file can't be compiled
        # Isolated from the user's variables and from modules in the tree.
        [str(python), "-I", "-X", "utf8", "-m", "compileall", *_OPTIONS],
        stdin="".join(f"{file}\n" for file in files).encode("utf-8", "surrogateescape"),
        cwd=top,
        env={"PATH": os.defpath},
    )


def _remove_unfinished(top: Path, sources: Sequence[str]) -> None:
    """Remove partially written files of a compiler that was stopped."""
    for folder in {(top / file).parent / "__pycache__" for file in sources}:
        with suppress(OSError):
            for unfinished in folder.glob("*.pyc.*"):
                unfinished.unlink()
