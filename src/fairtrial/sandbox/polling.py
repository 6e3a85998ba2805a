"""Descriptors that are read without waiting for more than is there, and processes that end."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

from fairtrial.sandbox.captured_output import Head, HeadAndTail

_CHUNK = 1 << 16


async def listen(descriptor: int, sink: HeadAndTail | Head) -> None:
    """Read until end-of-file."""
    import anyio

    while True:
        await anyio.wait_readable(descriptor)
        with suppress(BlockingIOError):
            data = os.read(descriptor, _CHUNK)
            if not data:
                return
            sink.add(data)


def read_the_rest(descriptor: int, sink: HeadAndTail | Head) -> None:
    """What is left when nobody writes any more.

    Not up to end-of-file: a process that somebody else forked may hold the other end open.
    """
    with suppress(BlockingIOError):
        while data := os.read(descriptor, _CHUNK):
            sink.add(data)


async def await_exit(process: subprocess.Popen[bytes]) -> None:
    """Wait for a child without a signal handler, so that it works in every thread."""
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
