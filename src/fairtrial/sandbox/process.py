"""Running of one command, in a sandbox or without."""

from __future__ import annotations

from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.plain import Plain
from fairtrial.sandbox.protocol import Sandbox


async def run_command(command: Command, sandbox: Sandbox | None = None) -> Completed:
    """Run a command, without isolation by default; returns when all of its processes have ended.

    Output is captured up to a limit, and the whole process tree is limited, watched and ended
    together. Failures of the command are part of the result; a `LabError` says that it could not
    be run.
    """
    return await (sandbox or Plain()).run(command)
