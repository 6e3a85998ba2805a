"""Commands forked from a process that has imported third-party packages already.

`fairtrial.sandbox.harness.warm_server` is that process: it runs outside of every sandbox and sees no file of a
candidate. Each fork enters namespaces of its own, as `Namespaces` has it, before it does anything.
What can't be forked (another program, flags of the interpreter) is run by the sandbox behind it.
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
from fairtrial.sandbox.init_process import Handed, NotStartedError, run_child
from fairtrial.sandbox.mount_plan import PRIVATE, make_plan, private_variables
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.protocol import Sandbox
from fairtrial.sandbox.selection import try_sandbox
from fairtrial.sandbox.system import HARNESS

MOST_STARTS = 6
"""How many modules that can't be there are left out before warm starts are given up."""
IMPORT_S = 120.0


def can_be_warm(sandbox: Sandbox) -> bool:
    """Whether commands of this sandbox may be forked: only into namespaces that are as tight."""
    return sandbox.relocates and not try_sandbox(Namespaces())


class WarmServer:
    """A running server. Made by `starting`, ended with its block.

    python: the interpreter that it is
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
        place: Path,
    ) -> AsyncIterator[WarmServer | None]:
        """A server that has imported the modules at `files`; None if there can't be one.

        folders: where modules may come from
        never: top-level names that must not be imported, by others neither
        env: the environment that commands will have, as far as it is always the same
        place: where its own temp and home go; somebody removes what is there if we are killed
        """
        import anyio

        home = Path(tempfile.mkdtemp(prefix="warm-", dir=place))
        server = None
        try:
            left_out = list(never)
            for _ in range(MOST_STARTS):
                told = {"files": [*files], "folders": [*map(str, folders)], "never": left_out}
                server = cls._start(python, home, env, json.dumps(told).encode())
                hindrance = await server._learn_hindrance()
                if hindrance is None:
                    break
                await server.stop()
                server = None
                if not hindrance:
                    break
                left_out.append(hindrance.partition(".")[0])
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
                    stdin=descriptors.holding(orders),
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

    async def _learn_hindrance(self) -> str | None:
        """Let it import; None if all is well, else the module in the way, if that is known."""
        import anyio

        with anyio.move_on_after(IMPORT_S), suppress(ConnectionError):
            await anyio.wait_readable(self._control)
            data = self._control.recv(1 << 16)
            if data:
                hindrance: str | None = json.loads(data)["hindrance"]
                return hindrance
        return ""

    async def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Let it start a command; the descriptors are handed over."""
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
        """End it; what it has forked is ended by those who asked for it."""
        import anyio

        self._control.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await anyio.to_thread.run_sync(self._process.wait)


@dataclass(frozen=True, slots=True)
class Warm:
    """A sandbox whose Python commands start warm.

    cold: the sandbox for all other commands
    server: what Python commands are forked from
    env: the environment that the server was started with
    """

    cold: Sandbox
    server: WarmServer
    env: Mapping[str, str]

    relocates = True

    @property
    def name(self) -> str:
        """The cold one's: both keep the same promises."""
        return self.cold.name

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """The cold one's, which may not have any."""
        return self.cold.shortfalls

    async def run(self, command: Command) -> Completed:
        """Run it to its end; when this returns, or is cancelled, none of its processes is left."""
        if not self._can_fork(command):
            return await self.cold.run(command)

        async def start(orders: dict[str, Any], handed: Handed) -> None:
            given = [handed.stdin, handed.stdout, handed.stderr, handed.report, handed.life]
            channel = [] if handed.channel is None else [handed.channel]
            joins = [str(join) for join in handed.joins]
            await self.server.fork({**orders, "joins": joins}, [*given, *channel])

        try:
            return await run_child(
                command,
                start,
                who="warm",
                env=private_variables(),
                plan=make_plan(command),
                is_first=True,
                private=list(PRIVATE),
            )
        except NotStartedError:  # somebody has ended the server, say; nothing of it has run
            return await self.cold.run(command)

    def _can_fork(self, command: Command) -> bool:
        """Whether it is ``python -m module ...`` or ``python file.py ...`` of the same Python."""
        python, *words = command.argv
        is_module = words[:1] == ["-m"] and len(words) > 1
        is_file = bool(words) and words[0].endswith(".py")
        # What else the interpreter goes by was read when the server started.
        others = {name for name in command.env if name.startswith("PYTHON")} - {"PYTHONPATH"}
        names = others.union(self.env)
        is_same = all(command.env.get(name) == self.env.get(name) for name in names)
        return python == self.server.python and (is_module or is_file) and is_same
