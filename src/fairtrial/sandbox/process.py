"""One command, run to its end."""

from __future__ import annotations

from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.plain import Plain
from fairtrial.sandbox.protocol import Sandbox


async def run_command(command: Command, sandbox: Sandbox | None = None) -> Completed:
    """Run a command in a sandbox, or as it is; returns when none of its processes is left.

    Output is captured within bounds, the whole tree is limited, watched and ended together. What
    the command does is data; a `LabError` says that it could not be run at all.
    """
    return await (sandbox or Plain()).run(command)
