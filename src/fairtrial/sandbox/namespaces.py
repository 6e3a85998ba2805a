"""A full sandbox without anybody's help: the kernel's namespaces, entered by our own code."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.sandbox.cold_start import starting
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.init_process import run_child
from fairtrial.sandbox.mount_plan import PRIVATE, make_plan, private_variables


@dataclass(frozen=True, slots=True)
class Namespaces:
    """A machine of its own for each command, made by `fairtrial.sandbox.harness.namespaces`; Linux 5.12."""

    name = "namespaces"
    relocates = True

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """Nothing: what it can't do, it refuses."""
        return ()

    async def run(self, command: Command) -> Completed:
        """Run it to its end; when this returns, or is cancelled, none of its processes is left."""
        return await run_child(
            command,
            starting(self.name),
            who=self.name,
            env=private_variables(),
            plan=make_plan(command),
            is_first=True,
            private=list(PRIVATE),
            scratch="",
        )
