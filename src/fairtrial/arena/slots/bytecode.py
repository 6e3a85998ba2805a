"""The base's bytecode: compiled once, by the project's own Python, for every slot.

The files carry a hash of their source, which Python checks at import: a candidate's file of the
same size, written in the same second, is still seen to be another one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairtrial.arena.slots.threads import in_thread
from fairtrial.sandbox import run_trusted

CHUNK = 100
"""How many files one process compiles: what breaks it costs no more than these."""
LARGEST_BYTES = 2_000_000
TIMEOUT_S = 120.0
"""How long it may take in all; without bytecode imports are slower, and that is all."""
_OPTIONS = ("-q", "-q", "-f", "--invalidation-mode", "checked-hash", "-i", "-")


async def compile_files(top: Path, files: Sequence[str], python: Path) -> list[str]:
    """Put bytecode beside Python files below `top`; returns what people should know.

    Files that can't be compiled are left alone: a project may have such, and not import them.
    """
    import anyio

    # compileall takes a list of lines, stripped.
    sources = [
        file
        for file in files
        if file.endswith(".py")
        and "\n" not in file
        and file == file.strip()
        and (top / file).lstat().st_size <= LARGEST_BYTES
    ]
    chunks = [sources[start : start + CHUNK] for start in range(0, len(sources), CHUNK)]
    left = list(reversed(chunks))
    notes: list[str] = []

    async def work() -> None:
        while left:
            await _compile_chunk(top, left.pop(), python)

    with anyio.move_on_after(TIMEOUT_S) as scope:
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(min(len(chunks), os.cpu_count() or 1)):
                    tasks.start_soon(work)
        except* OSError as group:
            notes.append(f"the base has no bytecode: {python}: {group.exceptions[0]}")
    if scope.cancelled_caught:
        notes.append(f"compiling the base's bytecode took more than {TIMEOUT_S:g} s: it has gaps")
    await in_thread(_sweep, top, sources)
    return notes


async def _compile_chunk(top: Path, files: Sequence[str], python: Path) -> None:
    await run_trusted(  # which ends with 1 if one of the files can't be compiled
        # Isolated: none of the user's variables, nor what lies in the tree, has a say in this.
        [str(python), "-I", "-X", "utf8", "-m", "compileall", *_OPTIONS],
        stdin="".join(f"{file}\n" for file in files).encode("utf-8", "surrogateescape"),
        cwd=top,
        env={"PATH": os.defpath},
    )


def _sweep(top: Path, sources: Sequence[str]) -> None:
    """Remove what a compiler that was stopped has left half written."""
    for folder in {(top / file).parent / "__pycache__" for file in sources}:
        with suppress(OSError):
            for unfinished in folder.glob("*.pyc.*"):
                unfinished.unlink()
