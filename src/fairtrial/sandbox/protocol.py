"""The interface of a sandbox."""

from __future__ import annotations

from typing import Protocol

from fairtrial.sandbox.commands import Command, Completed


class Sandbox(Protocol):
    """Runs untrusted commands, each isolated from the others.

    name: the sandbox's name
    relocates: whether a command may see a folder at another path than its own
    shortfalls: what the sandbox can't enforce on this machine, one phrase each; none if it is full
    """

    @property
    def name(self) -> str: ...
    @property
    def relocates(self) -> bool: ...
    @property
    def shortfalls(self) -> tuple[str, ...]: ...

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended.

        Raises `LabError` if the command could not be run.
        """
