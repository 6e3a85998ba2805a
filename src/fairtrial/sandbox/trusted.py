"""Programs that need no sandbox (git, an interpreter that is asked what it is): nothing of theirs
outlives its caller."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.sandbox.descriptors import Descriptors

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream


async def run_trusted(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end, whatever that is; who is cancelled has killed and reaped it."""
    import anyio

    told = [b"", b""]

    async def read(number: int, stream: ByteReceiveStream) -> None:
        told[number] = b"".join([chunk async for chunk in stream])

    with Descriptors() as descriptors:
        # Not a pipe, which breaks if the program doesn't read it all.
        given = descriptors.holding(stdin)
        # A start that is cancelled half way leaves a child that nobody waits for.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                command, stdin=given, cwd=str(cwd), env=env, start_new_session=True
            )
    async with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read, 0, process.stdout)
                tasks.start_soon(read, 1, process.stderr)
                status = await process.wait()
        except BaseException:
            # By number: what the library kills with would first reap it, and asyncio, which waits
            # for it in a thread, would then complain of a child that it doesn't know.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.wait()
            raise
    return subprocess.CompletedProcess(list(command), status, *told)
