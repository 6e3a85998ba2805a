"""Input files of timed commands: new ones for each pair of processes, the same for both."""

from __future__ import annotations

import binascii
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.timing.inputs import InputSupplier


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Makes the input files of one benchmark.

    supplier: the trusted process that has them written
    """

    supplier: InputSupplier

    @asynccontextmanager
    async def write(self, seed: str, parent: Path) -> AsyncIterator[Path]:
        """Write the files of a seed to a new folder in `parent`, for the duration of the block.

        Raises `StudyError` if the maker fails.
        """
        import anyio

        (line,) = await self.supplier.make(seed, 1)
        folder = Path(await anyio.to_thread.run_sync(_make_folder, parent))
        try:
            await anyio.to_thread.run_sync(_write_files, folder, read_line(line)["files"])
            yield folder
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, folder)


def _make_folder(parent: Path) -> str:
    folder = tempfile.mkdtemp(prefix="inputs-", dir=parent)
    Path(folder).chmod(0o755)
    return folder


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files given in base64, by relative path."""
    for name, content in files.items():
        path = folder / PurePosixPath(name)
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name} leads out of the folder of input files")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(binascii.a2b_base64(content))


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
