"""Asynchronous reading of descriptors, and waiting for child processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress

from fairtrial.sandbox.captured_output import OutputHead, OutputHeadAndTail

_CHUNK = 1 << 16


async def read_until_eof(
    descriptor: int,
    sink: OutputHeadAndTail | OutputHead,
    is_complete: Callable[[], bool] = lambda: False,
) -> None:
    """Read a non-blocking descriptor until end-of-file, and pass the data to a sink.

    is_complete: tells that nothing more will come, though another process may hold the other end
    """
    import anyio

    while not is_complete():
        await anyio.wait_readable(descriptor)
        with suppress(BlockingIOError):
            data = os.read(descriptor, _CHUNK)
            if not data:
                return
            sink.add(data)


def read_available(descriptor: int, sink: OutputHeadAndTail | OutputHead) -> None:
    """Read what a descriptor holds after its writers have ended.

    Not up to end-of-file: a process that another thread forked may hold the other end open.
    """
    with suppress(BlockingIOError):
        while data := os.read(descriptor, _CHUNK):
            sink.add(data)


async def await_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait for a child process without a signal handler, so that it works in every thread."""
    import anyio

    if process.poll() is not None:
        return
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or an old one
        await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    process.wait()
