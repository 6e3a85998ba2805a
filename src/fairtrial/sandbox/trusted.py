"""Running of trusted programs (git, the probe of an interpreter) without a sandbox."""

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
    """Run a program and return its exit status and output; kills and reaps it when cancelled."""
    import anyio

    outputs = [b"", b""]

    async def read(index: int, stream: ByteReceiveStream) -> None:
        outputs[index] = b"".join([chunk async for chunk in stream])

    with Descriptors() as descriptors:
        # Not a pipe, which breaks if the program doesn't read all of it.
        stdin_file = descriptors.make_file(stdin)
        # If the start were cancelled halfway, the child would never be reaped.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                command, stdin=stdin_file, cwd=str(cwd), env=env, start_new_session=True
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
            # By pid: `process.kill` would first reap the child, and asyncio, which waits for it in
            # a thread, would then warn of an unknown child.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.wait()
            raise
    return subprocess.CompletedProcess(list(command), status, *outputs)
