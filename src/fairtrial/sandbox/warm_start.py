"""Warm starts: commands forked from a process that has already imported third-party packages.

That process, `fairtrial.sandbox.harness.warm_server`, runs outside of every sandbox and sees no
file of a candidate. Each fork enters its own namespaces, like those of `Namespaces`, before
anything else. Commands that can't be forked (other programs, interpreter flags) are run by another
sandbox.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.descriptors import Descriptors
from fairtrial.sandbox.init_process import InitDescriptors, NotStartedError, run_under_init
from fairtrial.sandbox.mount_plan import PRIVATE, make_plan, private_variables
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.protocol import Sandbox
from fairtrial.sandbox.selection import try_sandbox
from fairtrial.sandbox.system import HARNESS

MAX_STARTS = 6
"""How many times a server is started, each time without one more module that prevents forking."""
IMPORT_S = 120.0


def supports_warm_start(sandbox: Sandbox) -> bool:
    """Return whether commands may be forked instead: the sandbox is full, and namespaces work."""
    return sandbox.relocates and not try_sandbox(Namespaces())


class WarmServer:
    """A running warm server, made by `starting` and ended with its block.

    python: the path of its interpreter
    """

    def __init__(
        self, python: str, process: subprocess.Popen[bytes], control: socket.socket
    ) -> None:
        self.python, self._process, self._control = python, process, control

    @classmethod
    @asynccontextmanager
    async def starting(
        cls,
        python: Path,
        *,
        files: Sequence[str],
        folders: Sequence[Path],
        never: Sequence[str],
        env: Mapping[str, str],
        scratch_parent: Path,
    ) -> AsyncIterator[WarmServer | None]:
        """Start a server that imports the modules of `files`; None if there can't be one.

        folders: where modules may come from
        never: top-level names that must not be imported, directly or by other modules
        env: the part of the environment that all commands share
        scratch_parent: where its home and temporary folder is made; the caller removes what remains
            there if this process is killed
        """
        import anyio

        home = Path(tempfile.mkdtemp(prefix="warm-", dir=scratch_parent))
        server = None
        try:
            excluded = list(never)
            for _ in range(MAX_STARTS):
                orders = {"files": [*files], "folders": [*map(str, folders)], "never": excluded}
                server = cls._start(python, home, env, json.dumps(orders).encode())
                hindrance = await server._await_imports()
                if hindrance is None:
                    break
                await server.stop()
                server = None
                if not hindrance:
                    break
                excluded.append(hindrance.partition(".")[0])
            yield server
        finally:
            with anyio.CancelScope(shield=True):
                if server is not None:
                    await server.stop()
                shutil.rmtree(home, ignore_errors=True)

    @classmethod
    def _start(cls, python: Path, home: Path, env: Mapping[str, str], orders: bytes) -> WarmServer:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with Descriptors() as descriptors:
                process = subprocess.Popen(
                    [str(python), str(HARNESS / "warm_server.py"), str(theirs.fileno())],
                    stdin=descriptors.make_file(orders),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    cwd=home,
                    env={**env, "HOME": str(home), "TMPDIR": str(home)},
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise LabError(f"{python} could not be started: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        return cls(str(python), process, ours)

    async def _await_imports(self) -> str | None:
        """Wait for the imports; None if the server can fork, else the module that prevents it.

        An empty name means that the cause is unknown.
        """
        import anyio

        with anyio.move_on_after(IMPORT_S), suppress(ConnectionError):
            await anyio.wait_readable(self._control)
            data = self._control.recv(1 << 16)
            if data:
                hindrance: str | None = json.loads(data)["hindrance"]
                return hindrance
        return ""

    async def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Let the server fork a command, and pass descriptors to it.

        Raises `NotStartedError` if the server has ended.
        """
        import anyio

        data = json.dumps(order).encode()
        while True:
            try:
                socket.send_fds(self._control, [data], list(descriptors))
                return
            except BlockingIOError:
                await anyio.wait_writable(self._control)
            except OSError as error:
                raise NotStartedError(f"the warm process is gone: {error}") from error

    async def stop(self) -> None:
        """Kill the server; commands that it has forked are ended by their callers."""
        import anyio

        self._control.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await anyio.to_thread.run_sync(self._process.wait)


@dataclass(frozen=True, slots=True)
class WarmSandbox:
    """A sandbox whose Python commands are forked from a warm server.

    cold: the sandbox for all other commands
    server: the server for Python commands
    env: the environment with which the server was started
    """

    cold: Sandbox
    server: WarmServer
    env: Mapping[str, str]

    relocates = True

    @property
    def name(self) -> str:
        """The name of the cold sandbox, which enforces the same."""
        return self.cold.name

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the cold sandbox can't enforce."""
        return self.cold.shortfalls

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended."""
        if not self._can_fork(command):
            return await self.cold.run(command)

        async def start(orders: dict[str, Any], passed: InitDescriptors) -> None:
            streams = [passed.stdin, passed.stdout, passed.stderr, passed.report, passed.life]
            streams.append(passed.ended)
            channel = [] if passed.channel is None else [passed.channel]
            files = {
                "joins": [str(join) for join in passed.joins],
                "usage": str(passed.usage) if passed.usage else "",
            }
            await self.server.fork({**orders, **files}, [*streams, *channel])

        try:
            return await run_under_init(
                command,
                start,
                sandbox_name="warm",
                env=private_variables(),
                plan=make_plan(command),
                is_first=True,
                private=list(PRIVATE),
            )
        except NotStartedError:  # such as when the server was killed; the command hasn't run
            return await self.cold.run(command)

    def _can_fork(self, command: Command) -> bool:
        """Return whether a command is ``python -m module`` or ``python file.py`` of this Python."""
        python, *words = command.argv
        is_module = words[:1] == ["-m"] and len(words) > 1
        is_file = bool(words) and words[0].endswith(".py")
        # The server's interpreter read all other variables of Python's when it started.
        fixed = {name for name in command.env if name.startswith("PYTHON")} - {"PYTHONPATH"}
        names = fixed.union(self.env)
        is_same = all(command.env.get(name) == self.env.get(name) for name in names)
        return python == self.server.python and (is_module or is_file) and is_same
