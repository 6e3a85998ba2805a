"""The plain sandbox: commands are limited and ended as a whole, but not isolated."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairtrial.core import LabError
from fairtrial.sandbox.cold_start import make_cold_start
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.init_process import run_under_init


@dataclass(frozen=True, slots=True)
class Plain:
    """No isolation: limits, private temporary and home folders, and a private environment only.

    scratch_parent: where the temporary and home folders are made; by default with other temporary
        files. The caller removes what remains there if this process is killed
    """

    scratch_parent: Path | None = None

    name = "plain"
    relocates = False

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What this sandbox can't enforce."""
        return (
            "commands can read and change whatever you can",
            "commands can use the network",
            "commands can see and signal your other processes, and fairtrial's own",
        )

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended."""
        import anyio

        _check_view(command)
        scratch = Path(tempfile.mkdtemp(prefix="fairtrial-command-", dir=self.scratch_parent))
        try:
            home, temp = scratch / "home", scratch / "tmp"
            home.mkdir()
            temp.mkdir()
            variables = {"HOME": str(home), **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temp))}
            return await run_under_init(
                command,
                make_cold_start(self.name),
                sandbox_name=self.name,
                env=variables,
                plan=None,
                is_first=False,
                private=[],
                scratch=str(scratch),
            )
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, scratch)


def _check_view(command: Command) -> None:
    view = command.view
    for mount in (*view.readable, *view.writable, *view.over):
        if mount.source != mount.target:
            raise LabError(f"the plain sandbox can't show {mount.source} as {mount.target}")


def _remove(folder: Path) -> None:
    """Remove a folder, including read-only folders in it."""
    for parent, names, _ in os.walk(folder):
        for inner in (Path(parent, name) for name in names):
            if not inner.is_symlink():
                inner.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
