"""Commands as they are on this machine: watched and ended as a whole, but free to look around."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairtrial.core import LabError
from fairtrial.sandbox.cold_start import starting
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.init_process import run_child


@dataclass(frozen=True, slots=True)
class Plain:
    """No sandbox: limits, a private temp and home, an environment of its own, and that is all.

    place: where temp and home go, if not with all other temporary files; whoever names it removes
        what is there if we are killed
    """

    place: Path | None = None

    name = "plain"
    relocates = False

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What it can't enforce."""
        return (
            "commands can read and change whatever you can",
            "commands can use the network",
            "commands can see and signal your other processes, and our own",
        )

    async def run(self, command: Command) -> Completed:
        """Run it to its end; when this returns, or is cancelled, none of its processes is left."""
        import anyio

        _check_view(command)
        scratch = Path(tempfile.mkdtemp(prefix="fairtrial-command-", dir=self.place))
        try:
            home, temp = scratch / "home", scratch / "tmp"
            home.mkdir()
            temp.mkdir()
            variables = {"HOME": str(home), **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temp))}
            return await run_child(
                command,
                starting(self.name),
                who=self.name,
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
    """Remove a folder, also what its owner may not change."""
    for place, names, _ in os.walk(folder):
        for inner in (Path(place, name) for name in names):
            if not inner.is_symlink():
                inner.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
