"""The interface of a sandbox."""

from __future__ import annotations

from typing import Protocol

from fairtrial.sandbox.commands import Command, Completed


class Sandbox(Protocol):
    """Runs commands that nobody has to trust, each on its own.

    Says whether a command can see a folder elsewhere than where it is (`relocates`), and what it
    can't enforce on this machine, a phrase each (`shortfalls`): nothing, for a full sandbox.
    """

    @property
    def name(self) -> str: ...
    @property
    def relocates(self) -> bool: ...
    @property
    def shortfalls(self) -> tuple[str, ...]: ...

    async def run(self, command: Command) -> Completed:
        """Run it to its end; when this returns, or is cancelled, none of its processes is left."""
