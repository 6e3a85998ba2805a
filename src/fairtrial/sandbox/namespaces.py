"""A full sandbox that uses the kernel's namespaces directly, without other programs."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.sandbox.cold_start import make_cold_start
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.init_process import NotStartedError, StartInit, run_under_init
from fairtrial.sandbox.launch_server import forget_server, start_by_server
from fairtrial.sandbox.mount_plan import PRIVATE, make_plan, private_variables


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Isolates each command in namespaces, by `harness.namespaces`; needs Linux 5.12 or newer."""

    name = "namespaces"
    relocates = True

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """None: `run` raises where something can't be enforced."""
        return ()

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended."""
        import anyio

        try:
            return await self._run(command, start_by_server)
        except NotStartedError:  # such as when the server was killed; the command hasn't run
            await anyio.to_thread.run_sync(forget_server)
            return await self._run(command, make_cold_start(self.name))

    async def _run(self, command: Command, start: StartInit) -> Completed:
        return await run_under_init(
            command,
            start,
            sandbox_name=self.name,
            env=private_variables(),
            plan=make_plan(command),
            is_first=True,
            private=list(PRIVATE),
            scratch="",
        )
